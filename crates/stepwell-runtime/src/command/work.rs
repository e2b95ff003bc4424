//! A session's goal, tasks and phase.

use stepwell::log::Head;
use stepwell::model::{Move, Task, TaskStatus};
use stepwell::work::{ChangedTasks, TaskEdit};
use stepwell::{SessionId, Stepwell};
use stepwell_wire::PhaseInfo;

use super::asked::TaskChange;
use super::reply::{PhaseReply, TasksReply, WorkReply};
use crate::error::Result;
use crate::inspect::work_state;
use crate::runtime::Runtime;

pub(super) fn state(well: &Stepwell, id: &SessionId) -> Result<WorkReply> {
    Ok(WorkReply { state: work_state(well, id)?, tasks: well.work(id)?.tasks })
}

pub(super) fn tasks(
    well: &Stepwell,
    id: &SessionId,
    statuses: &[TaskStatus],
) -> Result<TasksReply> {
    let all = well.work(id)?.tasks;
    let takes = |task: &&Task| statuses.is_empty() || statuses.contains(&task.status);
    let chosen = all.iter().filter(takes).cloned().collect();
    Ok(TasksReply { id: id.clone(), all, chosen })
}

/// Changes tasks. Secrets in what a person typed are redacted first.
pub(super) fn change(
    runtime: &Runtime,
    well: &Stepwell,
    id: &SessionId,
    change: TaskChange,
) -> Result<TasksReply> {
    let redactor = runtime.typed_redactor()?;
    let plain = |text: String| redactor.redact(&text).into_owned();
    let each = |files: Vec<String>| files.into_iter().map(plain).collect::<Vec<_>>();
    let task = |task: Task| Task {
        action: plain(task.action),
        description: plain(task.description),
        files: each(task.files),
        ..task
    };
    let ChangedTasks { tasks, changed } = well.change_tasks(id, |tasks| match change {
        TaskChange::Add(new) => Ok(vec![tasks.add(task(new))?]),
        TaskChange::Edit(name, edit) => {
            let edit = TaskEdit {
                description: edit.description.map(plain),
                action: edit.action.map(plain),
                files: edit.files.map(each),
                ..edit
            };
            Ok(vec![tasks.edit(&name, edit)?])
        }
        TaskChange::Load(loaded) => tasks.load(loaded.into_iter().map(task)),
    })?;
    Ok(TasksReply { id: id.clone(), all: tasks, chosen: changed })
}

/// The phase that a session is in.
pub(super) fn phase(head: &Head) -> PhaseReply {
    let Some((phases, phase)) = head.phases.zip(head.phase) else {
        return PhaseReply::NoPhases(head.id.clone());
    };
    PhaseReply::Is(PhaseInfo {
        id: head.id.clone(),
        phases,
        phase,
        next: phases.next(phase, head.discuss_returns),
        resumable: phases.resumable(phase),
    })
}

/// Moves to another phase, if the session's set of phases allows it.
pub(super) fn enter_phase(well: &Stepwell, id: &SessionId, name: &str) -> Result<PhaseReply> {
    let info = well.info(id)?;
    info.refuse_half_rewound()?;
    let (id, head) = (id.clone(), info.head);
    let Some((set, from)) = head.phases.zip(head.phase) else {
        return Ok(PhaseReply::NoPhases(id));
    };
    let Some(to) = set.parse(name) else {
        return Ok(PhaseReply::Unknown { id, name: name.to_owned(), set });
    };
    if let Move::Illegal(legal) = set.judge(from, to, head.discuss_returns) {
        return Ok(PhaseReply::Illegal { id, from, to, legal });
    }
    well.enter_phase(&id, to)?;
    Ok(phase(&well.info(&id)?.head))
}
