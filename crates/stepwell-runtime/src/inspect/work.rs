//! How a session's work stands.

use stepwell::work::Gates;
use stepwell::{SessionId, Stepwell};
use stepwell_formats::said;
use stepwell_wire::{TaskInfo, WorkState};

use super::guided::guided_info;
use crate::error::Result;

/// How a session's work stands: its goal, phase, progress, what was asked, what it waits for, and
/// when it was last resumed.
///
/// # Errors
/// If there is no such session, or it cannot be read.
pub fn work_state(well: &Stepwell, id: &SessionId) -> Result<WorkState> {
    let (head, work) = (well.info(id)?.head, well.work_with_last_step(id)?);
    let said = said(&head, &work);
    let next = head.phases.zip(head.phase);
    let next = next.map(|(set, phase)| set.next(phase, head.discuss_returns)).unwrap_or_default();
    let gates = match head.open_gates {
        0 => Gates::default(),
        _ => Gates::waiting(&**well.store(), id)?,
    };
    Ok(WorkState {
        guided: guided_info(well, &head, &work.tasks)?,
        resumed_at: well.resumed_at(&head)?,
        status: head.status,
        stop_reason: head.stop_reason,
        error: head.error,
        goal: Some(said.goal).filter(|goal| !goal.is_empty()),
        phase: head.phase,
        next_phases: next,
        progress: (&work.tasks).into(),
        last_action: said.last_action,
        timestamp: said.at,
        tasks: work.tasks.iter().map(|task| TaskInfo::new(task, &work.tasks)).collect(),
        questions: work.questions,
        waits_for: gates.open().map(|asked| (&asked.gate).into()).collect(),
        id: head.id,
    })
}
