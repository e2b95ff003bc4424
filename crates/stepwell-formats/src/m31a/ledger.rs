//! `LEDGER.md`: what came of sessions that ended. Of most of them nothing else is left, so
//! each row is a session of its own, and counts in `stepwell ledger`.

use std::path::Path;
use std::time::Duration;

use stepwell::Status;
use stepwell::model::{
    Edited, Elsewhere, LEDGER_SCOPE, Money, PhaseSet, Project, StatusChanged, Task, TaskStatus,
    Time,
};
use stepwell::report::LEDGER_ROW;

use crate::Result;
use crate::read::neutral::{Item, Opening, Sink, Wanted};
use crate::snapshot::{provider_of, warn};

/// The columns. They tell the table from any other.
pub const LEDGER_COLUMNS: [&str; 10] = [
    "Session ID",
    "Timestamp",
    "Model",
    "Project Type",
    "Tasks",
    "Failed",
    "Skipped",
    "Cost",
    "Duration",
    "Commits",
];

/// The most tasks that a row is believed to have had.
const MAX_TASKS: usize = 500;

/// Is this such a table?
pub(super) fn is_ledger(text: &str) -> bool {
    text.lines().take(20).any(|line| cells(line).is_some_and(|cells| cells == LEDGER_COLUMNS))
}

/// Tells a session for each row.
pub(super) fn read(path: &Path, text: &str, sink: &mut dyn Sink) -> Result<()> {
    for (line, n) in text.lines().zip(1..) {
        let is_rule = line.trim().chars().all(|c| "|-: ".contains(c));
        let Some(cells) = cells(line).filter(|cells| *cells != LEDGER_COLUMNS && !is_rule) else {
            continue;
        };
        match Row::of(&cells) {
            Ok(row) => row.emit(sink)?,
            Err(why) => warn(sink, path, format!("line {n} is no row, and was left out: {why}")),
        }
    }
    Ok(())
}

fn cells(line: &str) -> Option<Vec<&str>> {
    let inner = line.trim().strip_prefix('|')?;
    Some(inner.strip_suffix('|').unwrap_or(inner).split('|').map(str::trim).collect())
}

/// What came of one session.
struct Row<'a> {
    id: &'a str,
    at: Time,
    model: &'a str,
    project: &'a str,
    tasks: usize,
    failed: usize,
    skipped: usize,
    cost: Money,
    minutes: u64,
    commits: &'a str,
}

impl<'a> Row<'a> {
    fn of(cells: &[&'a str]) -> Result<Self, String> {
        let [id, at, model, project, tasks, failed, skipped, cost, minutes, commits] = cells[..]
        else {
            return Err(format!("it has {} cells, not {}", cells.len(), LEDGER_COLUMNS.len()));
        };
        let count = |cell: &str| {
            let n: usize = cell.parse().map_err(|_| format!("{cell:?} is no number"))?;
            if n > MAX_TASKS { Err(format!("{n} tasks are too many")) } else { Ok(n) }
        };
        if id.is_empty() {
            return Err("it names no session".to_owned());
        }
        // An estimate is no cost: with the tokens it can be made again, without them it is a guess.
        let recorded = cost.split(" + ").next().unwrap_or(cost);
        let cost = if cost.starts_with('~') { "0" } else { recorded.trim_start_matches('$') };
        let id = id.strip_prefix(LEDGER_ROW).unwrap_or(id);
        Ok(Self {
            id,
            at: at.parse().map_err(|_| format!("{at:?} is no time"))?,
            model,
            project: if project == "-" { "" } else { project },
            tasks: count(tasks)?,
            failed: count(failed)?,
            skipped: count(skipped)?,
            cost: cost.parse().map_err(|_| format!("{cost:?} is no amount"))?,
            minutes: minutes.parse().map_err(|_| format!("{minutes:?} is no number"))?,
            commits,
        })
    }

    fn emit(&self, sink: &mut dyn Sink) -> Result<()> {
        // A name of its own: the session itself may come in as well.
        let id = format!("{LEDGER_ROW}{}", self.id);
        let mut opening = Opening::new(id, format!("what M31A's ledger says of {}", self.id));
        let took = Duration::from_secs(self.minutes.min(1 << 24) * 60);
        opening.started_at = Some(self.at.minus(took));
        opening.row_of = Some(self.id.to_owned());
        let created = &mut opening.created;
        created.scope = Some(LEDGER_SCOPE.to_owned());
        let (provider, model) = match self.model.split_once('/') {
            _ if self.model.starts_with("script:") => ("script", &self.model["script:".len()..]),
            Some((provider, model)) if !provider.is_empty() => (provider, model),
            _ => (provider_of(self.model), self.model),
        };
        created.model = model.to_owned();
        created.provider = provider.to_owned();
        created.phases = Some(PhaseSet::Workflow);
        created.project =
            Some(Project { project_type: self.project.to_owned(), ..Project::default() });
        if sink.begin(opening)? == Wanted::Known {
            return Ok(());
        }
        let at = Some(self.at);
        for n in 0..self.tasks.max(self.failed + self.skipped) {
            let status = match n {
                n if n < self.failed => TaskStatus::Failed,
                n if n < self.failed + self.skipped => TaskStatus::Skipped,
                _ => TaskStatus::Done,
            };
            let id = (n + 1).to_string();
            sink.push(Item::new(at, Task { id, status, ..Task::default() }))?;
        }
        let elsewhere = Some(Elsewhere { cost: self.cost, ..Elsewhere::default() });
        let metadata = [("commits".to_owned(), self.commits.into())].into();
        sink.push(Item::new(at, Edited { elsewhere, metadata, ..Edited::default() }))?;
        let status = StatusChanged { status: Status::Success, reason: None, error: None };
        sink.push(Item::new(at, status))?;
        sink.end()
    }
}
