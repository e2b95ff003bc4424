//! Statements on one connection, and the positions of events.

use std::cell::RefCell;
use std::path::Path;

use rusqlite::{CachedStatement, Connection, OptionalExtension, Params};

use super::file::sqlite_error;
use super::row_cache::RowCache;
use crate::error::{Error, Result};
use crate::model::{Seq, Time};
use crate::store::rows::Key;

/// One connection's rows.
pub(super) struct SqliteRows<'a> {
    pub(super) conn: &'a Connection,
    pub(super) path: &'a Path,
    /// The transaction's time.
    pub(super) now: Time,
    /// The rows that were written last; `None` for a reader.
    pub(super) recent: Option<&'a RowCache>,
    /// The statement that inserts events, prepared once.
    insert: RefCell<Option<CachedStatement<'a>>>,
}

impl<'a> SqliteRows<'a> {
    pub(super) fn new(
        conn: &'a Connection,
        path: &'a Path,
        now: Time,
        recent: Option<&'a RowCache>,
    ) -> Self {
        Self { conn, path, now, recent, insert: RefCell::new(None) }
    }

    /// Inserts an event.
    pub(super) fn insert(&self, sql: &str, params: impl Params) -> Result<()> {
        let mut held = self.insert.borrow_mut();
        let run = || -> rusqlite::Result<()> {
            let statement = match &mut *held {
                Some(statement) => statement,
                none => none.insert(self.conn.prepare_cached(sql)?),
            };
            statement.execute(params).map(|_| ())
        };
        run().map_err(|error| sqlite_error(self.path, "writing", &error))
    }

    /// Runs a statement that changes data, and empties the row cache.
    pub(super) fn run(&self, sql: &str, params: impl Params) -> Result<usize> {
        if let Some(recent) = self.recent {
            recent.forget();
        }
        self.run_keeping(sql, params)
    }

    /// Runs a statement without emptying the row cache: it changes neither sessions nor leases, or
    /// its caller updates the cache.
    pub(super) fn run_keeping(&self, sql: &str, params: impl Params) -> Result<usize> {
        let run = || self.conn.prepare_cached(sql)?.execute(params);
        run().map_err(|error| sqlite_error(self.path, "writing", &error))
    }

    /// Reads at most one row.
    pub(super) fn one<T>(
        &self,
        sql: &str,
        params: impl Params,
        read: impl FnOnce(&rusqlite::Row<'_>) -> rusqlite::Result<T>,
    ) -> Result<Option<T>> {
        let run = || self.conn.prepare_cached(sql)?.query_row(params, read).optional();
        run().map_err(|error| self.fault(&error))
    }

    /// Reads all rows.
    pub(super) fn all<T>(
        &self,
        sql: &str,
        params: impl Params,
        read: impl FnMut(&rusqlite::Row<'_>) -> rusqlite::Result<T>,
    ) -> Result<Vec<T>> {
        let run = || -> rusqlite::Result<Vec<T>> {
            self.conn.prepare_cached(sql)?.query_map(params, read)?.collect()
        };
        run().map_err(|error| self.fault(&error))
    }

    pub(super) fn fault(&self, error: &rusqlite::Error) -> Error {
        sqlite_error(self.path, "reading", error)
    }
}

/// An event's position: its session's number in the upper bits, its seq in the lower ones.
pub(super) fn pos(key: Key, seq: Seq) -> i64 {
    key << 32 | i64::try_from(seq.get()).unwrap_or(0)
}

/// The seq of a position.
pub(super) fn seq_of(pos: i64) -> Seq {
    Seq::new((pos & 0xffff_ffff).unsigned_abs())
}
