//! How a session's work stands.

use stepwell::{Head, Time, Work};
use stepwell_formats::said;
use stepwell_wire::{TaskInfo, WorkState};

/// How a session's work stands: its goal, phase, progress, what was asked, and when it was last
/// resumed.
#[must_use]
pub fn work_state(head: &Head, work: &Work, resumed_at: Option<Time>) -> WorkState {
    let said = said(head, work);
    let next = head.phases.zip(head.phase);
    let next = next.map(|(set, phase)| set.next(phase, head.discuss_returns)).unwrap_or_default();
    WorkState {
        id: head.id.clone(),
        status: head.status,
        goal: Some(said.goal).filter(|goal| !goal.is_empty()),
        phase: head.phase,
        next_phases: next,
        progress: (&work.tasks).into(),
        last_action: said.last_action,
        timestamp: said.at,
        resumed_at,
        questions: work.questions.clone(),
        tasks: work.tasks.iter().map(|task| TaskInfo::new(task, &work.tasks)).collect(),
    }
}
