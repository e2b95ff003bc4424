use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::time::Duration;

use stepwell::ledger::LedgerRow;
use stepwell::{Access, Family, Filter, Head, Money, Query};
use stepwell_agent::run::SubagentRecord;
use stepwell_formats::{LEDGER_ROW, cell, table};
use stepwell_wire::LedgerEntry;
use stepwell_workspace::{Commits, Location, NamedWell};

use crate::app::{App, Well};
use crate::failure::{Exit, Result};
use crate::output::note;
use crate::prices::{Estimates, estimated};
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

/// What came of one session, and how many commits were made meanwhile.
struct Row {
    came: LedgerRow,
    commits: Option<usize>,
    /// What it may have cost, where nobody said it.
    estimate: Option<Money>,
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
        rows.sort_by_key(|row| std::cmp::Reverse(row.came.ended));
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
    let filter = Filter { family: Family::Roots, ..args.selection.filter(well.now()) };
    let query = Query { filter, ..Query::default() };
    let ledger = well.ledger(query, |standing| args.selection.takes(standing))?;
    for (id, error) in &ledger.left_out {
        note(format_args!("warning: {id} is left out: {error}"));
    }
    let since = ledger.rows.iter().map(|row| row.head.created_at).min();
    let made = since.and_then(|since| Commits::since(root, since));
    let estimates = Estimates::new(app);
    let row = |came: LedgerRow| {
        // What was counted elsewhere stays as it was.
        let counted = told_commits(&came.head);
        let made = made.as_ref().filter(|_| counted.is_none() && is_here(&came.head, root));
        let commits = counted.or(made.map(|it| it.between(came.head.created_at, came.ended)));
        let estimate = estimates.of(&came.head, &came.spent);
        Row { came, commits, estimate }
    };
    let mut rows = ledger.rows.into_iter().map(row).collect();
    leave_out_twins(&mut rows);
    Ok(rows)
}

/// What a ledger says of a session that is here itself is no row of its own.
fn leave_out_twins(rows: &mut Vec<Row>) {
    let here: HashSet<String> = rows.iter().map(|row| row.came.head.id.to_string()).collect();
    rows.retain(|row| {
        row.is_about() == row.came.head.id.as_str() || !here.contains(row.is_about())
    });
}

/// Did a session work in this folder, or in a worktree of it? A recorded folder that is gone is one
/// that was moved.
fn is_here(head: &Head, root: &Path) -> bool {
    if SubagentRecord::berths(head).is_some_and(|berths| !berths.is_empty()) {
        return true;
    }
    let recorded = PathBuf::from(&head.workspace);
    match (std::fs::canonicalize(&recorded), std::fs::canonicalize(root)) {
        (Ok(recorded), Ok(root)) => recorded == root,
        (Err(_), Ok(_)) => true,
        _ => false,
    }
}

/// How many commits a session of another system says that it made.
fn told_commits(head: &Head) -> Option<usize> {
    let told = head.metadata.get("commits").filter(|_| head.source.is_some())?;
    told.as_str().map_or_else(|| told.as_u64()?.try_into().ok(), |text| text.parse().ok())
}

impl Row {
    fn model(&self) -> String {
        wire::model(&self.came.head.provider, &self.came.head.model)
    }

    fn took(&self) -> Duration {
        self.came.ended.since(self.came.head.created_at)
    }

    /// The session that it tells of: of a row of another ledger, the one that is named there.
    fn is_about(&self) -> &str {
        let head = &self.came.head;
        let source = head.source.as_ref().map(|source| source.id.as_str());
        source.and_then(|id| id.strip_prefix(LEDGER_ROW)).unwrap_or(head.id.as_str())
    }

    fn cost(&self) -> String {
        self.estimate.map_or_else(|| cost(&self.came.spent), estimated)
    }

    fn commits(&self) -> String {
        self.commits.map_or_else(|| "-".to_owned(), |n| n.to_string())
    }

    fn line(&self) -> LedgerEntry {
        let LedgerRow { head, project_type, ended, tasks, failed, skipped, spent } = &self.came;
        LedgerEntry {
            id: head.id.clone(),
            status: head.status,
            task: head.task.clone(),
            began_at: head.created_at,
            ended_at: *ended,
            model: self.model(),
            project_type: project_type.clone(),
            tasks: *tasks,
            failed: *failed,
            skipped: *skipped,
            cost: spent.cost.into(),
            unpriced_calls: spent.unpriced,
            estimate: self.estimate.map(Into::into),
            duration_seconds: self.took().as_secs(),
            commits: self.commits,
        }
    }
}

fn show(rows: &[Row], app: &mut App) -> Result<()> {
    let mut all = Table::new(COLUMNS);
    for row in rows {
        all.push(vec![
            row.came.head.id.as_str().into(),
            moment(row.came.ended).into(),
            one_line(&row.came.project_type).into(),
            row.came.tasks.to_string().into(),
            row.came.failed.to_string().into(),
            row.came.skipped.to_string().into(),
            row.cost().into(),
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
            cell(row.is_about()),
            row.came.ended.to_string(),
            cell(&row.model()),
            cell(&row.came.project_type),
            row.came.tasks.to_string(),
            row.came.failed.to_string(),
            row.came.skipped.to_string(),
            match row.estimate {
                Some(estimate) => format!("~${estimate}"),
                None => format!("${}", row.came.spent.cost),
            },
            (row.took().as_secs().div_ceil(60)).to_string(),
            row.commits(),
        ]
    };
    table(&MARKDOWN, rows.iter().map(cells))
}
