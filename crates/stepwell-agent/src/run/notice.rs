//! Notices about a run for its user, as types that each front end words.

use std::time::Duration;

use serde::Serialize;
use stepwell::SessionId;
use stepwell::model::{Money, Time};
use stepwell::trust::Disregarded;

/// A notice for the user.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "notice", rename_all = "snake_case")]
pub enum Notice {
    /// Another person's approval does not count here, so the run asks again.
    Disregarded(Box<Disregarded>),
    /// The provider does not report token usage, so it is estimated.
    TokensEstimated {
        /// The provider.
        provider: String,
    },
    /// The provider accepts a lower output limit than configured, which applies from now on.
    ShorterAnswers {
        /// The provider.
        provider: String,
        /// The new output limit.
        tokens: u64,
    },
    /// The next call might exceed the token limit, so it is not made.
    TokensSpent {
        /// The most that the call may use, with the longest answer.
        next: u64,
        /// Tokens used so far.
        used: u64,
        /// The limit.
        most: u64,
    },
    /// The next call might exceed the budget, so it is not made.
    BudgetSpent {
        /// The most that the call may cost, with the longest answer.
        next: Money,
        /// Dollars spent so far.
        spent: Money,
        /// The limit.
        most: Money,
        /// What the budget is for.
        of: Whole,
    },
    /// There is a budget, but the price of the next call is unknown, so it is not made.
    PriceUnknown {
        /// The budget.
        most: Money,
    },
    /// Most of a limit is used.
    NearlySpent {
        /// The limit, and how much of it is used.
        what: Measure,
    },
    /// A subagent's session is in the trash, and its parent waits for it.
    SubagentInTrash {
        /// Its session.
        session: SessionId,
    },
    /// Another process runs a subagent, and its parent waits for it.
    SubagentHeld {
        /// Its session.
        session: SessionId,
        /// The runner.
        holder: String,
    },
    /// A subagent works in a folder of which this workspace is a copy.
    WorkspaceIsCopy {
        /// Its session.
        session: SessionId,
    },
    /// A call of the model will be retried.
    Retrying {
        /// The error.
        error: String,
        /// The wait before the retry.
        wait: Duration,
        /// The number of the failed attempt.
        attempt: usize,
        /// The most attempts.
        attempts: usize,
    },
    /// Another person made a request in the session since the user's own last run. The model
    /// receives it.
    OthersRequest {
        /// The person, with the login that a server verified.
        who: String,
        /// When it was asked for.
        at: Time,
        /// The text of the request.
        text: String,
        /// Does the model work on this request? Then every change needs the user's approval.
        is_worked_on: bool,
    },
    /// An answer does not count.
    AnswerRefused {
        /// The question's name.
        gate: String,
        /// Why not.
        why: String,
    },
}

/// What a budget is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Whole {
    /// This run.
    Run,
    /// The session, with its subagents.
    Session,
    /// A flow.
    Flow,
}

/// A limit, and how much of it is used.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "of", rename_all = "snake_case")]
pub enum Measure {
    /// Calls of models.
    Calls {
        /// Calls made.
        used: u64,
        /// The limit.
        most: u64,
    },
    /// Tokens.
    Tokens {
        /// Tokens used.
        used: u64,
        /// The limit.
        most: u64,
    },
    /// Dollars.
    Cost {
        /// Dollars spent.
        used: Money,
        /// The limit.
        most: Money,
    },
}
