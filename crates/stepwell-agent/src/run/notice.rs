//! What a person should know of a run although nobody asked: typed, so that each front end words it.

use std::time::Duration;

use serde::Serialize;
use stepwell::SessionId;
use stepwell::model::{Money, Time};
use stepwell::trust::Disregarded;

/// Something that a person should know.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "notice", rename_all = "snake_case")]
pub enum Notice {
    /// Somebody else allowed something, which does not count here: it is asked again.
    Disregarded(Box<Disregarded>),
    /// A provider does not say how many tokens it used: they are estimated.
    TokensEstimated {
        /// The provider.
        provider: String,
    },
    /// A provider takes less than was thought: its answers may have fewer tokens from here on.
    ShorterAnswers {
        /// The provider.
        provider: String,
        /// The most tokens of an answer.
        tokens: u64,
    },
    /// The next call is not made: it may use more tokens than are left.
    TokensSpent {
        /// What it may use, with the longest answer.
        next: u64,
        /// What is used.
        used: u64,
        /// The limit.
        most: u64,
    },
    /// The next call is not made: it may cost more than is left.
    BudgetSpent {
        /// What it may cost, with the longest answer.
        next: Money,
        /// What is spent.
        spent: Money,
        /// The limit.
        most: Money,
        /// Of what it is the limit.
        of: Whole,
    },
    /// The next call is not made: nobody knows what it costs, and there is a budget.
    PriceUnknown {
        /// The budget.
        most: Money,
    },
    /// Most of what may be used is used.
    NearlySpent {
        /// What is used of what.
        what: Measure,
    },
    /// A subagent is in the trash, and its parent waits for it.
    SubagentInTrash {
        /// Its session.
        session: SessionId,
    },
    /// Somebody else runs a subagent, and its parent waits for it.
    SubagentHeld {
        /// Its session.
        session: SessionId,
        /// Who runs it.
        holder: String,
    },
    /// A subagent works in a folder of which this workspace is a copy.
    WorkspaceIsCopy {
        /// Its session.
        session: SessionId,
    },
    /// A model is asked again.
    Retrying {
        /// What went wrong.
        error: String,
        /// How long it is waited before.
        wait: Duration,
        /// Which attempt failed.
        attempt: usize,
        /// How many there are.
        attempts: usize,
    },
    /// Somebody else asked for something in the session since the user's own last run. The model is
    /// shown it.
    OthersRequest {
        /// Who, with the login that a server knows them by.
        who: String,
        /// When it was asked for.
        at: Time,
        /// What they said.
        text: String,
        /// Is it what the model works on? Then the user is asked before anything is changed.
        is_worked_on: bool,
    },
    /// An answer that someone gave does not count.
    AnswerRefused {
        /// The question's name.
        gate: String,
        /// Why not.
        why: String,
    },
}

/// Of what a budget is the limit.
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

/// What is used of a limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "of", rename_all = "snake_case")]
pub enum Measure {
    /// Calls of models.
    Calls {
        /// How many were made.
        used: u64,
        /// How many may be.
        most: u64,
    },
    /// Tokens.
    Tokens {
        /// How many are used.
        used: u64,
        /// How many may be.
        most: u64,
    },
    /// Dollars.
    Cost {
        /// What is spent.
        used: Money,
        /// What may be.
        most: Money,
    },
}
