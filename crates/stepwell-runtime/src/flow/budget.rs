//! What a flow may use.

use std::time::Duration;

use stepwell::Session;
use stepwell::model::{Money, Spent};
use stepwell_agent::run::{Allowed, SharedBudget};
use stepwell_flow::History;
use stepwell_flow::spec::Spec;

use super::agents::Crew;
use crate::error::Result;
use crate::prepare::no_price;
use crate::request::RunOptions;

/// A budget on a model whose price nobody knows cannot be kept.
pub(super) fn check_budget(spec: &Spec, options: &RunOptions, crew: &Crew) -> Result<()> {
    let limited = spec.runtime.budgets.max_cost_usd.is_some()
        || options.budget.is_some()
        || options.budget_total.is_some();
    match limited && !crew.priced {
        true => Err(no_price("some agent's model")),
        false => Ok(()),
    }
}

/// What a flow may use: what its spec says of all of it, or what was asked for of this run.
pub(super) fn shared_budget(
    spec: &Spec,
    options: &RunOptions,
    history: &History,
    below: Spent,
) -> SharedBudget {
    let budgets = &spec.runtime.budgets;
    let mut spent = history.spent;
    spent += below;
    let given = options.max_tokens.map(|most| spent.usage.total().saturating_add(most));
    let left = match (options.timeout, budgets.max_duration_s) {
        (Some(given), _) => Some(given),
        (None, Some(most)) => Some(Duration::from_secs(most.get()).saturating_sub(history.ran())),
        (None, None) => None,
    };
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "from 0 to 1000")]
    let warn_at = (budgets.warn_threshold().clamp(0.0, 1.0) * 1000.0) as u64;
    let allowed = Allowed {
        calls: match options.max_steps {
            Some(most) => Some(history.calls.saturating_add(most)),
            None => budgets.max_steps.map(std::num::NonZeroU64::get),
        },
        tokens: given.or(budgets.max_tokens.map(std::num::NonZeroU64::get)),
        cost: cost_limit(spec, options, spent.cost),
        warn_at: Some(warn_at),
        until: left.and_then(|left| tokio::time::Instant::now().checked_add(left)),
    };
    SharedBudget::new(allowed, spent, history.calls)
}

/// What a flow may have cost in the end, by the nearest of its limits.
pub(super) fn cost_limit(spec: &Spec, options: &RunOptions, spent: Money) -> Option<Money> {
    let here = options.budget.map(|most| spent.plus(most));
    let of_spec = spec.runtime.budgets.max_cost_usd.filter(|_| here.is_none());
    here.into_iter().chain(options.budget_total.or(of_spec)).min()
}

/// What the subagents of a session spent.
pub(super) fn below(session: &Session) -> Result<Spent> {
    let mut spent = Spent::default();
    let all = session.well().subagents(session.id())?;
    all.iter().for_each(|info| spent += info.head.spent);
    Ok(spent)
}
