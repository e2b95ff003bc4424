//! The ledger of a workspace: what came of its sessions, with the commits that were made meanwhile.

use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::time::Duration;

use stepwell::ledger::LedgerRow;
use stepwell::{Estimate, Head, Query, SessionId, SessionInfo, Stepwell};
use stepwell_catalog::model_name;
use stepwell_files::worktree::SubagentRecord;
use stepwell_formats::{LEDGER_COLUMNS, LEDGER_ROW, cell, table};
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

/// What came of one session, and how many commits were made meanwhile.
#[derive(Clone, Debug)]
pub struct LedgerLine {
    /// What came of it.
    pub came: LedgerRow,
    /// How many commits were made; absent, nobody knows.
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

impl Workspace {
    /// What came of the sessions of a store.
    ///
    /// # Errors
    /// If the store cannot be read.
    pub fn ledger(&self, well: &Stepwell, wanted: LedgerWanted<'_>) -> Result<LedgerLines> {
        let LedgerWanted { root, query, takes } = wanted;
        let ledger = well.ledger(query, takes)?;
        let since = ledger.rows.iter().map(|row| row.head.created_at).min();
        let made = since.and_then(|since| Commits::since(root, since));
        let estimates = Estimates::new(self);
        let line = |came: LedgerRow| {
            // What was counted elsewhere stays as it was.
            let counted = told_commits(&came.head);
            let made = made.as_ref().filter(|_| counted.is_none() && is_here(&came.head, root));
            let commits = counted.or(made.map(|it| it.between(came.head.created_at, came.ended)));
            let estimate = estimates.of(&came.head, &came.spent);
            LedgerLine { came, commits, estimate }
        };
        let mut lines = ledger.rows.into_iter().map(line).collect();
        leave_out_twins(&mut lines);
        Ok(LedgerLines { lines, left_out: ledger.left_out })
    }
}

/// What a ledger says of a session that is here itself is no line of its own.
fn leave_out_twins(lines: &mut Vec<LedgerLine>) {
    let here: HashSet<String> = lines.iter().map(|line| line.came.head.id.to_string()).collect();
    lines.retain(|line| line.about() == line.came.head.id.as_str() || !here.contains(line.about()));
}

/// Did a session work in this folder, or in a worktree of it? A recorded folder that is gone is one
/// that was moved.
fn is_here(head: &Head, root: &Path) -> bool {
    if SubagentRecord::worktrees(head).is_some_and(|worktrees| !worktrees.is_empty()) {
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

    /// The session that it tells of: of a row of another ledger, the one that is named there.
    fn about(&self) -> &str {
        let head = &self.came.head;
        let source = head.source.as_ref().map(|source| source.id.as_str());
        source.and_then(|id| id.strip_prefix(LEDGER_ROW)).unwrap_or(head.id.as_str())
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

    /// How many commits were made, or a dash.
    #[must_use]
    pub fn shown_commits(&self) -> String {
        self.commits.map_or_else(|| "-".to_owned(), |n| n.to_string())
    }
}

impl From<&LedgerLine> for LedgerEntry {
    fn from(line: &LedgerLine) -> Self {
        let LedgerRow { head, project_type, ended, tasks, failed, skipped, spent } = &line.came;
        Self {
            id: head.id.clone(),
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
