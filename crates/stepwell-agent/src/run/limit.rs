//! Explains why a limit prevents the next call.

use stepwell::StopReason;
use stepwell::model::{Change, Edited, Money, Settings};

use super::{Notice, Run, Whole};
use crate::error::Result;
use crate::machine::{Estimate, Limits, Stop};

impl Run<'_> {
    /// Explains why a limit stops the run if that is not obvious, since some of the limit may be
    /// left.
    pub(super) fn tell_refusal(&mut self, stop: &Stop) {
        if stop.reason != StopReason::BudgetExceeded {
            return;
        }
        let (total, before) = (self.state.total(), self.since.spent);
        let used = Used {
            tokens: total.usage.total().saturating_sub(before.usage.total()),
            cost: total.cost.minus(before.cost),
            total_cost: total.cost,
        };
        if let Some(why) = refusal(&self.rules.limits, &used, &self.estimate()) {
            self.front.events.notice(why);
        }
    }
}

impl Run<'_> {
    /// Applies the front end's budget for the whole session. It is recorded in the user's name. In
    /// a flow all lanes share it, and the flow's runner recorded it.
    pub(super) fn hear_given_budget(&mut self) -> Result<()> {
        let Some(most) = self.front.wishes.budget() else { return Ok(()) };
        if self.given.replace(most) == Some(most) {
            return Ok(());
        }
        if let Some(shared) = self.shared_budget {
            shared.set_cost(most);
            return Ok(());
        }
        if self.rules.limits.budget_total == Some(most) {
            return Ok(());
        }
        self.rules.limits.budget_total = Some(most);
        let settings = Settings { budget: Some(most), who: self.me(), ..Settings::default() };
        let edited = Edited { budget: Change::Set(most), ..Edited::default() };
        self.record(vec![settings.into(), edited.into()])
    }

    /// Applies a budget that another person recorded, if it is lower than the current one. Only the
    /// person who runs the session may raise it. Returns whether there was one.
    pub(super) fn hear_lower_budget(&mut self) -> Result<bool> {
        if self.shared_budget.is_some() {
            return Ok(false);
        }
        let Some(most) = self.session.info()?.head.budget else { return Ok(false) };
        let now = &mut self.rules.limits.budget_total;
        let is_lower = now.is_none_or(|now| most < now);
        if is_lower {
            *now = Some(most);
        }
        Ok(is_lower)
    }
}

/// The used part of a run's limits.
#[derive(Clone, Copy, Debug, Default)]
struct Used {
    /// Tokens in this run.
    tokens: u64,
    /// Dollars in this run.
    cost: Money,
    /// Dollars of the session and its subagents.
    total_cost: Money,
}

/// The limit that the next call may exceed.
fn refusal(limits: &Limits, used: &Used, call: &Estimate) -> Option<Notice> {
    let (tokens, may) = (used.tokens, call.tokens);
    if let Some(most) = limits.tokens.filter(|most| tokens.saturating_add(may) > *most) {
        return Some(Notice::TokensSpent { next: may, used: tokens, most });
    }
    let Some(cost) = call.cost else {
        let most = limits.budget.into_iter().chain(limits.budget_total).min()?;
        return Some(Notice::PriceUnknown { most });
    };
    let here = limits.budget.map(|most| (used.cost, most, Whole::Run));
    let whole = limits.budget_total.map(|most| (used.total_cost, most, Whole::Session));
    let breaks = |(spent, most, _): &(Money, Money, Whole)| spent.plus(cost) > *most;
    let (spent, most, of) = here.into_iter().chain(whole).find(breaks)?;
    Some(Notice::BudgetSpent { next: cost, spent, most, of })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn money(text: &str) -> Option<Money> {
        Some(text.parse().unwrap())
    }

    #[test]
    fn a_refusal_says_what_the_next_call_may_take_and_what_is_left() {
        let call = Estimate { tokens: 900, cost: money("0.5"), shrink: None };
        let used =
            Used { tokens: 200, cost: money("0.6").unwrap(), total_cost: money("2").unwrap() };
        let by = |limits: Limits| refusal(&limits, &used, &call);
        let tokens = by(Limits { tokens: Some(1_000), ..Limits::default() });
        assert_eq!(tokens, Some(Notice::TokensSpent { next: 900, used: 200, most: 1_000 }));
        let spent = |spent: &str, most: &str, of| {
            let next = money("0.5").unwrap();
            let (spent, most) = (money(spent).unwrap(), money(most).unwrap());
            Some(Notice::BudgetSpent { next, spent, most, of })
        };
        let here = by(Limits { budget: money("1"), ..Limits::default() });
        assert_eq!(here, spent("0.6", "1", Whole::Run));
        let whole =
            by(Limits { budget: money("9"), budget_total: money("2.1"), ..Limits::default() });
        assert_eq!(whole, spent("2", "2.1", Whole::Session));
        assert_eq!(by(Limits::default()), None);
    }
}
