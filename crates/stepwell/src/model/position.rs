//! Seqs and lease epochs.

use std::fmt;

use serde::{Deserialize, Serialize};

/// The number of an event in its session. Dense, starts at 1, never reused.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(transparent)]
pub struct Seq(u64);

impl Seq {
    /// The seq before the first event: an empty session's head is here.
    pub const ZERO: Self = Self(0);
    /// The first event's seq.
    pub const FIRST: Self = Self(1);
    /// The largest seq. Stores pack a session's key and a seq into one signed 64-bit row id, 31 and
    /// 32 bits each.
    pub const MAX: Self = Self(u32::MAX as u64);

    /// The seq `n`.
    #[must_use]
    pub const fn new(n: u64) -> Self {
        Self(n)
    }

    /// The seq as a number.
    #[must_use]
    pub const fn get(self) -> u64 {
        self.0
    }

    /// The next seq.
    #[must_use]
    pub const fn next(self) -> Self {
        Self(self.0.saturating_add(1))
    }

    /// The previous seq; zero stays zero.
    #[must_use]
    pub const fn prev(self) -> Self {
        Self(self.0.saturating_sub(1))
    }
}

impl fmt::Display for Seq {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// The number of a session's lease. It grows by one with every acquisition, so an earlier runner's
/// number fences it off for good.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(transparent)]
pub struct Epoch(u64);

impl Epoch {
    /// The epoch of a session's first lease.
    pub const FIRST: Self = Self(1);

    /// The epoch `n`.
    #[must_use]
    pub const fn new(n: u64) -> Self {
        Self(n)
    }

    /// The epoch as a number.
    #[must_use]
    pub const fn get(self) -> u64 {
        self.0
    }

    /// The epoch of the next lease.
    #[must_use]
    pub const fn next(self) -> Self {
        Self(self.0 + 1)
    }
}

impl fmt::Display for Epoch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}
