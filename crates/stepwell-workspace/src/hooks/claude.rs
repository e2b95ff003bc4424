//! What Claude Code's own hooks say, and how its delegations are found again.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::path::Path;

use serde_json::Value;
use stepwell::model::Driver;
use stepwell::sessions::lifecycle::{Begin, Outcome};
use stepwell::store::Order;
use stepwell::store::query::{Filter, Query, Sort};
use stepwell::{SessionInfo, Stepwell};

use super::{Payload, object, text};
use crate::error::Result;

/// The metadata key that holds Claude Code's name for the conversation.
const CONVERSATION: &str = "claude_session_id";

/// The metadata key that holds its name for the subagent that ended.
pub(super) const SUBAGENT: &str = "claude_agent_id";

/// A call of Claude Code, told by its own payload.
#[derive(Debug)]
pub(super) struct Call<'a> {
    payload: &'a Payload,
    /// Its name for the conversation.
    pub(super) conversation: &'a str,
}

impl<'a> Call<'a> {
    /// The call, if the payload is one of Claude Code's own.
    pub(super) fn of(payload: &'a Payload) -> Option<Self> {
        text(payload, "hook_event_name")?;
        Some(Self { payload, conversation: text(payload, "session_id")? })
    }

    /// The kind of agent that is called or that ended.
    pub(super) fn agent(&self) -> Option<&'a str> {
        let input = object(self.payload, "tool_input");
        let called = input.and_then(|input| text(input, "subagent_type"));
        called.or_else(|| text(self.payload, "agent_type"))
    }

    /// Its name for the subagent.
    pub(super) fn subagent(&self) -> Option<&'a str> {
        text(self.payload, "agent_id")
    }

    /// A session for the delegation that is about to happen; none if nothing is
    /// delegated.
    pub(super) fn begin(&self, workspace: String) -> Option<Begin> {
        let input = object(self.payload, "tool_input")?;
        let agent = text(input, "subagent_type")?.to_owned();
        let purpose = text(input, "description").or_else(|| text(input, "prompt"));
        let keys = [
            (CONVERSATION, text(self.payload, "session_id")),
            ("tool_use_id", text(self.payload, "tool_use_id")),
            ("transcript_path", text(self.payload, "transcript_path")),
        ];
        let metadata: BTreeMap<String, Value> = keys
            .into_iter()
            .filter_map(|(key, value)| Some((key.to_owned(), Value::from(value?))))
            .collect();
        let purpose = purpose.unwrap_or(&agent).to_owned();
        Some(Begin { id: None, agent, purpose, workspace, metadata })
    }

    /// The sessions of this conversation's delegations to this kind of agent, oldest
    /// first.
    pub(super) fn delegations(&self, well: &Stepwell) -> Result<Vec<SessionInfo>> {
        let agent = self.agent().map(ToOwned::to_owned);
        let filter = Filter { driver: Some(Driver::External), agent, ..Filter::default() };
        let query = Query { filter, sort: Sort::Created, order: Order::Oldest, ..Query::default() };
        let mut sessions = well.list(&query)?.sessions;
        sessions.retain(|info| {
            let conversation = info.head.metadata.get(CONVERSATION);
            conversation.and_then(Value::as_str) == Some(self.conversation)
        });
        Ok(sessions)
    }

    /// How the subagent ended, as far as its transcript tells.
    pub(super) fn outcome(&self) -> Outcome {
        let paths = ["agent_transcript_path", "transcript_path"];
        let path = paths.iter().find_map(|name| text(self.payload, name));
        match path.and_then(|path| last_answer(Path::new(path))) {
            Some(answer) if answer.get("isApiErrorMessage") == Some(&Value::Bool(true)) => {
                Outcome::Failed
            }
            _ => Outcome::Completed,
        }
    }
}

/// How much of a transcript's end is looked at.
const TAIL: u64 = 256 << 10;

/// The last answer of the model in a transcript, if one can be read.
fn last_answer(path: &Path) -> Option<Payload> {
    // Looked at before it is opened: opening a pipe would wait for whoever writes to it.
    let length = std::fs::metadata(path).ok().filter(std::fs::Metadata::is_file)?.len();
    let mut file = File::open(path).ok()?;
    file.seek(SeekFrom::Start(length.saturating_sub(TAIL))).ok()?;
    let mut tail = Vec::new();
    file.take(TAIL).read_to_end(&mut tail).ok()?;
    let lines = tail.split(|byte| *byte == b'\n').rev();
    let mut objects = lines.filter_map(|line| serde_json::from_slice::<Payload>(line).ok());
    objects.find(|line| text(line, "type") == Some("assistant"))
}
