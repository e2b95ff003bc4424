//! The turn engine: a session as an editor sees it, in words of our own. It knows no protocol, so
//! that a second version of one is another adapter beside the first.

mod advice;
mod call;
mod commands;
mod conversation;
mod narrate;
mod notice;
mod proposal;
mod reporter;
mod running;

use std::path::PathBuf;

use serde_json::Value;
use stepwell::model::{Gate, Money};
use stepwell::{Seq, StopReason};
use stepwell_runtime::OpenGate;

pub(crate) use call::{CallKind, Location};
pub(crate) use commands::{Command, offered};
pub(crate) use conversation::{Begin, Brought, Conversation, Prompt};
pub(crate) use narrate::Narrator;
pub(crate) use notice::{Notice, Severity, runtime_notice, works_in};
pub(crate) use proposal::Proposal;
pub(crate) use running::{Input, Running, TurnEnd};

/// Something that an editor shows.
#[derive(Clone, Debug)]
pub(crate) enum TurnEvent {
    /// What the user said.
    User(Chunk),
    /// What the model says.
    Text(Chunk),
    /// What the model thinks.
    Thought(Chunk),
    /// The model asks for a tool.
    Call(Call),
    /// How a tool goes on.
    CallChanged(CallChange),
    /// What the session plans to do, all of it.
    Plan(Vec<PlanEntry>),
    /// How full the context is, and what the session cost.
    Usage(Usage),
    /// The conversation was made shorter.
    Compacted {
        /// Where that is recorded.
        seq: Seq,
        /// What stands for what went.
        summary: Option<String>,
    },
    /// The session's title.
    Title(String),
    /// Something that a person should know.
    Notice(Notice),
    /// A person is asked. The question is on record.
    Ask(Box<OpenGate>),
    /// A question was answered, here or elsewhere.
    Answered {
        /// Its name.
        gate: String,
    },
    /// Nothing follows.
    Ended {
        /// Why the run ended.
        reason: Option<StopReason>,
    },
}

/// A piece of a message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Chunk {
    /// The message's name: pieces of the same message have the same one.
    pub(crate) message: String,
    /// The piece.
    pub(crate) text: String,
}

impl Chunk {
    /// What a session waits for that nobody runs: the next prompt answers it.
    pub(crate) fn question(gate: &Gate) -> Self {
        let hint = match gate.call {
            Some(_) => "\n\nAnswer yes, always, no or never; or say what to do instead.",
            None => "",
        };
        Self { message: format!("gate-{}", gate.id), text: format!("{}{hint}", gate.prompt) }
    }
}

/// A call of a tool.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Call {
    /// Its name.
    pub(crate) id: String,
    /// The tool.
    pub(crate) tool: String,
    /// What it does, in one line.
    pub(crate) title: String,
    /// What sort of thing it does.
    pub(crate) kind: CallKind,
    /// The files that it is about.
    pub(crate) locations: Vec<Location>,
    /// Its arguments.
    pub(crate) input: Value,
}

/// How a call of a tool goes on.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct CallChange {
    /// Its name.
    pub(crate) id: String,
    /// How it stands.
    pub(crate) state: CallState,
    /// What it says; all of it, each time.
    pub(crate) text: Option<String>,
    /// What it did to files.
    pub(crate) diffs: Vec<Diff>,
}

/// How a call stands.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum CallState {
    /// It runs.
    #[default]
    Running,
    /// It did what it was asked.
    Done,
    /// It did not.
    Failed,
}

/// What became of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Diff {
    /// The file's path.
    pub(crate) path: PathBuf,
    /// What it held; absent, it was not there.
    pub(crate) before: Option<String>,
    /// What it holds.
    pub(crate) after: String,
}

/// One thing that is planned.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct PlanEntry {
    /// What is to be done.
    pub(crate) text: String,
    /// How far it is.
    pub(crate) state: PlanState,
}

/// How far a planned thing is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PlanState {
    /// Not begun.
    Pending,
    /// Begun.
    Running,
    /// Over, whichever way.
    Done,
}

/// How full the context is, and what the session cost.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Usage {
    /// Tokens in the context.
    pub(crate) used: u64,
    /// Tokens that fit.
    pub(crate) size: u64,
    /// What the session cost; none, if the price of some of it is not known.
    pub(crate) cost: Option<Money>,
}
