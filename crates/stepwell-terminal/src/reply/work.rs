//! A session's goal, tasks and phase.

use stepwell::model::{Phase, Task};
use stepwell_formats::task_progress;
use stepwell_runtime::ErrorKind;
use stepwell_runtime::command::{PhaseReply, TasksReply, WorkReply};

use super::{Rendered, Style};
use crate::console::Style as Look;
use crate::text::{count, one_line, second, visible};
use crate::{tasks as tasks_table, work};

pub(super) fn state(WorkReply { state, tasks }: &WorkReply, style: &Style) -> Rendered {
    let mut lines = Vec::new();
    let mut say = |name: &str, value: &str| {
        if !value.is_empty() {
            let name = style.paint.paint(Look::Bold, &format!("{name:<10}"));
            lines.push(format!("{name} {value}"));
        }
    };
    let next = match state.next_phases.is_empty() {
        true => String::new(),
        false => format!(" (next: {})", names(&state.next_phases)),
    };
    say("Session", state.id.as_str());
    say("Status", state.status.as_str());
    say("Goal", &one_line(state.goal.as_deref().unwrap_or_default()));
    say("Phase", &state.phase.map(|phase| format!("{phase}{next}")).unwrap_or_default());
    say("Progress", &task_progress(tasks));
    work::guided(state).iter().for_each(|line| say(line.name, &line.text));
    let last = match state.last_action.is_empty() {
        true => String::new(),
        false => format!("{}, {}", visible(&state.last_action), second(state.timestamp)),
    };
    say("Last", &last);
    say("Resumed", &state.resumed_at.map(second).unwrap_or_default());
    say("Error", &one_line(state.error.as_deref().unwrap_or_default()));
    let more = work::questions(&state.questions).into_iter().chain(work::next(state));
    { more }.for_each(|line| say(line.name, &line.text));
    Rendered::lines(lines)
}

pub(super) fn tasks(TasksReply { id, all, chosen }: &TasksReply, style: &Style) -> Rendered {
    if chosen.is_empty() {
        let none = if all.is_empty() { "No tasks are planned." } else { "No tasks match." };
        return Rendered::line(none)
            .hint(format!("hint: stepwell tasks {id} add \"TEXT\" plans one"));
    }
    let chosen: Vec<&Task> = chosen.iter().collect();
    Rendered::lines(style.table(&tasks_table::table(&chosen, all)))
}

pub(super) fn tasks_changed(TasksReply { id, chosen, .. }: &TasksReply) -> Rendered {
    Rendered::line(match &chosen[..] {
        [task] => {
            let after = match &task.deps[..] {
                [] => String::new(),
                deps => format!(", after {}", deps.join(", ")),
            };
            visible(&format!("{id}: task {} is {}{after}", task.id, task.status))
        }
        many => format!("{id}: {} taken in", count(many.len(), "task")),
    })
}

pub(super) fn phase(reply: &PhaseReply) -> Rendered {
    let refused = |message, hint| Rendered::refused(ErrorKind::Invalid, message, hint);
    match reply {
        PhaseReply::Is(info) => {
            let then = match &info.next[..] {
                [] => ", which is final".to_owned(),
                next => format!("; next: {}", names(next)),
            };
            Rendered::line(format!("{} is in phase {}{then}", info.id, info.phase))
        }
        PhaseReply::NoPhases(id) => {
            let hint = "stepwell run \"TASK\" --phases workflow begins a session with phases";
            refused(format!("{id} has no phases"), Some(hint.to_owned()))
        }
        PhaseReply::Unknown { id, name, set } => refused(
            format!("{id}: there is no phase {name:?} in its set"),
            Some(format!("the phases are {}", names(set.phases()))),
        ),
        PhaseReply::Illegal { id, from, to, legal } => {
            let message = format!("{id}: {from} cannot move to {to}");
            match &legal[..] {
                [] => refused(format!("{message}; {from} is final"), None),
                [first, ..] => refused(
                    format!("{message}; it can move to {}", names(legal)),
                    Some(format!("stepwell phase {id} {first}")),
                ),
            }
        }
    }
}

fn names(phases: &[Phase]) -> String {
    phases.iter().map(|phase| phase.as_str()).collect::<Vec<_>>().join(", ")
}
