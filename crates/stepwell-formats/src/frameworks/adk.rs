//! ADK's databases: sessions, their events, and the state of sessions, users and apps. The older of
//! two schemas has a column for each field of an event, and pickles its actions.

use std::path::Path;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use rusqlite::types::ValueRef;
use rusqlite::{Connection, Row};
use serde_json::{Map, Value};
use stepwell::Message;
use stepwell::model::{Part, Role, Time, ToolCall, ToolResult, Usage};

use super::conversation::{
    Conversation, Spoken, has_only, is_too_long, picture, seconds, task_of, text, thinking, tokens,
    warning,
};
use crate::read::foreign_database::{Opened, columns, fault, moment, open};
use crate::read::input::Input;
use crate::read::neutral::{Opening, Sink, Wanted};
use crate::{Error, Result};

/// The system's name in a session's source; the Python adapter's is the same.
pub(super) const SYSTEM: &str = "adk";

/// Columns of the older schema that hold JSON.
const JSON: [&str; 8] = [
    "content",
    "grounding_metadata",
    "custom_metadata",
    "usage_metadata",
    "citation_metadata",
    "input_transcription",
    "output_transcription",
    "long_running_tool_ids_json",
];

/// How many events are looked at for what a session is about.
const FIRST: usize = 20;

/// Reads every session of a database.
pub(super) fn read(input: &Input, sink: &mut dyn Sink) -> Result<()> {
    let path = input.root();
    let Opened { connection, seen, .. } = &open(path)?;
    let fault = |error: rusqlite::Error| fault(path, &error);
    let events = columns(connection, "events").map_err(fault)?;
    let has_sessions = !columns(connection, "sessions").map_err(fault)?.is_empty();
    let has = |name: &str| events.iter().any(|it| it == name);
    let is_newer = has("event_data");
    if !has_sessions || !(is_newer || (has("author") && has("content"))) {
        let why = "it has no tables of sessions and events".to_owned();
        return Err(Error::Foreign { path: path.to_owned(), why });
    }
    let source = Source { connection, path, events: &events, is_newer };
    for name in source.names().map_err(fault)? {
        if !sink.knows(&name.id(), seen.as_ref())? {
            source.session(&name, sink)?;
        }
    }
    if !is_newer {
        let what = "this database has the older schema: what events did to the state is pickled \
                    there, and was kept as bytes";
        sink.warn(warning(path, what));
    }
    Ok(())
}

/// A session's own name: an app, a user, an id.
struct Name([String; 3]);

impl Name {
    fn id(&self) -> String {
        self.0.join("/")
    }

    /// What its user's sessions are listed by, as the Python adapter has it.
    fn scope(&self) -> String {
        use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
        const KEPT: &AsciiSet =
            &NON_ALPHANUMERIC.remove(b'_').remove(b'.').remove(b'-').remove(b'~');
        let [app, user, _] = &self.0;
        let plain = |text: &str| utf8_percent_encode(text, KEPT).to_string();
        format!("adk/{}/{}", plain(app), plain(user))
    }
}

/// What is read.
struct Source<'a> {
    connection: &'a Connection,
    path: &'a Path,
    events: &'a [String],
    is_newer: bool,
}

impl Source<'_> {
    fn names(&self) -> rusqlite::Result<Vec<Name>> {
        let sql = "SELECT app_name, user_id, id FROM sessions ORDER BY create_time, id";
        let name = |row: &Row<'_>| Ok(Name([row.get(0)?, row.get(1)?, row.get(2)?]));
        self.connection.prepare(sql)?.query_map([], name)?.collect()
    }

    fn session(&self, name: &Name, sink: &mut dyn Sink) -> Result<()> {
        let fault = |error: rusqlite::Error| fault(self.path, &error);
        let id = name.id();
        let mut first = Vec::new();
        self.events(name, Some(FIRST), |_, event| {
            first.extend(event.and_then(|event| message(&event)));
            Ok(())
        })?;
        let task = task_of(first.iter().map(|spoken| &spoken.message)).unwrap_or_default();
        let mut opening = Opening::new(&id, task);
        opening.created.agent = name.0[0].clone();
        opening.created.scope = Some(name.scope());
        (opening.started_at, opening.updated_at) = self.times(name).map_err(fault)?;
        if sink.begin(opening)? == Wanted::Known {
            return Ok(());
        }
        let mut left_out = 0;
        let mut told = Conversation::new(sink, SYSTEM);
        self.events(name, None, |at, event| match event {
            None => {
                left_out += 1;
                Ok(())
            }
            Some(event) => match message(&event) {
                Some(spoken) => told.say(at, spoken).map(drop),
                None => told.keep(at, event.to_string()).map(drop),
            },
        })?;
        told.end(Some(self.state(name).map_err(fault)?.to_string()))?;
        if left_out > 0 {
            let events = stepwell::model::counted(left_out, "event");
            let what = format!("left out of {id}: {events} that are no JSON, or too long");
            sink.warn(warning(self.path, what));
        }
        Ok(())
    }

    /// Each event of a session, in order; none in place of one that cannot be read.
    fn events(
        &self,
        name: &Name,
        most: Option<usize>,
        mut each: impl FnMut(Option<Time>, Option<Value>) -> Result<()>,
    ) -> Result<()> {
        let fault = |error: rusqlite::Error| fault(self.path, &error);
        let list = self.events.iter().map(|name| format!("\"{}\"", name.replace('"', "\"\"")));
        let list = list.collect::<Vec<_>>().join(", ");
        let limit = most.map_or_else(String::new, |most| format!(" LIMIT {most}"));
        let sql = format!(
            "SELECT {list} FROM events WHERE app_name = ?1 AND user_id = ?2 AND session_id = ?3 \
             ORDER BY timestamp, rowid{limit}"
        );
        let mut statement = self.connection.prepare(&sql).map_err(fault)?;
        let mut rows = statement.query(name.0.each_ref()).map_err(fault)?;
        while let Some(row) = rows.next().map_err(fault)? {
            let event = if self.is_newer { self.newer(row) } else { self.older(row) };
            let told = event.as_ref().and_then(|it| it.get("timestamp")?.as_f64());
            let at = told.and_then(seconds).or_else(|| time(row, self.index("timestamp")?));
            each(at, event)?;
        }
        Ok(())
    }

    fn index(&self, name: &str) -> Option<usize> {
        self.events.iter().position(|it| it == name)
    }

    fn newer(&self, row: &Row<'_>) -> Option<Value> {
        json(row, self.index("event_data")?).filter(Value::is_object)
    }

    /// An event of the older schema, in the form of the newer one.
    fn older(&self, row: &Row<'_>) -> Option<Value> {
        let mut event = Map::new();
        for (n, name) in self.events.iter().enumerate() {
            let value = match row.get_ref(n).ok()? {
                ValueRef::Null => continue,
                ValueRef::Integer(number) => number.into(),
                ValueRef::Real(number) => number.into(),
                ValueRef::Blob(bytes) if name == "actions" => {
                    event.insert("actions_pickled".to_owned(), STANDARD.encode(bytes).into());
                    continue;
                }
                ValueRef::Text(_) | ValueRef::Blob(_) if JSON.contains(&name.as_str()) => {
                    json(row, n)?
                }
                ValueRef::Text(bytes) | ValueRef::Blob(bytes) => {
                    String::from_utf8_lossy(bytes).into_owned().into()
                }
            };
            event.insert(name.clone(), value);
        }
        Some(event.into())
    }

    fn times(&self, name: &Name) -> rusqlite::Result<(Option<Time>, Option<Time>)> {
        let sql = "SELECT create_time, update_time FROM sessions \
                   WHERE app_name = ?1 AND user_id = ?2 AND id = ?3";
        self.connection.query_row(sql, name.0.each_ref(), |row| Ok((time(row, 0), time(row, 1))))
    }

    /// What the session, its user and its app remember.
    fn state(&self, name: &Name) -> rusqlite::Result<Value> {
        let [app, user, id] = &name.0;
        let mut state = Map::new();
        let questions: [(&str, &str, &[&String]); 3] = [
            (
                "state",
                "sessions WHERE app_name = ?1 AND user_id = ?2 AND id = ?3",
                &[app, user, id],
            ),
            ("user_state", "user_states WHERE app_name = ?1 AND user_id = ?2", &[app, user]),
            ("app_state", "app_states WHERE app_name = ?1", &[app]),
        ];
        for (word, rest, named) in questions {
            let mut statement = self.connection.prepare(&format!("SELECT state FROM {rest}"))?;
            let mut rows = statement.query(rusqlite::params_from_iter(named))?;
            if let Some(found) = rows.next()?.and_then(|row| json(row, 0)) {
                state.insert(word.to_owned(), found);
            }
        }
        Ok(state.into())
    }
}

/// A column that holds JSON, if it does and is not too long.
fn json(row: &Row<'_>, n: usize) -> Option<Value> {
    match row.get_ref(n).ok()? {
        ValueRef::Text(bytes) | ValueRef::Blob(bytes) => {
            let length = i64::try_from(bytes.len()).unwrap_or(i64::MAX);
            serde_json::from_slice(bytes).ok().filter(|_| !is_too_long(length))
        }
        _ => None,
    }
}

/// A moment: seconds, or a text.
fn time(row: &Row<'_>, n: usize) -> Option<Time> {
    match row.get_ref(n).ok()? {
        #[expect(clippy::cast_precision_loss, reason = "seconds of this age are exact")]
        ValueRef::Integer(number) => seconds(number as f64),
        ValueRef::Real(number) => seconds(number),
        ValueRef::Text(bytes) => moment(std::str::from_utf8(bytes).ok()?),
        _ => None,
    }
}

/// What an event says; none, if it says nothing.
fn message(event: &Value) -> Option<Spoken> {
    let blocks = event.get("content")?.get("parts")?.as_array()?;
    let parts: Vec<Part> = blocks.iter().filter_map(part).collect();
    if parts.is_empty() {
        return None;
    }
    let is_result = parts.iter().any(|part| matches!(part, Part::ToolResult(_)));
    let role = match text(event, "author") {
        _ if is_result => Role::Tool,
        Some("user") => Role::User,
        _ => Role::Assistant,
    };
    let mut message = Message::new(role, parts);
    message.usage = event.get("usage_metadata").and_then(usage);
    message.model = text(event, "model_version").map(str::to_owned);
    let mut rest = event.clone();
    if blocks.iter().all(is_understood)
        && let Some(rest) = rest.as_object_mut()
    {
        rest.remove("content");
    }
    Some(Spoken { message, rest: vec![rest.to_string()] })
}

fn part(block: &Value) -> Option<Part> {
    if let Some(said) = text(block, "text").filter(|said| !said.is_empty()) {
        let is_thought = block.get("thought").and_then(Value::as_bool) == Some(true);
        return Some(if is_thought { thinking(said) } else { Part::text(said) });
    }
    let name = |it: &Value| text(it, "name").unwrap_or_default().to_owned();
    let id = |it: &Value| text(it, "id").map_or_else(|| name(it), str::to_owned);
    if let Some(call) = block.get("function_call").filter(|it| it.is_object()) {
        let arguments = call.get("args").map_or_else(|| "{}".to_owned(), Value::to_string);
        let call = ToolCall { id: id(call), name: name(call), arguments, opaque: None };
        return Some(Part::ToolCall(call));
    }
    if let Some(told) = block.get("function_response").filter(|it| it.is_object()) {
        let text = told.get("response").map(Value::to_string).unwrap_or_default();
        let result = ToolResult { call_id: id(told), text, ..ToolResult::default() };
        return Some(Part::ToolResult(result));
    }
    let data = block.get("inline_data")?;
    let media = text(data, "mime_type").filter(|media| media.starts_with("image/"))?;
    Some(picture(media, text(data, "data")?))
}

/// Does a part of ours hold all of a block?
fn is_understood(block: &Value) -> bool {
    let inner = |name: &str, fields: &[&str]| {
        has_only(block, &[name]) && block.get(name).is_some_and(|it| has_only(it, fields))
    };
    (has_only(block, &["text", "thought"]) && text(block, "text").is_some_and(|it| !it.is_empty()))
        || inner("function_call", &["id", "name", "args"])
        || inner("inline_data", &["mime_type", "data"]) && part(block).is_some()
}

fn usage(told: &Value) -> Option<Usage> {
    told.is_object().then(|| Usage {
        input: tokens(told, "prompt_token_count"),
        output: tokens(told, "candidates_token_count")
            .saturating_add(tokens(told, "thoughts_token_count")),
        cached: tokens(told, "cached_content_token_count"),
        reasoning: tokens(told, "thoughts_token_count"),
        ..Usage::default()
    })
}
