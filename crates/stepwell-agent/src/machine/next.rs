//! Decides the next move from a state. Pure.

use stepwell::model::{Effect, Money, ToolCall};
use stepwell::{Status, StopReason};

use super::moves::{Baseline, By, Estimate, Limits, Move, Rules, Settled, Shrink, Stop};
use super::{Started, State, Turn};
use crate::permission::{Covers, Rule, Verdict, judge};
use crate::tool::guard::needs_question;
use crate::tool::is_read_only;

impl State {
    /// The next move, given the most that the next call to the model may cost.
    #[must_use]
    pub fn next(&self, rules: &Rules, since: &Baseline, estimate: &Estimate) -> Move {
        let calls = match &self.turn {
            _ if self.is_over() => return Move::Stop(self.over()),
            Turn::Tools(calls) => calls,
            Turn::Over => return Move::Stop(self.over()),
            Turn::Nobody | Turn::Model => return self.ask_model(rules, since, estimate),
        };
        let Some(pending) = calls.iter().find(|call| !call.answered) else {
            return Move::Seal;
        };
        let call = pending.call.clone();
        if self.is_unallowed(&call) {
            return self.begin_others(pending, rules);
        }
        // A server may since have changed a pure tool to one that is not.
        let now = rules.effects.get(&call.name).copied().unwrap_or(Effect::Pure);
        match &pending.started {
            Some(Started { effect: Effect::Resumable, .. }) => Move::RunTool(call),
            Some(Started { effect: Effect::Pure, .. }) if now == Effect::Pure => {
                Move::RunTool(call)
            }
            Some(Started { effect: Effect::Idempotent, targets, .. }) => {
                Move::Inspect(call, targets.clone())
            }
            Some(_) if rules.retry_unsafe => Move::RunTool(call),
            Some(_) => Move::Settle(call, Settled::Unknown),
            None if self.may_have_run(pending) && must_not_repeat(&call, rules) => {
                Move::Settle(call, Settled::Unknown)
            }
            None => self.begin(call, rules),
        }
    }

    /// The user's rule for a call. A rule that denies comes first.
    fn remembered(&self, call: &ToolCall) -> Option<bool> {
        let about = self.remembered.iter().filter(|(rule, allow)| match allow {
            true => Rule::parse(rule).fits(call),
            false => Rule::parse(rule).covers(call) == Covers::Yes,
        });
        about.map(|(_, allow)| *allow).min()
    }

    /// Could the call contain something that the user denied?
    fn is_doubtful(&self, call: &ToolCall) -> bool {
        let mut forbidden = self.remembered.iter().filter(|(_, allow)| !**allow);
        forbidden.any(|(rule, _)| Rule::parse(rule).covers(call) == Covers::Perhaps)
    }

    /// The stop of a run whose model makes no more calls. If every call that it made was denied,
    /// the run is not a success.
    const fn over(&self) -> Stop {
        let reason = StopReason::LlmDone;
        match self.calls > 0 && self.calls == self.denied && !self.ended_as_done {
            true => Stop { status: Status::Partial, reason },
            false => Stop { status: Status::Success, reason },
        }
    }

    /// The move for a call that has not run.
    pub(super) fn begin(&self, call: ToolCall, rules: &Rules) -> Move {
        let Some(effect) = rules.effects.get(&call.name) else {
            return Move::Settle(call, Settled::NoSuchTool);
        };
        match self.answered(&call.id) {
            Some(answer) if answer.allows() => return Move::RunTool(call),
            Some(answer) => {
                let reason = answer.answer.reason().unwrap_or_default().to_owned();
                return Move::Settle(call, Settled::Denied(reason));
            }
            None => {}
        }
        match self.judged(&call, *effect, rules) {
            Verdict::Allow if self.is_doubtful(&call) => Move::Ask(call),
            Verdict::Allow => Move::RunTool(call),
            Verdict::Deny => Move::Settle(call, Settled::Denied(String::new())),
            Verdict::Ask => Move::Ask(call),
        }
    }

    /// Decides by the mode and the user's rules, ignoring calls that a rule may deny.
    fn judged(&self, call: &ToolCall, effect: Effect, rules: &Rules) -> Verdict {
        // A read-only subagent counts as a tool that only reads.
        let looks = effect == Effect::Resumable && is_read_only(&call.arguments);
        let effect = if looks { Effect::Pure } else { effect };
        // A rule that allows edits does not allow running the edited files.
        let remembered = self
            .remembered(call)
            .filter(|allow| !allow || !needs_question(&call.name, &call.arguments))
            .filter(|allow| !allow || self.is_covered(call));
        judge(self.mode_of(call, rules), effect, remembered)
    }

    /// Would the call run without an approval, if no rule might deny it?
    pub(crate) fn is_only_doubtful(&self, call: &ToolCall, rules: &Rules) -> bool {
        let effect = rules.effects.get(&call.name);
        effect.is_some_and(|effect| self.judged(call, *effect, rules) == Verdict::Allow)
            && self.is_doubtful(call)
    }

    fn ask_model(&self, rules: &Rules, since: &Baseline, estimate: &Estimate) -> Move {
        let steps = self.steps.saturating_sub(since.steps);
        if rules.limits.steps.is_some_and(|limit| steps >= limit) {
            return Move::Stop(Stop::limit(StopReason::MaxSteps));
        }
        if let Some(shrink) = estimate.shrink {
            return Move::Compact(self.summariser(rules, since, shrink));
        }
        match self.affords(&rules.limits, since, estimate.tokens, estimate.cost) {
            true => Move::CallModel,
            false => Move::Stop(Stop::limit(StopReason::BudgetExceeded)),
        }
    }

    /// Who writes the summary: a model, unless that would exceed the budget.
    #[must_use]
    pub fn summariser(&self, rules: &Rules, since: &Baseline, shrink: Shrink) -> By {
        match shrink {
            Shrink::Summarise { tokens, cost }
                if self.affords(&rules.limits, since, tokens, cost) =>
            {
                By::Model
            }
            Shrink::Summarise { .. } | Shrink::Truncate => By::Nobody,
        }
    }

    /// Do the limits allow a call that costs at most this much?
    fn affords(&self, limits: &Limits, since: &Baseline, tokens: u64, cost: Option<Money>) -> bool {
        let total = self.total();
        let used = total.usage.total().saturating_sub(since.spent.usage.total());
        let spent = total.cost.minus(since.spent.cost);
        let with = |spent: Money| Some(spent.plus(cost?));
        !(limits.tokens.is_some_and(|limit| used.saturating_add(tokens) > limit)
            || exceeds(limits.budget, with(spent))
            || exceeds(limits.budget_total, with(total.cost)))
    }
}

/// Could running the call repeat an effect, without the user's permission?
pub(super) fn must_not_repeat(call: &ToolCall, rules: &Rules) -> bool {
    let known = rules.effects.get(&call.name);
    known != Some(&Effect::Pure) && !(known.is_some() && rules.retry_unsafe)
}

/// Could this cost exceed the limit? An unknown cost exceeds every limit, because a limit must
/// hold.
fn exceeds(limit: Option<Money>, cost: Option<Money>) -> bool {
    limit.is_some_and(|limit| cost.is_none_or(|cost| cost > limit))
}
