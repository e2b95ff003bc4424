//! Statements on one connection, and where an event lies in its table.

use std::cell::RefCell;
use std::path::Path;

use rusqlite::{CachedStatement, Connection, OptionalExtension, Params};

use super::file::sqlite_error;
use super::row_cache::RowCache;
use crate::error::{Error, Result};
use crate::model::{Seq, Time};
use crate::store::rows::Key;

/// The rows that one connection sees.
pub(super) struct SqliteRows<'a> {
    pub(super) conn: &'a Connection,
    pub(super) path: &'a Path,
    /// When this transaction takes place.
    pub(super) now: Time,
    /// The rows that were written last; a reader has none.
    pub(super) recent: Option<&'a RowCache>,
    /// The statement that inserts events: looked up once, however many they are.
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

    /// Runs a statement that changes something.
    pub(super) fn run(&self, sql: &str, params: impl Params) -> Result<usize> {
        if let Some(recent) = self.recent {
            recent.forget();
        }
        self.run_keeping(sql, params)
    }

    /// Runs a statement that changes neither sessions nor leases, or whose caller
    /// keeps the row that it changes.
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

/// Where an event lies: its session's key above its seq.
pub(super) fn pos(key: Key, seq: Seq) -> i64 {
    key << 32 | i64::try_from(seq.get()).unwrap_or(0)
}

/// The seq in an event's place.
pub(super) fn seq_of(pos: i64) -> Seq {
    Seq::new((pos & 0xffff_ffff).unsigned_abs())
}
