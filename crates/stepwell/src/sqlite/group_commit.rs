//! Group commit: writers of one process share commits.
//!
//! The first caller leads: it runs all waiting writes, including its own and those that arrive in
//! between, in one transaction, and commits once. Then it wakes the first waiting writer as the
//! next leader, and answers its batch. A lone writer pays for no hand-over; many pay for one flush
//! together. Every write after the first has its own savepoint, so a failed one does not affect the
//! others.

use std::collections::VecDeque;
use std::os::unix::fs::MetadataExt as _;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc::{SyncSender, sync_channel};
use std::time::Duration;

use parking_lot::{Condvar, Mutex};
use rusqlite::{Connection, ErrorCode};

use super::SqliteOptions;
use super::feed::Commits;
use super::file::sqlite_error;
use super::row_cache::RowCache;
use super::sql::SqliteRows;
use crate::error::{Error, Result};
use crate::failpoint::failpoint;
use crate::store::rows::TxnContext;

/// The only connection that writes, and the writes that wait for it.
#[derive(Debug)]
pub(super) struct GroupCommit {
    path: PathBuf,
    /// The file's device and inode; absent if they cannot be read.
    file: Option<(u64, u64)>,
    options: SqliteOptions,
    commits: Arc<Commits>,
    slot: Mutex<Slot>,
    queue: Mutex<Queue>,
    /// Signals a new write to a leader that waits for one.
    came: Condvar,
}

#[derive(Debug)]
struct Slot {
    conn: Connection,
    /// Why this connection can no longer write: after a failed flush, the system may have dropped
    /// the data.
    broken: Option<String>,
    recent: RowCache,
}

#[derive(Debug, Default)]
struct Queue {
    jobs: VecDeque<Job>,
    /// Is there a leader, or one about to start?
    led: bool,
    /// How many writes shared the last commit.
    last: usize,
    /// Does the leader wait for another write? Notifying no one costs a system call, too.
    awaited: bool,
}

/// How long a leader waits for another write before it commits. The writers of the last commit
/// usually write again soon, and a shared commit is worth this wait; a lone writer never waits. The
/// leader sleeps and does not yield: on a busy machine, yielding costs the core for milliseconds,
/// and made four writers half as fast as one.
const PATIENCE: Duration = Duration::from_micros(60);

/// A waiting write and its result.
struct Job {
    /// Runs the write and stores its answer for the caller.
    work: Option<Work>,
    result: Result<()>,
    caller: SyncSender<Call>,
}

type Work = Box<dyn FnOnce(&SqliteRows<'_>) -> Result<()> + Send>;

/// A message to the caller of a write.
enum Call {
    /// Lead the next writes.
    Lead,
    /// The write has finished or failed.
    Over(Result<()>),
}

impl std::fmt::Debug for Job {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Job").field("result", &self.result).finish_non_exhaustive()
    }
}

impl Job {
    fn run(&mut self, rows: &SqliteRows<'_>) {
        let Some(work) = self.work.take() else { return };
        // A panic must reach this write's caller, not the leader's.
        let done = catch_unwind(AssertUnwindSafe(|| work(rows)));
        self.result = done.unwrap_or_else(|_| Err(lost(rows.path)));
    }

    /// Fails the write because its transaction did, unless it has an error of its own.
    fn fail(&mut self, error: Error) {
        if self.result.is_ok() {
            self.result = Err(error);
        }
    }

    fn answer(self) {
        // Fails only if the caller is gone.
        let _ = self.caller.send(Call::Over(self.result));
    }
}

impl GroupCommit {
    pub(super) fn new(
        path: &Path,
        options: SqliteOptions,
        commits: Arc<Commits>,
        conn: Connection,
    ) -> Self {
        let slot = Mutex::new(Slot { conn, broken: None, recent: RowCache::default() });
        let file = identity(path);
        let (queue, came) = (Mutex::default(), Condvar::new());
        Self { path: path.to_owned(), file, options, commits, slot, queue, came }
    }

    /// Runs a write, and returns when it is durable.
    pub(super) fn submit<T: Send + 'static>(
        &self,
        work: impl FnOnce(&SqliteRows<'_>, TxnContext<'_>) -> Result<T> + Send + 'static,
    ) -> Result<T> {
        let (caller, called) = sync_channel(1);
        let answer = Arc::new(Mutex::new(None));
        let (kept, processes) = (Arc::clone(&answer), Arc::clone(&self.options.processes));
        let work = move |rows: &SqliteRows<'_>| {
            let value = work(rows, TxnContext { now: rows.now, processes: &*processes })?;
            *kept.lock() = Some(value);
            Ok(())
        };
        let mut leads = self.enqueue(Job { work: Some(Box::new(work)), result: Ok(()), caller });
        loop {
            if leads {
                let ran = self.transact(&mut self.slot.lock());
                // Before the answers, because an answered caller may write again at once.
                self.hand_over();
                ran.into_iter().for_each(Job::answer);
            }
            match called.recv() {
                Ok(Call::Lead) => leads = true,
                Ok(Call::Over(Ok(()))) => {
                    self.commits.note();
                    return answer.lock().take().ok_or_else(|| lost(&self.path));
                }
                Ok(Call::Over(Err(error))) => return Err(error),
                Err(_) => return Err(lost(&self.path)),
            }
        }
    }

    /// Queues a write. Returns whether its caller must lead.
    fn enqueue(&self, job: Job) -> bool {
        let mut queue = self.queue.lock();
        queue.jobs.push_back(job);
        if queue.awaited {
            self.came.notify_one();
        }
        !std::mem::replace(&mut queue.led, true)
    }

    /// The next write for a transaction that has run `done`: a waiting one, or one that arrives
    /// soon if the last transaction had more.
    fn next(&self, done: usize) -> Option<Job> {
        let mut queue = self.queue.lock();
        if queue.jobs.is_empty() && done < queue.last {
            queue.awaited = true;
            self.came.wait_while_for(&mut queue, |queue| queue.jobs.is_empty(), PATIENCE);
            queue.awaited = false;
        }
        let job = queue.jobs.pop_front();
        if job.is_none() {
            queue.last = done;
        }
        job
    }

    /// Makes the first waiting caller the leader.
    fn hand_over(&self) {
        let mut queue = self.queue.lock();
        match queue.jobs.front() {
            // Fails only if the caller is gone.
            Some(next) => drop(next.caller.send(Call::Lead)),
            None => queue.led = false,
        }
    }

    /// Uses the connection between writes, outside a transaction.
    pub(super) fn between<T>(&self, work: impl FnOnce(&mut Connection) -> T) -> T {
        work(&mut self.slot.lock().conn)
    }

    /// Runs the waiting writes in one transaction. Writes that it did not reach stay in the queue.
    fn transact(&self, slot: &mut Slot) -> Vec<Job> {
        if let Some(what) = &slot.broken {
            return self.refuse(|| broken(&self.path, what));
        }
        failpoint("write.before_begin");
        if let Err(error) = run(&slot.conn, "BEGIN IMMEDIATE") {
            return self.refuse(|| sqlite_error(&self.path, "beginning to write", &error));
        }
        failpoint("write.after_begin");
        let ran = self.run_jobs(slot);
        if slot.conn.is_autocommit() {
            // The last job's failure ended the transaction and discarded the others.
            let why = ran.last().and_then(|job| job.result.as_ref().err());
            let failures: Vec<Error> = ran.iter().map(|_| self.taken_along(why)).collect();
            let mut failures = failures.into_iter();
            return fail_all(ran, || failures.next().unwrap_or_else(|| lost(&self.path)));
        }
        failpoint("write.before_commit");
        let any = ran.iter().any(|job| job.result.is_ok());
        let ended = run(&slot.conn, if any { "COMMIT" } else { "ROLLBACK" });
        failpoint("write.after_commit");
        if let Err(error) = ended {
            slot.recent.forget();
            let _ = run(&slot.conn, "ROLLBACK");
            if error.sqlite_error_code() == Some(ErrorCode::SystemIoFailure) {
                slot.broken = Some(error.to_string());
            }
            return fail_all(ran, || self.not_saved(&error));
        }
        if self.file.is_some() && identity(&self.path) != self.file {
            // The data went to a file that no longer has this name.
            let what = "the store's file was removed or replaced";
            slot.broken = Some(what.to_owned());
            return fail_all(ran, || broken(&self.path, what));
        }
        ran
    }

    fn refuse(&self, why: impl FnMut() -> Error) -> Vec<Job> {
        fail_all(std::mem::take(&mut self.queue.lock().jobs).into(), why)
    }

    /// Runs writes in the open transaction.
    fn run_jobs(&self, slot: &mut Slot) -> Vec<Job> {
        slot.recent.begin(&slot.conn);
        let conn = &slot.conn;
        let (mut ran, mut any) = (Vec::new(), false);
        while let Some(mut job) = self.next(ran.len()) {
            // The first write needs no savepoint: ending the transaction reverts it.
            let apart = any;
            if apart && let Err(error) = run(conn, "SAVEPOINT job") {
                job.fail(sqlite_error(&self.path, "beginning to write", &error));
                ran.push(job);
                continue;
            }
            let (now, recent) = (self.options.clock.now(), Some(&slot.recent));
            job.run(&SqliteRows::new(conn, &self.path, now, recent));
            let done = job.result.is_ok();
            if !done {
                slot.recent.forget();
            }
            if apart && !done {
                // If this fails, the transaction has ended, and the commit reports it.
                let _ = run(conn, "ROLLBACK TO job");
            }
            if apart {
                let _ = run(conn, "RELEASE job");
            }
            any |= done;
            ran.push(job);
            // On a full disk or a failed write, SQLite ends the transaction itself.
            if !any || conn.is_autocommit() {
                break;
            }
        }
        ran
    }

    /// The error of a write that was discarded because another one ended the transaction.
    fn taken_along(&self, why: Option<&Error>) -> Error {
        let path = self.path.clone();
        match why {
            Some(Error::Full { .. }) => Error::Full { path },
            why => {
                let what = why.map_or_else(|| "the transaction ended".to_owned(), Error::to_string);
                let source = std::io::Error::other(what);
                Error::Io { path, doing: "saving beside another write", source }
            }
        }
    }

    /// The error of a failed commit. After a disk error the commit may or may not be on disk, so it
    /// is never reported as a full disk, which discards the write.
    fn not_saved(&self, error: &rusqlite::Error) -> Error {
        let doing = "saving";
        match error.sqlite_error_code() {
            Some(ErrorCode::SystemIoFailure) => Error::Io {
                path: self.path.clone(),
                doing,
                source: std::io::Error::other(error.to_string()),
            },
            _ => sqlite_error(&self.path, doing, error),
        }
    }
}

fn fail_all(mut jobs: Vec<Job>, mut why: impl FnMut() -> Error) -> Vec<Job> {
    jobs.iter_mut().for_each(|job| job.fail(why()));
    jobs
}

/// The error if a write, or its leader, panicked.
fn lost(path: &Path) -> Error {
    let (path, doing) = (path.to_owned(), "writing");
    Error::Database { path, doing, what: "the write panicked".to_owned() }
}

/// The file at a path, by device and inode.
fn identity(path: &Path) -> Option<(u64, u64)> {
    std::fs::metadata(path).ok().map(|file| (file.dev(), file.ino()))
}

fn broken(path: &Path, what: &str) -> Error {
    Error::Broken { path: path.to_owned(), what: what.to_owned() }
}

fn run(conn: &Connection, sql: &str) -> rusqlite::Result<()> {
    conn.prepare_cached(sql)?.execute([]).map(|_| ())
}
