//! What a process of its own does for a front end that may not live as long.
//!
//! A server that is restarted must not take its runs with it, nor a terminal that is closed. So
//! the front end starts a program with a
//! [`DetachedRequest`] on its input and reads one line from it, the [`DetachedAnswer`]: the session,
//! once it is there, or what was done, or why not. The program goes on by itself.

mod launch;
mod perform;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use stepwell::SessionId;
use stepwell::model::{Answer, Mode, Money, PhaseSet};

pub use launch::{Launcher, Program};
pub use perform::Performed;

use crate::command::MoveCommand;
use crate::error::ErrorKind;
use crate::request::{FlowOptions, Given, RunOptions};
use stepwell_agent::run::Patience;

/// What is to be done, and for whom.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct DetachedRequest {
    /// Who asked for it, as the log names them; absent, the user of the process.
    pub who: Option<String>,
    /// What the front end grants them.
    #[serde(default)]
    pub grants: Grants,
    /// What is to be done.
    pub work: Work,
}

impl From<Work> for DetachedRequest {
    /// Asked for by the user of the process.
    fn from(work: Work) -> Self {
        Self { who: None, grants: Grants::default(), work }
    }
}

/// What a front end grants those who ask, whatever they ask for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Grants {
    /// Is it somebody else than the user? What they allow is not noted as the user's own.
    pub is_other: bool,
    /// The loosest mode of their runs; absent, any.
    pub loosest_mode: Option<Mode>,
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
        /// The phases that its work goes through.
        phases: Option<PhaseSet>,
        /// How it works.
        options: DetachedOptions,
    },
    /// A session is resumed.
    Resume(DetachedResume),
    /// A new run of a flow.
    Flow {
        /// Where the spec is.
        spec: PathBuf,
        /// The values of its variables, as they are typed.
        variables: BTreeMap<String, String>,
        /// How its agents work.
        options: DetachedOptions,
        /// What is for flows only.
        flow: FlowOptions,
    },
    /// A conversation is made shorter.
    Compact {
        /// The session.
        session: SessionId,
    },
    /// A session is moved back, or a move is taken back.
    Rewind(DetachedRewind),
}

impl Work {
    /// How its run works, if it is one.
    #[must_use]
    pub const fn options(&self) -> Option<&DetachedOptions> {
        match self {
            Self::Run { options, .. } | Self::Flow { options, .. } => Some(options),
            Self::Resume(resume) => Some(&resume.options),
            Self::Compact { .. } | Self::Rewind(_) => None,
        }
    }
}

/// A session that is resumed.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct DetachedResume {
    /// The session.
    pub session: SessionId,
    /// What to do next, if it is not what it did.
    pub say: Option<String>,
    /// The answer to the question that it waits with.
    pub answer: Option<TypedAnswer>,
    /// How it works.
    pub options: DetachedOptions,
    /// What is for flows only.
    pub flow: FlowOptions,
}

/// An answer, as it is typed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TypedAnswer {
    /// The question's name; absent, the only one that waits is meant, or an agent's last one.
    pub gate: Option<String>,
    /// The answer.
    pub text: String,
}

impl From<TypedAnswer> for Given {
    fn from(TypedAnswer { gate, text }: TypedAnswer) -> Self {
        Self { gate, answer: Answer::Text(text) }
    }
}

/// A move of a session.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct DetachedRewind {
    /// The session.
    pub session: SessionId,
    /// Where to, and what is moved.
    pub command: MoveCommand,
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
    /// The most dollars of the session; kept for later runs.
    pub budget_total: Option<Money>,
    /// The most tokens of this run.
    pub max_tokens: Option<u64>,
    /// The most steps of this run.
    pub max_steps: Option<u64>,
    /// How long this run may take.
    pub timeout: Option<Duration>,
    /// Does a tool that would change something only say so?
    pub dry_run: bool,
    /// Does a command that was cut off run again, though nobody knows what it did?
    pub retry_unsafe: bool,
    /// The file that a script is written to that replays the model's answers.
    pub record_script: Option<PathBuf>,
}

impl From<DetachedOptions> for RunOptions {
    fn from(request: DetachedOptions) -> Self {
        Self {
            agent: request.agent,
            model: request.model,
            mode: request.mode,
            budget: request.budget,
            budget_total: request.budget_total,
            max_tokens: request.max_tokens,
            max_steps: request.max_steps,
            timeout: request.timeout,
            dry_run: request.dry_run,
            retry_unsafe: request.retry_unsafe,
            record_script: request.record_script,
            // Nobody sits at it: it waits until someone answers.
            patience: Patience::Wait,
            ..Self::default()
        }
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
    /// The session runs already, and goes on there with the answer.
    GoesOnElsewhere {
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
        /// What the caller should do.
        kind: ErrorKind,
    },
}
