//! A session of goose, told message by message, whatever it was kept in.

use stepwell::model::{Change, Compacted, Edited, MAX_NAME_BYTES, Part, Role, Time};
use stepwell::{Lane, Message, Seq};

use super::{SYSTEM, content};
use crate::Result;
use crate::json::fields::{Fields, push_field};
use crate::read::foreign_database::moment;
use crate::read::neutral::{Item, Opening, Sink};
use crate::read::steps::Steps;

/// One message, as goose keeps it.
pub(super) struct Row<'a> {
    pub(super) role: &'a str,
    pub(super) content: &'a str,
    /// When, in seconds.
    pub(super) created: Option<i64>,
    /// Who may see it.
    pub(super) metadata: Option<&'a str>,
    /// All else, as a JSON object.
    pub(super) rest: &'a str,
}

/// A session as it is told.
pub(super) struct Session<'a> {
    sink: &'a mut dyn Sink,
    provider: String,
    steps: Steps,
    /// Stretches of messages that a compaction hid from the model.
    hidden: Vec<(Seq, Seq)>,
    is_hidden: bool,
    last_at: Option<Time>,
}

impl<'a> Session<'a> {
    /// A session that has begun.
    pub(super) fn new(sink: &'a mut dyn Sink, provider: &str) -> Self {
        let (steps, hidden) = (Steps::default(), Vec::new());
        let provider = provider.to_owned();
        Self { sink, provider, steps, hidden, is_hidden: false, last_at: None }
    }

    /// The next message. What cannot be understood is kept as it is.
    pub(super) fn row(&mut self, row: &Row<'_>) -> Result<()> {
        let at = row.created.and_then(seconds);
        self.last_at = at.max(self.last_at);
        let role = match row.role {
            "user" => Some(Role::User),
            "assistant" => Some(Role::Assistant),
            "system" => Some(Role::System),
            _ => None,
        };
        let content = content::read(row.content, &self.provider);
        let (Some(role), Some(content)) = (role, content) else {
            return self.alone(at, row.rest, row.content);
        };
        if content.parts.is_empty() {
            return self.alone(at, row.rest, row.content);
        }
        let results = content.parts.iter().any(|part| matches!(part, Part::ToolResult(_)));
        let role = if results { Role::Tool } else { role };
        let message = Message::new(role, content.parts);
        let step = self.steps.said(&message);
        let place = self.sink.push(Item::new(at, message))?;
        self.hide(place, row.metadata);
        self.sink.push(Item::beside(SYSTEM, at, with(row.rest, "content", &content.rest)))?;
        match step {
            Some(step) => self.sink.push(Item::new(at, step)).map(drop),
            None => Ok(()),
        }
    }

    fn alone(&mut self, at: Option<Time>, rest: &str, content: &str) -> Result<()> {
        self.sink.push(Item::alone(SYSTEM, at, with(rest, "content", content))).map(drop)
    }

    /// Notes what the model is not shown.
    fn hide(&mut self, place: Seq, metadata: Option<&str>) {
        let metadata = metadata.and_then(|text| Fields::parse(text).ok()).unwrap_or_default();
        let hidden = metadata.raw("agentVisible") == Some("false");
        match (hidden, self.hidden.last_mut()) {
            (true, Some((_, to))) if self.is_hidden => *to = place,
            (true, _) => self.hidden.push((place, place)),
            (false, _) => {}
        }
        self.is_hidden = hidden;
    }

    /// The session was told to its end. What was hidden is told last, and so is what goose says
    /// `about` the whole: that changes while what was said does not.
    pub(super) fn end(self, about: &str, attributes: Edited) -> Result<()> {
        for (from, to) in &self.hidden {
            let compacted = Compacted::new(Lane::main(), *from, *to);
            self.sink.push(Item::new(self.last_at, compacted))?;
        }
        self.sink.push(Item::of_session(SYSTEM, about))?;
        if attributes != Edited::default() {
            self.sink.push(Item::new(self.last_at, attributes))?;
        }
        self.sink.push(Item::new(self.last_at, self.steps.status()))?;
        self.sink.end()
    }
}

/// A JSON object with one field more, if there is something to put there.
fn with(object: &str, name: &str, raw: &str) -> String {
    if raw.is_empty() {
        return object.to_owned();
    }
    // What is no JSON is kept as text.
    let sound = serde_json::from_str::<&serde_json::value::RawValue>(raw).is_ok();
    let raw = if sound { raw.to_owned() } else { crate::json::fields::quoted(raw) };
    crate::json::fields::with_fields(object, &[(name, &raw)])
}

/// A moment of so many seconds, if it is one.
pub(super) fn seconds(seconds: i64) -> Option<Time> {
    // Some of its tools count milliseconds.
    let seconds = if seconds.abs() > 100_000_000_000 { seconds / 1000 } else { seconds };
    (seconds > 0).then(|| Time::from_micros(seconds.saturating_mul(1_000_000)))
}

/// What goose says of a session, as a JSON object of its columns or fields.
pub(super) fn opening(id: &str, about: &Fields<'_>, task: String) -> Opening {
    let mut opening = Opening::new(id, task);
    let text = |name: &str| about.text(name).unwrap_or_default().into_owned();
    opening.created.workspace = text("working_dir");
    opening.created.provider = text("provider_name");
    let config = about.object("model_config").or_else(|| about.object("model_config_json"));
    let config = config.unwrap_or_default();
    opening.created.model = config.text("model_name").unwrap_or_default().into_owned();
    let kind = text("session_type");
    if kind != "user" {
        opening.created.agent = kind;
    }
    opening.started_at = about.text("created_at").and_then(|text| moment(&text));
    opening.updated_at = about.text("updated_at").and_then(|text| moment(&text));
    opening
}

/// What goose says of a session that people use: its name, what it cost.
pub(super) fn attributes(about: &Fields<'_>) -> Edited {
    let mut edited = Edited::default();
    let name = about
        .text("name")
        .filter(|_| about.is_true("user_set_name") || about.raw("user_set_name") == Some("1"));
    let fits = |name: &str| {
        !name.trim().is_empty()
            && name.len() <= MAX_NAME_BYTES
            && !name.starts_with('@')
            && !name.chars().any(char::is_control)
    };
    if let Some(name) = name.filter(|name| fits(name)) {
        edited.label = Change::Set(name.into_owned());
    }
    if about.has("archived_at") {
        edited.tag.insert("archived".to_owned());
    }
    // goose counts for a session, not for a message: it is told as it is.
    let mut spent = String::from("{");
    for field in ["accumulated_input_tokens", "accumulated_output_tokens", "accumulated_cost"] {
        if let Some(raw) = about.raw(field).filter(|raw| *raw != "null" && raw.len() < 40) {
            push_field(&mut spent, field, raw);
        }
    }
    spent.push('}');
    match serde_json::from_str(&spent) {
        Ok(serde_json::Value::Object(spent)) if !spent.is_empty() => {
            edited.metadata.insert(SYSTEM.to_owned(), spent.into());
        }
        _ => {}
    }
    edited
}
