//! Tokens that a provider reported.

use std::ops::AddAssign;

use serde::{Deserialize, Serialize};

use super::money::Money;

/// Tokens of one or many model calls, as the provider reported them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct Usage {
    /// Tokens sent, those read from a cache included.
    pub input: u64,
    /// Tokens received, those of hidden reasoning included.
    pub output: u64,
    /// Of `input`, those that the provider read from its cache.
    #[serde(skip_serializing_if = "is_zero")]
    pub cached: u64,
    /// Of `input`, those that it wrote to its cache, which some charge more for.
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

    /// Is this no token at all?
    #[must_use]
    pub fn is_nothing(&self) -> bool {
        *self == Self::default()
    }

    /// What is left when these are taken away; nothing goes below zero.
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

/// What was spent: by a session, or by one lane of it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Spent {
    /// Model calls that were answered.
    pub calls: u64,
    /// Their tokens.
    pub usage: Usage,
    /// Their cost, as far as the price was known.
    pub cost: Money,
    /// Calls whose price was not known; `cost` is then a lower bound.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub unpriced: u64,
}

impl Spent {
    /// Counts one answered call. `cost` is absent when the price is unknown.
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
    /// What all of it cost; none, if a price is not known.
    #[must_use]
    pub fn known_cost(&self) -> Option<Money> {
        (self.unpriced == 0).then_some(self.cost)
    }
}

/// Below this, two digits behind the point would say nothing.
const CENT: Money = Money::from_picos(10_000_000_000);

impl Spent {
    /// The cost as lists show it: `-` for nothing, `?` for what has no known price, behind what
    /// has one.
    #[must_use]
    pub fn price(&self) -> String {
        match (self.unpriced, self.cost.is_zero()) {
            (0, true) => "-".to_owned(),
            (0, false) => format!("${:.4}", self.cost),
            (_, true) => "?".to_owned(),
            (_, false) => format!("${:.4} + ?", self.cost),
        }
    }

    /// The same with what may have been spent where nobody said it: an estimate stands apart, as
    /// in `~$1.20`, and can be taken for nothing else.
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
    /// What is left when these are taken away; nothing goes below zero.
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

/// What calls may have cost whose price nobody said. It is in no sum of what was recorded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Estimate {
    /// What they may have cost.
    pub cost: Money,
    /// Are there calls besides that nobody knows a price for?
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
    fn sums_stay_at_the_most_there_is() {
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
