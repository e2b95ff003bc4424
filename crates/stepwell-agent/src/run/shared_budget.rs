//! The limits that all lanes of a flow share. Each call reserves its share first.

use std::time::Duration;

use parking_lot::{Mutex, MutexGuard};
use stepwell::StopReason;
use stepwell::model::{Money, Spent, Usage};
use tokio::sync::Notify;
use tokio::time::Instant;

use super::{Cancel, Measure, Notice, Run, Whole};
use crate::machine::{Estimate, Stop};

/// The limits of all lanes together.
#[derive(Clone, Debug, Default)]
pub struct Allowed {
    /// Calls of models.
    pub calls: Option<u64>,
    /// Tokens.
    pub tokens: Option<u64>,
    /// Dollars.
    pub cost: Option<Money>,
    /// The used share, in thousandths, at which to warn.
    pub warn_at: Option<u64>,
    /// The deadline of all lanes.
    pub until: Option<Instant>,
}

/// The limits of all lanes together, and how much of them is used.
#[derive(Debug)]
pub struct SharedBudget {
    allowed: Allowed,
    inside: Mutex<Inside>,
    /// A reservation was released.
    freed: Notify,
}

/// What is left of the shared limits; `None` if unlimited.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Remaining {
    /// Tokens.
    pub tokens: Option<u64>,
    /// Dollars.
    pub cost: Option<Money>,
}

#[derive(Debug, Default)]
struct Inside {
    spent: Spent,
    calls: u64,
    /// The most that the current calls may take.
    reserved: Amount,
    warned: bool,
    /// The latest budget in dollars.
    cost: Option<Money>,
    /// How long all lanes were idle, which extends the deadline.
    rested: Duration,
}

/// The usage of a call.
#[derive(Clone, Copy, Debug, Default)]
struct Amount {
    calls: u64,
    tokens: u64,
    cost: Money,
}

/// A reservation for one call, released when dropped.
#[derive(Debug)]
pub struct Reserved<'a> {
    shared_budget: &'a SharedBudget,
    amount: Amount,
}

impl Drop for Reserved<'_> {
    fn drop(&mut self) {
        let mut inside = self.shared_budget.inside();
        inside.reserved.calls -= self.amount.calls;
        inside.reserved.tokens -= self.amount.tokens;
        inside.reserved.cost = inside.reserved.cost.minus(self.amount.cost);
        drop(inside);
        self.shared_budget.freed.notify_waiters();
    }
}

impl SharedBudget {
    /// A budget with this much already used.
    #[must_use]
    pub fn new(allowed: Allowed, spent: Spent, calls: u64) -> Self {
        let inside = Inside { spent, calls, cost: allowed.cost, ..Inside::default() };
        Self { allowed, inside: Mutex::new(inside), freed: Notify::new() }
    }

    /// The deadline of all lanes.
    pub(super) fn until(&self) -> Option<Instant> {
        self.allowed.until?.checked_add(self.inside().rested)
    }

    /// Extends the deadline by a time in which no lane worked.
    pub fn extend(&self, by: Duration) {
        self.inside().rested += by;
    }

    /// What was spent.
    #[must_use]
    pub fn spent(&self) -> Spent {
        self.inside().spent
    }

    /// Adds the spending of a session below, which pays for its own calls.
    pub fn pay_for_below(&self, tokens: u64, cost: Money) {
        let mut inside = self.inside();
        inside.spent.usage.input += tokens;
        inside.spent.cost = inside.spent.cost.plus(cost);
    }

    /// What is left.
    #[must_use]
    pub fn left(&self) -> Remaining {
        let spent = self.spent();
        let tokens = self.allowed.tokens.map(|most| most.saturating_sub(spent.usage.total()));
        let cost = self.cost().map(|most| most.minus(spent.cost).max(Money::ZERO));
        Remaining { tokens, cost }
    }

    /// The budget in dollars.
    fn cost(&self) -> Option<Money> {
        self.inside().cost
    }

    /// Sets the budget in dollars.
    pub(super) fn set_cost(&self, most: Money) {
        let mut inside = self.inside();
        if inside.cost.replace(most) != Some(most) {
            inside.warned = false;
        }
        drop(inside);
        // Callers that wait for room check again.
        self.freed.notify_waiters();
    }

    fn inside(&self) -> MutexGuard<'_, Inside> {
        self.inside.lock()
    }

    /// Adds the usage of a call.
    pub(super) fn pay(&self, usage: Usage, cost: Option<Money>) {
        let mut inside = self.inside();
        inside.spent.count(usage, cost);
        inside.calls += 1;
    }

    /// Reserves the most that a call may take. Waits for current calls if they may leave enough.
    /// The error is the limit that the call would exceed.
    pub(super) async fn reserve(
        &self,
        tokens: u64,
        cost: Option<Money>,
    ) -> Result<Reserved<'_>, StopReason> {
        loop {
            let freed = self.freed.notified();
            match self.try_reserve(tokens, cost) {
                Verdict::Room(reserved) => return Ok(reserved),
                Verdict::Never(limit) => return Err(limit),
                Verdict::Perhaps => freed.await,
            }
        }
    }

    fn try_reserve(&self, tokens: u64, cost: Option<Money>) -> Verdict<'_> {
        let mut inside = self.inside();
        // An unknown price matters only if there is a budget.
        let Some(cost) = cost.or_else(|| inside.cost.is_none().then_some(Money::ZERO)) else {
            return Verdict::Never(StopReason::BudgetExceeded);
        };
        let amount = Amount { calls: 1, tokens, cost };
        let breaks = |with: Amount| {
            let calls = inside.calls + with.calls + amount.calls;
            let used = inside.spent.usage.total();
            let tokens = used.saturating_add(with.tokens).saturating_add(amount.tokens);
            let cost = inside.spent.cost.plus(with.cost).plus(amount.cost);
            if self.allowed.calls.is_some_and(|most| calls > most) {
                Some(StopReason::MaxSteps)
            } else if self.allowed.tokens.is_some_and(|most| tokens > most)
                || inside.cost.is_some_and(|most| cost > most)
            {
                Some(StopReason::BudgetExceeded)
            } else {
                None
            }
        };
        if let Some(limit) = breaks(Amount::default()) {
            return Verdict::Never(limit);
        }
        if breaks(inside.reserved).is_some() {
            return Verdict::Perhaps;
        }
        inside.reserved.calls += amount.calls;
        inside.reserved.tokens += amount.tokens;
        inside.reserved.cost = inside.reserved.cost.plus(amount.cost);
        Verdict::Room(Reserved { shared_budget: self, amount })
    }

    /// Explains why a limit prevents a call if that is not obvious, since some of the limit may be
    /// left.
    fn refusal(&self, limit: StopReason, call: &Estimate) -> Option<Notice> {
        if limit != StopReason::BudgetExceeded {
            return None;
        }
        let spent = self.spent();
        let (used, may) = (spent.usage.total(), call.tokens);
        let tokens = self.allowed.tokens.filter(|most| used.saturating_add(may) > *most);
        match (tokens, self.cost(), call.cost) {
            (Some(most), ..) => Some(Notice::TokensSpent { next: may, used, most }),
            (None, Some(most), Some(next)) => {
                Some(Notice::BudgetSpent { next, spent: spent.cost, most, of: Whole::Flow })
            }
            _ => None,
        }
    }

    /// The warning about the budget, once, when most of it is used.
    fn warning(&self) -> Option<Notice> {
        let warn_at = self.allowed.warn_at?;
        let mut inside = self.inside();
        if inside.warned {
            return None;
        }
        let near = |used: u128, most: u128| {
            used.saturating_mul(1000) >= most.saturating_mul(u128::from(warn_at))
        };
        let picos = |money: Money| u128::try_from(money.as_picos()).unwrap_or(0);
        let tokens = inside.spent.usage.total();
        let cost = inside.spent.cost;
        let what = if let Some(most) =
            self.allowed.tokens.filter(|most| near(tokens.into(), (*most).into()))
        {
            Measure::Tokens { used: tokens, most }
        } else if let Some(most) = inside.cost.filter(|most| near(picos(cost), picos(*most))) {
            Measure::Cost { used: cost, most }
        } else if let Some(most) =
            self.allowed.calls.filter(|most| near(inside.calls.into(), (*most).into()))
        {
            Measure::Calls { used: inside.calls, most }
        } else {
            return None;
        };
        inside.warned = true;
        Some(Notice::NearlySpent { what })
    }
}

enum Verdict<'a> {
    Room(Reserved<'a>),
    /// Perhaps, when current calls are finished.
    Perhaps,
    Never(StopReason),
}

impl<'a> Run<'a> {
    /// Reserves room for the next call in the shared limits.
    pub(super) async fn room_for_call(
        &mut self,
        cut: &mut Cancel<'_>,
    ) -> Result<Option<Reserved<'a>>, Stop> {
        let Some(shared_budget) = self.shared_budget else { return Ok(None) };
        if let Some(warning) = shared_budget.warning() {
            self.front.events.notice(warning);
        }
        let estimate = self.estimate();
        tokio::select! {
            reserved = shared_budget.reserve(estimate.tokens, estimate.cost) => {
                reserved.map(Some).map_err(|limit| {
                    if let Some(why) = shared_budget.refusal(limit, &estimate) {
                        self.front.events.notice(why);
                    }
                    Stop::limit(limit)
                })
            }
            stop = cut.off() => Err(stop),
        }
    }

    /// Adds usage to the shared limits, and warns when most is used: simultaneous calls all began
    /// before any was paid.
    pub(super) fn pay(&mut self, usage: Usage, cost: Option<Money>) {
        let Some(shared_budget) = self.shared_budget else { return };
        shared_budget.pay(usage, cost);
        if let Some(warning) = shared_budget.warning() {
            self.front.events.notice(warning);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shared_budget(tokens: u64) -> SharedBudget {
        let allowed = Allowed { tokens: Some(tokens), warn_at: Some(800), ..Allowed::default() };
        SharedBudget::new(allowed, Spent::default(), 0)
    }

    fn used(input: u64) -> Usage {
        Usage { input, ..Usage::default() }
    }

    #[test]
    fn what_is_reserved_is_not_given_twice_and_comes_back() {
        let shared_budget = shared_budget(100);
        let Verdict::Room(first) = shared_budget.try_reserve(60, None) else {
            panic!("there is room")
        };
        assert!(matches!(shared_budget.try_reserve(60, None), Verdict::Perhaps));
        assert!(matches!(
            shared_budget.try_reserve(101, None),
            Verdict::Never(StopReason::BudgetExceeded)
        ));
        drop(first);
        assert!(matches!(shared_budget.try_reserve(60, None), Verdict::Room(_)));
        shared_budget.pay(used(50), None);
        assert!(matches!(shared_budget.try_reserve(60, None), Verdict::Never(_)));
    }

    #[tokio::test]
    async fn whoever_waits_goes_on_when_a_call_took_less_than_it_might_have() {
        let shared_budget = shared_budget(100);
        let first = shared_budget.reserve(90, None).await.unwrap();
        let waits = shared_budget.reserve(60, None);
        tokio::pin!(waits);
        assert!(futures_util::poll!(&mut waits).is_pending());
        shared_budget.pay(used(10), None);
        drop(first);
        assert!(waits.await.is_ok());
    }

    #[test]
    fn an_unknown_price_breaks_a_limit_on_costs_only() {
        assert!(matches!(shared_budget(10).try_reserve(1, None), Verdict::Room(_)));
        let allowed = Allowed { cost: Some(Money::ZERO), ..Allowed::default() };
        let shared_budget = SharedBudget::new(allowed, Spent::default(), 0);
        assert!(matches!(shared_budget.try_reserve(1, None), Verdict::Never(_)));
    }

    #[test]
    fn what_subagents_spend_is_taken_from_it_too() {
        let shared_budget = shared_budget(100);
        shared_budget.pay_for_below(70, Money::ZERO);
        assert_eq!(shared_budget.left().tokens, Some(30));
        assert!(matches!(shared_budget.try_reserve(40, None), Verdict::Never(_)));
    }

    #[test]
    fn a_warning_comes_once() {
        let shared_budget = shared_budget(100);
        assert_eq!(shared_budget.warning(), None);
        shared_budget.pay(used(80), None);
        let what = Measure::Tokens { used: 80, most: 100 };
        assert_eq!(shared_budget.warning(), Some(Notice::NearlySpent { what }));
        assert_eq!(shared_budget.warning(), None);
    }
}
