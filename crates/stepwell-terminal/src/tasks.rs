//! What a session plans to do.

use stepwell::model::{Task, TaskStatus};
use stepwell::work::Tasks;

use crate::Style;
use crate::table::{Cell, Column, Table, left};
use crate::text::{one_line, visible};

const COLUMNS: &[Column] = &[
    left("TASK"),
    left("STATUS"),
    left("ACTION"),
    left("AFTER"),
    left("FILES"),
    left("DESCRIPTION"),
];

/// A line for each of some tasks.
#[must_use]
pub fn table(chosen: &[&Task], all: &Tasks) -> Table {
    let mut table = Table::new(COLUMNS);
    for task in chosen {
        table.push(vec![
            visible(&task.id).into(),
            status(task, all),
            one_line(&task.action).into(),
            one_line(&task.deps.join(", ")).into(),
            one_line(&task.files.join(", ")).into(),
            one_line(&task.description).into(),
        ]);
    }
    table
}

fn status(task: &Task, all: &Tasks) -> Cell {
    let style = match task.status {
        TaskStatus::Pending if !all.waits_for(task).is_empty() => Style::Dim,
        TaskStatus::Pending => Style::Plain,
        TaskStatus::Running => Style::Cyan,
        TaskStatus::Done => Style::Green,
        TaskStatus::Failed | TaskStatus::Unrecoverable => Style::Red,
        TaskStatus::Skipped => Style::Yellow,
    };
    Cell::styled(task.status.to_string(), style)
}
