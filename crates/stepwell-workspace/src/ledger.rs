//! The ledger of a workspace: what came of its sessions, with the commits that they made.

use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::time::Duration;

use stepwell::log::Head;
use stepwell::model::{Driver, Estimate};
use stepwell::report::LedgerRow;
use stepwell::store::query::Query;
use stepwell::{SessionId, SessionInfo, Stepwell};
use stepwell_catalog::model_name;
use stepwell_files::worktree::worktrees_of;
use stepwell_formats::{LEDGER_COLUMNS, cell, table};
use stepwell_wire::LedgerEntry;

use crate::error::Result;
use crate::git::Commits;
use crate::prices::Estimates;
use crate::workspace::Workspace;

/// Which sessions a ledger is about.
pub struct LedgerWanted<'a> {
    /// The folder whose commits count.
    pub root: &'a Path,
    /// Those that a store is asked for.
    pub query: Query,
    /// Those of them that are wanted.
    pub takes: &'a dyn Fn(&SessionInfo) -> bool,
}

/// What came of one session, and how many commits it made.
#[derive(Clone, Debug)]
pub struct LedgerLine {
    /// What came of it.
    pub came: LedgerRow,
    /// How many commits it made; absent, nobody knows.
    pub commits: Option<usize>,
    /// What it may have cost, where nobody said it.
    pub estimate: Option<Estimate>,
}

/// The lines of a ledger, the last that ended first.
#[derive(Debug, Default)]
pub struct LedgerLines {
    /// Them.
    pub lines: Vec<LedgerLine>,
    /// Sessions that are left out, and why.
    pub left_out: Vec<(SessionId, stepwell::Error)>,
}

/// What came of the sessions of a store.
///
/// # Errors
/// If the store cannot be read.
pub fn read(
    workspace: &Workspace,
    well: &Stepwell,
    wanted: LedgerWanted<'_>,
) -> Result<LedgerLines> {
    let LedgerWanted { root, query, takes } = wanted;
    let ledger = well.ledger(query, takes)?;
    let since = ledger.rows.iter().map(|row| row.head.created_at).min();
    let made = since.and_then(|since| Commits::since(root, since));
    let estimates = Estimates::new(workspace);
    let mut lines = LedgerLines { lines: Vec::new(), left_out: ledger.left_out };
    for came in ledger.rows {
        // What was counted before stays as it was.
        let counted = told_commits(&came.head);
        let made = made.as_ref().filter(|_| counted.is_none() && is_here(&came.head, root));
        let commits = match (counted, made) {
            (None, Some(made)) => commits_of(well, &came, made)?,
            (counted, _) => counted,
        };
        let estimate = estimates.of(&came.head, &came.spent);
        lines.lines.push(LedgerLine { came, commits, estimate });
    }
    lines.leave_out_twins();
    Ok(lines)
}

impl LedgerLines {
    /// Adds the lines of another store.
    pub fn extend(&mut self, other: Self) {
        self.lines.extend(other.lines);
        self.left_out.extend(other.left_out);
        self.lines.sort_by_key(|line| std::cmp::Reverse(line.came.ended));
        self.leave_out_twins();
    }

    /// Each session has one line. A row that tells of one that is here itself is none, and the same
    /// row counts once, in however many stores it is.
    fn leave_out_twins(&mut self) {
        let ids = self.lines.iter().filter(|line| !line.came.head.is_ledger_row());
        let mut told: HashSet<String> = ids.map(|line| line.about().to_owned()).collect();
        self.lines
            .retain(|line| !line.came.head.is_ledger_row() || told.insert(line.about().to_owned()));
    }
}

/// How many commits a session made. Of an agent that Stepwell does not run, and that tells nothing of
/// its tools, nobody knows.
fn commits_of(well: &Stepwell, came: &LedgerRow, made: &Commits) -> Result<Option<usize>> {
    let head = &came.head;
    let spans = match made.any_between((head.created_at, came.ended)) {
        true => well.work_spans(&head.id)?,
        false => Vec::new(),
    };
    let count = made.of(head.id.as_str(), &spans);
    let is_silent = head.driver == Driver::External && head.messages == 0;
    Ok(Some(count).filter(|count| *count > 0 || !is_silent))
}

/// Did a session work in this folder, or in a worktree of it? A recorded folder that is gone is one
/// that was moved.
fn is_here(head: &Head, root: &Path) -> bool {
    if worktrees_of(head).is_some_and(|worktrees| !worktrees.is_empty()) {
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

impl LedgerLine {
    /// The model, as it can be given again.
    #[must_use]
    pub fn model(&self) -> String {
        model_name(self.came.head.model_provider(), &self.came.head.model)
    }

    /// How long it took.
    #[must_use]
    pub fn took(&self) -> Duration {
        self.came.ended.since(self.came.head.created_at)
    }

    /// The session that it tells of: of a row, the one that is gone.
    #[must_use]
    pub fn about(&self) -> &str {
        self.came.head.ledger_row_of().unwrap_or(self.came.head.id.as_str())
    }

    /// What it cost, and apart from that what it may have cost where nobody said it.
    #[must_use]
    pub fn shown_cost(&self) -> String {
        let cost = self.came.spent.cost;
        match self.estimate {
            None => format!("${cost}"),
            Some(estimate) if cost.is_zero() => format!("~${}", estimate.cost),
            Some(estimate) => format!("${cost} + ~${}", estimate.cost),
        }
    }

    /// How many commits it made, or a dash.
    #[must_use]
    pub fn shown_commits(&self) -> String {
        self.commits.map_or_else(|| "-".to_owned(), |n| n.to_string())
    }
}

impl From<&LedgerLine> for LedgerEntry {
    fn from(line: &LedgerLine) -> Self {
        let LedgerRow { head, project_type, ended, tasks, failed, skipped, spent, .. } = &line.came;
        Self {
            id: line.about().parse().unwrap_or_else(|_| head.id.clone()),
            status: head.status,
            task: head.task.clone(),
            began_at: head.created_at,
            ended_at: *ended,
            model: line.model(),
            project_type: project_type.clone(),
            tasks: *tasks,
            failed: *failed,
            skipped: *skipped,
            cost: spent.cost.into(),
            unpriced_calls: spent.unpriced,
            estimate: line.estimate.map(|it| it.cost.into()),
            duration_seconds: line.took().as_secs(),
            commits: line.commits,
        }
    }
}

/// A ledger as M31A's `LEDGER.md` has it: durations in minutes. It can be imported again.
#[must_use]
pub fn ledger_markdown(lines: &[LedgerLine]) -> String {
    let cells = |line: &LedgerLine| {
        vec![
            cell(line.about()),
            line.came.ended.to_string(),
            cell(&line.model()),
            cell(&line.came.project_type),
            line.came.tasks.to_string(),
            line.came.failed.to_string(),
            line.came.skipped.to_string(),
            line.shown_cost(),
            (line.took().as_secs().div_ceil(60)).to_string(),
            line.shown_commits(),
        ]
    };
    format!("# Ledger\n\n{}", table(&LEDGER_COLUMNS, lines.iter().map(cells)))
}
