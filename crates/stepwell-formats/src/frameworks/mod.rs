//! Sessions that Python frameworks keep in SQLite files of their own: LangGraph, OpenAI Agents and
//! Google's ADK; and LangGraph's tables on PostgreSQL, copied. They are read, and not written. `stepwell-python`'s adapters keep such sessions here
//! from the start; this is for what people have already.

mod adk;
mod conversation;
mod langgraph;
mod openai;

use std::path::PathBuf;

use crate::Result;
use crate::read::foreign_database::mentions;
use crate::read::input::Input;
use crate::read::neutral::Sink;
use crate::read::reader::{Probe, Reader};
use crate::registry::Entry;

pub use langgraph::{Cells, LangGraphTables};

/// LangGraph's `SqliteSaver`.
pub(crate) static LANGGRAPH: Entry = Entry {
    name: langgraph::SYSTEM,
    aliases: &[],
    title: "LangGraph",
    reader: Some(&Database {
        words: &["checkpoint_ns", "parent_checkpoint_id", "task_id"],
        read: langgraph::read,
    }),
    writer: None,
};

/// `SQLiteSession` of OpenAI Agents.
pub(crate) static OPENAI: Entry = Entry {
    name: openai::SYSTEM,
    aliases: &["openai-agents"],
    title: "OpenAI Agents",
    reader: Some(&Database { words: &["session_id", "message_data"], read: openai::read }),
    writer: None,
};

/// ADK's `SqliteSessionService` and `DatabaseSessionService`.
pub(crate) static ADK: Entry = Entry {
    name: adk::SYSTEM,
    aliases: &["google-adk"],
    title: "ADK",
    reader: Some(&Database {
        words: &["app_states", "user_states", "invocation_id"],
        read: adk::read,
    }),
    writer: None,
};

/// A database that is known by the words of its schema.
struct Database {
    words: &'static [&'static str],
    read: fn(&Input, &mut dyn Sink) -> Result<()>,
}

impl Reader for Database {
    fn recognise(&self, probe: &Probe) -> Option<PathBuf> {
        mentions(&probe.head, self.words).then(|| probe.path.clone())
    }

    fn read(&self, input: &Input, sink: &mut dyn Sink) -> Result<()> {
        (self.read)(input, sink)
    }
}
