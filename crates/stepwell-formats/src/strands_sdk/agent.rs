//! One agent's files: what it is, and its messages in their order.

use std::borrow::Cow;
use std::path::{Path, PathBuf};

use stepwell::model::{Part, Role, Time, Usage};
use stepwell::{Lane, Message};

use super::content::{hollow, unshown};
use super::kept::Kept;
use crate::json::fields::Fields;
use crate::json::json_text::compact;
use crate::read::input::{self, Input};
use crate::read::neutral::{Sink, Warning};
use crate::{Error, Result};

/// What stands before an agent's id in the name of its folder.
pub(crate) const FOLDER: &str = "agent_";

/// The files of one agent.
#[derive(Debug)]
pub(crate) struct Agent {
    /// Its name.
    pub(crate) id: String,
    /// Where its folder lies, below the session's.
    pub(crate) below: String,
    /// What `agent.json` says, if it could be read.
    pub(crate) raw: Option<String>,
    /// Its messages, in order.
    pub(crate) messages: Vec<Source>,
    /// Its instructions, where they are known.
    pub(crate) system: Option<String>,
    /// The snapshots of it that stay.
    pub(crate) copies: Vec<Copy>,
}

/// A copy of an agent that stays: a snapshot of a moment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Copy {
    /// Its name there.
    pub(crate) name: String,
    /// When it was taken.
    pub(crate) at: Option<Time>,
    /// How many messages the agent had then.
    pub(crate) messages: usize,
}

/// Where a message is found.
#[derive(Debug)]
pub(crate) enum Source {
    /// In a file of its own.
    File(PathBuf),
    /// In a file with others, and read with them.
    Held { place: PathBuf, text: String },
}

impl Source {
    /// The file, or what stands for one.
    pub(crate) fn place(&self) -> &Path {
        match self {
            Self::File(path) => path,
            Self::Held { place, .. } => place,
        }
    }

    fn text(&self, input: &Input) -> Result<Cow<'_, str>> {
        match self {
            Self::File(path) => input.text(path).map(Cow::Owned),
            Self::Held { text, .. } => Ok(Cow::Borrowed(text)),
        }
    }
}

/// A message as it was found.
#[derive(Debug)]
pub(crate) struct Heard {
    /// When it was said.
    pub(crate) at: Option<Time>,
    /// What was said.
    pub(crate) message: Message,
    /// What is kept of its file.
    pub(crate) kept: Kept,
    /// Kinds of blocks in it that are kept, and not shown.
    pub(crate) unshown: Vec<String>,
}

impl Agent {
    /// Looks at an agent's folder. The second answer is what could not be read of it.
    pub(crate) fn at(input: &Input, folder: &Path, id: &str) -> Result<(Self, Option<Error>)> {
        let (raw, fault) = match input.text(&folder.join("agent.json")).and_then(|text| {
            match Fields::parse(&text) {
                Ok(_) => Ok(compact(&text)),
                Err(error) => Err(no_json(&folder.join("agent.json"), &error)),
            }
        }) {
            Ok(raw) => (Some(raw), None),
            Err(error) => (None, Some(error)),
        };
        let own = raw
            .as_deref()
            .and_then(|raw| Fields::parse(raw).ok()?.text("agent_id").map(String::from));
        let mut messages: Vec<(u64, PathBuf)> = input
            .list(&folder.join("messages"))?
            .into_iter()
            .filter_map(|path| Some((number_of(&path)?, path)))
            .collect();
        messages.sort();
        let below = below(input, folder);
        let messages = messages.into_iter().map(|(_, path)| Source::File(path)).collect();
        let (id, system, copies) = (own.unwrap_or_else(|| id.to_owned()), None, Vec::new());
        Ok((Self { id, below, raw, messages, system, copies }, fault))
    }

    /// What `agent.json` says, in fields.
    pub(crate) fn fields(&self) -> Fields<'_> {
        self.raw.as_deref().and_then(|raw| Fields::parse(raw).ok()).unwrap_or_default()
    }

    /// How many messages were moved out of its window, and the summary in their place.
    pub(crate) fn removed(&self) -> (usize, Option<String>) {
        let state = self.fields().object("conversation_manager_state").unwrap_or_default();
        let removed = state.get("removed_message_count").unwrap_or(0);
        let summary = state.object("summary_message").map(|it| super::content::words(&it));
        (removed, summary.filter(|summary| !summary.trim().is_empty()))
    }

    /// When it was made.
    pub(crate) fn created_at(&self) -> Option<Time> {
        moment(&self.fields(), "created_at")
    }

    /// Its message at a place.
    pub(crate) fn heard(&self, input: &Input, n: usize, lane: &Lane) -> Result<Heard> {
        let path = self.messages[n].place();
        let text = self.messages[n].text(input)?;
        let fields = Fields::parse(&text).map_err(|error| no_json(path, &error))?;
        // What stands in the place of a message that was redacted.
        let shown = shown_field(&fields);
        let Some(message) = fields.object(shown) else {
            let why = format!("it holds no {shown}");
            return Err(Error::Foreign { path: path.to_owned(), why });
        };
        let (parts, rest) = hollow(&message);
        let has_results = parts.iter().any(|part| matches!(part, Part::ToolResult(_)));
        let role = match message.text("role").as_deref() {
            Some("assistant") => Role::Assistant,
            Some("system") => Role::System,
            _ if has_results => Role::Tool,
            _ => Role::User,
        };
        let mut said = Message::new(role, parts).in_lane(lane.clone());
        said.usage = usage(&message);
        let file = format!("{}/messages/{}", self.below, name_of(path));
        let kept = Kept::new(file, &fields.rewritten(&[(shown, Some(&rest))]));
        let at = moment(&fields, "created_at");
        Ok(Heard { at, message: said, kept, unshown: unshown(&message) })
    }
}

/// Which of a file's two messages counts.
pub(crate) fn shown_field(fields: &Fields<'_>) -> &'static str {
    if fields.has("redact_message") { "redact_message" } else { "message" }
}

/// The folders of a session's agents, and their ids.
pub(crate) fn folders_of(session: &Path) -> Result<Vec<(PathBuf, String)>> {
    folders(&session.join("agents"), FOLDER)
}

/// The folders whose names begin so, and what follows in the name.
pub(crate) fn folders(folder: &Path, prefix: &str) -> Result<Vec<(PathBuf, String)>> {
    let named = |path: PathBuf| {
        let id = name_of(&path).strip_prefix(prefix)?.to_owned();
        (path.is_dir() && !id.is_empty()).then_some((path, id))
    };
    Ok(input::list(folder)?.into_iter().filter_map(named).collect())
}

/// The number of a message, by the name of its file.
pub(crate) fn number_of(path: &Path) -> Option<u64> {
    let number = name_of(path).strip_prefix("message_")?.strip_suffix(".json")?;
    let digits = !number.is_empty() && number.bytes().all(|b| b.is_ascii_digit());
    digits.then(|| number.parse().ok()).flatten()
}

/// A path below the folder that is read.
pub(crate) fn below(input: &Input, path: &Path) -> String {
    path.strip_prefix(input.root()).unwrap_or(path).to_string_lossy().into_owned()
}

fn name_of(path: &Path) -> &str {
    path.file_name().and_then(|name| name.to_str()).unwrap_or_default()
}

/// The moment in a field; one that names no zone is in UTC.
pub(crate) fn moment(fields: &Fields<'_>, name: &str) -> Option<Time> {
    let text = fields.text(name)?;
    text.parse().ok().or_else(|| format!("{text}Z").parse().ok())
}

/// A file that should hold a JSON object and does not.
pub(crate) fn no_json(path: &Path, error: &serde_json::Error) -> Error {
    Error::Foreign { path: path.to_owned(), why: format!("it is no JSON object ({error})") }
}

/// Tokens as the provider counts them: those of the cache are apart.
fn usage(message: &Fields<'_>) -> Option<Usage> {
    Some(counted(&message.object("metadata")?.object("usage")?))
}

/// Tokens in the SDK's words.
pub(crate) fn counted(usage: &Fields<'_>) -> Usage {
    let count = |name: &str| usage.get::<u64>(name).unwrap_or(0);
    let (cached, written) = (count("cacheReadInputTokens"), count("cacheWriteInputTokens"));
    Usage {
        input: count("inputTokens").saturating_add(cached).saturating_add(written),
        output: count("outputTokens"),
        cached,
        cache_written: written,
        reasoning: 0,
    }
}

/// The JSON object in a file, if there is one. The sink receives a note about a broken file.
pub(super) fn object(input: &Input, path: &Path, sink: &mut dyn Sink) -> Option<String> {
    let read = input.text(path).and_then(|text| match Fields::parse(&text) {
        Ok(_) => Ok(compact(&text)),
        Err(error) => Err(no_json(path, &error)),
    });
    read.map_err(|error| warn(sink, path, &error)).ok()
}

pub(super) fn warn(sink: &mut dyn Sink, path: &Path, error: &Error) {
    let what = match error {
        Error::Unreadable { error, .. } => error.to_string(),
        Error::Foreign { why, .. } => why.clone(),
        other => other.to_string(),
    };
    sink.warn(Warning { place: path.display().to_string(), what });
}
