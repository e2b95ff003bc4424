//! Context: how large the conversation is, when it must shrink, what goes, and what stands
//! in its place.
//!
//! [`window`] is what the model is shown, folded from the log; [`tokens`] counts it;
//! [`plan`] decides what goes; [`summary`] asks for what stands in its place and reads the
//! answer. All of it is pure; the driver asks the model and records one `compacted` event,
//! so that a compaction is done as a whole or not at all.

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

/// How a run deals with its context. It does not change while it runs.
#[derive(Clone)]
pub struct Context {
    /// How many tokens fit the model, in both directions; absent, any number does.
    pub length: Option<u64>,
    /// How the model cuts text into tokens.
    pub family: Family,
    /// What was learned about that from its provider.
    pub calibration: Calibration,
    /// When the window shrinks.
    pub policy: Policy,
    /// Who writes summaries; absent, nobody does.
    pub summariser: Option<Summariser>,
}

/// When the window shrinks, and to what.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Policy {
    /// Does it shrink by itself before it no longer fits?
    pub auto: bool,
    /// Tokens that are left free for what comes.
    pub buffer: u64,
    /// Tokens of the newest that stay as they are.
    pub keep: u64,
    /// Are old messages left out without a summary, once there are many?
    pub truncates: bool,
    /// How many are many, and how many stay then.
    pub truncation: Truncation,
}

/// How many messages are many.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Truncation {
    /// More than these.
    pub above: usize,
    /// So many stay.
    pub keep: usize,
}

/// Writes summaries.
#[derive(Clone)]
pub struct Summariser {
    /// The provider of the model that writes them.
    pub provider: Arc<dyn Provider>,
    /// Which of its models.
    pub model: String,
    /// What tokens cost there.
    pub cost: Cost,
    /// How many tokens fit it; absent, any number does.
    pub length: Option<u64>,
    /// How it cuts text into tokens.
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
    /// Any number of tokens fits, and nobody writes summaries.
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

/// What fits where nobody knows: more than any conversation has.
const ANY: u64 = 1 << 40;

/// The part of the context that the limit never goes below, however large the buffer: half of it.
const LEAST_SHARE: u64 = 2;

/// The part of the context that is left for an answer, at most.
const ANSWER_SHARE: u64 = 4;

impl Context {
    /// Counts as the model does.
    #[must_use]
    pub const fn counter(&self) -> Counter {
        Counter(self.family)
    }

    /// The number of tokens above which the window shrinks, as the provider counts.
    #[must_use]
    pub fn limit(&self) -> Option<u64> {
        self.length.map(|length| self.limit_of(length))
    }

    fn limit_of(&self, length: u64) -> u64 {
        length.saturating_sub(self.policy.buffer).max(length / LEAST_SHARE)
    }

    /// What there is room for, as we count, beside what always stands there. `seen` is what a run
    /// learned of its provider.
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
    /// How it counts.
    pub calibration: Calibration,
    /// How many tokens fit: what is known of the model, and less once it refused less.
    pub length: Option<u64>,
}

impl Seen {
    /// Learns that so many tokens, as we count, and so many of an answer were too long. How the
    /// provider counts is not learned from it: what is known of the model may be wrong.
    pub fn was_too_long(&mut self, counted: u64, max_output: u64) {
        let refused = self.calibration.estimate(counted).saturating_add(max_output);
        self.length = self.length.map(|length| length.min(refused.saturating_sub(1)));
    }
}

/// What a window is judged by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Signs {
    /// What there is room for.
    pub room: Room,
    /// Did the work enter another phase since the model last spoke?
    pub turned: bool,
    /// Did the provider say that it does not fit?
    pub refused: bool,
}

impl Policy {
    /// Why the window should shrink now, if it should. In constant time.
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

    /// How much of the newest stays when a window shrinks for this reason, as we count.
    #[must_use]
    pub fn keeps(&self, why: Why, calibration: &Calibration) -> Keep {
        match why {
            Why::Long => Keep { tokens: ANY, messages: Some(self.truncation.keep) },
            _ => Keep { tokens: calibration.counted(self.keep), messages: None },
        }
    }

    /// How much stays when no summary stands in for the rest: the longest conversation
    /// that truncation leaves, and no more than would have stayed anyway.
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
