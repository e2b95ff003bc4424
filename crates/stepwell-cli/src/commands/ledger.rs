use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use stepwell::{
    Access, Driver, Event, Family, Filter, Head, Order, Origin, Query, Seq, SessionId, Span, Spent,
    Standing, TaskStatus, Time,
};
use stepwell_agent::run::Charge;
use stepwell_formats::{cell, table};
use stepwell_wire::LedgerEntry;
use stepwell_workspace::{Commits, Location, NamedWell};

use crate::app::{App, Go, Well, each_session};
use crate::failure::{Exit, Result};
use crate::output::note;
use crate::selection::Selection;
use crate::table::{Align, Column, Table};
use crate::text::{cost, moment, one_line, took};
use crate::wire;

/// Lists what came of sessions that have ended, newest first.
///
/// One row for each: its tasks, its cost, how long it took, and the commits that were made in
/// the workspace's local branches meanwhile. A subagent counts for the session that started it.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    selection: Selection,
    /// Answers with a table in Markdown, as in M31A's LEDGER.md: durations in minutes. stepwell
    /// import reads it in again.
    #[arg(long, conflicts_with = "json")]
    markdown: bool,
    /// Of all of your known stores.
    #[arg(long)]
    everywhere: bool,
}

/// What came of one session.
struct Row {
    head: Head,
    project: String,
    ended: Time,
    tasks: usize,
    failed: usize,
    skipped: usize,
    commits: Option<usize>,
    /// By it and by its subagents.
    spent: Spent,
}

const COLUMNS: &[Column] = &[
    Column { name: "SESSION", align: Align::Left },
    Column { name: "ENDED", align: Align::Left },
    Column { name: "PROJECT", align: Align::Left },
    Column { name: "TASKS", align: Align::Right },
    Column { name: "FAILED", align: Align::Right },
    Column { name: "SKIPPED", align: Align::Right },
    Column { name: "COST", align: Align::Right },
    Column { name: "TOOK", align: Align::Right },
    Column { name: "COMMITS", align: Align::Right },
    Column { name: "MODEL", align: Align::Left },
];

/// The columns in Markdown, as M31A has them.
const MARKDOWN: [&str; 10] = [
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

pub(crate) fn run(args: &Args, app: &mut App) -> Result<Exit> {
    let mut rows = Vec::new();
    if args.everywhere {
        for NamedWell { name, well } in app.everywhere(|it, path| it.open(path, Access::Read)) {
            let root = Location::named(&name, &app.place.root).root;
            rows.extend(collect(args, &well, &root, app)?);
        }
        rows.sort_by_key(|row| std::cmp::Reverse(row.ended));
    } else if let Some(well) = app.look()? {
        rows = collect(args, &well, &app.place.root, app)?;
    }
    if args.markdown {
        app.out.line(format_args!("# Ledger\n\n{}", markdown(&rows).trim_end()))?;
    } else if app.out.is_json() {
        rows.iter().try_for_each(|row| app.out.object(&row.line()))?;
    } else if rows.is_empty() {
        app.out.line("No sessions that have ended.")?;
        note("hint: stepwell sessions lists all that there are");
    } else {
        show(&rows, app)?;
    }
    Ok(Exit::Done)
}

/// The rows of one store, the last that ended first.
fn collect(args: &Args, well: &Well, root: &Path, app: &App) -> Result<Vec<Row>> {
    let filter = Filter { family: Family::Roots, ..args.selection.filter(app.now()) };
    let mut rows = Vec::new();
    each_session(well, Query { filter, ..Query::default() }, |standing| {
        if standing.head.status.has_ended() && args.selection.takes(&standing) {
            match row(well, standing) {
                Ok(row) => rows.push(row),
                // One that is damaged hides no other.
                Err((id, error)) => note(format_args!("warning: {id} is left out: {error}")),
            }
        }
        Ok(Go::On)
    })?;
    let since = rows.iter().map(|row| row.head.created_at).min();
    let commits = since.and_then(|since| Commits::since(root, since));
    // What was counted elsewhere stays as it was.
    for row in rows.iter_mut().filter(|row| row.commits.is_none() && is_here(&row.head, root)) {
        row.commits = commits.as_ref().map(|it| it.between(row.head.created_at, row.ended));
    }
    if !rows.is_empty() {
        let subagents = Subagents::of(well)?;
        rows.iter_mut().for_each(|row| row.spent += subagents.spent(&row.head.id));
    }
    rows.sort_by_key(|row| std::cmp::Reverse(row.ended));
    Ok(rows)
}

/// What each session's subagents spent themselves, by the session that started them.
struct Subagents(BTreeMap<SessionId, Vec<(SessionId, Spent)>>);

impl Subagents {
    fn of(well: &Well) -> Result<Self> {
        let mut all = Self(BTreeMap::new());
        each_session(well, Query::default(), |Standing { head, .. }| {
            if let Origin::Subagent { parent } = head.origin {
                all.0.entry(parent).or_default().push((head.id, head.spent));
            }
            Ok(Go::On)
        })?;
        Ok(all)
    }

    /// What all below a session spent.
    fn spent(&self, id: &SessionId) -> Spent {
        let (mut spent, mut waiting) = (Spent::default(), vec![id]);
        while let Some(id) = waiting.pop() {
            for (child, own) in self.0.get(id).into_iter().flatten() {
                spent += *own;
                waiting.push(child);
            }
        }
        spent
    }
}

/// Did a session work in this folder, or in a worktree of it? A recorded folder that is gone is one
/// that was moved.
fn is_here(head: &Head, root: &Path) -> bool {
    if Charge::berths(head).is_some_and(|berths| !berths.is_empty()) {
        return true;
    }
    let recorded = PathBuf::from(&head.workspace);
    match (std::fs::canonicalize(&recorded), std::fs::canonicalize(root)) {
        (Ok(recorded), Ok(root)) => recorded == root,
        (Err(_), Ok(_)) => true,
        _ => false,
    }
}

fn row(well: &Well, standing: Standing) -> Result<Row, (SessionId, stepwell::Error)> {
    let head = standing.head;
    let read = || {
        let own = Span { from: standing.own_from, to: standing.own_from, ..Span::ALL };
        let first = well.store().events(&head.id, own)?.intact(&head.id)?;
        let project = first.into_iter().find_map(|event| match event.event {
            Event::Created(created) => created.project,
            _ => None,
        });
        let tasks = well.work(&head.id)?.tasks;
        let count = |status| tasks.count(status);
        Ok(Row {
            project: project.map(|project| project.project_type).unwrap_or_default(),
            ended: ended(well, &head)?,
            tasks: tasks.len(),
            failed: count(TaskStatus::Failed) + count(TaskStatus::Unrecoverable),
            skipped: count(TaskStatus::Skipped),
            commits: told_commits(&head),
            spent: head.spent,
            head: head.clone(),
        })
    };
    read().map_err(|error| (head.id.clone(), error))
}

/// How many commits a session of another system says that it made.
fn told_commits(head: &Head) -> Option<usize> {
    let told = head.metadata.get("commits").filter(|_| head.source.is_some())?;
    told.as_str().map_or_else(|| told.as_u64()?.try_into().ok(), |text| text.parse().ok())
}

/// How many events are looked back at for the one that ended a session: labels and tags may
/// have come later.
const LOOK_BACK: usize = 200;

/// When a session ended.
fn ended(well: &Well, head: &Head) -> stepwell::Result<Time> {
    let last = Span { from: Seq::FIRST, to: Seq::MAX, order: Order::Newest, limit: LOOK_BACK };
    let events = well.store().events(&head.id, last)?.events;
    let ends = |event: &Event| {
        matches!(
            (head.driver, event),
            (Driver::Own, Event::Status(_)) | (Driver::External, Event::Phase(_))
        )
    };
    let end = events.iter().find(|event| ends(&event.event));
    Ok(end.map_or(head.updated_at, |event| event.at))
}

impl Row {
    fn model(&self) -> String {
        wire::model(&self.head.provider, &self.head.model)
    }

    fn took(&self) -> Duration {
        self.ended.since(self.head.created_at)
    }

    fn commits(&self) -> String {
        self.commits.map_or_else(|| "-".to_owned(), |n| n.to_string())
    }

    fn line(&self) -> LedgerEntry {
        let head = &self.head;
        LedgerEntry {
            id: head.id.clone(),
            status: head.status,
            task: head.task.clone(),
            began_at: head.created_at,
            ended_at: self.ended,
            model: self.model(),
            project_type: self.project.clone(),
            tasks: self.tasks,
            failed: self.failed,
            skipped: self.skipped,
            cost: self.spent.cost.into(),
            unpriced_calls: self.spent.unpriced,
            duration_seconds: self.took().as_secs(),
            commits: self.commits,
        }
    }
}

fn show(rows: &[Row], app: &mut App) -> Result<()> {
    let mut all = Table::new(COLUMNS);
    for row in rows {
        all.push(vec![
            row.head.id.as_str().into(),
            moment(row.ended).into(),
            one_line(&row.project).into(),
            row.tasks.to_string().into(),
            row.failed.to_string().into(),
            row.skipped.to_string().into(),
            cost(&row.spent).into(),
            took(row.took()).into(),
            row.commits().into(),
            one_line(&row.model()).into(),
        ]);
    }
    app.print(&all)
}

fn markdown(rows: &[Row]) -> String {
    let cells = |row: &Row| {
        vec![
            cell(row.head.id.as_str()),
            row.ended.to_string(),
            cell(&row.model()),
            cell(&row.project),
            row.tasks.to_string(),
            row.failed.to_string(),
            row.skipped.to_string(),
            format!("${}", row.spent.cost),
            (row.took().as_secs().div_ceil(60)).to_string(),
            row.commits(),
        ]
    };
    table(&MARKDOWN, rows.iter().map(cells))
}
