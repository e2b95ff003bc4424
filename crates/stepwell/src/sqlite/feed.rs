//! The change feed: writers number their changes.

use std::time::{Duration, Instant};

use parking_lot::{Condvar, Mutex};
use rusqlite::{Connection, params};

use super::SqliteStore;
use super::file::sqlite_error;
use super::schema::NEXT_CHANGE;
use super::sql::SqliteRows;
use crate::error::Result;
use crate::model::{Epoch, Seq, SessionId, Time};
use crate::store::LeaseInfo;
use crate::store::changes::{
    ChangeCursor, ChangeKind, Changes, HeldLease, Position, SessionChange, Wait, ended, in_order,
};
use crate::store::rows::TxnContext;

/// The name of this kind of store in a cursor.
const STORE: &str = "sqlite";

/// How many purged sessions are remembered. A reader with an older cursor gets a gap.
const REMEMBERED: u64 = 10_000;

/// How far the numbers jump when a backup is restored: further than any number given after the
/// backup and lost with the old store.
const JUMP: u64 = 1 << 40;

/// How often a reader checks for ended leases, which no write marks.
const LEASES: Duration = Duration::from_millis(500);

/// How often a reader checks for other processes' commits. A check costs some microseconds.
const POLL: Duration = Duration::from_millis(5);

/// This process's commits, for threads that wait for one.
#[derive(Debug, Default)]
pub(super) struct Commits {
    state: Mutex<Waited>,
    came: Condvar,
}

#[derive(Debug, Default)]
struct Waited {
    count: u64,
    /// How many threads wait: notifying none costs a system call, too.
    awaited: usize,
}

impl Commits {
    /// Counts a commit and wakes the waiters.
    pub(super) fn note(&self) {
        let mut state = self.state.lock();
        state.count += 1;
        if state.awaited > 0 {
            self.came.notify_all();
        }
    }

    fn count(&self) -> u64 {
        self.state.lock().count
    }

    /// Waits a moment for another commit. Returns whether there is none yet and time is left.
    fn wait(&self, seen: u64, left: Duration) -> bool {
        let mut state = self.state.lock();
        if left.is_zero() || state.count != seen {
            return false;
        }
        state.awaited += 1;
        self.came.wait_for(&mut state, left.min(POLL));
        state.awaited -= 1;
        state.count == seen
    }
}

impl SqliteStore {
    /// Waits for changes. A commit of another process wakes no one here, so SQLite's count of
    /// foreign commits is polled. A store in memory has no other process.
    #[expect(clippy::disallowed_methods, reason = "a wait is bounded in real time")]
    pub(super) fn next_changes(
        &self,
        after: Option<&ChangeCursor>,
        wait: Wait<'_>,
    ) -> Result<Changes> {
        if after.is_none() {
            return self.read(|rows, world| since(rows, world, None));
        }
        let started = Instant::now();
        let fault = |error| sqlite_error(&self.path, "reading", &error);
        let conn = self.readers.connect(self)?;
        let version = || conn.as_ref().map_or(Ok(0), data_version).map_err(fault);
        let found = loop {
            let (count, known) = (self.commits.count(), version()?);
            let found = self.read(|rows, world| since(rows, world, after))?;
            let left = wait.left(started);
            if left.is_zero() || !found.is_empty() {
                break found;
            }
            let longest = started.elapsed() + left.min(LEASES);
            let turn = Wait { longest, ..wait };
            while self.commits.wait(count, turn.left(started)) {
                if version()? != known {
                    break;
                }
            }
        };
        self.readers.give_back(conn);
        Ok(found)
    }
}

/// The changes since a cursor; without one, only the present position.
pub(super) fn since(
    rows: &SqliteRows<'_>,
    world: TxnContext<'_>,
    after: Option<&ChangeCursor>,
) -> Result<Changes> {
    let last: u64 =
        rows.one(&format!("SELECT {NEXT_CHANGE} - 1"), [], |row| row.get(0))?.unwrap_or(0);
    let now = Position {
        store: STORE.to_owned(),
        change: last.to_string(),
        at: world.now,
        gone: Vec::new(),
    };
    let known = after.map(ChangeCursor::position);
    let seen: Option<u64> = known
        .filter(|known| known.store == STORE)
        .and_then(|known| known.change.parse().ok())
        .filter(|seen| *seen <= last);
    let removed = removed_since(rows, seen.unwrap_or(last))?;
    let gap = known.is_some() && (seen.is_none() || removed.is_none());
    // If the clock was set back, leases are checked again.
    let since = known.filter(|_| !gap).unwrap_or(&now);
    let leases = held_leases(rows, since.at.min(world.now))?;
    let (ended, gone) = ended(leases, since, world);
    let mut changes = Vec::new();
    if let Some(seen) = seen.filter(|_| !gap) {
        let mut updated = updated_since(rows, seen)?;
        updated.extend(ended);
        changes = in_order(removed.unwrap_or_default(), updated);
    }
    Ok(Changes { changes, cursor: Position { gone, ..now }.into(), gap })
}

/// The sessions purged since; `None` if that has been forgotten.
fn removed_since(rows: &SqliteRows<'_>, seen: u64) -> Result<Option<Vec<SessionId>>> {
    let sql = "SELECT id FROM removed WHERE change > ?1 ORDER BY change";
    let removed: Vec<String> = rows.all(sql, [seen], |row| row.get(0))?;
    let forgotten = removed.iter().any(String::is_empty);
    let removed = removed.iter().filter_map(|id| id.parse().ok()).collect();
    Ok((!forgotten).then_some(removed))
}

fn updated_since(rows: &SqliteRows<'_>, seen: u64) -> Result<Vec<SessionChange>> {
    let sql = "SELECT id, seq, trashed IS NOT NULL FROM sessions WHERE change > ?1 ORDER BY change";
    let found = rows
        .all(sql, [seen], |row| Ok(change(row.get_ref(0)?.as_str()?, row.get(1)?, row.get(2)?)))?;
    Ok(found.into_iter().flatten().collect())
}

fn change(id: &str, seq: u64, trashed: bool) -> Option<SessionChange> {
    let updated = ChangeKind::Updated { seq: Seq::new(seq) };
    let kind = if trashed { ChangeKind::Trashed } else { updated };
    Some(SessionChange { session: id.parse().ok()?, kind })
}

/// Leases that are held and had not expired at `at`.
fn held_leases(rows: &SqliteRows<'_>, at: Time) -> Result<Vec<HeldLease>> {
    let sql = "SELECT s.id, s.seq, s.trashed IS NOT NULL, s.key, l.epoch, l.holder, l.expires \
         FROM leases l JOIN sessions s ON s.key = l.session \
         WHERE l.holder IS NOT NULL AND l.expires > ?1 ORDER BY l.expires";
    let read = |row: &rusqlite::Row<'_>| {
        let change = change(row.get_ref(0)?.as_str()?, row.get(1)?, row.get(2)?);
        let holder: String = row.get(5)?;
        let (epoch, expires) = (Epoch::new(row.get(4)?), Time::from_micros(row.get(6)?));
        // An unreadable row belongs to a damaged session.
        let Some((change, holder)) = change.zip(serde_json::from_str(&holder).ok()) else {
            return Ok(None);
        };
        let held = LeaseInfo { epoch, holder, expires, login: None };
        Ok(Some(HeldLease { key: row.get(3)?, change, held }))
    };
    Ok(rows.all(sql, params![at.as_micros()], read)?.into_iter().flatten().collect())
}

/// Forgets the oldest purged sessions if there are many. A row with an empty id marks how far.
pub(super) fn forget_removed(rows: &SqliteRows<'_>) -> Result<()> {
    let sql = "SELECT change FROM removed ORDER BY change DESC LIMIT 1 OFFSET ?1";
    if let Some(oldest) = rows.one(sql, [REMEMBERED], |row| row.get::<_, i64>(0))? {
        rows.run("DELETE FROM removed WHERE change <= ?1", [oldest])?;
        rows.run("INSERT INTO removed (change, id) VALUES (?1, '')", [oldest])?;
    }
    Ok(())
}

/// Invalidates every earlier cursor, because the store was restored.
pub(super) fn begin_anew(rows: &SqliteRows<'_>) -> Result<()> {
    let sql = format!("INSERT INTO removed (change, id) VALUES ({NEXT_CHANGE} + ?1, '')");
    rows.run(&sql, [JUMP])?;
    Ok(())
}

/// SQLite's count of commits by other connections.
pub(super) fn data_version(conn: &Connection) -> rusqlite::Result<i64> {
    conn.prepare_cached("PRAGMA data_version")?.query_row([], |row| row.get(0))
}
