//! How a run stands, and why it stopped.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// How the run stands. Where in its work the agent is, is its phase: a separate axis.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Status {
    /// A runner is at work. Stored so but without a living lease holder, it reads
    /// as `Interrupted`.
    #[default]
    Running,
    /// Waits for a human.
    Paused,
    /// Stopped by a signal, or its process died.
    Interrupted,
    /// Stopped by a limit.
    Partial,
    /// Done.
    #[serde(alias = "completed")]
    Success,
    /// Ended in an error.
    Failed,
    /// Given up by its user.
    Abandoned,
    /// Kept by another program, and nothing says that it runs.
    Idle,
}

impl Status {
    /// Every status, in the order in which they are shown.
    pub const ALL: [Self; 8] = [
        Self::Running,
        Self::Paused,
        Self::Interrupted,
        Self::Partial,
        Self::Success,
        Self::Failed,
        Self::Abandoned,
        Self::Idle,
    ];

    /// Did the run come to an end of its own, so that nothing is left to resume?
    #[must_use]
    pub const fn has_ended(self) -> bool {
        matches!(self, Self::Success | Self::Failed | Self::Abandoned)
    }

    /// The word for it, in the store, on the command line and in the API.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Running => "running",
            Self::Paused => "paused",
            Self::Interrupted => "interrupted",
            Self::Partial => "partial",
            Self::Success => "success",
            Self::Failed => "failed",
            Self::Abandoned => "abandoned",
            Self::Idle => "idle",
        }
    }
}

impl fmt::Display for Status {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

/// The text names no status.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "{0:?} is not a status; use running, paused, interrupted, partial, success, failed, \
     abandoned or idle"
)]
pub struct UnknownStatus(pub String);

impl FromStr for Status {
    type Err = UnknownStatus;

    /// `completed`, the word of two of the seeds, is taken as `success`.
    fn from_str(text: &str) -> Result<Self, UnknownStatus> {
        let word = if text == "completed" { "success" } else { text };
        Self::ALL
            .into_iter()
            .find(|status| status.as_str() == word)
            .ok_or_else(|| UnknownStatus(text.to_owned()))
    }
}

/// Why a run stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum StopReason {
    /// The model said that it was done.
    LlmDone,
    /// The number of steps allowed was used up.
    MaxSteps,
    /// The money or tokens allowed were used up.
    BudgetExceeded,
    /// The time allowed was used up.
    Timeout,
    /// The conversation no longer fits the model.
    ContextFull,
    /// Ctrl+C, SIGTERM or `stop`.
    UserInterrupt,
    /// The process died.
    Crashed,
    /// The provider could not be reached or refused.
    LlmError,
    /// The model or its provider refused to answer.
    Refusal,
    /// A question waits for a human.
    Gate,
    /// Its user gave it up.
    Abandoned,
}

impl StopReason {
    /// The reason's word.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::LlmDone => "llm_done",
            Self::MaxSteps => "max_steps",
            Self::BudgetExceeded => "budget_exceeded",
            Self::Timeout => "timeout",
            Self::ContextFull => "context_full",
            Self::UserInterrupt => "user_interrupt",
            Self::Crashed => "crashed",
            Self::LlmError => "llm_error",
            Self::Refusal => "refusal",
            Self::Gate => "gate",
            Self::Abandoned => "abandoned",
        }
    }
}

impl fmt::Display for StopReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_status_reads_back_from_its_word() {
        for status in Status::ALL {
            assert_eq!(status.as_str().parse(), Ok(status));
            let json = serde_json::to_string(&status).unwrap();
            assert_eq!(json, format!("{:?}", status.as_str()));
            assert_eq!(serde_json::from_str::<Status>(&json).unwrap(), status);
        }
    }

    #[test]
    fn completed_is_taken_as_success_and_nonsense_is_refused() {
        assert_eq!("completed".parse(), Ok(Status::Success));
        assert_eq!(serde_json::from_str::<Status>("\"completed\"").unwrap(), Status::Success);
        assert!("done".parse::<Status>().unwrap_err().to_string().contains("interrupted"));
    }
}
