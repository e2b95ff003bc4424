//! The moves of a run, and the rules and limits that decide between them.

use std::collections::BTreeMap;

use stepwell::model::{Effect, Money, Spent, ToolCall, ToolTarget};
use stepwell::{Status, StopReason};

use crate::permission::Mode;

/// What a run may do. Only the session's budget changes while it runs.
#[derive(Clone, Debug)]
pub struct Rules {
    /// Which calls need an approval.
    pub mode: Mode,
    /// Run interrupted calls again, even if their outcome is unknown?
    pub retry_unsafe: bool,
    /// The effect class of each tool, by name.
    pub effects: BTreeMap<String, Effect>,
    /// The limits of steps, tokens and money.
    pub limits: Limits,
}

/// The limits of a run.
#[derive(Clone, Debug, Default)]
pub struct Limits {
    /// Steps in this run.
    pub steps: Option<u64>,
    /// Tokens in this run.
    pub tokens: Option<u64>,
    /// Dollars in this run.
    pub budget: Option<Money>,
    /// Dollars of the session, over all of its runs and its subagents.
    pub budget_total: Option<Money>,
}

/// What was used before this run.
#[derive(Clone, Copy, Debug, Default)]
pub struct Baseline {
    /// What the session had spent, with its subagents.
    pub spent: Spent,
    /// The session's steps.
    pub steps: u64,
}

/// The most that the next call may cost, as far as that is known.
#[derive(Clone, Copy, Debug, Default)]
pub struct Estimate {
    /// Tokens, input and output.
    pub tokens: u64,
    /// Dollars; `None` if the price is unknown.
    pub cost: Option<Money>,
    /// How the conversation must shrink first, if it must.
    pub shrink: Option<Shrink>,
}

/// How the conversation shrinks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shrink {
    /// A model writes a summary, at this cost at most.
    Summarise {
        /// Tokens, input and output.
        tokens: u64,
        /// Dollars; `None` if the price is unknown.
        cost: Option<Money>,
    },
    /// Old messages are dropped.
    Truncate,
}

/// Who writes the summary.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum By {
    /// A model.
    Model,
    /// Without a summary.
    Nobody,
}

/// The next move.
#[derive(Clone, Debug, PartialEq)]
pub enum Move {
    /// Ask the model.
    CallModel,
    /// Compact the conversation first.
    Compact(By),
    /// Run a tool, after recording that it starts.
    RunTool(ToolCall),
    /// Check whether an interrupted call made its change.
    Inspect(ToolCall, Vec<ToolTarget>),
    /// Answer a call without running it.
    Settle(ToolCall, Settled),
    /// Ask a person to approve a call.
    Ask(ToolCall),
    /// Record the end of the step.
    Seal,
    /// Stop.
    Stop(Stop),
}

impl Move {
    /// May new messages join the conversation before this move? Only if every call has its result
    /// and the run is not stopping at a limit.
    #[must_use]
    pub fn can_listen(&self) -> bool {
        match self {
            Self::CallModel | Self::Compact(_) => true,
            Self::Stop(stop) => stop.reason == StopReason::LlmDone,
            _ => false,
        }
    }
}

/// Why a call is answered without running.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Settled {
    /// It was interrupted, and its outcome is unknown.
    Unknown,
    /// It was denied.
    Denied(String),
    /// It did not run, and no person was asked.
    Unasked(String),
    /// It had not begun when the user sent a new message.
    Passed,
    /// The tool does not exist.
    NoSuchTool,
}

/// How a run stops.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stop {
    /// The status that is recorded.
    pub status: Status,
    /// Why it stops.
    pub reason: StopReason,
}

impl Stop {
    /// A stop at a limit.
    #[must_use]
    pub const fn limit(reason: StopReason) -> Self {
        Self { status: Status::Partial, reason }
    }
}
