//! Commands for the goal, the plan and the phase of a session's work.

use stepwell::model::{Move, Phase};
use stepwell::sqlite::Access;
use stepwell_runtime::inspect;

use super::{Conversation, Result, listed};

/// The plan.
pub(super) fn tasks(on: &Conversation) -> Result<String> {
    let well = on.runtime().workspace().open_existing(Access::Read)?;
    let work = well.work(on.id())?;
    let line = |task: &stepwell::model::Task| format!("- [{}] {}", task.status, task.description);
    let lines: Vec<String> = work.tasks.iter().map(line).collect();
    Ok(listed(&lines, "Nothing is planned."))
}

/// What the work is to achieve.
pub(super) fn goal(on: &Conversation) -> Result<String> {
    let state =
        inspect::work_state(&on.runtime().workspace().open_existing(Access::Read)?, on.id())?;
    Ok(match state.goal {
        Some(goal) => format!("Goal: {goal}"),
        None => "Nobody said a goal; /goal TEXT does.".to_owned(),
    })
}

/// Shows the phase, or moves to another.
pub(super) fn phase(on: &Conversation, name: &str) -> Result<String> {
    let access = if name.is_empty() { Access::Read } else { Access::Write };
    let well = on.runtime().workspace().open_existing(access)?;
    let head = well.info(on.id())?.head;
    let Some((set, from)) = head.phases.zip(head.phase) else {
        return Ok("This session has no phases.".to_owned());
    };
    let next = set.next(from, head.discuss_returns);
    if name.is_empty() {
        return Ok(match next.is_empty() {
            true => format!("The phase is {from}, which is final."),
            false => format!("The phase is {from}; next: {}.", names(&next)),
        });
    }
    let Some(to) = set.parse(name) else {
        return Ok(format!("There is no phase {name:?}; there are {}.", names(set.phases())));
    };
    if let Move::Illegal(legal) = set.judge(from, to, head.discuss_returns) {
        return Ok(format!("{from} cannot move to {to}; it can move to {}.", names(&legal)));
    }
    well.enter_phase(on.id(), to)?;
    Ok(format!("The phase is {to}."))
}

fn names(phases: &[Phase]) -> String {
    match phases {
        [] => "none".to_owned(),
        phases => phases.iter().map(|phase| phase.as_str()).collect::<Vec<_>>().join(", "),
    }
}
