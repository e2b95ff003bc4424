//! The store itself.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::atomic::AtomicI64;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use stepwell::backend::{Login, Rows as _, read, write};
use stepwell::clock::Clock;
use stepwell::log::{LaneState, Redactor};
use stepwell::model::{Digest, Time};
use stepwell::sqlite::Access;
use stepwell::store::changes::{ChangeCursor, Changes, Wait};
use stepwell::store::query::{Filter, Found, Page, Query, Search};
use stepwell::store::{
    Counts, Damage, Excerpt, Lease, LeaseRequest, Maintain, Processes, Selection, Server, Slice,
    SystemProcesses, Write, Written,
};
use stepwell::{Error, Lane, Recorded, Result, Seq, SessionId, SessionInfo, Store};

use crate::address::Address;
use crate::engine::{Attempt, Doubt, Engine};
use crate::follow::Followers;
use crate::head_cache::{HeadCache, Known};
use crate::rows::{PgRows, blob};
use crate::status::Status;
use crate::transport::{Patience, Pool, TimeSource};
use crate::write_token::Marker;
use crate::{feed, list, schema, search, several, status, write as batches};

/// How a store is opened.
#[derive(Clone, Debug)]
pub struct PostgresOptions {
    /// May it be changed?
    pub access: Access,
    /// Tells the time in place of the server's clock, for tests.
    pub clock: Option<Arc<dyn Clock>>,
    /// Knows which processes live.
    pub processes: Arc<dyn Processes>,
    /// The folder in which what is known of servers is kept for the next process, if any.
    pub servers: Option<PathBuf>,
}

impl Default for PostgresOptions {
    fn default() -> Self {
        Self {
            access: Access::Write,
            clock: None,
            processes: Arc::new(SystemProcesses),
            servers: None,
        }
    }
}

/// Sessions in a PostgreSQL database, in one namespace of it. docs/teams.md describes how
/// it is set up.
#[derive(Debug)]
pub struct PostgresStore {
    pub(crate) engine: Engine,
    /// The login that the server knows this process by.
    login: OnceLock<String>,
}

impl PostgresStore {
    /// Opens a store, and makes its tables if there are none.
    pub fn open(address: Address) -> Result<Self> {
        Self::open_with(address, PostgresOptions::default())
    }

    /// Opens a store.
    pub fn open_with(address: Address, options: PostgresOptions) -> Result<Self> {
        let PostgresOptions { access, clock, processes, servers } = options;
        let time = clock.map_or_else(|| TimeSource::Server(AtomicI64::new(0)), TimeSource::Given);
        let mut patience = Patience::new(address.opening);
        let pool = Pool::new(address, time, servers.as_deref())?;
        let schema::Found { namespace, channel } = schema::open(&pool, access, &mut patience)?;
        let followers = Followers::new(&pool, channel);
        let heads = HeadCache::default();
        let marker = Marker::new();
        let engine = Engine { followers, pool, namespace, access, processes, heads, marker };
        Ok(Self { engine, login: OnceLock::new() })
    }

    /// Where it is, without user and password.
    #[must_use]
    pub fn address(&self) -> &Address {
        &self.engine.pool.address
    }

    /// What the server is, and whether what it acknowledges is really durable there.
    pub fn status(&self) -> Result<Status> {
        self.engine.glance(status::ask)
    }

    /// Removes blobs that were stored for an event that never came.
    pub fn sweep_blobs(&self) -> Result<usize> {
        let once = Attempt::ONCE;
        self.engine.change(once, |rows, _, _| blob::sweep(rows))
    }

    /// Remembers damage that was found, so that lists show it.
    pub(crate) fn mark(&self, id: &SessionId, damage: &Damage) {
        let once = Attempt::ONCE;
        // A store that cannot be written still answers whoever found the damage.
        let _ = self.engine.change(once, |rows, _, _| {
            let Some(mut row) = rows.session(id)? else {
                return Ok(());
            };
            if row.damage.as_ref().is_none_or(|known| known.seq > damage.seq) {
                row.damage = Some(damage.clone());
                rows.mark_damaged(&row)?;
            }
            Ok(())
        });
    }
}

/// The lease that an earlier attempt took, if it was kept.
fn taken_before(
    rows: &PgRows<'_>,
    id: &SessionId,
    claimed: Option<&Lease>,
    claim: &LeaseRequest,
) -> Result<Option<Lease>> {
    let (Some(claimed), Some(row)) = (claimed, rows.session(id)?) else { return Ok(None) };
    let same = |held: &stepwell::store::LeaseInfo| {
        held.epoch == claimed.epoch
            && held.holder == claim.holder
            && held.expires == claimed.expires
    };
    Ok(row.held().filter(same).map(|_| claimed.clone()))
}

impl Store for PostgresStore {
    fn batch(&self, mut writes: Vec<Write>) -> Result<Vec<Written>> {
        writes.iter_mut().try_for_each(Write::encode)?;
        batches::batch(&self.engine, &writes)
    }

    fn info(&self, id: &SessionId) -> Result<SessionInfo> {
        let row = self.engine.glance(|rows| read::find(rows, id))?;
        Ok(read::info(row, self.engine.context(self.engine.pool.time.now())))
    }

    fn lanes(&self, id: &SessionId) -> Result<BTreeMap<Lane, LaneState>> {
        self.engine.read(|rows, _| read::lanes(rows, &read::find(rows, id)?))
    }

    fn select(&self, id: &SessionId, selection: Selection<'_>) -> Result<Slice> {
        let slice = self.engine.read(|rows, _| read::select(rows, id, selection))?;
        if let Some(damage) = &slice.damage {
            self.mark(id, damage);
        }
        Ok(slice)
    }

    fn list(&self, query: &Query) -> Result<Page> {
        self.engine.glance(|rows| list::page(rows, self.engine.context(rows.now), query))
    }

    fn excerpts(
        &self,
        ids: &[SessionId],
        wanted: &Excerpt<'_>,
    ) -> Result<Vec<Result<Vec<Recorded>>>> {
        self.engine.glance(|rows| several::excerpts(rows, ids, wanted))
    }

    fn count(&self, filter: &Filter) -> Result<Counts> {
        self.engine.read(|rows, context| list::count(rows, context, filter))
    }

    fn acquire(&self, id: &SessionId, claim: &LeaseRequest) -> Result<Lease> {
        let once = Attempt::ONCE;
        let (mut claimed, mut known): (Option<Lease>, Option<Known>) = (None, None);
        let lease = self.engine.change(once, |rows, context, doubt| {
            if doubt == Doubt::Some
                && let Some(lease) = taken_before(rows, id, claimed.as_ref(), claim)?
            {
                return Ok(lease);
            }
            let lease = write::acquire(rows, context, id, claim)?;
            claimed = Some(lease.clone());
            // Whoever takes a lease is about to write.
            if let Some(row) = rows.session(id)? {
                let lanes = rows.lanes(row.key)?;
                rows.keep(row);
                known = rows.last_written(id).map(|(row, version)| Known { row, version, lanes });
            }
            Ok(lease)
        })?;
        if let Some(mut known) = known {
            if let Some((lane, _)) = &known.row.lane {
                known.lanes.remove(lane);
            }
            self.engine.heads.keep(Box::new(known));
        }
        self.engine.told(id);
        Ok(lease)
    }

    fn renew(&self, lease: &Lease, ttl: Duration) -> Result<Lease> {
        // A short wait: the holder must learn of a failed renewal in time to try again.
        let patience = Patience::new(self.engine.pool.address.patience.min(ttl / 6));
        self.engine.change_within(patience, Attempt::ONCE, |rows, context, _| {
            write::renew(rows, context, lease, ttl)
        })
    }

    fn release(&self, lease: &Lease) -> Result<()> {
        let once = Attempt::ONCE;
        self.engine.change(once, |rows, _, _| write::release(rows, lease))?;
        self.engine.told(&lease.session);
        Ok(())
    }

    fn keep_blobs(&self, blobs: &[(Digest, &[u8])]) -> Result<()> {
        if blobs.is_empty() {
            return Ok(());
        }
        let mut blobs = blobs.to_vec();
        // In one order, so that two that store the same do not wait for each other.
        blobs.sort_unstable_by_key(|(digest, _)| *digest);
        let once = Attempt::ONCE;
        self.engine.change(once, |rows, _, _| {
            blobs.iter().try_for_each(|(digest, bytes)| blob::put(rows, digest, bytes))
        })
    }

    fn blobs(&self, digests: &[Digest]) -> Result<Vec<Vec<u8>>> {
        self.engine.glance(|rows| blob::get_all(rows, digests))
    }

    fn search(&self, search: &Search, redactor: &Redactor) -> Result<Found> {
        let asked = search::Asked { search, redactor };
        let only = || self.engine.read(|rows, context| search::find_only(rows, context, asked));
        if self.engine.access == Access::Read {
            return only();
        }
        match self.catch_up(&|_| {}) {
            Ok(()) => self.engine.read(|rows, context| {
                Ok(Found { hits: search::find(rows, context, asked)?, unseen: 0 })
            }),
            // What cannot be indexed now is not found, and the answer says so.
            Err(Error::Full { .. } | Error::Busy { .. } | Error::Denied { .. }) => only(),
            Err(error) => Err(error),
        }
    }

    #[expect(clippy::disallowed_methods, reason = "a wait is bounded in real time")]
    fn changes(&self, after: Option<&ChangeCursor>, wait: Wait<'_>) -> Result<Changes> {
        let started = std::time::Instant::now();
        let look =
            || self.engine.glance(|rows| feed::since(rows, self.engine.context(rows.now), after));
        if after.is_none() {
            return look();
        }
        let followers = &self.engine.followers;
        let mut watch = followers.watch(&self.engine.pool);
        loop {
            let found = look()?;
            if !found.is_empty() || wait.left(started).is_zero() {
                return Ok(found);
            }
            watch.wait(started, wait);
        }
    }
    fn server(&self) -> Option<&dyn Server> {
        Some(self)
    }

    fn maintain(&self) -> &dyn Maintain {
        self
    }
}

impl Server for PostgresStore {
    fn now(&self) -> Time {
        self.engine.pool.time.now()
    }

    fn login(&self) -> Result<Option<String>> {
        if let Some(login) = self.login.get() {
            return Ok(Some(login.clone()));
        }
        let login = self.engine.glance(|rows| {
            let row = rows.one("SELECT session_user::text", &[])?;
            row.map(|row| rows.get::<String>(&row, 0)).transpose()
        })?;
        Ok(login.map(|login| self.login.get_or_init(|| login).clone()))
    }

    fn written_by(&self, id: &SessionId, seq: Seq) -> Result<Login> {
        self.engine.read(|rows, _| read::written_by(rows, &read::find(rows, id)?, seq))
    }
}
