//! The store on disk: SQLite, one file, safe to share between processes.

mod blob;
mod checkpointer;
mod conditions;
mod feed;
mod file;
mod functions;
mod group_commit;
mod list;
mod maintain;
mod readers;
mod restore;
mod row_cache;
mod rows;
mod schema;
mod search;
mod sql;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use rusqlite::Connection;

use crate::clock::{Clock, SystemClock};
use crate::error::{Error, Result};
use crate::log::{LaneState, Redactor};
use crate::model::{Digest, Lane, SessionId};
use crate::store::changes::{ChangeCursor, Changes, Wait};
use crate::store::query::{Filter, Found, Page, Query, Search};
use crate::store::rows::{Rows, TxnContext};
use crate::store::{
    Counts, Damage, Lease, LeaseRequest, Maintain, Processes, Selection, SessionInfo, Slice, Store,
    SystemProcesses, Write, Written, read, write,
};
use checkpointer::Checkpointer;
use feed::Commits;
pub use file::hide_from_git;
use file::sqlite_error;
use group_commit::GroupCommit;
use readers::Readers;
use sql::SqliteRows;

/// Whether the store may be changed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Access {
    /// It may, and is created if needed.
    #[default]
    Write,
    /// It may not. No store is created, and its file does not change; SQLite may leave a log and
    /// shared memory beside it.
    Read,
}

/// Options for opening a SQLite store.
#[derive(Clone, Debug)]
pub struct SqliteOptions {
    /// Whether it may be changed.
    pub access: Access,
    /// The clock.
    pub clock: Arc<dyn Clock>,
    /// Checks which processes are alive.
    pub processes: Arc<dyn Processes>,
}

impl Default for SqliteOptions {
    fn default() -> Self {
        Self {
            access: Access::Write,
            clock: Arc::new(SystemClock),
            processes: Arc::new(SystemProcesses),
        }
    }
}

/// Sessions in a SQLite file, whose format docs/format.md describes, or in memory.
#[derive(Debug)]
pub struct SqliteStore {
    path: PathBuf,
    options: SqliteOptions,
    /// Absent if the store is open for reading only.
    writer: Option<GroupCommit>,
    /// Copies the log during large writes; absent before the first one.
    checkpointer: Mutex<Option<Checkpointer>>,
    readers: Readers,
    commits: Arc<Commits>,
}

impl SqliteStore {
    /// Opens the store in a folder, usually `<workspace>/.stepwell`, and creates it if needed.
    pub fn open(folder: &Path) -> Result<Self> {
        Self::open_with(folder, SqliteOptions::default())
    }

    /// Opens the store in a folder.
    pub fn open_with(folder: &Path, options: SqliteOptions) -> Result<Self> {
        if options.access == Access::Read {
            let path = file::resolve(&folder.join(file::FILE_NAME));
            let store = Self::new(path, options, None, Readers::apart());
            // An unreadable store is refused now, not at the first query.
            let conn = store.readers.connect(&store)?;
            store.readers.give_back(conn);
            return Ok(store);
        }
        let path = file::resolve(&file::make(folder)?);
        file::sweep_drafts(folder, options.clock.now());
        let conn = file::open_writer(&path, schema::MIGRATIONS)?;
        Ok(Self::new(path, options, Some(conn), Readers::apart()))
    }

    /// An empty store in memory, which ends with the process. Otherwise it behaves as on disk.
    pub fn in_memory() -> Result<Self> {
        Self::in_memory_with(SqliteOptions::default())
    }

    /// An empty store in memory, with the caller's clock and processes.
    pub fn in_memory_with(options: SqliteOptions) -> Result<Self> {
        let conn = file::open_in_memory()?;
        functions::add_functions(&conn, &options)
            .map_err(|error| sqlite_error(Path::new(file::MEMORY), "making the store", &error))?;
        Ok(Self::new(PathBuf::from(file::MEMORY), options, Some(conn), Readers::OfWriter))
    }

    fn new(
        path: PathBuf,
        options: SqliteOptions,
        writer: Option<Connection>,
        readers: Readers,
    ) -> Self {
        let commits = Arc::new(Commits::default());
        let writer =
            writer.map(|conn| GroupCommit::new(&path, options.clone(), Arc::clone(&commits), conn));
        Self { path, options, writer, checkpointer: Mutex::default(), readers, commits }
    }

    /// SQLite's version.
    #[must_use]
    pub fn engine_version() -> &'static str {
        rusqlite::version()
    }

    /// The store's file.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Removes blobs whose event was never written.
    pub fn sweep_blobs(&self) -> Result<usize> {
        self.writer()?.submit(|rows, _| blob::sweep(rows))
    }

    /// Copies the log into the file and empties it, unless a connection is reading. A store in
    /// memory has no log.
    pub fn checkpoint(&self) {
        if let (Some(writer), Readers::Apart(_)) = (&self.writer, &self.readers) {
            writer.between(|conn| {
                // If a reader is in the way, the next checkpoint does it.
                let quiet = conn.busy_timeout(Duration::ZERO);
                let _ = file::empty_log(conn);
                let _ = quiet.and_then(|()| file::set_busy_handler(conn));
            });
        }
    }

    /// Copies the log into the file in the background, during the next large write.
    fn copy_behind(&self) {
        if matches!(self.readers, Readers::OfWriter) {
            return;
        }
        let mut copier = self.checkpointer.lock();
        if copier.is_none() {
            // Without the thread, the next writer copies the log.
            *copier = Checkpointer::begin(&self.path).ok();
        }
        if let Some(copier) = &*copier {
            copier.wake();
        }
    }

    fn world(&self) -> TxnContext<'_> {
        TxnContext { now: self.options.clock.now(), processes: &*self.options.processes }
    }

    /// The writer; an error if the store is open for reading only.
    fn writer(&self) -> Result<&GroupCommit> {
        self.writer.as_ref().ok_or_else(|| Error::ReadOnly { path: self.path.clone() })
    }

    /// Reads within one transaction, so that everything is of one moment.
    fn read<T>(
        &self,
        work: impl FnOnce(&SqliteRows<'_>, TxnContext<'_>) -> Result<T>,
    ) -> Result<T> {
        let world = self.world();
        let fault = |error: rusqlite::Error| sqlite_error(&self.path, "reading", &error);
        self.readers.with(self, |conn| {
            let transaction = conn.unchecked_transaction().map_err(fault)?;
            work(&SqliteRows::new(&transaction, &self.path, world.now, None), world)
        })
    }

    /// Is this the chain's value at the end of a session without shared events? One statement needs
    /// no transaction.
    fn ends_with(&self, id: &SessionId, chain: &Digest) -> Result<bool> {
        let sql = "SELECT 1 FROM sessions WHERE id = ?1 AND chain = ?2 AND base_key IS NULL";
        let asked = rusqlite::params![id.as_str(), chain.as_bytes().as_slice()];
        self.readers.with(self, |conn| {
            let rows = SqliteRows::new(conn, &self.path, self.options.clock.now(), None);
            Ok(rows.one(sql, asked, |_| Ok(()))?.is_some())
        })
    }

    /// Stores damage that was found, so that lists show it.
    fn mark(&self, id: &SessionId, damage: &Damage) {
        let (id, damage) = (id.clone(), damage.clone());
        // If the store cannot be written, the caller still gets its answer.
        let Ok(writer) = self.writer() else { return };
        let _ = writer.submit(move |rows, _| {
            let Some(mut row) = rows.session(&id)? else {
                return Ok(());
            };
            if row.damage.as_ref().is_none_or(|known| known.seq > damage.seq) {
                row.damage = Some(damage);
                rows.mark_damaged(&row)?;
            }
            Ok(())
        });
    }
}

impl Drop for SqliteStore {
    fn drop(&mut self) {
        drop(self.checkpointer.lock().take());
        self.readers.close();
        self.checkpoint();
    }
}

impl Store for SqliteStore {
    fn batch(&self, mut writes: Vec<Write>) -> Result<Vec<Written>> {
        let writer = self.writer()?;
        writes.iter_mut().try_for_each(Write::encode)?;
        let large = writes.iter().map(Write::bytes).sum::<usize>() >= checkpointer::LARGE;
        let written = writer.submit(move |rows, world| {
            if large {
                checkpointer::defer_auto_checkpoint(rows)?;
            }
            writes.into_iter().map(|one| write::write(rows, world, one)).collect()
        });
        if large {
            writer.between(|conn| checkpointer::restore_auto_checkpoint(conn));
            if written.is_ok() {
                self.copy_behind();
            }
        }
        written
    }

    fn info(&self, id: &SessionId) -> Result<SessionInfo> {
        self.read(|rows, world| Ok(read::info(read::find(rows, id)?, world)))
    }

    fn lanes(&self, id: &SessionId) -> Result<BTreeMap<Lane, LaneState>> {
        self.read(|rows, _| read::lanes(rows, &read::find(rows, id)?))
    }

    fn select(&self, id: &SessionId, selection: Selection<'_>) -> Result<Slice> {
        if let Selection::Newest(query) = selection
            && let Some(known) = &query.known
            && self.ends_with(id, known)?
        {
            return Ok(Slice { chain: query.known, ..Slice::default() });
        }
        let slice = self.read(|rows, _| read::select(rows, id, selection))?;
        if let Some(damage) = &slice.damage {
            self.mark(id, damage);
        }
        Ok(slice)
    }

    fn list(&self, query: &Query) -> Result<Page> {
        self.read(|rows, world| list::page(rows, world, query))
    }

    fn count(&self, filter: &Filter) -> Result<Counts> {
        self.read(|rows, _| list::count(rows, filter))
    }

    fn acquire(&self, id: &SessionId, claim: &LeaseRequest) -> Result<Lease> {
        let (id, claim) = (id.clone(), claim.clone());
        self.writer()?.submit(move |rows, world| write::acquire(rows, world, &id, &claim))
    }

    fn renew(&self, lease: &Lease, ttl: Duration) -> Result<Lease> {
        let lease = lease.clone();
        self.writer()?.submit(move |rows, world| write::renew(rows, world, &lease, ttl))
    }

    fn release(&self, lease: &Lease) -> Result<()> {
        let lease = lease.clone();
        self.writer()?.submit(move |rows, _| write::release(rows, &lease))
    }

    fn keep_blobs(&self, blobs: &[(Digest, &[u8])]) -> Result<()> {
        if blobs.is_empty() {
            return Ok(());
        }
        let blobs: Vec<(Digest, Vec<u8>)> =
            blobs.iter().map(|(digest, bytes)| (*digest, bytes.to_vec())).collect();
        self.writer()?.submit(move |rows, _| {
            blobs.iter().try_for_each(|(digest, bytes)| blob::put(rows, digest, bytes))
        })
    }

    fn blobs(&self, digests: &[Digest]) -> Result<Vec<Vec<u8>>> {
        self.read(|rows, _| blob::get_all(rows, digests))
    }

    fn search(&self, search: &Search, redactor: &Redactor) -> Result<Found> {
        let only = || self.read(|rows, _| search::find_only(rows, search, redactor));
        if self.writer.is_none() {
            return only();
        }
        match self.catch_up(&|_| {}) {
            Ok(()) => self.read(|rows, _| {
                Ok(Found { hits: search::find(rows, search, redactor)?, unseen: 0 })
            }),
            // Events that cannot be indexed now are not found, and the answer says so.
            Err(Error::Full { .. } | Error::Busy { .. } | Error::Broken { .. }) => only(),
            Err(error) => Err(error),
        }
    }

    fn changes(&self, after: Option<&ChangeCursor>, wait: Wait<'_>) -> Result<Changes> {
        self.next_changes(after, wait)
    }

    fn maintain(&self) -> &dyn Maintain {
        self
    }
}
