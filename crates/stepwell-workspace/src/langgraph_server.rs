//! LangGraph's checkpoints on a PostgreSQL server, brought here to be imported.

use std::path::{Path, PathBuf};

use stepwell_formats::{Format, Found, LangGraphTables, Report};
use stepwell_postgres::{Address, ForeignTables};

use crate::error::{Error, Result};

/// What was copied from a server, to be read here. The copy goes with it.
#[derive(Debug)]
pub struct LangGraphServer {
    /// The server, as it may be shown.
    pub address: PathBuf,
    /// The copy.
    pub found: Found,
    _tables: LangGraphTables,
}

impl LangGraphServer {
    /// Copies what LangGraph keeps there. The server is only read.
    ///
    /// # Errors
    /// If the server cannot be reached, has no such tables, or does not let them be read.
    pub fn copy(address: Address, format: Format) -> Result<Self> {
        let shown = address.shown().to_owned();
        let mut tables = langgraph_tables(address)?;
        let path = tables.finish().map_err(Error::Formats)?.to_owned();
        Ok(Self { address: shown, found: Found { path, format }, _tables: tables })
    }

    /// A report that names the server, and not the copy.
    #[must_use]
    pub fn named(&self, mut report: Report) -> Report {
        let (copy, shown) = (place(&self.found.path), place(&self.address));
        let own = report.warnings.iter_mut().filter(|warning| warning.place == copy);
        own.for_each(|warning| warning.place.clone_from(&shown));
        report
    }
}

fn place(path: &Path) -> String {
    path.display().to_string()
}

/// Copies the tables of LangGraph's `PostgresSaver` from a server into a scratch file, as they are at
/// one moment.
fn langgraph_tables(address: Address) -> Result<LangGraphTables> {
    let shown = address.shown().to_owned();
    let server = ForeignTables::open(address)?;
    let has = |table: &str, wanted: &[&str]| -> Result<bool> {
        let found = server.columns(table)?;
        Ok(wanted.iter().all(|name| found.iter().any(|it| it == name)))
    };
    let is_there = has("checkpoints", &["thread_id", "checkpoint_ns", "checkpoint", "metadata"])?
        && has("checkpoint_blobs", &["channel", "version", "type", "blob"])?
        && has("checkpoint_writes", &["task_id", "idx", "channel", "type", "blob"])?;
    if !is_there {
        let why = "it has no tables of LangGraph's PostgresSaver; options=-csearch_path%3DNAME in \
                   the address says in which schema they are";
        let why = stepwell_formats::Error::Foreign { path: shown, why: why.to_owned() };
        return Err(Error::Formats(why));
    }
    // Older tables do not say where a task stands among others.
    let path = match has("checkpoint_writes", &["task_path"])? {
        true => "task_path",
        false => "''",
    };
    let mut copy = LangGraphTables::scratch().map_err(Error::Formats)?;
    let texts = |names: &[&str]| {
        let all = names.iter().map(|name| format!("convert_to({name}::text, 'UTF8')"));
        all.collect::<Vec<_>>().join(", ")
    };
    let checkpoints =
        ["thread_id", "checkpoint_ns", "checkpoint_id", "parent_checkpoint_id", "checkpoint"];
    let sql = format!("SELECT {}, {} FROM checkpoints", texts(&checkpoints), texts(&["metadata"]));
    server.each_row(&sql, |row| copy.checkpoint(row).map_err(Error::Formats))?;
    let blobs = texts(&["thread_id", "checkpoint_ns", "channel", "version", "type"]);
    let sql = format!("SELECT {blobs}, blob FROM checkpoint_blobs");
    server.each_row(&sql, |row| copy.blob(row).map_err(Error::Formats))?;
    let writes = texts(&[
        "thread_id",
        "checkpoint_ns",
        "checkpoint_id",
        "task_id",
        path,
        "idx",
        "channel",
        "type",
    ]);
    let sql = format!("SELECT {writes}, blob FROM checkpoint_writes");
    server.each_row(&sql, |row| copy.write(row).map_err(Error::Formats))?;
    copy.finish().map_err(Error::Formats)?;
    Ok(copy)
}
