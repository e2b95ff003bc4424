//! LangGraph's tables on PostgreSQL, copied into a scratch file to be read as others' databases are.
//!
//! There a checkpoint's row holds short values alone. Long ones are rows of their own, found by channel
//! and version, so that one which did not change is kept once.

use std::path::{Path, PathBuf};

use rusqlite::{Connection, OptionalExtension as _, params};
use serde_json::{Map, Value};
use tempfile::TempDir;

use super::super::conversation::is_too_long;
use super::value;
use crate::read::foreign_database::fault;
use crate::read::input::{MAX_FILE_BYTES, unreadable};
use crate::{Error, Result};

/// The table of values, by which this form is told from the other.
pub(super) const BLOBS: &str = "checkpoint_blobs";

/// The table of what tasks wrote.
pub(super) const WRITES: &str = "checkpoint_writes";

const TABLES: &str = "
PRAGMA journal_mode = OFF;
PRAGMA synchronous = OFF;
CREATE TABLE checkpoints (
    thread_id TEXT, checkpoint_ns TEXT, checkpoint_id TEXT, parent_checkpoint_id TEXT, type TEXT,
    checkpoint TEXT, metadata TEXT, PRIMARY KEY (thread_id, checkpoint_ns, checkpoint_id)
) WITHOUT ROWID;
CREATE TABLE checkpoint_blobs (
    thread_id TEXT, checkpoint_ns TEXT, channel TEXT, version TEXT, type TEXT, blob BLOB,
    PRIMARY KEY (thread_id, checkpoint_ns, channel, version)
);
CREATE TABLE checkpoint_writes (
    thread_id TEXT, checkpoint_ns TEXT, checkpoint_id TEXT, task_id TEXT, task_path TEXT, idx INTEGER,
    channel TEXT, type TEXT, blob BLOB,
    PRIMARY KEY (thread_id, checkpoint_ns, checkpoint_id, task_id, idx)
);
BEGIN;
";

/// A copy of the tables of LangGraph's `PostgresSaver`, which goes when it is dropped. Whoever reads a
/// server fills it; then it is imported as a file of LangGraph's.
#[derive(Debug)]
pub struct LangGraphTables {
    connection: Option<Connection>,
    path: PathBuf,
    _folder: TempDir,
}

/// A row's columns as their bytes.
pub type Cells<'a> = [Option<&'a [u8]>];

impl LangGraphTables {
    /// An empty copy.
    ///
    /// # Errors
    /// If no scratch file can be made.
    pub fn scratch() -> Result<Self> {
        let folder = tempfile::tempdir().map_err(Error::Write)?;
        let path = folder.path().join("checkpoints.db");
        let connection = Connection::open(&path).map_err(|error| fault(&path, &error))?;
        connection.execute_batch(TABLES).map_err(|error| fault(&path, &error))?;
        Ok(Self { connection: Some(connection), path, _folder: folder })
    }

    /// Takes a row of `checkpoints`: thread, namespace, checkpoint, parent, checkpoint and metadata as
    /// JSON.
    ///
    /// # Errors
    /// If the scratch file cannot be written.
    pub fn checkpoint(&self, row: &Cells<'_>) -> Result<()> {
        let sql = "INSERT INTO checkpoints (thread_id, checkpoint_ns, checkpoint_id, \
                   parent_checkpoint_id, type, checkpoint, metadata) \
                   VALUES (?1, ?2, ?3, ?4, 'json', ?5, ?6)";
        self.insert(sql, row, &[])
    }

    /// Takes a row of `checkpoint_blobs`: thread, namespace, channel, version, type, bytes.
    ///
    /// # Errors
    /// If the scratch file cannot be written.
    pub fn blob(&self, row: &Cells<'_>) -> Result<()> {
        self.insert("INSERT INTO checkpoint_blobs VALUES (?1, ?2, ?3, ?4, ?5, ?6)", row, &[5])
    }

    /// Takes a row of `checkpoint_writes`: thread, namespace, checkpoint, task, path of the task, index,
    /// channel, type, bytes.
    ///
    /// # Errors
    /// If the scratch file cannot be written.
    pub fn write(&self, row: &Cells<'_>) -> Result<()> {
        let sql = "INSERT INTO checkpoint_writes VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)";
        self.insert(sql, row, &[8])
    }

    /// All is there. The answer is the file to import.
    ///
    /// # Errors
    /// If the scratch file cannot be written.
    pub fn finish(&mut self) -> Result<&Path> {
        if let Some(connection) = self.connection.take() {
            connection.execute_batch("COMMIT").map_err(|error| fault(&self.path, &error))?;
        }
        std::fs::metadata(&self.path).map_err(|error| unreadable(&self.path, error))?;
        Ok(&self.path)
    }

    fn insert(&self, sql: &str, row: &Cells<'_>, bytes: &[usize]) -> Result<()> {
        let fault = |error: rusqlite::Error| fault(&self.path, &error);
        let Some(connection) = &self.connection else { return Ok(()) };
        let mut statement = connection.prepare_cached(sql).map_err(fault)?;
        let cell = |(n, cell): (usize, &Option<&[u8]>)| match cell {
            None => rusqlite::types::Value::Null,
            Some(cell) if bytes.contains(&n) => cell.to_vec().into(),
            Some(cell) => String::from_utf8_lossy(cell).into_owned().into(),
        };
        let cells = row.iter().enumerate().map(cell);
        statement.execute(rusqlite::params_from_iter(cells)).map_err(fault)?;
        Ok(())
    }
}

/// The values of a checkpoint, with those that are rows of their own; and why some were left out.
pub(super) fn values(
    connection: &Connection,
    thread: &str,
    namespace: &str,
    checkpoint: &Value,
) -> rusqlite::Result<(Map<String, Value>, Option<String>)> {
    let inline = checkpoint.get("channel_values").and_then(Value::as_object);
    let mut values = inline.cloned().unwrap_or_default();
    let mut left_out = None;
    let versions = checkpoint.get("channel_versions").and_then(Value::as_object);
    let sql = "SELECT type, blob, length(blob) FROM checkpoint_blobs WHERE thread_id = ?1 \
               AND checkpoint_ns = ?2 AND channel = ?3 AND version = ?4";
    let mut statement = connection.prepare_cached(sql)?;
    for (channel, version) in versions.into_iter().flatten() {
        let version = version.as_str().map_or_else(|| version.to_string(), str::to_owned);
        let found: Option<(String, Option<Vec<u8>>, Option<i64>)> = statement
            .query_row(params![thread, namespace, channel, version], |row| {
                let size: Option<i64> = row.get(2)?;
                let is_long = size.is_some_and(is_too_long);
                Ok((row.get(0)?, if is_long { None } else { row.get(1)? }, size))
            })
            .optional()?;
        let Some((kind, bytes, size)) = found.filter(|(kind, ..)| kind != "empty") else {
            continue;
        };
        let decoded = match bytes {
            Some(bytes) => value::decode(&kind, &bytes),
            None if size.is_none() => Ok(Value::Null),
            None => Err(format!("a value has more than {MAX_FILE_BYTES} bytes")),
        };
        match decoded {
            Ok(value) => drop(values.insert(channel.clone(), value)),
            Err(why) => {
                // What stands in the checkpoint for it is a mark, and no value.
                values.remove(channel);
                left_out = Some(why);
            }
        }
    }
    Ok((values, left_out))
}
