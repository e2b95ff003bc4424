//! The rows that a store keeps, as the shared logic sees them inside one transaction.
//!
//! Stores differ only in how they keep rows; what the rows mean is written once, in the
//! modules beside this one.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::ControlFlow;

use super::query::RecordQuery;
use super::{Damage, Order};
use crate::error::Result;
use crate::log::codec::{OwnRow, Row, Sealed};
use crate::log::{Head, LaneState, State};
use crate::model::{Digest, Epoch, EventId, Kind, Lane, Owner, Seq, SessionId, Time};
use crate::store::lease::{LeaseInfo, Processes};

/// A session's number within its store, in order of birth.
pub type Key = i64;

/// A session's row.
#[derive(Clone, Debug)]
pub struct SessionRow {
    /// Its number.
    pub key: Key,
    /// As folded, not as it reads: `running` may have no runner.
    pub head: Head,
    /// The chain's value at the head.
    pub chain: Digest,
    /// Whose events come before its own.
    pub base: Option<Base>,
    /// When it went to the trash.
    pub trashed_at: Option<Time>,
    /// The first damage that is known of.
    pub damage: Option<Damage>,
    /// Bytes of its own events and of the blobs they name.
    pub bytes: u64,
    /// The lane that was written last. It is kept here, not among the other lanes,
    /// since most sessions have one lane and most appends write to the same.
    pub lane: Option<(Lane, LaneState)>,
    /// As read; [`Rows::update_session`] does not write it.
    pub lease: Option<LeaseRow>,
}

/// A shared prefix: another session's events up to a seq.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Base {
    /// Whose events.
    pub key: Key,
    /// The last of them that is shared.
    pub at: Seq,
}

/// A lease's row. It outlives its holder, so that epochs never repeat.
#[derive(Clone, Debug)]
pub struct LeaseRow {
    /// The newest epoch.
    pub epoch: Epoch,
    /// Who holds it, and until when.
    pub held: Option<(Owner, Time)>,
    /// The login that a server knows the holder by; as read, the server itself writes it.
    pub login: Option<String>,
}

impl LeaseRow {
    /// The lease, if someone holds it.
    #[must_use]
    pub fn held(&self) -> Option<LeaseInfo> {
        let (holder, expires) = self.held.clone()?;
        Some(LeaseInfo { epoch: self.epoch, holder, expires, login: self.login.clone() })
    }
}

impl SessionRow {
    /// Who holds its lease, dead or alive.
    #[must_use]
    pub fn held(&self) -> Option<LeaseInfo> {
        self.lease.as_ref().and_then(LeaseRow::held)
    }

    /// Who holds its lease and is alive.
    #[must_use]
    pub fn runner(&self, world: TxnContext<'_>) -> Option<LeaseInfo> {
        self.held().filter(|held| !held.is_dead(world.now, world.processes))
    }

    /// The first event that is its own.
    #[must_use]
    pub fn own_from(&self) -> Seq {
        self.base.map_or(Seq::FIRST, |base| base.at.next())
    }
}

/// A stretch of one session's own events.
#[derive(Clone, Copy, Debug)]
pub struct Stretch {
    /// The session.
    pub key: Key,
    /// The first, both ends included.
    pub from: Seq,
    /// The last.
    pub to: Seq,
}

/// Which keyed events are meant.
#[derive(Clone, Copy, Debug)]
pub struct Facts<'a> {
    /// Of these kinds.
    pub kinds: &'a [Kind],
    /// Under this key; absent, under any.
    pub key: Option<&'a str>,
    /// From here on.
    pub from: Seq,
}

impl<'a> Facts<'a> {
    /// All of some kinds.
    #[must_use]
    pub const fn of(kinds: &'a [Kind]) -> Self {
        Self { kinds, key: None, from: Seq::FIRST }
    }

    /// Those of some kinds under one key.
    #[must_use]
    pub const fn under(kinds: &'a [Kind], key: &'a str) -> Self {
        Self { kinds, key: Some(key), from: Seq::FIRST }
    }
}

/// Access to the rows within one transaction.
pub trait Rows {
    /// A session's row.
    fn session(&self, id: &SessionId) -> Result<Option<SessionRow>>;
    /// The same, by its number.
    fn session_by_key(&self, key: Key) -> Result<Option<SessionRow>>;
    /// Inserts a row and returns its key; the row's own is ignored.
    fn insert_session(&self, row: &SessionRow) -> Result<Key>;
    /// Writes a session's row, but for its lease.
    fn update_session(&self, row: &SessionRow) -> Result<()>;
    /// Notes that these sessions are in the trash since then.
    fn set_trashed(&self, keys: &[Key], when: Time) -> Result<()>;

    /// Writes a session's lease.
    fn put_lease(&self, key: Key, lease: &LeaseRow) -> Result<()>;

    /// The lanes of a session, but for the one in its row.
    fn lanes(&self, key: Key) -> Result<BTreeMap<Lane, LaneState>>;
    /// One of them; an empty one, if it is not there.
    fn lane(&self, key: Key, lane: &Lane) -> Result<LaneState>;
    /// Writes one of them.
    fn put_lane(&self, key: Key, lane: &Lane, state: &LaneState) -> Result<()>;

    /// Inserts an event with its spilled texts. Returns the bytes that it and the
    /// blobs it names take up. Fails if a blob that it names is not there.
    fn insert_event(&self, key: Key, sealed: &Sealed<'_>) -> Result<u64>;
    /// Replaces an event's row, for a scrub, and forgets what only it named.
    fn replace_event(&self, key: Key, sealed: &Sealed<'_>) -> Result<()>;
    /// One of a session's own events, by the client's name for it.
    fn event_by_id(&self, key: Key, id: &EventId) -> Result<Option<OwnRow>>;
    /// May one of a session's own events bear one of these names? Saying so when none does
    /// costs a look at each.
    fn has_any_id(&self, _key: Key, _ids: &[EventId]) -> Result<bool> {
        Ok(true)
    }
    /// Hands out a stretch's rows in order, until the visitor has had enough. The
    /// visitor may read other rows meanwhile.
    fn visit(
        &self,
        stretch: Stretch,
        order: Order,
        visitor: &mut dyn FnMut(Row<'_>) -> Result<ControlFlow<()>>,
    ) -> Result<ControlFlow<()>>;
    /// A stretch's keyed events, oldest first.
    fn keyed_events(&self, stretch: Stretch, facts: Facts<'_>) -> Result<Vec<OwnRow>>;

    /// A stretch's records, in the order and up to the limit that were asked for.
    fn records(&self, stretch: Stretch, query: &RecordQuery) -> Result<Vec<OwnRow>>;
    /// Replaces the rows of events that a prune emptied, takes them out of the search index, and
    /// forgets what only they named. Returns the bytes that this frees.
    fn prune(&self, key: Key, emptied: &[Sealed<'_>]) -> Result<u64>;

    /// The bytes of a blob, checked against their digest.
    fn blob(&self, digest: &Digest) -> Result<Vec<u8>>;

    /// The newest snapshot of a session at or before a seq.
    fn snapshot(&self, key: Key, at: Seq) -> Result<Option<State>>;
    /// Keeps the fold of a session's events.
    fn put_snapshot(&self, key: Key, state: &State) -> Result<()>;
    /// Forgets what was kept so.
    fn drop_snapshots(&self, key: Key) -> Result<()>;

    /// The sessions of a session's subagents, all the way down.
    fn subagents(&self, id: &SessionId) -> Result<Vec<Key>>;
    /// Which of some sessions may have subagents? Naming one that has none costs a look.
    fn parents_among(&self, ids: &[SessionId]) -> Result<BTreeSet<SessionId>> {
        Ok(ids.iter().cloned().collect())
    }
    /// The last of a session's own events that is stored, whatever its head says.
    fn last_own(&self, key: Key) -> Result<Option<Seq>>;
    /// The sessions that share this one's events, each with the last it shares.
    fn forks(&self, key: Key) -> Result<Vec<Base>>;
    /// Gives a session's own events up to a seq to one of its forks, which takes
    /// over its base.
    fn adopt(&self, fork: Base, from: &SessionRow) -> Result<()>;
    /// Lets a fork share another session's events from now on.
    fn rebase(&self, fork: Key, base: Base) -> Result<()>;
    /// Removes a session with all its rows, and the blobs that only it named.
    fn erase(&self, key: Key) -> Result<()>;
    /// Has a session's place in the search index built anew.
    fn reindex(&self, row: &SessionRow) -> Result<()>;
    /// Replaces all lanes of a session.
    fn replace_lanes(&self, key: Key, lanes: &BTreeMap<Lane, LaneState>) -> Result<()>;
}

/// What the logic knows of the world at the moment of a transaction.
#[derive(Clone, Copy, Debug)]
pub struct TxnContext<'a> {
    /// The time.
    pub now: Time,
    /// Knows which processes live.
    pub processes: &'a dyn Processes,
}

/// A head's checksum: a row whose head was changed by anything but its store shows it.
#[must_use]
pub fn head_sum(head: &[u8], chain: &Digest) -> [u8; 8] {
    let digest = Digest::of_fields(&[head, chain.as_bytes()]);
    let mut front = [0; 8];
    front.copy_from_slice(&digest.as_bytes()[..8]);
    front
}

/// What is shown of a session whose head cannot be read.
#[must_use]
pub fn stand_in(id: &str, created: Time, updated: Time) -> Head {
    let fallback = || "damaged".parse().expect("the word is a valid id");
    let id: SessionId = id.parse().unwrap_or_else(|_| fallback());
    let begun = crate::model::Created::new(id, "").into();
    let first = crate::model::Recorded { seq: Seq::ZERO, at: created, id: None, event: begun };
    let head = Head::begin(&first).expect("the event is a created one");
    Head { updated_at: updated, ..head }
}
