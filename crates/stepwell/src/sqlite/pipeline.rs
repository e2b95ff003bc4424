//! Writers of one process share commits.
//!
//! Whoever finds the connection free becomes the leader: it takes all writes that
//! wait, its own among them, does them in one transaction, and commits once for all.
//! A lone writer pays for no hand-over; many pay for one flush together. Each write
//! has a savepoint of its own, so one that fails does not take the others along.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rusqlite::{Connection, ErrorCode};

use super::file::sqlite_error;
use super::rows::SqliteRows;
use crate::failpoint::failpoint;
use crate::{Clock, Error, Result};

/// The one connection that writes, and the writes that wait for it.
#[derive(Debug)]
pub(super) struct Pipeline {
    path: PathBuf,
    clock: Arc<dyn Clock>,
    slot: Mutex<Slot>,
    queue: Mutex<Vec<Box<dyn Job>>>,
}

#[derive(Debug)]
struct Slot {
    conn: Connection,
    /// Why nothing more can be written through this connection: after a flush has
    /// failed, the system may have dropped what it was to write.
    broken: Option<String>,
}

/// A write that waits.
trait Job: Send + std::fmt::Debug {
    /// Does it. Did it succeed?
    fn run(&mut self, rows: &SqliteRows<'_>) -> bool;
    /// Gives the answer: its own, or that the transaction failed around it.
    fn answer(self: Box<Self>, failed: Option<Error>);
}

struct Work<T, F> {
    work: Option<F>,
    result: Option<Result<T>>,
    answer: Arc<Mutex<Option<Result<T>>>>,
}

impl<T, F> std::fmt::Debug for Work<T, F> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Work")
    }
}

impl<T: Send, F: FnOnce(&SqliteRows<'_>) -> Result<T> + Send> Job for Work<T, F> {
    fn run(&mut self, rows: &SqliteRows<'_>) -> bool {
        self.result = self.work.take().map(|work| work(rows));
        matches!(self.result, Some(Ok(_)))
    }

    fn answer(self: Box<Self>, failed: Option<Error>) {
        let result = match (self.result, failed) {
            (Some(Err(error)), _) | (_, Some(error)) => Some(Err(error)),
            (result, None) => result,
        };
        *lock(&self.answer) = result;
    }
}

impl Pipeline {
    pub(super) fn new(path: &Path, clock: Arc<dyn Clock>, conn: Connection) -> Self {
        let slot = Mutex::new(Slot { conn, broken: None });
        Self { path: path.to_owned(), clock, slot, queue: Mutex::default() }
    }

    /// Does a write, and returns when it is durable.
    pub(super) fn submit<T: Send + 'static>(
        &self,
        work: impl FnOnce(&SqliteRows<'_>) -> Result<T> + Send + 'static,
    ) -> Result<T> {
        let answer: Arc<Mutex<Option<Result<T>>>> = Arc::default();
        let job = Work { work: Some(work), result: None, answer: Arc::clone(&answer) };
        lock(&self.queue).push(Box::new(job));
        {
            let mut slot = lock(&self.slot);
            // Another leader may have done it while this one waited.
            if lock(&answer).is_none() {
                let jobs = std::mem::take(&mut *lock(&self.queue));
                self.lead(&mut slot, jobs);
            }
        }
        let given = lock(&answer).take();
        given.unwrap_or_else(|| Err(self.broken("a write ended without an answer")))
    }

    /// Uses the connection between writes, outside a transaction.
    pub(super) fn between<T>(&self, work: impl FnOnce(&mut Connection) -> T) -> T {
        work(&mut lock(&self.slot).conn)
    }

    fn lead(&self, slot: &mut Slot, mut jobs: Vec<Box<dyn Job>>) {
        while !jobs.is_empty() {
            if let Some(what) = &slot.broken {
                jobs.drain(..).for_each(|job| job.answer(Some(self.broken(what))));
                return;
            }
            failpoint("write.before_begin");
            if let Err(error) = run(&slot.conn, "BEGIN IMMEDIATE") {
                let refuse = || sqlite_error(&self.path, "beginning to write", &error);
                jobs.drain(..).for_each(|job| job.answer(Some(refuse())));
                return;
            }
            failpoint("write.after_begin");
            jobs = self.transact(slot, jobs);
        }
    }

    /// Does the jobs in the transaction that has begun, and ends it. Returns the
    /// jobs that it did not come to.
    fn transact(&self, slot: &mut Slot, jobs: Vec<Box<dyn Job>>) -> Vec<Box<dyn Job>> {
        let conn = &slot.conn;
        let rows = SqliteRows { conn, path: &self.path, now: self.clock.now() };
        let shared = jobs.len() > 1;
        let mut waiting = jobs.into_iter();
        let (mut ran, mut any) = (Vec::new(), false);
        for mut job in waiting.by_ref() {
            let saved = !shared || run(conn, "SAVEPOINT job").is_ok();
            let done = saved && job.run(&rows);
            if shared && !done {
                // If this fails, the transaction is gone, and the commit says so.
                let _ = run(conn, "ROLLBACK TO job");
            }
            if shared {
                let _ = run(conn, "RELEASE job");
            }
            any |= done;
            ran.push(job);
            // A full disk or a failed write makes SQLite end the transaction itself.
            if conn.is_autocommit() {
                break;
            }
        }
        failpoint("write.before_commit");
        let end = if any { "COMMIT" } else { "ROLLBACK" };
        let ended = run(conn, end);
        failpoint("write.after_commit");
        match ended {
            Ok(()) => ran.into_iter().for_each(|job| job.answer(None)),
            Err(error) => {
                let _ = run(conn, "ROLLBACK");
                if error.sqlite_error_code() == Some(ErrorCode::SystemIoFailure) {
                    slot.broken = Some(error.to_string());
                }
                let failed = || sqlite_error(&self.path, "saving", &error);
                ran.into_iter().for_each(|job| job.answer(Some(failed())));
            }
        }
        waiting.collect()
    }

    fn broken(&self, what: &str) -> Error {
        Error::Broken { path: self.path.clone(), what: what.to_owned() }
    }
}

fn run(conn: &Connection, sql: &str) -> rusqlite::Result<()> {
    conn.prepare_cached(sql)?.execute([]).map(|_| ())
}

/// A panic of one caller leaves nothing half done behind a lock: the transaction
/// around it was not committed.
pub(super) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
