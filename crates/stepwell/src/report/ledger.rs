//! The ledger: the results of sessions that have ended, also of those that were deleted.
//!
//! When a session is emptied from the trash, it leaves a row: a small session with its task, cost,
//! status, and the tasks that failed or were skipped. Lists do not show rows; the ledger and
//! [lessons](Stepwell::lessons) do. A purge of the session erases its row, too.

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

/// The result of one session.
#[derive(Clone, Debug)]
pub struct LedgerRow {
    /// The session.
    pub head: Head,
    /// The type of its project; empty if unknown.
    pub project_type: String,
    /// When it ended.
    pub ended: Time,
    /// How many tasks it planned.
    pub tasks: usize,
    /// How many of its tasks failed.
    pub failed: usize,
    /// How many of its tasks were skipped.
    pub skipped: usize,
    /// Its tasks.
    pub(crate) plan: Vec<Task>,
    /// What it and its subagents spent.
    pub spent: Spent,
}

/// The results of sessions.
#[derive(Debug, Default)]
pub struct Ledger {
    /// One row for each session. The session that ended last comes first.
    pub rows: Vec<LedgerRow>,
    /// Sessions that could not be read, and why.
    pub left_out: Vec<(SessionId, Error)>,
}

/// Sessions per query.
const PAGE: usize = 250;

/// The kinds of events that end a session: a status, or a phase for an external agent.
const ENDS: [Kind; 2] = [Kind::Status, Kind::Phase];

impl Stepwell {
    /// The results of the sessions that match a query, have ended, and pass `takes`, including
    /// sessions in the trash and ledger rows. A page needs two queries to the store, at any
    /// size.
    pub fn ledger(&self, query: Query, takes: impl Fn(&SessionInfo) -> bool) -> Result<Ledger> {
        let (place, rows) = (TrashScope::Anywhere, LedgerRows::Included);
        let query = Query { filter: Filter { place, rows, ..query.filter }, ..query };
        self.entered(query, |it| it.head.status.has_ended() && takes(it))
    }

    /// A row for each session that matches a query and passes `takes`.
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
    // A fork starts with its parent's project; its own follows.
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
