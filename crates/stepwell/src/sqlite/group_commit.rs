//! Writers of one process share commits.
//!
//! Whoever comes first leads: it does all writes that wait, its own among them, and
//! those that come while it does, in one transaction, and commits once for all. Then it
//! hands the lead to one that came meanwhile, and tells each how it went. A lone writer
//! pays for no hand-over; many pay for one flush together. Every write after the first
//! has a savepoint of its own, so one that fails does not take the others along.

use std::collections::VecDeque;
use std::os::unix::fs::MetadataExt as _;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use parking_lot::{Condvar, Mutex};
use rusqlite::{Connection, ErrorCode};

use super::file::sqlite_error;
use super::row_cache::RowCache;
use super::sql::SqliteRows;
use crate::failpoint::failpoint;
use crate::{Clock, Error, Result};

/// The one connection that writes, and the writes that wait for it.
#[derive(Debug)]
pub(super) struct GroupCommit {
    path: PathBuf,
    /// The file, by device and inode; absent, it could not be looked at.
    file: Option<(u64, u64)>,
    clock: Arc<dyn Clock>,
    slot: Mutex<Slot>,
    queue: Mutex<Queue>,
    /// A write came while the leader waits for one.
    came: Condvar,
}

#[derive(Debug)]
struct Slot {
    conn: Connection,
    /// Why nothing more can be written through this connection: after a flush has
    /// failed, the system may have dropped what it was to write.
    broken: Option<String>,
    recent: RowCache,
}

#[derive(Debug, Default)]
struct Queue {
    jobs: VecDeque<Box<dyn Job>>,
    /// Is someone leading, or about to?
    led: bool,
    /// How many writes shared the last commit.
    last: usize,
    /// Does the leader wait for another one? To wake nobody costs a system call too.
    awaited: bool,
}

/// How long a leader waits for another write before it commits without it. Those that shared
/// the last commit are usually about to write again, and a commit together is worth this; a lone
/// writer never waits. It sleeps: whoever yields on a busy machine loses its core for
/// milliseconds, and four writers were half as fast as one.
const PATIENCE: Duration = Duration::from_micros(60);

/// A write that waits.
trait Job: Send + std::fmt::Debug {
    /// Does it. Did it succeed?
    fn run(&mut self, rows: &SqliteRows<'_>) -> bool;
    /// How it failed, if it did.
    fn failure(&self) -> Option<&Error>;
    /// Gives the answer: its own, or that the transaction failed around it.
    fn answer(self: Box<Self>, failed: Option<Error>);
    /// Has its caller lead.
    fn promote(&self);
}

/// A write that was run or refused, and what failed around it.
type Outcome = (Box<dyn Job>, Option<Error>);

struct Work<T, F> {
    work: Option<F>,
    result: Option<Result<T>>,
    ticket: Arc<Ticket<T>>,
}

/// What the caller of a write waits for.
struct Ticket<T> {
    state: Mutex<Wait<T>>,
    called: Condvar,
}

enum Wait<T> {
    /// Nobody waits yet, so nobody need be woken, which costs a system call.
    NotYet,
    Waiting,
    Called(Call<T>),
}

enum Call<T> {
    /// The write is done, or was refused.
    Answer(Result<T>),
    /// Lead the next writes.
    Lead,
}

impl<T> Ticket<T> {
    fn call(&self, call: Call<T>) {
        let before = std::mem::replace(&mut *self.state.lock(), Wait::Called(call));
        if matches!(before, Wait::Waiting) {
            self.called.notify_one();
        }
    }

    fn wait(&self) -> Call<T> {
        let mut state = self.state.lock();
        loop {
            match std::mem::replace(&mut *state, Wait::Waiting) {
                Wait::Called(call) => {
                    *state = Wait::NotYet;
                    return call;
                }
                _ => self.called.wait(&mut state),
            }
        }
    }
}

impl<T, F> std::fmt::Debug for Work<T, F> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Work")
    }
}

impl<T: Send, F: FnOnce(&SqliteRows<'_>) -> Result<T> + Send> Job for Work<T, F> {
    fn run(&mut self, rows: &SqliteRows<'_>) -> bool {
        // A panic belongs to this write's caller, not to whoever leads.
        let run = |work: F| catch_unwind(AssertUnwindSafe(|| work(rows)));
        let panicked = || {
            let (path, doing) = (rows.path.to_owned(), "writing");
            Err(Error::Database { path, doing, what: "the write panicked".to_owned() })
        };
        self.result = self.work.take().map(|work| run(work).unwrap_or_else(|_| panicked()));
        matches!(self.result, Some(Ok(_)))
    }

    fn failure(&self) -> Option<&Error> {
        self.result.as_ref()?.as_ref().err()
    }

    fn answer(self: Box<Self>, failed: Option<Error>) {
        let result = match (self.result, failed) {
            (Some(Err(error)), _) | (_, Some(error)) => Err(error),
            (result, None) => result.expect("a write that was not run is refused"),
        };
        self.ticket.call(Call::Answer(result));
    }

    fn promote(&self) {
        self.ticket.call(Call::Lead);
    }
}

impl GroupCommit {
    pub(super) fn new(path: &Path, clock: Arc<dyn Clock>, conn: Connection) -> Self {
        let slot = Mutex::new(Slot { conn, broken: None, recent: RowCache::default() });
        let file = identity(path);
        let (queue, came) = (Mutex::default(), Condvar::new());
        Self { path: path.to_owned(), file, clock, slot, queue, came }
    }

    /// Does a write, and returns when it is durable.
    pub(super) fn submit<T: Send + 'static>(
        &self,
        work: impl FnOnce(&SqliteRows<'_>) -> Result<T> + Send + 'static,
    ) -> Result<T> {
        let ticket = Arc::new(Ticket { state: Mutex::new(Wait::NotYet), called: Condvar::new() });
        let job = Work { work: Some(work), result: None, ticket: Arc::clone(&ticket) };
        let leads = {
            let mut queue = self.queue.lock();
            queue.jobs.push_back(Box::new(job));
            if queue.awaited {
                self.came.notify_one();
            }
            !std::mem::replace(&mut queue.led, true)
        };
        let mut call = if leads { Call::Lead } else { ticket.wait() };
        loop {
            match call {
                Call::Answer(answer) => return answer,
                Call::Lead => {
                    let outcomes = self.lead(&mut self.slot.lock());
                    // Before the answers: whoever hears one may write again at once.
                    self.hand_over();
                    outcomes.into_iter().for_each(|(job, failed)| job.answer(failed));
                    call = ticket.wait();
                }
            }
        }
    }

    /// The next write of a transaction that has done this many: one that waits, or that
    /// comes soon if there were more last time. They come while others are done.
    fn next(&self, done: usize) -> Option<Box<dyn Job>> {
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

    /// Lets the first of those that came meanwhile lead.
    fn hand_over(&self) {
        let mut queue = self.queue.lock();
        match queue.jobs.front() {
            Some(next) => next.promote(),
            None => queue.led = false,
        }
    }

    /// Uses the connection between writes, outside a transaction.
    pub(super) fn between<T>(&self, work: impl FnOnce(&mut Connection) -> T) -> T {
        work(&mut self.slot.lock().conn)
    }

    /// Does the writes that wait, in one transaction. What it did not come to stays.
    fn lead(&self, slot: &mut Slot) -> Vec<Outcome> {
        if let Some(what) = &slot.broken {
            return self.refuse(|| broken(&self.path, what));
        }
        failpoint("write.before_begin");
        if let Err(error) = run(&slot.conn, "BEGIN IMMEDIATE") {
            return self.refuse(|| sqlite_error(&self.path, "beginning to write", &error));
        }
        failpoint("write.after_begin");
        self.transact(slot)
    }

    fn refuse(&self, why: impl Fn() -> Error) -> Vec<Outcome> {
        let jobs = std::mem::take(&mut self.queue.lock().jobs);
        jobs.into_iter().map(|job| (job, Some(why()))).collect()
    }

    /// Does writes in the transaction that has begun, and ends it.
    fn transact(&self, slot: &mut Slot) -> Vec<Outcome> {
        slot.recent.begin(&slot.conn);
        let conn = &slot.conn;
        let (mut ran, mut any) = (Vec::new(), false);
        while let Some(mut job) = self.next(ran.len()) {
            // The first can be taken back by ending the transaction.
            let apart = any;
            if let Err(error) = if apart { run(conn, "SAVEPOINT job") } else { Ok(()) } {
                let failed = sqlite_error(&self.path, "beginning to write", &error);
                ran.push((job, Some(failed)));
                continue;
            }
            let (now, recent) = (self.clock.now(), Some(&slot.recent));
            let done = job.run(&SqliteRows::new(conn, &self.path, now, recent));
            if !done {
                slot.recent.forget();
            }
            if apart && !done {
                // If this fails, the transaction is gone, and the commit says so.
                let _ = run(conn, "ROLLBACK TO job");
            }
            if apart {
                let _ = run(conn, "RELEASE job");
            }
            any |= done;
            ran.push((job, None));
            // A full disk or a failed write makes SQLite end the transaction itself.
            if !any || conn.is_autocommit() {
                break;
            }
        }
        if conn.is_autocommit() {
            // The last job's failure is why those before it are gone too.
            let why = ran.last().and_then(|(job, _)| job.failure());
            let failures: Vec<Error> = ran.iter().map(|_| self.taken_along(why)).collect();
            let gone = ran.into_iter().zip(failures);
            return gone.map(|((job, _), failure)| (job, Some(failure))).collect();
        }
        failpoint("write.before_commit");
        let end = if any { "COMMIT" } else { "ROLLBACK" };
        let ended = run(conn, end);
        failpoint("write.after_commit");
        if let Err(error) = ended {
            slot.recent.forget();
            let _ = run(conn, "ROLLBACK");
            if error.sqlite_error_code() == Some(ErrorCode::SystemIoFailure) {
                slot.broken = Some(error.to_string());
            }
            let failed = |job| (job, Some(self.not_saved(&error)));
            return ran.into_iter().map(|(job, _)| failed(job)).collect();
        }
        if self.file.is_some() && identity(&self.path) != self.file {
            // It went to a file that nobody will ever find.
            let what = "the store's file was removed or replaced";
            slot.broken = Some(what.to_owned());
            let failed = |job| (job, Some(broken(&self.path, what)));
            return ran.into_iter().map(|(job, _)| failed(job)).collect();
        }
        ran
    }

    /// A neighbour's failure ended the transaction, and nothing of it was kept.
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

    /// A commit failed. If the disk did, it may have kept the commit or not, so this
    /// is never reported as a full disk, which keeps nothing.
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

/// Which file a path leads to.
fn identity(path: &Path) -> Option<(u64, u64)> {
    std::fs::metadata(path).ok().map(|file| (file.dev(), file.ino()))
}

fn broken(path: &Path, what: &str) -> Error {
    Error::Broken { path: path.to_owned(), what: what.to_owned() }
}

fn run(conn: &Connection, sql: &str) -> rusqlite::Result<()> {
    conn.prepare_cached(sql)?.execute([]).map(|_| ())
}
