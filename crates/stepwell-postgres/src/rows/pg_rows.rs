//! The rows that one transaction sees: how they are asked for, and what is remembered of them.

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::path::Path;

use stepwell::backend::{Key, OwnRow, SessionRow};
use stepwell::model::Time;
use stepwell::{Error, Result, Seq, SessionId};
use tokio_postgres::types::FromSql;

use crate::fault::DbError;
use crate::transport::{Conn, Param, Statement};

/// Are the sessions that are read locked until the transaction ends?
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Lock {
    /// Yes: they are about to be changed.
    Held,
    /// They are only read.
    None,
}

/// Where and when a transaction takes place.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Within {
    pub(crate) namespace: i32,
    pub(crate) now: Time,
}

/// The rows that one transaction sees.
pub(crate) struct PgRows<'a> {
    pub(crate) conn: &'a Conn,
    pub(crate) path: &'a Path,
    pub(crate) namespace: i32,
    /// When this transaction takes place.
    pub(crate) now: Time,
    pub(super) lock: Lock,
    /// Why the last statement failed, for whoever decides whether to try again.
    trouble: RefCell<Option<DbError>>,
    /// The versions of the sessions that were read or written.
    pub(super) versions: RefCell<HashMap<Key, i64>>,
    /// The sessions' rows as they were last written.
    pub(super) written: RefCell<HashMap<SessionId, SessionRow>>,
    /// What marks events that have no id of the client's: whose write they belong to.
    pub(crate) mark: Cell<Option<[u8; 16]>>,
    /// The first event that was written under the mark.
    pub(crate) marked_from: Cell<Option<Seq>>,
    /// Rows that were read ahead because they will be asked for.
    pub(super) ahead: RefCell<HashMap<(Key, Seq), OwnRow>>,
}

impl<'a> PgRows<'a> {
    pub(crate) fn new(conn: &'a Conn, path: &'a Path, within: Within, lock: Lock) -> Self {
        let Within { namespace, now } = within;
        Self {
            conn,
            path,
            namespace,
            now,
            lock,
            trouble: RefCell::default(),
            versions: RefCell::default(),
            written: RefCell::default(),
            mark: Cell::new(None),
            marked_from: Cell::new(None),
            ahead: RefCell::default(),
        }
    }

    /// Why the last statement failed.
    pub(crate) fn trouble(&self) -> Option<DbError> {
        self.trouble.borrow_mut().take()
    }

    /// The session's row as this transaction wrote it, with its version.
    pub(crate) fn last_written(&self, id: &SessionId) -> Option<(SessionRow, i64)> {
        let row = self.written.borrow().get(id)?.clone();
        let version = *self.versions.borrow().get(&row.key)?;
        Some((row, version))
    }

    /// Runs a statement.
    pub(crate) fn all(&self, sql: &str, params: &[Param<'_>]) -> Result<Vec<tokio_postgres::Row>> {
        self.conn.query(sql, params).map_err(|trouble| self.fault(trouble))
    }

    /// Runs two statements in one round trip.
    pub(crate) fn both(
        &self,
        first: Statement<'_>,
        second: Statement<'_>,
    ) -> Result<(Vec<tokio_postgres::Row>, Vec<tokio_postgres::Row>)> {
        self.conn.query_both(first, second).map_err(|trouble| self.fault(trouble))
    }

    /// Runs a statement that answers with at most one row.
    pub(crate) fn one(
        &self,
        sql: &str,
        params: &[Param<'_>],
    ) -> Result<Option<tokio_postgres::Row>> {
        Ok(self.all(sql, params)?.into_iter().next())
    }

    /// Runs a statement whose answer does not matter.
    pub(crate) fn run(&self, sql: &str, params: &[Param<'_>]) -> Result<()> {
        self.all(sql, params).map(drop)
    }

    pub(crate) fn fault(&self, trouble: DbError) -> Error {
        *self.trouble.borrow_mut() = Some(trouble.clone());
        trouble.into_error(self.path, "working in the database")
    }

    /// A column.
    pub(crate) fn get<'r, T: FromSql<'r>>(
        &self,
        row: &'r tokio_postgres::Row,
        column: usize,
    ) -> Result<T> {
        row.try_get(column).map_err(|error| Error::DamagedStore {
            path: self.path.to_owned(),
            what: error.to_string(),
        })
    }

    /// A session's rows are changed in a way that what is remembered of them does not tell.
    pub(super) fn changed(&self, key: Key) {
        self.ahead.borrow_mut().clear();
        self.written.borrow_mut().retain(|_, row| row.key != key);
    }
}

/// A seq as a column.
pub(crate) fn number(seq: Seq) -> i64 {
    i64::try_from(seq.get()).unwrap_or(i64::MAX)
}

/// A column as a seq.
pub(crate) fn seq(number: i64) -> Seq {
    Seq::new(number.unsigned_abs())
}

pub(crate) fn json<T: serde::Serialize>(value: &T) -> Vec<u8> {
    // About the size of a head, so that the buffer seldom grows.
    let mut text = Vec::with_capacity(600);
    serde_json::to_writer(&mut text, value)
        .expect("our own types have string keys and finite numbers");
    text
}
