//! The session rows that this process wrote last, so that an append need not read
//! back what the one before it wrote.

use std::cell::RefCell;
use std::collections::HashMap;

use rusqlite::Connection;

use crate::model::SessionId;
use crate::store::rows::SessionRow;

/// How many rows are kept: more than a process has runners, few enough to forget.
const LIMIT: usize = 64;

/// Rows as they are in the file. Whoever writes to a session or a lease in another
/// way has them forgotten, and so does any other connection's commit.
#[derive(Debug, Default)]
pub(super) struct RowCache {
    rows: RefCell<HashMap<SessionId, SessionRow>>,
    /// SQLite's count of other connections' commits when they were read.
    version: i64,
}

impl RowCache {
    /// Forgets everything if another connection has written since. Called within a
    /// transaction that keeps others from writing.
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

    /// Forgets everything.
    pub(super) fn forget(&self) {
        self.rows.borrow_mut().clear();
    }

    /// The session's row, which is the caller's to change and to [keep](Self::keep).
    pub(super) fn take(&self, id: &SessionId) -> Option<SessionRow> {
        self.rows.borrow_mut().remove(id)
    }

    /// Keeps a row that was just written.
    pub(super) fn keep(&self, row: &SessionRow) {
        let mut rows = self.rows.borrow_mut();
        if rows.len() >= LIMIT {
            rows.clear();
        }
        rows.insert(row.head.id.clone(), row.clone());
    }
}
