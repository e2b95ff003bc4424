//! The store in memory: for tests, and for runs that must not touch the disk.

mod rows;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::{Condvar, Mutex, MutexGuard};

use crate::search::{Question, Shown, searchable, words};
use crate::store::changes::{self, Position};
use crate::store::query::{
    Filter, Found, Hit, Newest, NewestQuery, Page, Query, Rank, RecordQuery, Search,
};
use crate::store::rows::{Facts, Rows, SessionRow, TxnContext};
use crate::store::{
    ChangeCursor, Changes, Counts, DiskUse, LeaseRequest, Maintain, Removal, Scrub, SessionInfo,
    Slice, Span, Store, Target, Verdict, Written, read, remove, write,
};
use crate::{
    Clock, Digest, Entropy as _, Error, EventId, Lane, LaneState, Lease, Owner, Processes,
    Recorded, Redactor, Result, Seq, SessionId, SystemClock, SystemEntropy, SystemProcesses,
};
use rows::{MemoryRows, Tables};

/// Sessions in memory. They are gone with the process; everything else is as on disk.
#[derive(Debug)]
pub struct MemoryStore {
    tables: Mutex<Tables>,
    changed: Condvar,
    clock: Arc<dyn Clock>,
    processes: Arc<dyn Processes>,
    /// Its name in cursors.
    name: String,
}

/// How long a reader waits before it looks for leases that ended, which nobody writes down.
const LEASES: Duration = Duration::from_millis(500);

impl Default for MemoryStore {
    fn default() -> Self {
        Self::with(Arc::new(SystemClock), Arc::new(SystemProcesses))
    }
}

impl MemoryStore {
    /// An empty store.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// An empty store with a clock and a view of processes of the caller's.
    #[must_use]
    pub fn with(clock: Arc<dyn Clock>, processes: Arc<dyn Processes>) -> Self {
        // Two stores in memory know nothing of each other's cursors.
        let name = format!("memory-{}", Digest::of(&SystemEntropy.random()));
        Self { tables: Mutex::default(), changed: Condvar::new(), clock, processes, name }
    }

    /// What changed since a cursor.
    fn since(&self, tables: &Tables, after: Option<&ChangeCursor>) -> Changes {
        let world = TxnContext { now: self.clock.now(), processes: &*self.processes };
        let now = Position {
            store: self.name.clone(),
            change: tables.change().to_string(),
            at: world.now,
            gone: Vec::new(),
        };
        let known = after.map(ChangeCursor::position).filter(|known| known.store == self.name);
        let seen: Option<u64> = known.and_then(|known| known.change.parse().ok());
        let since = known.unwrap_or(&now);
        let leases = tables.held_leases(since.at.min(world.now));
        let (ended, gone) = changes::ended(leases, since, world);
        let changes = seen.map_or_else(Vec::new, |seen| {
            let mut updated = tables.updated_since(seen);
            updated.extend(ended);
            changes::in_order(tables.removed_since(seen), updated)
        });
        let gap = after.is_some() && seen.is_none();
        Changes { changes, cursor: Position { gone, ..now }.into(), gap }
    }

    fn tables(&self) -> MutexGuard<'_, Tables> {
        self.tables.lock()
    }

    /// Does something that leaves the tables as they were if it fails.
    fn transact<T>(
        &self,
        work: impl FnOnce(&MemoryRows<'_>, TxnContext<'_>) -> Result<T>,
    ) -> Result<T> {
        let mut tables = self.tables();
        let world = TxnContext { now: self.clock.now(), processes: &*self.processes };
        let rows = MemoryRows::new(&mut tables, world.now);
        let result = work(&rows, world);
        match &result {
            Ok(_) if rows.has_changed() => {
                self.changed.notify_all();
            }
            Ok(_) => {}
            Err(_) => rows.roll_back(),
        }
        result
    }

    fn hits(
        rows: &MemoryRows<'_>,
        row: &SessionRow,
        question: &Question,
        redactor: &Redactor,
    ) -> Result<Vec<Hit>> {
        let own = row.own_from();
        let slice = read::slice(rows, row, Span { from: own, ..Span::ALL })?;
        let hits = slice.events.into_iter().filter_map(|event| {
            let text = searchable(&event.event)?;
            let folded: Vec<String> = words(&text).map(|word| word.text).collect();
            let folded: Vec<&str> = folded.iter().map(String::as_str).collect();
            question.find(&folded)?;
            Some(Hit {
                session: row.head.id.clone(),
                seq: event.seq,
                at: event.at,
                kind: event.event.kind().to_owned(),
                role: event.event.role(),
                source: None,
                snippet: Shown::of(&event.event, redactor).snippet(question),
            })
        });
        Ok(hits.collect())
    }
}

impl Store for MemoryStore {
    fn batch_prepared(&self, prepared: Vec<write::Prepared>) -> Result<Vec<Written>> {
        self.transact(|rows, world| {
            prepared.into_iter().map(|one| write::write(rows, world, one)).collect()
        })
    }

    fn info(&self, id: &SessionId) -> Result<SessionInfo> {
        self.transact(|rows, world| Ok(read::info(read::find(rows, id)?, world)))
    }

    fn lanes(&self, id: &SessionId) -> Result<BTreeMap<Lane, LaneState>> {
        self.transact(|rows, _| read::lanes(rows, &read::find(rows, id)?))
    }

    fn events(&self, id: &SessionId, span: Span) -> Result<Slice> {
        self.transact(|rows, _| read::slice(rows, &read::find(rows, id)?, span))
    }

    fn keyed(&self, id: &SessionId, facts: Facts<'_>) -> Result<Vec<Recorded>> {
        self.transact(|rows, _| read::keyed_events(rows, &read::find(rows, id)?, facts))
    }

    fn records(&self, id: &SessionId, query: &RecordQuery) -> Result<Vec<Recorded>> {
        self.transact(|rows, _| read::records(rows, &read::find(rows, id)?, query))
    }

    fn newest_record(&self, id: &SessionId, query: NewestQuery<'_>) -> Result<Newest> {
        self.transact(|rows, _| read::newest_record(rows, &read::find(rows, id)?, query))
    }

    fn event(&self, id: &SessionId, event: &EventId) -> Result<Option<Recorded>> {
        self.transact(|rows, _| read::event(rows, &read::find(rows, id)?, event))
    }

    fn list(&self, query: &Query) -> Result<Page> {
        self.transact(|rows, world| {
            let mut found: Vec<(i64, SessionInfo)> = Vec::new();
            for row in rows.sessions() {
                let key = row.key;
                let info = read::info(row, world);
                if query.filter.matches(&info) {
                    found.push((key, info));
                }
            }
            Ok(Page::cut(found, query))
        })
    }

    fn count(&self, filter: &Filter) -> Result<Counts> {
        let query = Query { filter: filter.clone(), ..Query::default() };
        let mut counts = Counts::default();
        for info in self.list(&query)?.sessions {
            *counts.by_status.entry(info.head.status).or_default() += 1;
            counts.damaged += u64::from(info.damage.is_some());
        }
        Ok(counts)
    }

    fn acquire(&self, id: &SessionId, claim: &LeaseRequest) -> Result<Lease> {
        self.transact(|rows, world| write::acquire(rows, world, id, claim))
    }

    fn renew(&self, lease: &Lease, ttl: Duration) -> Result<Lease> {
        self.transact(|rows, world| write::renew(rows, world, lease, ttl))
    }

    fn release(&self, lease: &Lease) -> Result<()> {
        self.transact(|rows, _| write::release(rows, lease))
    }

    fn keep_blobs(&self, blobs: &[(Digest, &[u8])]) -> Result<()> {
        self.transact(|rows, _| {
            blobs.iter().try_for_each(|(digest, bytes)| rows.put_blob(*digest, bytes))
        })
    }

    fn blob(&self, digest: &Digest) -> Result<Vec<u8>> {
        self.transact(|rows, _| rows.blob(digest))
    }

    fn blobs(&self, digests: &[Digest]) -> Result<Vec<Vec<u8>>> {
        self.transact(|rows, _| digests.iter().map(|digest| rows.blob(digest)).collect())
    }

    fn search(&self, search: &Search, redactor: &Redactor) -> Result<Found> {
        let Some(question) = Question::parse(&search.text) else {
            return Ok(Found::default());
        };
        self.transact(|rows, world| {
            let hits = question.answer(search.limit, |question| {
                let mut hits = Vec::new();
                for row in rows.sessions() {
                    let info = read::info(row.clone(), world);
                    if search.filter.matches(&info) {
                        hits.extend(Self::hits(rows, &row, question, redactor)?);
                    }
                }
                hits.sort_by_key(|hit| std::cmp::Reverse((hit.at, hit.seq)));
                if search.rank == Rank::Relevance {
                    // Without an index's statistics, the more matches the better.
                    hits.sort_by_key(|hit| std::cmp::Reverse(hit.snippet.matches.len()));
                }
                hits.truncate(search.limit);
                Ok(hits)
            })?;
            Ok(Found { hits, unseen: 0 })
        })
    }

    #[expect(clippy::disallowed_methods, reason = "a wait is bounded in real time")]
    fn wait_after(&self, id: &SessionId, seq: Seq, timeout: Duration) -> Result<Seq> {
        let started = std::time::Instant::now();
        let mut tables = self.tables();
        loop {
            let last = tables.last_seq(id).ok_or_else(|| Error::NoSession(id.clone()))?;
            let left = timeout.saturating_sub(started.elapsed());
            if last > seq || left.is_zero() {
                return Ok(last);
            }
            self.changed.wait_for(&mut tables, left);
        }
    }

    #[expect(clippy::disallowed_methods, reason = "a wait is bounded in real time")]
    fn changes(&self, after: Option<&ChangeCursor>, timeout: Duration) -> Result<Changes> {
        let started = std::time::Instant::now();
        let mut tables = self.tables();
        loop {
            let found = self.since(&tables, after);
            let left = timeout.saturating_sub(started.elapsed());
            if after.is_none() || !found.is_empty() || left.is_zero() {
                return Ok(found);
            }
            self.changed.wait_for(&mut tables, left.min(LEASES));
        }
    }
}

impl Maintain for MemoryStore {
    fn trash(&self, targets: &[Target]) -> Result<Removal> {
        self.transact(|rows, world| remove::trash(rows, world, targets))
    }

    fn restore(&self, ids: &[SessionId]) -> Result<Removal> {
        self.transact(|rows, _| remove::restore(rows, ids))
    }

    fn purge(&self, targets: &[Target]) -> Result<Removal> {
        self.transact(|rows, world| remove::purge(rows, world, targets))
    }

    fn scrub(&self, scrub: Scrub) -> Result<Seq> {
        self.transact(|rows, world| write::scrub(rows, world, scrub))
    }

    fn disk_use(&self) -> Result<DiskUse> {
        self.transact(|rows, _| {
            let (events, blobs) = rows.bytes();
            Ok(DiskUse { events, blobs, total: events + blobs })
        })
    }

    fn verify(&self, id: &SessionId) -> Result<Verdict> {
        self.transact(|rows, _| Ok(read::reread(rows, &read::find(rows, id)?)?.verdict))
    }

    fn repair(&self, id: &SessionId) -> Result<Verdict> {
        self.transact(|rows, _| remove::repair(rows, id))
    }

    fn stale_leases(&self) -> Result<Vec<(SessionId, Owner)>> {
        self.transact(|rows, world| {
            let held = rows.sessions().into_iter().filter_map(|row| Some((row.held()?, row)));
            let stale = held.filter(|(held, _)| held.is_dead(world.now, world.processes));
            Ok(stale.map(|(held, row)| (row.head.id, held.holder)).collect())
        })
    }
}
