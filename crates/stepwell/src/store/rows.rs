//! The rows of a store, as the shared logic sees them inside one transaction.
//!
//! Stores differ only in how they keep rows. What the rows mean is written once, in the modules
//! beside this one.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::ControlFlow;

use super::query::RecordQuery;
use super::{Damage, Order};
use crate::error::Result;
use crate::log::codec::{OwnRow, Row, Sealed};
use crate::log::{Head, LaneState, State};
use crate::model::{Digest, Epoch, EventId, Kind, Lane, Owner, Seq, SessionId, Time};
use crate::store::lease::{LeaseInfo, Processes};

/// A session's number in its store, in order of creation.
pub type Key = i64;

/// A session's row.
#[derive(Clone, Debug)]
pub struct SessionRow {
    /// Its number.
    pub key: Key,
    /// The folded head: `running` may have no runner.
    pub head: Head,
    /// The chain's value at the head.
    pub chain: Digest,
    /// The shared prefix before its own events.
    pub base: Option<Base>,
    /// When it was moved to the trash.
    pub trashed_at: Option<Time>,
    /// The first known damage.
    pub damage: Option<Damage>,
    /// The size of its own events and of the blobs they name.
    pub bytes: u64,
    /// The last lane written. It is kept here and not with the other lanes, since most sessions
    /// have one lane and most appends use the same one.
    pub lane: Option<(Lane, LaneState)>,
    /// The lease, when read; [`Rows::update_session`] does not write it.
    pub lease: Option<LeaseRow>,
}

/// A shared prefix: another session's events up to a seq.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Base {
    /// The session that keeps them.
    pub key: Key,
    /// The last shared event.
    pub at: Seq,
}

/// A lease's row. It stays after the lease ends, so that epochs never repeat.
#[derive(Clone, Debug)]
pub struct LeaseRow {
    /// The newest epoch.
    pub epoch: Epoch,
    /// The process that holds it, and when it expires.
    pub held: Option<(Owner, Time)>,
    /// The process's login, when read; the server itself writes it.
    pub login: Option<String>,
}

impl LeaseRow {
    /// The lease, if a process holds it.
    #[must_use]
    pub fn held(&self) -> Option<LeaseInfo> {
        let (holder, expires) = self.held.clone()?;
        Some(LeaseInfo { epoch: self.epoch, holder, expires, login: self.login.clone() })
    }
}

impl SessionRow {
    /// The lease, if a process holds it, dead or alive.
    #[must_use]
    pub fn held(&self) -> Option<LeaseInfo> {
        self.lease.as_ref().and_then(LeaseRow::held)
    }

    /// The lease, if a live process holds it.
    #[must_use]
    pub fn runner(&self, world: TxnContext<'_>) -> Option<LeaseInfo> {
        self.held().filter(|held| !held.is_dead(world.now, world.processes))
    }

    /// Its first own event.
    #[must_use]
    pub fn own_from(&self) -> Seq {
        self.base.map_or(Seq::FIRST, |base| base.at.next())
    }
}

/// A range of one session's own events.
#[derive(Clone, Copy, Debug)]
pub struct Stretch {
    /// The session.
    pub key: Key,
    /// The first event, included.
    pub from: Seq,
    /// The last event, included.
    pub to: Seq,
}

/// A condition on keyed events.
#[derive(Clone, Copy, Debug)]
pub struct Facts<'a> {
    /// The kinds.
    pub kinds: &'a [Kind],
    /// The key; absent for any.
    pub key: Option<&'a str>,
    /// The first seq.
    pub from: Seq,
}

impl<'a> Facts<'a> {
    /// All of these kinds.
    #[must_use]
    pub const fn of(kinds: &'a [Kind]) -> Self {
        Self { kinds, key: None, from: Seq::FIRST }
    }

    /// Those of these kinds with one key.
    #[must_use]
    pub const fn under(kinds: &'a [Kind], key: &'a str) -> Self {
        Self { kinds, key: Some(key), from: Seq::FIRST }
    }
}

/// Access to a store's rows within one transaction.
pub trait Rows {
    /// A session's row.
    fn session(&self, id: &SessionId) -> Result<Option<SessionRow>>;
    /// The row of the session with this number.
    fn session_by_key(&self, key: Key) -> Result<Option<SessionRow>>;
    /// Inserts a row and returns its number; the one in the row is ignored.
    fn insert_session(&self, row: &SessionRow) -> Result<Key>;
    /// Writes a session's row, without its lease.
    fn update_session(&self, row: &SessionRow) -> Result<()>;
    /// Marks sessions as in the trash since `when`.
    fn set_trashed(&self, keys: &[Key], when: Time) -> Result<()>;

    /// Writes a session's lease.
    fn put_lease(&self, key: Key, lease: &LeaseRow) -> Result<()>;

    /// The lanes of a session, without the one in its row.
    fn lanes(&self, key: Key) -> Result<BTreeMap<Lane, LaneState>>;
    /// A lane of these; an empty one if absent.
    fn lane(&self, key: Key, lane: &Lane) -> Result<LaneState>;
    /// Writes a lane of these.
    fn put_lane(&self, key: Key, lane: &Lane, state: &LaneState) -> Result<()>;

    /// Inserts an event and the texts moved out of it. Returns the size of the event and of the
    /// blobs that it names. Fails if a blob that it names is missing.
    fn insert_event(&self, key: Key, sealed: &Sealed<'_>) -> Result<u64>;
    /// Replaces an event's row, for a scrub, and removes blobs that only it named.
    fn replace_event(&self, key: Key, sealed: &Sealed<'_>) -> Result<()>;
    /// A session's own event by its client's id.
    fn event_by_id(&self, key: Key, id: &EventId) -> Result<Option<OwnRow>>;
    /// May one of a session's own events have one of these ids? A wrong yes only costs a lookup for
    /// each.
    fn has_any_id(&self, _key: Key, _ids: &[EventId]) -> Result<bool> {
        Ok(true)
    }
    /// Passes a stretch's rows to the visitor in order, until it breaks. The visitor may read other
    /// rows in between.
    fn visit(
        &self,
        stretch: Stretch,
        order: Order,
        visitor: &mut dyn FnMut(Row<'_>) -> Result<ControlFlow<()>>,
    ) -> Result<ControlFlow<()>>;
    /// A stretch's keyed events, oldest first.
    fn keyed_events(&self, stretch: Stretch, facts: Facts<'_>) -> Result<Vec<OwnRow>>;

    /// A stretch's records, in the query's order and up to its limit.
    fn records(&self, stretch: Stretch, query: &RecordQuery) -> Result<Vec<OwnRow>>;
    /// Replaces the rows of pruned events, removes them from the search index, and removes blobs
    /// that only they named. Returns the freed size.
    fn prune(&self, key: Key, emptied: &[Sealed<'_>]) -> Result<u64>;

    /// The bytes of a blob, checked against their digest.
    fn blob(&self, digest: &Digest) -> Result<Vec<u8>>;

    /// The newest snapshot of a session at or before a seq.
    fn snapshot(&self, key: Key, at: Seq) -> Result<Option<State>>;
    /// Stores the fold of a session's events.
    fn put_snapshot(&self, key: Key, state: &State) -> Result<()>;
    /// Removes a session's snapshots.
    fn drop_snapshots(&self, key: Key) -> Result<()>;

    /// The sessions of a session's subagents, at every depth.
    fn subagents(&self, id: &SessionId) -> Result<Vec<Key>>;
    /// Which of some sessions may have subagents? A wrong yes only costs a lookup.
    fn parents_among(&self, ids: &[SessionId]) -> Result<BTreeSet<SessionId>> {
        Ok(ids.iter().cloned().collect())
    }
    /// The last of a session's own events that is stored, independent of its head.
    fn last_own(&self, key: Key) -> Result<Option<Seq>>;
    /// The sessions that share this one's events, each with the last shared one.
    fn forks(&self, key: Key) -> Result<Vec<Base>>;
    /// Moves a session's own events up to a seq to one of its forks, which also gets its base.
    fn adopt(&self, fork: Base, from: &SessionRow) -> Result<()>;
    /// Makes a fork share another session's events from now on.
    fn rebase(&self, fork: Key, base: Base) -> Result<()>;
    /// Removes a session with all its rows, and the blobs that only it named.
    fn erase(&self, key: Key) -> Result<()>;
    /// Marks a session's part of the search index for rebuilding.
    fn reindex(&self, row: &SessionRow) -> Result<()>;
    /// Replaces all lanes of a session.
    fn replace_lanes(&self, key: Key, lanes: &BTreeMap<Lane, LaneState>) -> Result<()>;
}

/// The environment of a transaction.
#[derive(Clone, Copy, Debug)]
pub struct TxnContext<'a> {
    /// The time.
    pub now: Time,
    /// Checks which processes are alive.
    pub processes: &'a dyn Processes,
}

/// A head's checksum, which shows a change to its row from outside the store.
#[must_use]
pub fn head_sum(head: &[u8], chain: &Digest) -> [u8; 8] {
    let digest = Digest::of_fields(&[head, chain.as_bytes()]);
    let mut front = [0; 8];
    front.copy_from_slice(&digest.as_bytes()[..8]);
    front
}

/// The head shown for a session whose own is unreadable.
#[must_use]
pub fn stand_in(id: &str, created: Time, updated: Time) -> Head {
    let fallback = || "damaged".parse().expect("the word is a valid id");
    let id: SessionId = id.parse().unwrap_or_else(|_| fallback());
    let begun = crate::model::Created::new(id, "").into();
    let first = crate::model::Recorded { seq: Seq::ZERO, at: created, id: None, event: begun };
    let head = Head::begin(&first).expect("the event is a created one");
    Head { updated_at: updated, ..head }
}
