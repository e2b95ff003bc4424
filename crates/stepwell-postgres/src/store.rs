//! The store itself.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::AtomicI64;
use std::time::Duration;

use stepwell::backend::{Facts, Rows as _, read, remove, write};
use stepwell::{
    Access, ChangeCursor, Changes, Claim, Clock, Counts, Damage, Digest, DiskUse, Error, EventId,
    Filter, Found, Holder, Lane, LaneState, Lease, Page, Processes, Query, RecordQuery, Recorded,
    Removal, Result, Scrub, Search, Seq, SessionId, Slice, Span, Standing, Store, SystemProcesses,
    Target, Time, Verdict, Written,
};

use crate::address::Address;
use crate::engine::{Doubt, Engine, Structure, Unsure};
use crate::follow::Followers;
use crate::link::{Link, Patience, TimeSource, params};
use crate::mark::Marker;
use crate::rows::{PgRows, number, seq};
use crate::search::Left;
use crate::standings::{Known, Standings};
use crate::status::Status;
use crate::{blob, feed, list, schema, search, status, write as batches};

/// How a store is opened.
#[derive(Clone, Debug)]
pub struct PostgresOptions {
    /// May it be changed?
    pub access: Access,
    /// Tells the time in place of the server's clock, for tests.
    pub clock: Option<Arc<dyn Clock>>,
    /// Knows which processes live.
    pub processes: Arc<dyn Processes>,
}

impl Default for PostgresOptions {
    fn default() -> Self {
        Self { access: Access::Write, clock: None, processes: Arc::new(SystemProcesses) }
    }
}

/// Sessions in a PostgreSQL database, in one namespace of it. docs/teams.md describes how
/// it is set up.
#[derive(Debug)]
pub struct PostgresStore {
    engine: Engine,
}

impl PostgresStore {
    /// Opens a store, and makes its tables if there are none.
    pub fn open(address: Address) -> Result<Self> {
        Self::open_with(address, PostgresOptions::default())
    }

    /// Opens a store.
    pub fn open_with(address: Address, options: PostgresOptions) -> Result<Self> {
        let PostgresOptions { access, clock, processes } = options;
        let time = clock.map_or_else(|| TimeSource::Server(AtomicI64::new(0)), TimeSource::Given);
        let mut patience = Patience::new(address.opening);
        let link = Link::new(address, time)?;
        let schema::Found { namespace } = schema::open(&link, access, &mut patience)?;
        let followers = Followers::new(&link, namespace);
        let standings = Standings::default();
        let marker = Marker::new();
        let engine = Engine { followers, link, namespace, access, processes, standings, marker };
        Ok(Self { engine })
    }

    /// Where it is, without user and password.
    #[must_use]
    pub fn address(&self) -> &Address {
        &self.engine.link.address
    }

    /// What the server is, and whether what it acknowledges is really durable there.
    pub fn status(&self) -> Result<Status> {
        self.engine.glance(status::ask)
    }

    /// Leases that their holders never gave back, and who those are.
    pub fn stale_leases(&self) -> Result<Vec<(SessionId, Holder)>> {
        self.engine.read(|rows, world| {
            let sql = "SELECT s.id, l.holder, l.expires, l.epoch FROM stepwell.leases l \
                 JOIN stepwell.sessions s ON s.key = l.session \
                 WHERE l.namespace = $1 AND l.holder IS NOT NULL";
            let mut stale = Vec::new();
            for row in rows.all(sql, params![rows.namespace => INT4])? {
                let (id, holder): (&str, &[u8]) = (rows.get(&row, 0)?, rows.get(&row, 1)?);
                let expires = Time::from_micros(rows.get(&row, 2)?);
                let epoch = stepwell::Epoch::new(rows.get::<i64>(&row, 3)?.unsigned_abs());
                // What cannot be read belongs to a damaged session, which is told of elsewhere.
                if let (Ok(id), Ok(holder)) = (id.parse(), serde_json::from_slice(holder)) {
                    let held = stepwell::Held { epoch, holder, expires, login: None };
                    if held.is_dead(world.now, world.processes) {
                        stale.push((id, held.holder));
                    }
                }
            }
            Ok(stale)
        })
    }

    /// Brings the search index up to date.
    pub fn catch_up(&self) -> Result<()> {
        let pending = self.engine.glance(search::pending)?;
        // A standby is not waited for: it does not become one that writes.
        if !pending.is_empty() && self.engine.glance(search::is_standby)? {
            let (path, doing) = (self.address().shown().to_owned(), "indexing on a standby");
            return Err(Error::Denied { path, doing });
        }
        for key in pending {
            let once = (Structure::Open, Unsure::Repeat, Doubt::None);
            while self.engine.change(once, |rows, _, _| search::index(rows, key))? == Left::More {}
        }
        Ok(())
    }

    /// Builds the search index of this namespace anew.
    pub fn rebuild_search(&self) -> Result<()> {
        let alone = (Structure::Alone, Unsure::Repeat, Doubt::None);
        self.engine.change(alone, |rows, _, _| {
            for sql in [
                "DELETE FROM stepwell.docs WHERE namespace = $1",
                "UPDATE stepwell.indexed i SET seq = coalesce(s.base_at, 0) FROM stepwell.sessions s \
                 WHERE s.key = i.session AND i.namespace = $1",
                "UPDATE stepwell.heads SET unindexed = true WHERE namespace = $1",
            ] {
                rows.run(sql, params![rows.namespace => INT4])?;
            }
            Ok(())
        })?;
        self.catch_up()
    }

    /// Removes blobs that were stored for an event that never came.
    pub fn sweep_blobs(&self) -> Result<usize> {
        let once = (Structure::Open, Unsure::Repeat, Doubt::None);
        self.engine.change(once, |rows, _, _| blob::sweep(rows))
    }

    /// Remembers damage that was found, so that lists show it.
    fn mark(&self, id: &SessionId, damage: &Damage) {
        let once = (Structure::Open, Unsure::Repeat, Doubt::None);
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
    claim: &Claim,
) -> Result<Option<Lease>> {
    let (Some(claimed), Some(row)) = (claimed, rows.session(id)?) else { return Ok(None) };
    let same = |held: &stepwell::Held| {
        held.epoch == claimed.epoch
            && held.holder == claim.holder
            && held.expires == claimed.expires
    };
    Ok(row.held().filter(same).map(|_| claimed.clone()))
}

impl Store for PostgresStore {
    fn batch_prepared(&self, prepared: Vec<write::Prepared>) -> Result<Vec<Written>> {
        batches::batch(&self.engine, &prepared)
    }

    fn standing(&self, id: &SessionId) -> Result<Standing> {
        let row = self.engine.glance(|rows| read::find(rows, id))?;
        Ok(read::standing(row, self.engine.world(self.engine.link.time.now())))
    }

    fn lanes(&self, id: &SessionId) -> Result<BTreeMap<Lane, LaneState>> {
        self.engine.read(|rows, _| read::lanes(rows, &read::find(rows, id)?))
    }

    fn events(&self, id: &SessionId, span: Span) -> Result<Slice> {
        let slice = self.engine.read(|rows, _| read::slice(rows, &read::find(rows, id)?, span))?;
        if let Some(damage) = &slice.damage {
            self.mark(id, damage);
        }
        Ok(slice)
    }

    fn keyed(&self, id: &SessionId, facts: Facts<'_>) -> Result<Vec<Recorded>> {
        self.engine.read(|rows, _| read::facts(rows, &read::find(rows, id)?, facts))
    }

    fn records(&self, id: &SessionId, query: &RecordQuery) -> Result<Vec<Recorded>> {
        self.engine.read(|rows, _| read::records(rows, &read::find(rows, id)?, query))
    }

    fn event(&self, id: &SessionId, event: &EventId) -> Result<Option<Recorded>> {
        self.engine.read(|rows, _| read::event(rows, &read::find(rows, id)?, event))
    }

    fn list(&self, query: &Query) -> Result<Page> {
        self.engine.read(|rows, world| list::page(rows, world, query))
    }

    fn count(&self, filter: &Filter) -> Result<Counts> {
        self.engine.read(|rows, world| list::count(rows, world, filter))
    }

    fn acquire(&self, id: &SessionId, claim: &Claim) -> Result<Lease> {
        let once = (Structure::Open, Unsure::Repeat, Doubt::None);
        let (mut claimed, mut known): (Option<Lease>, Option<Known>) = (None, None);
        let lease = self.engine.change(once, |rows, world, doubt| {
            if doubt == Doubt::Some
                && let Some(lease) = taken_before(rows, id, claimed.as_ref(), claim)?
            {
                return Ok(lease);
            }
            let lease = write::acquire(rows, world, id, claim)?;
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
            self.engine.standings.keep(Box::new(known));
        }
        self.engine.told(id);
        Ok(lease)
    }

    fn renew(&self, lease: &Lease, ttl: Duration) -> Result<Lease> {
        let once = (Structure::Open, Unsure::Repeat, Doubt::None);
        self.engine.change(once, |rows, world, _| write::renew(rows, world, lease, ttl))
    }

    fn release(&self, lease: &Lease) -> Result<()> {
        let once = (Structure::Open, Unsure::Repeat, Doubt::None);
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
        let once = (Structure::Open, Unsure::Repeat, Doubt::None);
        self.engine.change(once, |rows, _, _| {
            blobs.iter().try_for_each(|(digest, bytes)| blob::put(rows, digest, bytes))
        })
    }

    fn blob(&self, digest: &Digest) -> Result<Vec<u8>> {
        self.engine.glance(|rows| blob::get(rows, digest))
    }

    fn blobs(&self, digests: &[Digest]) -> Result<Vec<Vec<u8>>> {
        self.engine.glance(|rows| blob::get_all(rows, digests))
    }

    fn search(&self, search: &Search) -> Result<Found> {
        let only = || self.engine.read(|rows, world| search::find_only(rows, world, search));
        if self.engine.access == Access::Read {
            return only();
        }
        match self.catch_up() {
            Ok(()) => self.engine.read(|rows, world| {
                Ok(Found { hits: search::find(rows, world, search)?, unseen: 0 })
            }),
            // What cannot be indexed now is not found, and the answer says so.
            Err(Error::Full { .. } | Error::Busy { .. } | Error::Denied { .. }) => only(),
            Err(error) => Err(error),
        }
    }

    fn trash(&self, targets: &[Target]) -> Result<Removal> {
        let alone = (Structure::Alone, Unsure::Tell, Doubt::None);
        let removal =
            self.engine.change(alone, |rows, world, _| remove::trash(rows, world, targets))?;
        removal.taken.iter().for_each(|id| self.engine.told(id));
        Ok(removal)
    }

    fn restore(&self, ids: &[SessionId]) -> Result<Removal> {
        let alone = (Structure::Alone, Unsure::Tell, Doubt::None);
        let removal = self.engine.change(alone, |rows, _, _| remove::restore(rows, ids))?;
        removal.taken.iter().for_each(|id| self.engine.told(id));
        Ok(removal)
    }

    fn purge(&self, targets: &[Target]) -> Result<Removal> {
        let alone = (Structure::Alone, Unsure::Tell, Doubt::None);
        let removal = self.engine.change(alone, |rows, world, _| {
            let removal = remove::purge(rows, world, targets)?;
            if !removal.taken.is_empty() {
                blob::sweep(rows)?;
                feed::forget_removed(rows)?;
            }
            Ok(removal)
        })?;
        removal.taken.iter().for_each(|id| self.engine.told(id));
        Ok(removal)
    }

    fn scrub(&self, scrub: Scrub) -> Result<Seq> {
        let alone = (Structure::Alone, Unsure::Tell, Doubt::None);
        let id = scrub.session.clone();
        let seq =
            self.engine.change(alone, |rows, world, _| write::scrub(rows, world, scrub.clone()))?;
        self.engine.told(&id);
        Ok(seq)
    }

    fn disk_use(&self) -> Result<DiskUse> {
        self.engine.glance(|rows| {
            let sql = "SELECT (SELECT coalesce(sum(length(body)), 0)::bigint FROM stepwell.events \
                 WHERE namespace = $1), (SELECT coalesce(sum(stored), 0)::bigint \
                 FROM stepwell.blobs WHERE namespace = $1), \
                 (SELECT coalesce(sum(pg_total_relation_size(c.oid)), 0)::bigint FROM pg_class c \
                 JOIN pg_namespace n ON n.oid = c.relnamespace \
                 WHERE n.nspname = 'stepwell' AND c.relkind = 'r')";
            let row = rows.one(sql, params![rows.namespace => INT4])?;
            let Some(row) = row else { return Ok(DiskUse::default()) };
            let column = |n| rows.get::<i64>(&row, n).map(i64::unsigned_abs);
            Ok(DiskUse { events: column(0)?, blobs: column(1)?, total: column(2)? })
        })
    }

    #[expect(clippy::disallowed_methods, reason = "a wait is bounded in real time")]
    fn wait_after(&self, id: &SessionId, after: Seq, timeout: Duration) -> Result<Seq> {
        let started = std::time::Instant::now();
        let followers = &self.engine.followers;
        let mut watch = followers.watch(&self.engine.link, self.engine.namespace, Some(id));
        loop {
            let last = self.engine.glance(|rows| {
                let sql = "SELECT h.seq FROM stepwell.heads h JOIN stepwell.sessions s \
                     ON s.key = h.session WHERE s.namespace = $1 AND s.id = $2";
                let params = params![rows.namespace => INT4, id.as_str() => TEXT];
                let row = rows.one(sql, params)?.ok_or_else(|| Error::NoSession(id.clone()))?;
                Ok(seq(rows.get(&row, 0)?))
            })?;
            let left = timeout.saturating_sub(started.elapsed());
            if number(last) > number(after) || left.is_zero() {
                return Ok(last);
            }
            watch.wait(left);
        }
    }

    #[expect(clippy::disallowed_methods, reason = "a wait is bounded in real time")]
    fn changes(&self, after: Option<&ChangeCursor>, timeout: Duration) -> Result<Changes> {
        let started = std::time::Instant::now();
        let look =
            || self.engine.glance(|rows| feed::since(rows, self.engine.world(rows.now), after));
        if after.is_none() {
            return look();
        }
        let followers = &self.engine.followers;
        let mut watch = followers.watch(&self.engine.link, self.engine.namespace, None);
        loop {
            let found = look()?;
            let left = timeout.saturating_sub(started.elapsed());
            if !found.is_empty() || left.is_zero() {
                return Ok(found);
            }
            watch.wait(left);
        }
    }

    fn verify(&self, id: &SessionId) -> Result<Verdict> {
        let verdict =
            self.engine.read(|rows, _| Ok(read::reread(rows, &read::find(rows, id)?)?.verdict))?;
        if let Some(damage) = &verdict.damage {
            self.mark(id, damage);
        }
        Ok(verdict)
    }

    fn repair(&self, id: &SessionId) -> Result<Verdict> {
        let alone = (Structure::Alone, Unsure::Repeat, Doubt::None);
        self.engine.change(alone, |rows, _, _| remove::repair(rows, id))
    }
}
