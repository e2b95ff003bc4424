//! What a process of its own does for a front end that may not live as long.
//!
//! A server that is restarted must not take its runs with it. So it starts a program with a
//! [`DetachedRequest`] on its input and reads one line from it, the [`DetachedAnswer`]: the session,
//! once it is there, or what was done, or why not. The program goes on by itself.

mod launch;
mod perform;

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use stepwell::{Mode, Money, Scope, SessionId};

pub use launch::Launcher;
pub use perform::{Performed, rewind_answer, rewind_asked};

use crate::request::RunOptions;
use stepwell_agent::run::Patience;

/// What is to be done, and for whom.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct DetachedRequest {
    /// Who asked for it, as the log names them; absent, the user of the process.
    pub who: Option<String>,
    /// What is to be done.
    pub work: Work,
}

/// What is to be done.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Work {
    /// A new run of an agent.
    Run {
        /// What to do.
        task: String,
        /// The id of its session, so that asking twice starts one.
        session: Option<SessionId>,
        /// How it works.
        options: DetachedOptions,
    },
    /// A session is resumed.
    Resume {
        /// The session.
        session: SessionId,
        /// What to do next, if it is not what it did.
        say: Option<String>,
        /// How it works.
        options: DetachedOptions,
    },
    /// A new run of a flow.
    Flow {
        /// Where the spec is.
        spec: PathBuf,
        /// The values of its variables, as they are typed.
        variables: BTreeMap<String, String>,
        /// How its agents work.
        options: DetachedOptions,
    },
    /// A conversation is made shorter.
    Compact {
        /// The session.
        session: SessionId,
    },
    /// A session is moved back, or a move is taken back.
    Rewind(DetachedRewind),
}

/// A move of a session.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct DetachedRewind {
    /// The session.
    pub session: SessionId,
    /// What is done.
    pub to: RewindTo,
    /// What is moved.
    pub scope: Scope,
    /// Are files overwritten that someone else changed since?
    pub force: bool,
    /// Is only said what would be done?
    pub dry_run: bool,
}

/// Where a rewind leads.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RewindTo {
    /// To a point: a seq, a checkpoint's name, or `-N` for N steps back.
    Point(String),
    /// To what the user said last: all that was done about it is taken back.
    LastWords,
    /// The last rewind is taken back.
    Undo,
    /// The last undo is taken back.
    Redo,
}

/// How a run works, where it is not as the configuration says.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct DetachedOptions {
    /// The agent.
    pub agent: Option<String>,
    /// The model: `provider/name`, or `script:FILE`.
    pub model: Option<String>,
    /// When a person is asked.
    pub mode: Option<Mode>,
    /// The most dollars of this run.
    pub budget: Option<Money>,
    /// The most steps of this run.
    pub max_steps: Option<u64>,
}

impl From<DetachedOptions> for RunOptions {
    fn from(request: DetachedOptions) -> Self {
        let DetachedOptions { agent, model, mode, budget, max_steps } = request;
        // Nobody sits at it: it waits until someone answers.
        let patience = Patience::Wait;
        Self { agent, model, mode, budget, max_steps, patience, ..Self::default() }
    }
}

/// The line that the program writes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DetachedAnswer {
    /// The session is there, and its run goes on.
    Started {
        /// The session.
        session: SessionId,
    },
    /// It is done; what was done, as `stepwell-wire` writes it.
    Done(Value),
    /// It could not be done.
    Failed {
        /// Why not.
        message: String,
        /// What would help.
        hint: Option<String>,
        /// Is somebody else at it?
        busy: bool,
    },
}
