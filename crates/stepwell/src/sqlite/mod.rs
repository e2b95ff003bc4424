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

use parking_lot::{Condvar, Mutex};
use rusqlite::Connection;

use crate::store::query::{Filter, Found, Newest, NewestQuery, Page, Query, RecordQuery, Search};
use crate::store::rows::{Facts, Rows, TxnContext};
use crate::store::{
    ChangeCursor, Changes, Counts, LeaseRequest, Maintain as _, SessionInfo, Slice, Span, Store,
    Written, read, several, write,
};
use crate::{
    Clock, Damage, Digest, Error, EventId, Lane, LaneState, Lease, Processes, Recorded, Redactor,
    Result, Seq, SessionId, SystemClock, SystemProcesses,
};
use checkpointer::Checkpointer;
pub use file::hide_from_git;
use file::sqlite_error;
use functions::add_functions;
use group_commit::GroupCommit;
use sql::SqliteRows;

/// May the store be changed?
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Access {
    /// Yes; it is made if there is none.
    #[default]
    Write,
    /// No. No store is made, and its file does not change; SQLite may leave the log and
    /// the shared memory that belong beside it.
    Read,
}

/// How a SQLite store is opened.
#[derive(Clone, Debug)]
pub struct SqliteOptions {
    /// May it be changed?
    pub access: Access,
    /// Tells the time.
    pub clock: Arc<dyn Clock>,
    /// Knows which processes live.
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

/// Sessions in a SQLite file. docs/format.md describes the file.
#[derive(Debug)]
pub struct SqliteStore {
    path: PathBuf,
    options: SqliteOptions,
    /// Absent if the store is open for reading only.
    writer: Option<GroupCommit>,
    /// Who copies the log into the file while large writes go on; nobody, before the first.
    checkpointer: Mutex<Option<Checkpointer>>,
    /// Connections that read and that nobody uses right now.
    idle: Mutex<Vec<Connection>>,
    commits: Mutex<Commits>,
    committed: Condvar,
}

/// This process's commits, for those who wait for one.
#[derive(Debug, Default)]
struct Commits {
    count: u64,
    /// How many wait: to wake nobody costs a system call too.
    awaited: usize,
}

/// How many connections that nobody uses are kept open.
const MAX_IDLE: usize = 8;

/// How long a follower waits before it looks for other processes' commits. One look costs some
/// microseconds.
const POLL: Duration = Duration::from_millis(5);

impl SqliteStore {
    /// Opens the store in a folder, usually `<workspace>/.stepwell`, and makes it if
    /// there is none.
    pub fn open(folder: &Path) -> Result<Self> {
        Self::open_with(folder, SqliteOptions::default())
    }

    /// Opens the store in a folder.
    pub fn open_with(folder: &Path, options: SqliteOptions) -> Result<Self> {
        let (path, writer) = match options.access {
            Access::Read => (file::resolve(&folder.join(file::FILE_NAME)), None),
            Access::Write => {
                let path = file::resolve(&file::make(folder)?);
                file::sweep_drafts(folder, options.clock.now());
                let conn = file::open_writer(&path, schema::MIGRATIONS)?;
                let writer = GroupCommit::new(&path, Arc::clone(&options.clock), conn);
                (path, Some(writer))
            }
        };
        let store = Self {
            path,
            options,
            writer,
            checkpointer: Mutex::default(),
            idle: Mutex::default(),
            commits: Mutex::default(),
            committed: Condvar::new(),
        };
        if store.writer.is_none() {
            // Whoever opens it learns now that it cannot be read, not at the first question.
            let conn = store.reader()?;
            store.idle.lock().push(conn);
        }
        Ok(store)
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

    /// Removes blobs that were stored for an event that never came.
    pub fn sweep_blobs(&self) -> Result<usize> {
        self.write_rows(|rows, _| blob::sweep(rows))
    }

    /// Copies the log into the file and empties it, unless someone is reading.
    pub fn checkpoint(&self) {
        if let Some(pipeline) = &self.writer {
            pipeline.between(|conn| {
                // A checkpoint that someone is in the way of is done by the next one.
                let quiet = conn.busy_timeout(Duration::ZERO);
                let _ = file::empty_log(conn);
                let _ = quiet.and_then(|()| file::set_busy_handler(conn));
            });
        }
    }

    /// Has the log copied into the file while the next large write is done.
    fn copy_behind(&self) {
        let mut copier = self.checkpointer.lock();
        if copier.is_none() {
            // Without one, the log is copied by who writes next, as ever.
            *copier = Checkpointer::begin(&self.path).ok();
        }
        if let Some(copier) = &*copier {
            copier.wake();
        }
    }

    fn world(&self) -> TxnContext<'_> {
        TxnContext { now: self.options.clock.now(), processes: &*self.options.processes }
    }

    fn reader(&self) -> Result<Connection> {
        if let Some(conn) = self.idle.lock().pop() {
            return Ok(conn);
        }
        let conn = file::open_reader(&self.path)?;
        add_functions(&conn, &self.options)
            .map_err(|error| sqlite_error(&self.path, "opening the store", &error))?;
        Ok(conn)
    }

    /// Reads within one transaction, so that all of it is of one moment.
    fn read<T>(
        &self,
        work: impl FnOnce(&SqliteRows<'_>, TxnContext<'_>) -> Result<T>,
    ) -> Result<T> {
        let conn = self.reader()?;
        let world = self.world();
        let fault = |error: rusqlite::Error| sqlite_error(&self.path, "reading", &error);
        let result = {
            let transaction = conn.unchecked_transaction().map_err(fault)?;
            work(&SqliteRows::new(&transaction, &self.path, world.now, None), world)
        };
        self.give_back(conn);
        result
    }

    /// Does a session that shares no events end with this value of its chain? One statement needs
    /// no transaction around it.
    fn ends_with(&self, id: &SessionId, chain: &Digest) -> Result<bool> {
        let conn = self.reader()?;
        let sql = "SELECT 1 FROM sessions WHERE id = ?1 AND chain = ?2 AND base_key IS NULL";
        let asked = rusqlite::params![id.as_str(), chain.as_bytes().as_slice()];
        let rows = SqliteRows::new(&conn, &self.path, self.options.clock.now(), None);
        let found = rows.one(sql, asked, |_| Ok(()));
        drop(rows);
        self.give_back(conn);
        Ok(found?.is_some())
    }

    fn give_back(&self, conn: Connection) {
        let mut idle = self.idle.lock();
        if idle.len() < MAX_IDLE {
            idle.push(conn);
        }
    }

    /// Writes within one durable transaction.
    fn write_rows<T: Send + 'static>(
        &self,
        work: impl FnOnce(&SqliteRows<'_>, TxnContext<'_>) -> Result<T> + Send + 'static,
    ) -> Result<T> {
        let pipeline =
            self.writer.as_ref().ok_or_else(|| Error::ReadOnly { path: self.path.clone() })?;
        let processes = Arc::clone(&self.options.processes);
        let result = pipeline
            .submit(move |rows| work(rows, TxnContext { now: rows.now, processes: &*processes }));
        if result.is_ok() {
            let mut commits = self.commits.lock();
            commits.count += 1;
            if commits.awaited > 0 {
                self.committed.notify_all();
            }
        }
        result
    }

    /// Remembers damage that was found, so that lists show it.
    fn mark(&self, id: &SessionId, damage: &Damage) {
        let (id, damage) = (id.clone(), damage.clone());
        // A store that cannot be written still answers whoever found the damage.
        let _ = self.write_rows(move |rows, _| {
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
        self.idle.lock().clear();
        self.checkpoint();
    }
}

impl Store for SqliteStore {
    fn batch_prepared(&self, prepared: Vec<write::Prepared>) -> Result<Vec<Written>> {
        let large =
            prepared.iter().map(write::Prepared::bytes).sum::<usize>() >= checkpointer::LARGE;
        let written = self.write_rows(move |rows, world| {
            if large {
                checkpointer::defer_auto_checkpoint(rows)?;
            }
            prepared.into_iter().map(|one| write::write(rows, world, one)).collect()
        });
        if large && let Some(pipeline) = &self.writer {
            pipeline.between(|conn| checkpointer::restore_auto_checkpoint(conn));
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

    fn events(&self, id: &SessionId, span: Span) -> Result<Slice> {
        let slice = self.read(|rows, _| read::slice(rows, &read::find(rows, id)?, span))?;
        if let Some(damage) = &slice.damage {
            self.mark(id, damage);
        }
        Ok(slice)
    }

    fn keyed(&self, id: &SessionId, facts: Facts<'_>) -> Result<Vec<Recorded>> {
        self.read(|rows, _| read::keyed_events(rows, &read::find(rows, id)?, facts))
    }

    fn records(&self, id: &SessionId, query: &RecordQuery) -> Result<Vec<Recorded>> {
        self.read(|rows, _| read::records(rows, &read::find(rows, id)?, query))
    }

    fn newest_record(&self, id: &SessionId, query: NewestQuery<'_>) -> Result<Newest> {
        if let Some(known) = &query.known
            && self.ends_with(id, known)?
        {
            return Ok(Newest::Unchanged);
        }
        self.read(|rows, _| read::newest_record(rows, &read::find(rows, id)?, query))
    }

    fn event(&self, id: &SessionId, event: &EventId) -> Result<Option<Recorded>> {
        self.read(|rows, _| read::event(rows, &read::find(rows, id)?, event))
    }

    fn list(&self, query: &Query) -> Result<Page> {
        self.read(|rows, world| list::page(rows, world, query))
    }

    fn below(&self, ids: &[SessionId]) -> Result<Vec<SessionInfo>> {
        // Most have none, which is asked for all at once. A damaged file is read session by session.
        match self.read(|rows, _| rows.parents_among(ids)) {
            Ok(parents) => several::below(self, parents),
            Err(Error::DamagedStore { .. }) => several::below(self, ids.iter().cloned()),
            Err(error) => Err(error),
        }
    }

    fn count(&self, filter: &Filter) -> Result<Counts> {
        self.read(|rows, _| list::count(rows, filter))
    }

    fn acquire(&self, id: &SessionId, claim: &LeaseRequest) -> Result<Lease> {
        let (id, claim) = (id.clone(), claim.clone());
        self.write_rows(move |rows, world| write::acquire(rows, world, &id, &claim))
    }

    fn renew(&self, lease: &Lease, ttl: Duration) -> Result<Lease> {
        let lease = lease.clone();
        self.write_rows(move |rows, world| write::renew(rows, world, &lease, ttl))
    }

    fn release(&self, lease: &Lease) -> Result<()> {
        let lease = lease.clone();
        self.write_rows(move |rows, _| write::release(rows, &lease))
    }

    fn keep_blobs(&self, blobs: &[(Digest, &[u8])]) -> Result<()> {
        if blobs.is_empty() {
            return Ok(());
        }
        let blobs: Vec<(Digest, Vec<u8>)> =
            blobs.iter().map(|(digest, bytes)| (*digest, bytes.to_vec())).collect();
        self.write_rows(move |rows, _| {
            blobs.iter().try_for_each(|(digest, bytes)| blob::put(rows, digest, bytes))
        })
    }

    fn blob(&self, digest: &Digest) -> Result<Vec<u8>> {
        self.read(|rows, _| blob::get(rows, digest))
    }

    fn blobs(&self, digests: &[Digest]) -> Result<Vec<Vec<u8>>> {
        self.read(|rows, _| blob::get_all(rows, digests))
    }

    fn search(&self, search: &Search, redactor: &Redactor) -> Result<Found> {
        let only = || self.read(|rows, _| search::find_only(rows, search, redactor));
        if self.writer.is_none() {
            return only();
        }
        match self.catch_up() {
            Ok(()) => self.read(|rows, _| {
                Ok(Found { hits: search::find(rows, search, redactor)?, unseen: 0 })
            }),
            // What cannot be indexed now is not found, and the answer says so.
            Err(Error::Full { .. } | Error::Busy { .. } | Error::Broken { .. }) => only(),
            Err(error) => Err(error),
        }
    }

    #[expect(clippy::disallowed_methods, reason = "a wait is bounded in real time")]
    fn wait_after(&self, id: &SessionId, seq: Seq, timeout: Duration) -> Result<Seq> {
        let started = std::time::Instant::now();
        loop {
            let seen = self.commits.lock().count;
            let sql = "SELECT seq FROM sessions WHERE id = ?1";
            let last = self.read(|rows, _| rows.one(sql, [id.as_str()], |row| row.get(0)))?;
            let last = Seq::new(last.ok_or_else(|| Error::NoSession(id.clone()))?);
            let left = timeout.saturating_sub(started.elapsed());
            if last > seq || left.is_zero() {
                return Ok(last);
            }
            // Our own commits wake us; other processes' are looked for.
            let mut commits = self.commits.lock();
            if commits.count == seen {
                commits.awaited += 1;
                self.committed.wait_for(&mut commits, left.min(POLL));
                commits.awaited -= 1;
            }
        }
    }

    fn changes(&self, after: Option<&ChangeCursor>, timeout: Duration) -> Result<Changes> {
        self.next_changes(after, timeout)
    }
}
