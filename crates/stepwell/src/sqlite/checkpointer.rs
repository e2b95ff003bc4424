//! Copies the write-ahead log into the database file on its own thread during large writes.
//!
//! SQLite makes the committing caller copy the log once it is long. After a large write it always
//! is, and the next write would wait for as long as the write itself took.

use std::path::Path;
use std::sync::mpsc::{SyncSender, sync_channel};
use std::thread::{Builder, JoinHandle};

use rusqlite::Connection;

use super::file::{self, AUTO_CHECKPOINT};
use super::schema::MIGRATIONS;
use super::sql::SqliteRows;
use crate::error::{Error, Result};

/// From this total size of bodies on, a write counts as large.
pub(super) const LARGE: usize = 1 << 20;

/// If the log has more pages than this after a large write, that write copies it itself: the thread
/// may be delayed.
const MAX_LOG: u32 = 16_384;

/// The thread that copies.
#[derive(Debug)]
pub(super) struct Checkpointer {
    wake: Option<SyncSender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Checkpointer {
    pub(super) fn begin(path: &Path) -> Result<Self> {
        let conn = file::open_writer(path, MIGRATIONS)?;
        let (wake, woken) = sync_channel(1);
        let work = move || {
            for () in woken {
                // What could not be copied stays in the log for the next time.
                let _ = conn.query_row("PRAGMA wal_checkpoint(PASSIVE)", [], |_| Ok(()));
            }
        };
        let thread = Builder::new().name("copier".to_owned()).spawn(work).map_err(|source| {
            Error::Io { path: path.to_owned(), doing: "starting a thread", source }
        })?;
        Ok(Self { wake: Some(wake), thread: Some(thread) })
    }

    /// Starts a copy of the present log.
    pub(super) fn wake(&self) {
        if let Some(wake) = &self.wake {
            // If a copy is pending, it covers this as well.
            let _ = wake.try_send(());
        }
    }
}

impl Drop for Checkpointer {
    fn drop(&mut self) {
        drop(self.wake.take());
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// Defers copying to the thread, in the transaction of a large write.
pub(super) fn defer_auto_checkpoint(rows: &SqliteRows<'_>) -> Result<()> {
    copy_at(rows.conn, MAX_LOG).map_err(|error| rows.fault(&error))
}

/// Restores copying by the committing caller.
pub(super) fn restore_auto_checkpoint(conn: &Connection) {
    // If this fails, the log is copied later, without loss.
    let _ = copy_at(conn, AUTO_CHECKPOINT);
}

fn copy_at(conn: &Connection, pages: u32) -> rusqlite::Result<()> {
    conn.pragma_update(None, "wal_autocheckpoint", pages)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{Created, Message, NewEvent, Seq, SessionId};
    use crate::sqlite::SqliteStore;
    use crate::store::{Append, Create, Processes as _, Store, SystemProcesses, Write};

    #[test]
    fn large_writes_leave_a_short_log_and_lose_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let sqlite = SqliteStore::open(folder.path()).unwrap();
        let store: &dyn Store = &sqlite;
        let session: SessionId = "large".parse().unwrap();
        let claim = crate::store::LeaseRequest {
            holder: SystemProcesses.this(),
            ttl: std::time::Duration::from_secs(600),
        };
        let created = Created::new(session.clone(), "grow");
        let create = Create { created, event_id: None, at: None, claim: Some(claim) };
        let lease = store.write(Write::Create(create)).unwrap().lease.unwrap();
        let log = folder.path().join("stepwell.db-wal");
        let mut longest = 0;
        for _ in 0..40 {
            let said = || NewEvent::from(Message::user("x".repeat(60_000)));
            let events: Vec<_> = std::iter::repeat_with(said).take(40).collect();
            let (session, epoch) = (session.clone(), Some(lease.epoch));
            let events = events.into();
            let append = Append { session, epoch, expected: None, events };
            store.write(Write::Append(append)).unwrap();
            longest = longest.max(log.metadata().unwrap().len());
        }
        // The limit for deferred copying, and the pages of one write on top.
        assert!(longest < 3 * u64::from(MAX_LOG) * 2048, "{longest}");
        let pipeline = sqlite.writer().unwrap();
        let at = pipeline.between(|conn| {
            conn.pragma_query_value(None, "wal_autocheckpoint", |row| row.get::<_, u32>(0)).unwrap()
        });
        assert_eq!(at, AUTO_CHECKPOINT);
        let verdict = store.maintain().verify(&session).unwrap();
        assert!(verdict.damage.is_none(), "{verdict:?}");
        drop(sqlite);
        assert!(log.metadata().map_or(0, |log| log.len()) == 0);
        let store = SqliteStore::open(folder.path()).unwrap();
        assert_eq!(store.info(&session).unwrap().head.seq, Seq::new(1_601));
    }
}
