//! A session's status, and why its run stopped.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// How a session stands. Its phase, which says where its work is, is separate.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Status {
    /// A runner is at work. Stored as this without a live lease, it reads as `Interrupted`.
    #[default]
    Running,
    /// Waits for a person.
    Paused,
    /// Stopped by a signal, or its process died.
    Interrupted,
    /// A limit stopped it.
    Partial,
    /// Done.
    #[serde(alias = "completed")]
    Success,
    /// Ended in an error.
    Failed,
    /// Its user gave it up.
    Abandoned,
    /// Another program keeps it, and nothing shows that it runs.
    Idle,
}

impl Status {
    /// Every status, in display order.
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

    /// Did the work end, so that nothing is left to resume?
    #[must_use]
    pub const fn has_ended(self) -> bool {
        matches!(self, Self::Success | Self::Failed | Self::Abandoned)
    }

    /// The status's name in the store, on the command line and in the API.
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

/// A text that names no status.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "{0:?} is not a status; use running, paused, interrupted, partial, success, failed, \
     abandoned or idle"
)]
pub struct UnknownStatus(pub String);

impl FromStr for Status {
    type Err = UnknownStatus;

    /// Also reads `completed`, a word of other systems, as `success`.
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
    /// The model had nothing more to do.
    LlmDone,
    /// The limit of steps was reached.
    MaxSteps,
    /// The limit of money or tokens was reached.
    BudgetExceeded,
    /// The limit of time was reached.
    Timeout,
    /// The conversation no longer fits in the model's context.
    ContextFull,
    /// Ctrl+C, SIGTERM or `stop`.
    UserInterrupt,
    /// The process died.
    Crashed,
    /// The provider was unreachable or returned an error.
    LlmError,
    /// The model or its provider refused to answer.
    Refusal,
    /// A question waits for a person.
    Gate,
    /// Its user gave it up.
    Abandoned,
}

impl StopReason {
    /// The reason's name.
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
    fn completed_reads_as_success_and_unknown_words_are_refused() {
        assert_eq!("completed".parse(), Ok(Status::Success));
        assert_eq!(serde_json::from_str::<Status>("\"completed\"").unwrap(), Status::Success);
        assert!("done".parse::<Status>().unwrap_err().to_string().contains("interrupted"));
    }
}
