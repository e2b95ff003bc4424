//! Context: the size of the conversation, when it must shrink, which messages go, and the summary
//! that replaces them.
//!
//! [`window`] holds the messages for the model, folded from the log; [`tokens`] counts them;
//! [`plan`] selects what goes; [`summary`] asks a model for a summary and reads its answer. All of
//! it is pure. The driver asks the model and records one `compacted` event, so that a compaction
//! happens completely or not at all.

pub mod plan;
pub mod summary;
pub mod tokens;
pub mod window;

use std::sync::Arc;

use crate::price::Cost;
use crate::provider::Provider;
use plan::{Keep, Room, Why};
use tokens::{Calibration, Counter, Family};
use window::Window;

/// How a run manages its context. It does not change while the run works.
#[derive(Clone)]
pub struct Context {
    /// The model's context length in tokens, input and output; `None` if unlimited.
    pub length: Option<u64>,
    /// The tokenizer family of the model.
    pub family: Family,
    /// The learned correction of our token counts.
    pub calibration: Calibration,
    /// When the conversation shrinks.
    pub policy: Policy,
    /// Writes summaries; `None` for truncation without summaries.
    pub summariser: Option<Summariser>,
}

/// When the conversation shrinks, and how far.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Policy {
    /// Compact automatically, before the context is full?
    pub auto: bool,
    /// Tokens that stay free.
    pub buffer: u64,
    /// Tokens of the newest messages that stay verbatim.
    pub keep: u64,
    /// Are old messages dropped without a summary above a number of messages?
    pub truncates: bool,
    /// The limits of that truncation.
    pub truncation: Truncation,
}

/// Limits of a truncation, in messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Truncation {
    /// Truncates above this number.
    pub above: usize,
    /// This many stay.
    pub keep: usize,
}

/// Writes summaries.
#[derive(Clone)]
pub struct Summariser {
    /// The provider of the summarising model.
    pub provider: Arc<dyn Provider>,
    /// The model's name at that provider.
    pub model: String,
    /// What its tokens cost.
    pub cost: Cost,
    /// Its context length in tokens; `None` if unlimited.
    pub length: Option<u64>,
    /// Its tokenizer family.
    pub family: Family,
}

impl std::fmt::Debug for Summariser {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Summariser").field("model", &self.model).finish_non_exhaustive()
    }
}

impl Default for Policy {
    fn default() -> Self {
        Self {
            auto: true,
            buffer: 20_000,
            keep: 8_000,
            truncates: false,
            truncation: Truncation { above: 50, keep: 30 },
        }
    }
}

impl Default for Context {
    /// An unlimited context, without a summariser.
    fn default() -> Self {
        Self {
            length: None,
            family: Family::Other,
            calibration: Calibration::default(),
            policy: Policy::default(),
            summariser: None,
        }
    }
}

/// The limit where none is known: more than any conversation has.
const ANY: u64 = 1 << 40;

/// The limit never falls below this fraction of the context (a half), however large the buffer is.
const LEAST_SHARE: u64 = 2;

/// At most this fraction of the context is reserved for an answer.
const ANSWER_SHARE: u64 = 4;

impl Context {
    /// A token counter for the model's family.
    #[must_use]
    pub const fn counter(&self) -> Counter {
        Counter(self.family)
    }

    /// The number of tokens above which the conversation shrinks, as the provider counts.
    #[must_use]
    pub fn limit(&self) -> Option<u64> {
        self.length.map(|length| self.limit_of(length))
    }

    fn limit_of(&self, length: u64) -> u64 {
        length.saturating_sub(self.policy.buffer).max(length / LEAST_SHARE)
    }

    /// The tokens available to the conversation, as counted here, beside the `fixed` ones. `seen`
    /// is what the run learned of its provider.
    #[must_use]
    pub fn room(&self, seen: &Seen, fixed: u64, max_output: u64) -> Room {
        let Some(length) = seen.length else { return Room { fixed, limit: ANY, full: ANY } };
        let (calibration, limit) = (&seen.calibration, self.limit_of(length));
        let full = length - max_output.min(length / ANSWER_SHARE);
        let limit = calibration.counted(limit.min(full));
        Room { fixed, limit, full: calibration.counted(full) }
    }
}

/// What a run learned of its provider.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Seen {
    /// The correction of our token counts.
    pub calibration: Calibration,
    /// The context length: as documented, or lower if the provider refused less.
    pub length: Option<u64>,
}

impl Seen {
    /// Learns that a request of this size was too long for the provider. Our token counts are not
    /// corrected by it, because the documented context length may be the wrong part.
    pub fn was_too_long(&mut self, counted: u64, max_output: u64) {
        let refused = self.calibration.estimate(counted).saturating_add(max_output);
        self.length = self.length.map(|length| length.min(refused.saturating_sub(1)));
    }
}

/// What decides whether the conversation shrinks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Signs {
    /// The available tokens.
    pub room: Room,
    /// Did the phase change since the model's last answer?
    pub turned: bool,
    /// Did the provider refuse the request as too long?
    pub refused: bool,
}

impl Policy {
    /// Why the conversation should shrink now, if it should. Takes constant time.
    #[must_use]
    pub fn due(&self, window: &Window, signs: &Signs) -> Option<Why> {
        let acts = self.auto || self.truncates;
        if signs.refused && acts {
            Some(Why::Refused)
        } else if self.truncates && window.entries().len() > self.truncation.above {
            Some(Why::Long)
        } else if acts && signs.room.fixed + window.tokens() > signs.room.limit {
            Some(Why::Near)
        } else if self.auto && signs.turned {
            Some(Why::Phase)
        } else {
            None
        }
    }

    /// How much of the newest messages stays after shrinking for this reason, as counted here.
    #[must_use]
    pub fn keeps(&self, why: Why, calibration: &Calibration) -> Keep {
        match why {
            Why::Long => Keep { tokens: ANY, messages: Some(self.truncation.keep) },
            _ => Keep { tokens: calibration.counted(self.keep), messages: None },
        }
    }

    /// How much stays after a truncation: at most the configured number of messages, and no more
    /// than a compaction would keep.
    #[must_use]
    pub fn keeps_truncated(&self, why: Why, messages: usize, calibration: &Calibration) -> Keep {
        let keep = self.keeps(why, calibration);
        let messages = if messages > self.truncation.above {
            Some(self.truncation.keep)
        } else {
            keep.messages
        };
        Keep { tokens: keep.tokens, messages }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_kept_is_counted_as_the_provider_counts() {
        let (policy, twice) = (Policy::default(), Calibration::new(2.0, 0.3));
        for why in [Why::Near, Why::Phase, Why::Asked, Why::Refused] {
            assert_eq!(policy.keeps(why, &twice).tokens, 4_000);
            assert_eq!(policy.keeps_truncated(why, 1, &twice).tokens, 4_000);
        }
    }
}
