//! Transactions: begun, tried again where that is safe, and never taken for done or for
//! undone where neither is known.

use std::sync::Arc;

use stepwell::backend::TxnContext;
use stepwell::model::Time;
use stepwell::sqlite::Access;
use stepwell::store::Processes;
use stepwell::{Error, Result, SessionId};

use crate::fault::DbError;
use crate::follow::Followers;
use crate::head_cache::HeadCache;
use crate::rows::{Lock, PgRows, Within};
use crate::transport::{Conn, Patience, Pool, SERVER_TIME, Statement, params};
use crate::write_token::Marker;

/// How often a transaction is tried again that another one was in the way of.
const ATTEMPTS: u32 = 40;

/// What a transaction needs to know of the store around it.
#[derive(Debug)]
pub(crate) struct Engine {
    pub(crate) followers: Followers,
    pub(crate) pool: Pool,
    pub(crate) namespace: i32,
    pub(crate) access: Access,
    pub(crate) processes: Arc<dyn Processes>,
    pub(crate) heads: HeadCache,
    pub(crate) marker: Marker,
}

/// What to do when the connection was lost while a transaction ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Unsure {
    /// Do it again: it finds out what the first attempt did.
    Repeat,
    /// Tell the caller, who asks again.
    Tell,
}

/// Is it possible that an earlier attempt was kept?
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Doubt {
    /// No attempt was kept.
    None,
    /// Yes: its connection was lost before the answer came.
    Some,
}

/// Who else may move sessions about meanwhile.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Structure {
    /// Anyone: only one session is touched, and its row is locked.
    Open,
    /// Those who add to a family, but nobody who takes sessions away.
    Shared,
    /// Nobody.
    Alone,
}

/// How a change is attempted.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Attempt {
    pub(crate) structure: Structure,
    pub(crate) unsure: Unsure,
    pub(crate) doubt: Doubt,
}

impl Attempt {
    /// Beside others, and again if it is not known what became of it.
    pub(crate) const ONCE: Self =
        Self { structure: Structure::Open, unsure: Unsure::Repeat, doubt: Doubt::None };

    /// While nobody else moves sessions about; the caller is told what is not known.
    pub(crate) const ALONE: Self =
        Self { structure: Structure::Alone, unsure: Unsure::Tell, doubt: Doubt::None };

    /// The same, and again if it is not known what became of it.
    pub(crate) const ALONE_REPEATED: Self =
        Self { structure: Structure::Alone, unsure: Unsure::Repeat, doubt: Doubt::None };
}

/// How an attempt ended that brought no answer.
enum Failed {
    /// For good.
    Final(Error),
    /// With trouble that may pass.
    DbError(DbError),
    /// While it was being committed.
    Open(String),
}

impl Engine {
    pub(crate) fn patience(&self) -> Patience {
        Patience::new(self.pool.address.patience)
    }

    pub(crate) fn context(&self, now: Time) -> TxnContext<'_> {
        TxnContext { now, processes: &*self.processes }
    }

    pub(crate) fn fault(&self, trouble: DbError, doing: &'static str) -> Error {
        trouble.into_error(self.pool.path(), doing)
    }

    /// Asks one question, by itself.
    pub(crate) fn glance<T>(&self, ask: impl Fn(&PgRows<'_>) -> Result<T>) -> Result<T> {
        self.reading(|conn| {
            let rows = self.rows(conn, self.pool.time.now(), Lock::None);
            self.outcome(&rows, ask(&rows))
        })
    }

    /// Reads within one transaction, so that all of it is of one moment.
    pub(crate) fn read<T>(
        &self,
        work: impl Fn(&PgRows<'_>, TxnContext<'_>) -> Result<T>,
    ) -> Result<T> {
        self.reading(|conn| {
            let begin = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY";
            let now = self.begin(conn, begin)?;
            let rows = self.rows(conn, now, Lock::None);
            let answer = self.outcome(&rows, work(&rows, self.context(now)));
            conn.roll_back();
            answer
        })
    }

    fn reading<T>(&self, attempt: impl Fn(&Conn) -> Result<T, Failed>) -> Result<T> {
        let mut patience = self.patience();
        loop {
            let conn = self.pool.connect(&mut patience);
            let conn = conn.map_err(|trouble| self.fault(trouble, "reading"))?;
            match attempt(&conn) {
                Ok(answer) => return Ok(answer),
                Err(Failed::Final(error)) => return Err(error),
                Err(Failed::DbError(DbError::Unprepared(_))) => self.pool.stop_preparing(),
                // One that ended while it was idle is nobody's fault: the next is tried at once.
                Err(Failed::DbError(DbError::Lost(_))) if conn.was_stale() => {}
                Err(Failed::DbError(DbError::Lost(_) | DbError::Again(_))) if patience.pause() => {}
                Err(Failed::DbError(trouble)) => return Err(self.fault(trouble, "reading")),
                Err(Failed::Open(what)) => {
                    return Err(self.fault(DbError::Lost(what), "reading"));
                }
            }
        }
    }

    /// Changes something within one durable transaction.
    pub(crate) fn change<T>(
        &self,
        attempt: Attempt,
        work: impl FnMut(&PgRows<'_>, TxnContext<'_>, Doubt) -> Result<T>,
    ) -> Result<T> {
        self.change_within(self.patience(), attempt, work)
    }

    /// The same with another patience than the address asks for.
    pub(crate) fn change_within<T>(
        &self,
        mut patience: Patience,
        attempt: Attempt,
        mut work: impl FnMut(&PgRows<'_>, TxnContext<'_>, Doubt) -> Result<T>,
    ) -> Result<T> {
        let Attempt { structure, unsure, mut doubt } = attempt;
        self.writable()?;
        let mut met = 0;
        loop {
            let conn = self.pool.connect(&mut patience);
            // What was sent before may have been kept, whatever comes now.
            let doing = match doubt {
                Doubt::Some => "saving; it may have been kept",
                Doubt::None => "writing",
            };
            let conn = conn.map_err(|trouble| self.fault(trouble, doing))?;
            match self.attempt(&conn, structure, |rows, context| work(rows, context, doubt)) {
                Ok(answer) => return Ok(answer),
                Err(Failed::Final(error)) => return Err(error),
                Err(Failed::Open(_)) if unsure == Unsure::Repeat && patience.pause() => {
                    doubt = Doubt::Some;
                }
                Err(Failed::Open(what)) => {
                    return Err(self.fault(DbError::Lost(what), "saving; it may have been kept"));
                }
                Err(Failed::DbError(DbError::Unprepared(_))) => self.pool.stop_preparing(),
                Err(Failed::DbError(DbError::Again(_))) if met < ATTEMPTS => met += 1,
                Err(Failed::DbError(DbError::Lost(_))) if conn.was_stale() || patience.pause() => {}
                Err(Failed::DbError(trouble)) => return Err(self.fault(trouble, doing)),
            }
        }
    }

    fn attempt<T>(
        &self,
        conn: &Conn,
        structure: Structure,
        work: impl FnOnce(&PgRows<'_>, TxnContext<'_>) -> Result<T>,
    ) -> Result<T, Failed> {
        let now = self.begin(conn, "BEGIN")?;
        let rows = self.rows(conn, now, Lock::Held);
        let answer = self.guard(&rows, structure).and_then(|()| work(&rows, self.context(now)));
        let answer = self.outcome(&rows, answer).inspect_err(|_| conn.roll_back())?;
        match conn.run("COMMIT") {
            Ok(()) => Ok(answer),
            Err(DbError::Lost(what)) => Err(Failed::Open(what)),
            Err(trouble) => {
                conn.roll_back();
                Err(Failed::DbError(trouble))
            }
        }
    }

    /// Begins a transaction, and asks the server for the time.
    fn begin(&self, conn: &Conn, sql: &str) -> Result<Time, Failed> {
        let time = format!("SELECT {SERVER_TIME}");
        let (_, time) = conn
            .query_both(Statement::plain(sql), Statement::plain(&time))
            .map_err(Failed::DbError)?;
        Ok(time.first().map_or_else(|| self.pool.time.now(), |row| self.pool.time.told(row.get(0))))
    }

    /// Waits until nobody moves sessions about who must not meanwhile.
    fn guard(&self, rows: &PgRows<'_>, structure: Structure) -> Result<()> {
        let strength = match structure {
            Structure::Open => return Ok(()),
            Structure::Shared => "SHARE",
            Structure::Alone => "UPDATE",
        };
        let sql = format!("SELECT 1 FROM stepwell.guards WHERE namespace = $1 FOR {strength}");
        rows.run(&sql, params![self.namespace => INT4])
    }

    fn rows<'a>(&'a self, conn: &'a Conn, now: Time, lock: Lock) -> PgRows<'a> {
        let within = Within { namespace: self.namespace, now };
        PgRows::new(conn, self.pool.path(), within, lock)
    }

    /// What the work's answer means: a statement that failed counts, whatever came of it.
    fn outcome<T>(&self, rows: &PgRows<'_>, answer: Result<T>) -> Result<T, Failed> {
        match (rows.trouble(), answer) {
            (Some(trouble), _) => Err(Failed::DbError(trouble)),
            (None, answer) => answer.map_err(Failed::Final),
        }
    }

    pub(crate) fn writable(&self) -> Result<()> {
        match self.access {
            Access::Write => Ok(()),
            Access::Read => Err(Error::ReadOnly { path: self.pool.path().to_owned() }),
        }
    }

    /// Tells those who follow a session.
    pub(crate) fn told(&self, id: &SessionId) {
        self.followers.committed(id);
    }
}
