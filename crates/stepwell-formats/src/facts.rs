//! What a session is as a whole, where a form has no place for it: each such fact is named.

use stepwell::{Head, Status, StopReason};

use crate::writer::Losses;

/// What they are called in a warning.
pub(crate) const FACTS: &str = "facts of the session";

/// What a form says of a session as a whole, as whoever reads it would understand it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Says<'a> {
    pub(crate) status: Option<(Status, Option<StopReason>)>,
    pub(crate) error: bool,
    pub(crate) task: &'a str,
    pub(crate) agent: &'a str,
    pub(crate) model: &'a str,
    pub(crate) steps: u64,
    pub(crate) cost: bool,
    /// When it was last changed.
    pub(crate) updated: bool,
}

/// Names each fact of a session that a form does not say.
pub(crate) fn count_facts(losses: &mut Losses, head: &Head, says: &Says<'_>) {
    let mut name = |lost: bool, what: String| {
        if lost {
            losses.name(FACTS, what);
        }
    };
    let (status, reason) = says.status.map_or((None, None), |(status, why)| (Some(status), why));
    let runs = head.status == Status::Running;
    name(!runs && status != Some(head.status), format!("status {}", head.status));
    if let Some(why) = head.stop_reason {
        name(reason != Some(why), format!("stop reason {why}"));
    }
    name(head.error.is_some() && !says.error, "error".to_owned());
    let told = |now: &str, there: &str| now.trim().is_empty() || now.trim() == there.trim();
    name(!told(&head.task, says.task), "task".to_owned());
    name(!told(&head.agent, says.agent), format!("agent {}", head.agent));
    name(!told(&head.model, says.model), format!("model {}", head.model));
    name(head.steps != says.steps, format!("steps {}", head.steps));
    name(!head.spent.cost.is_zero() && !says.cost, format!("cost {}", head.spent.price()));
    name(!says.updated, "when it was updated".to_owned());
}
