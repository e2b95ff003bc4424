//! The moves of a run, and what decides which one is next.

use std::collections::BTreeMap;

use stepwell::model::{Effect, Money, Spent, ToolCall, ToolTarget};
use stepwell::{Status, StopReason};

use crate::permission::Mode;

/// What the run may do. While it runs, only the session's budget changes.
#[derive(Clone, Debug)]
pub struct Rules {
    /// When a person is asked.
    pub mode: Mode,
    /// Does a call that was cut off run again, though nobody knows what it did?
    pub retry_unsafe: bool,
    /// Each tool's effect, by its name.
    pub effects: BTreeMap<String, Effect>,
    /// Limits.
    pub limits: Limits,
}

/// What a run may use.
#[derive(Clone, Debug, Default)]
pub struct Limits {
    /// Steps in this invocation.
    pub steps: Option<u64>,
    /// Tokens in this invocation.
    pub tokens: Option<u64>,
    /// Dollars in this invocation.
    pub budget: Option<Money>,
    /// Dollars in the session, over all of its invocations, and in its subagents' sessions.
    pub budget_total: Option<Money>,
}

/// What was used when this invocation began.
#[derive(Clone, Copy, Debug, Default)]
pub struct Baseline {
    /// What the session had spent, with its subagents.
    pub spent: Spent,
    /// Its steps.
    pub steps: u64,
}

/// What the next call may cost at most, as far as that is known.
#[derive(Clone, Copy, Debug, Default)]
pub struct Estimate {
    /// Tokens, in both directions.
    pub tokens: u64,
    /// Dollars; absent, the price is not known.
    pub cost: Option<Money>,
    /// How the conversation is to shrink first, if it is.
    pub shrink: Option<Shrink>,
}

/// How a conversation is to shrink.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shrink {
    /// A model summarises what goes, which may cost so much at most.
    Summarise {
        /// Tokens, in both directions.
        tokens: u64,
        /// Dollars; absent, the price is not known.
        cost: Option<Money>,
    },
    /// What goes is left out.
    Truncate,
}

/// Who writes the summary of what is left out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum By {
    /// A model.
    Model,
    /// Nobody.
    Nobody,
}

/// The next move.
#[derive(Clone, Debug, PartialEq)]
pub enum Move {
    /// Ask the model.
    CallModel,
    /// Make the conversation shorter first.
    Compact(By),
    /// Run a tool; that it starts is recorded first.
    RunTool(ToolCall),
    /// A call was cut off whose change may have been made: look whether it was.
    Inspect(ToolCall, Vec<ToolTarget>),
    /// Answer a call without running it.
    Settle(ToolCall, Settled),
    /// Ask a person whether a call may run.
    Ask(ToolCall),
    /// The step is complete: record it.
    Seal,
    /// Stop.
    Stop(Stop),
}

impl Move {
    /// May what was said meanwhile be taken in before it? Only where no call waits for its result,
    /// and the run does not stop at a limit.
    #[must_use]
    pub fn can_listen(&self) -> bool {
        match self {
            Self::CallModel | Self::Compact(_) => true,
            Self::Stop(stop) => stop.reason == StopReason::LlmDone,
            _ => false,
        }
    }
}

/// Why a call is answered without being run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Settled {
    /// It was cut off, and nobody knows what it did.
    Unknown,
    /// It may not run.
    Denied(String),
    /// It was not run, and the user was not asked.
    Unasked(String),
    /// It did not begin before the user said something else.
    Passed,
    /// There is no such tool.
    NoSuchTool,
}

/// How a run stops.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stop {
    /// How it stands then.
    pub status: Status,
    /// Why it stops.
    pub reason: StopReason,
}

impl Stop {
    /// A limit was reached.
    #[must_use]
    pub const fn limit(reason: StopReason) -> Self {
        Self { status: Status::Partial, reason }
    }
}
