//! The session rows that this process wrote last, so that an append need not read what the previous
//! one wrote.

use std::cell::RefCell;
use std::collections::HashMap;

use rusqlite::Connection;

use crate::model::SessionId;
use crate::store::rows::SessionRow;

/// The most rows: more than a process has runners, few enough to drop all at once.
const LIMIT: usize = 64;

/// Rows as they are in the file. A write to a session or lease outside this cache empties it, and
/// so does another connection's commit.
#[derive(Debug, Default)]
pub(super) struct RowCache {
    rows: RefCell<HashMap<SessionId, SessionRow>>,
    /// SQLite's count of other connections' commits when they were read.
    version: i64,
}

impl RowCache {
    /// Empties the cache if another connection has written since. Must be called inside a
    /// transaction that excludes other writers.
    pub(super) fn begin(&mut self, conn: &Connection) {
        let read = conn
            .prepare_cached("PRAGMA data_version")
            .and_then(|mut version| version.query_row([], |row| row.get(0)));
        match read {
            Ok(version) if version == self.version => {}
            Ok(version) => {
                self.forget();
                self.version = version;
            }
            Err(_) => self.forget(),
        }
    }

    /// Empties the cache.
    pub(super) fn forget(&self) {
        self.rows.borrow_mut().clear();
    }

    /// Removes the session's row for the caller, who may change it and [keep](Self::keep) it.
    pub(super) fn take(&self, id: &SessionId) -> Option<SessionRow> {
        self.rows.borrow_mut().remove(id)
    }

    /// Adds a row that was just written.
    pub(super) fn keep(&self, row: &SessionRow) {
        let mut rows = self.rows.borrow_mut();
        if rows.len() >= LIMIT {
            rows.clear();
        }
        rows.insert(row.head.id.clone(), row.clone());
    }
}
