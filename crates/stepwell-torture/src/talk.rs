//! What the `talker` binary is asked to do, and what it says.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use stepwell::{SessionId, Status};

/// What one process is to do. It is its only argument, as JSON.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Order {
    /// A folder with the workspace (`work`) and the user's own (`home`, `config`, `state`).
    pub folder: PathBuf,
    /// The address of the store; absent, it is in the workspace.
    pub store: Option<String>,
    /// What it does there.
    pub task: Task,
}

/// What a process does.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub enum Task {
    /// Runs a new session.
    Start {
        /// Who asks in it.
        asker: Asker,
        /// Who sits before it.
        person: Person,
    },
    /// Goes on with a session.
    Resume {
        /// The session.
        session: SessionId,
        /// Who sits before it.
        person: Person,
    },
    /// Says some things to a session, one for each line on its input.
    Say {
        /// The session.
        session: SessionId,
        /// What is said, before a number.
        words: String,
    },
}

/// Who asks a person in a run.
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
    /// Every one.
    pub const ALL: [Self; 3] = [Self::Agent, Self::Flow, Self::Subagent];
}

/// Who sits before a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Person {
    /// Somebody who only looks.
    Watches,
    /// The process dies when the question is on record, before anyone is shown it.
    DiesUnshown,
    /// The process dies when it has shown the question.
    DiesShown,
    /// Somebody at the terminal of the process, which dies when their answer is on record, before
    /// its run takes it.
    DiesAnswering,
}

/// What a process says, one line each.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Said {
    /// The session that it runs.
    Began(SessionId),
    /// It shows a question.
    Shown {
        /// The question's name.
        gate: String,
    },
    /// Its run is over.
    Ended(Status),
}
