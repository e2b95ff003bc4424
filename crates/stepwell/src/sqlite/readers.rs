//! Connections for reading.

use parking_lot::Mutex;
use rusqlite::Connection;

use super::SqliteStore;
use super::file::{open_reader, sqlite_error};
use super::functions::add_functions;
use crate::error::Result;

/// Which connections read.
#[derive(Debug)]
pub(super) enum Readers {
    /// Separate connections; these are idle.
    Apart(Mutex<Vec<Connection>>),
    /// The writer's connection, because a store in memory has only one.
    OfWriter,
}

/// The most idle connections kept open.
const MAX_IDLE: usize = 8;

impl Readers {
    pub(super) fn apart() -> Self {
        Self::Apart(Mutex::default())
    }

    /// Uses a connection to read.
    pub(super) fn with<T>(
        &self,
        store: &SqliteStore,
        work: impl FnOnce(&Connection) -> Result<T>,
    ) -> Result<T> {
        match self.connect(store)? {
            None => store.writer()?.between(|conn| work(conn)),
            Some(conn) => {
                let result = work(&conn);
                self.give_back(Some(conn));
                result
            }
        }
    }

    /// A connection for the caller alone; `None` if there is only the writer's.
    pub(super) fn connect(&self, store: &SqliteStore) -> Result<Option<Connection>> {
        let Self::Apart(idle) = self else { return Ok(None) };
        if let Some(conn) = idle.lock().pop() {
            return Ok(Some(conn));
        }
        let conn = open_reader(&store.path)?;
        add_functions(&conn, &store.options)
            .map_err(|error| sqlite_error(&store.path, "opening the store", &error))?;
        Ok(Some(conn))
    }

    pub(super) fn give_back(&self, conn: Option<Connection>) {
        if let (Self::Apart(idle), Some(conn)) = (self, conn) {
            let mut idle = idle.lock();
            if idle.len() < MAX_IDLE {
                idle.push(conn);
            }
        }
    }

    pub(super) fn close(&self) {
        if let Self::Apart(idle) = self {
            idle.lock().clear();
        }
    }
}
