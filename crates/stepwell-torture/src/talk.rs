//! The orders and reports of the `talker` binary.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use stepwell::{SessionId, Status};

/// The order for one process: its only argument, as JSON.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Order {
    /// A folder with the workspace (`work`) and the user's own (`home`, `config`, `state`).
    pub folder: PathBuf,
    /// The address of the store; absent, the store is in the workspace.
    pub store: Option<String>,
    /// The task.
    pub task: Task,
}

/// What a process does.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub enum Task {
    /// Runs a new session.
    Start {
        /// What asks the question.
        asker: Asker,
        /// The person at its front end.
        person: Person,
    },
    /// Resumes a session.
    Resume {
        /// The session.
        session: SessionId,
        /// The person at its front end.
        person: Person,
    },
    /// Sends messages to a session, one for each line of its input.
    Say {
        /// The session.
        session: SessionId,
        /// The text, in front of a number.
        words: String,
    },
}

/// What asks a person in a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Asker {
    /// An agent.
    Agent,
    /// An agent of a flow.
    Flow,
    /// A subagent.
    Subagent,
}

impl Asker {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Agent, Self::Flow, Self::Subagent];
}

/// The person at a run's front end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Person {
    /// A person who only watches.
    Watches,
    /// The process dies when the question is recorded, before it is shown.
    DiesUnshown,
    /// The process dies after it has shown the question.
    DiesShown,
    /// A person at the process's terminal. The process dies when the answer is recorded, before its
    /// run reads it.
    DiesAnswering,
}

/// A report of a process, one a line.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Said {
    /// The session that it runs.
    Began(SessionId),
    /// It shows a question.
    Shown {
        /// The question's id.
        gate: String,
    },
    /// Its run is over.
    Ended(Status),
}
