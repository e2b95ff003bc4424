//! The ledger: what came of sessions that have ended, also of those that are gone.
//!
//! When the trash is emptied, a session leaves its row behind: a small session of its own, with the
//! session's task, cost, end and the names of tasks that did not work out. Lists do not show it; the
//! ledger and [lessons](Stepwell::lessons) do. A purge erases it.

mod row;
mod spans;

pub use row::LEDGER_ROW;
pub use spans::WorkSpan;

use crate::error::{Error, Result};
use crate::log::Head;
use crate::model::{Driver, Event, Kind, Recorded, SessionId, Spent, Task, TaskStatus, Time};
use crate::sessions::Stepwell;
use crate::store::query::{Filter, LedgerRows, Query, TrashScope};
use crate::store::{Excerpt, SessionInfo};
use crate::work::Work;

/// What came of one session.
#[derive(Clone, Debug)]
pub struct LedgerRow {
    /// The session.
    pub head: Head,
    /// The type of the project that it worked on; empty, if it was told of none.
    pub project_type: String,
    /// When it ended.
    pub ended: Time,
    /// How many tasks were planned.
    pub tasks: usize,
    /// How many of them failed.
    pub failed: usize,
    /// How many of them were skipped.
    pub skipped: usize,
    /// All of them.
    pub(crate) plan: Vec<Task>,
    /// What it and its subagents spent.
    pub spent: Spent,
}

/// What came of sessions, and what could not be read.
#[derive(Debug, Default)]
pub struct Ledger {
    /// One row for each session, the last that ended first.
    pub rows: Vec<LedgerRow>,
    /// Sessions that are left out, and why.
    pub left_out: Vec<(SessionId, Error)>,
}

/// How many sessions are asked about at once.
const PAGE: usize = 250;

/// The events that end a session: another one if Stepwell does not run it.
const ENDS: [Kind; 2] = [Kind::Status, Kind::Phase];

impl Stepwell {
    /// What came of the sessions that a query asks for, that have ended and that `takes` lets
    /// through; those in the trash and the rows of those that are gone are among them. A page
    /// of them takes two questions to the store, however many they are.
    pub fn ledger(&self, query: Query, takes: impl Fn(&SessionInfo) -> bool) -> Result<Ledger> {
        let (place, rows) = (TrashScope::Anywhere, LedgerRows::Included);
        let query = Query { filter: Filter { place, rows, ..query.filter }, ..query };
        self.entered(query, |it| it.head.status.has_ended() && takes(it))
    }

    /// A row for each session that a query asks for and that `takes` lets through.
    fn entered(&self, query: Query, takes: impl Fn(&SessionInfo) -> bool) -> Result<Ledger> {
        let mut ledger = Ledger::default();
        let mut query = Some(Query { limit: query.limit.min(PAGE), ..query });
        while let Some(asked) = query {
            let page = self.list(&asked)?;
            query = page.next.map(|next| Query { after: Some(next), ..asked });
            let taken = page.sessions.into_iter().filter(|it| takes(it));
            let heads: Vec<Head> = taken.map(|it| it.head).collect();
            self.enter(heads, &mut ledger)?;
        }
        let ids: Vec<SessionId> = ledger.rows.iter().map(|row| row.head.id.clone()).collect();
        let subagents = self.subagents_of(&ids)?;
        for row in &mut ledger.rows {
            row.spent += subagents.spent(&row.head.id);
        }
        ledger.rows.sort_by_key(|row| std::cmp::Reverse(row.ended));
        Ok(ledger)
    }

    /// Adds the rows of a page.
    fn enter(&self, heads: Vec<Head>, ledger: &mut Ledger) -> Result<()> {
        if heads.is_empty() {
            return Ok(());
        }
        let ids: Vec<SessionId> = heads.iter().map(|head| head.id.clone()).collect();
        let wanted = Excerpt { keyed: &Work::KINDS, last: &ENDS };
        for (head, events) in heads.into_iter().zip(self.store().excerpts(&ids, &wanted)?) {
            match events {
                Ok(events) => ledger.rows.push(row(head, events)),
                Err(error) => ledger.left_out.push((head.id, error)),
            }
        }
        Ok(())
    }
}

fn row(head: Head, events: Vec<Recorded>) -> LedgerRow {
    // A fork begins with its parent's project, and then with its own.
    let project = events.iter().rev().find_map(|event| match &event.event {
        Event::Created(created) => Some(created.project.clone()),
        _ => None,
    });
    let project_type = project.flatten().map(|project| project.project_type).unwrap_or_default();
    let ends = |event: &&Recorded| match (head.driver, &event.event) {
        (Driver::Own, Event::Status(_)) | (Driver::External, Event::Phase(_)) => true,
        (Driver::External, Event::Status(_)) => head.is_ledger_row(),
        _ => false,
    };
    let ended = events.iter().rev().find(ends).map_or(head.updated_at, |event| event.at);
    let tasks = Work::at(head.seq, events).tasks;
    let count = |status| tasks.count(status);
    LedgerRow {
        project_type,
        ended,
        tasks: tasks.len(),
        failed: count(TaskStatus::Failed) + count(TaskStatus::Unrecoverable),
        skipped: count(TaskStatus::Skipped),
        plan: tasks.iter().cloned().collect(),
        spent: head.spent,
        head,
    }
}
