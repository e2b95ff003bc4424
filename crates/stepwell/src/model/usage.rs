//! Tokens and costs.

use std::ops::AddAssign;

use serde::{Deserialize, Serialize};

use super::money::Money;

/// Tokens of one or more model calls, as the provider reported them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct Usage {
    /// Tokens sent, including those read from a cache.
    pub input: u64,
    /// Tokens received, including hidden reasoning.
    pub output: u64,
    /// Of `input`, those that the provider read from its cache.
    #[serde(skip_serializing_if = "is_zero")]
    pub cached: u64,
    /// Of `input`, those that the provider wrote to its cache, for which some charge more.
    #[serde(skip_serializing_if = "is_zero")]
    pub cache_written: u64,
    /// Of `output`, those of hidden reasoning.
    #[serde(skip_serializing_if = "is_zero")]
    pub reasoning: u64,
}

impl Usage {
    /// Tokens in both directions.
    #[must_use]
    pub const fn total(&self) -> u64 {
        self.input.saturating_add(self.output)
    }

    /// Are all counts zero?
    #[must_use]
    pub fn is_nothing(&self) -> bool {
        *self == Self::default()
    }

    /// The difference; no count goes below zero.
    #[must_use]
    pub const fn minus(self, other: Self) -> Self {
        Self {
            input: self.input.saturating_sub(other.input),
            output: self.output.saturating_sub(other.output),
            cached: self.cached.saturating_sub(other.cached),
            cache_written: self.cache_written.saturating_sub(other.cache_written),
            reasoning: self.reasoning.saturating_sub(other.reasoning),
        }
    }
}

impl AddAssign for Usage {
    fn add_assign(&mut self, other: Self) {
        self.input = self.input.saturating_add(other.input);
        self.output = self.output.saturating_add(other.output);
        self.cached = self.cached.saturating_add(other.cached);
        self.cache_written = self.cache_written.saturating_add(other.cache_written);
        self.reasoning = self.reasoning.saturating_add(other.reasoning);
    }
}

/// What a session, or one of its lanes, spent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Spent {
    /// Answered model calls.
    pub calls: u64,
    /// Their tokens.
    pub usage: Usage,
    /// Their cost, as far as prices are known.
    pub cost: Money,
    /// Calls of unknown price; if there are any, `cost` is a lower bound.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub unpriced: u64,
}

impl Spent {
    /// Adds one answered call. `cost` is absent if the price is unknown.
    pub fn count(&mut self, usage: Usage, cost: Option<Money>) {
        self.calls = self.calls.saturating_add(1);
        self.usage += usage;
        match cost {
            Some(cost) => self.cost += cost,
            None => self.unpriced = self.unpriced.saturating_add(1),
        }
    }
}

impl Spent {
    /// The whole cost; `None` if a price is unknown.
    #[must_use]
    pub fn known_cost(&self) -> Option<Money> {
        (self.unpriced == 0).then_some(self.cost)
    }
}

/// Smaller estimates need more than two decimals.
const CENT: Money = Money::from_picos(10_000_000_000);

impl Spent {
    /// The cost for lists: `-` for none, `?` for calls of unknown price.
    #[must_use]
    pub fn price(&self) -> String {
        match (self.unpriced, self.cost.is_zero()) {
            (0, true) => "-".to_owned(),
            (0, false) => format!("${:.4}", self.cost),
            (_, true) => "?".to_owned(),
            (_, false) => format!("${:.4} + ?", self.cost),
        }
    }

    /// The cost with an estimate for calls of unknown price. An estimate is always marked, as in
    /// `~$1.20`.
    #[must_use]
    pub fn price_or(&self, estimate: Option<Estimate>) -> String {
        let Some(Estimate { cost: guessed, partial }) = estimate else { return self.price() };
        let mut parts = Vec::new();
        if !self.cost.is_zero() {
            parts.push(format!("${:.4}", self.cost));
        }
        let is_small = guessed < CENT;
        parts.push(if is_small { format!("~${guessed:.4}") } else { format!("~${guessed:.2}") });
        if partial {
            parts.push("?".to_owned());
        }
        parts.join(" + ")
    }
}

impl Spent {
    /// The difference; nothing goes below zero.
    #[must_use]
    pub fn minus(self, other: Self) -> Self {
        Self {
            calls: self.calls.saturating_sub(other.calls),
            usage: self.usage.minus(other.usage),
            cost: self.cost.minus(other.cost),
            unpriced: self.unpriced.saturating_sub(other.unpriced),
        }
    }
}

/// An estimate for calls of unknown price. It is never added to recorded costs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Estimate {
    /// The estimated cost.
    pub cost: Money,
    /// Do some calls lack an estimate, too?
    pub partial: bool,
}

impl AddAssign for Spent {
    fn add_assign(&mut self, other: Self) {
        self.calls = self.calls.saturating_add(other.calls);
        self.usage += other.usage;
        self.cost += other.cost;
        self.unpriced = self.unpriced.saturating_add(other.unpriced);
    }
}

pub(crate) fn is_zero(n: &u64) -> bool {
    *n == 0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_stop_at_the_largest_value() {
        let usage = Usage { input: u64::MAX, output: u64::MAX, ..Usage::default() };
        let most = Spent { calls: u64::MAX, usage, unpriced: u64::MAX, ..Spent::default() };
        let mut sum = most;
        sum += most;
        sum.count(usage, None);
        assert_eq!((sum, usage.total()), (most, u64::MAX));
    }

    #[test]
    fn a_cost_that_is_not_known_is_not_zero() {
        let mut spent = Spent::default();
        assert_eq!(spent.known_cost(), Some(Money::ZERO));
        spent.count(Usage::default(), None);
        assert_eq!(spent.known_cost(), None);
    }
}
