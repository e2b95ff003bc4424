//! Why the next call is not made: it may take more than is left of a limit.

use stepwell::{Money, StopReason};

use super::{Happening, Run};
use crate::machine::{Estimate, Limits, Stop};

impl Run<'_> {
    /// Says why a limit stops the run where that is not plain: what is left may seem to be enough.
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
        if let Some(why) = refusal(&self.setup.rules.limits, &used, &self.estimate()) {
            self.watcher.saw(Happening::Notice(&why));
        }
    }
}

/// What was used of a run's limits.
#[derive(Clone, Copy, Debug, Default)]
struct Used {
    /// Tokens, in this invocation.
    tokens: u64,
    /// Dollars, in this invocation.
    cost: Money,
    /// Dollars, in the session and its subagents'.
    total_cost: Money,
}

/// Which limit the next call may break, in words.
fn refusal(limits: &Limits, used: &Used, call: &Estimate) -> Option<String> {
    let longest = "with the longest answer that it may give (model.max_output)";
    let (tokens, may) = (used.tokens, call.tokens);
    if let Some(most) = limits.tokens.filter(|most| tokens.saturating_add(may) > *most) {
        return Some(format!(
            "the next call may take {may} tokens {longest}; {tokens} of at most {most} are used"
        ));
    }
    let cost = call.cost?;
    let here = limits.budget.map(|most| (used.cost, most, "in this run"));
    let whole = limits.budget_total.map(|most| (used.total_cost, most, "in the whole session"));
    let breaks = |(spent, most, _): &(Money, Money, &str)| spent.plus(cost) > *most;
    let (spent, most, where_) = here.into_iter().chain(whole).find(breaks)?;
    Some(format!(
        "the next call may cost ${cost} {longest}; ${spent} of at most ${most} is spent {where_}"
    ))
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
        let tokens = by(Limits { tokens: Some(1_000), ..Limits::default() }).unwrap();
        assert!(tokens.contains("may take 900 tokens"), "{tokens}");
        assert!(tokens.ends_with("200 of at most 1000 are used"), "{tokens}");
        let here = by(Limits { budget: money("1"), ..Limits::default() }).unwrap();
        assert!(here.contains("may cost $0.5 with"), "{here}");
        assert!(here.ends_with("$0.6 of at most $1 is spent in this run"), "{here}");
        let whole =
            by(Limits { budget: money("9"), budget_total: money("2.1"), ..Limits::default() });
        assert!(whole.unwrap().ends_with("$2 of at most $2.1 is spent in the whole session"));
        assert_eq!(by(Limits::default()), None);
    }
}
