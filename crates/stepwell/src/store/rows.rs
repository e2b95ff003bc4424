//! The rows that a store keeps, as the shared logic sees them inside one transaction.
//!
//! The in-memory and the SQLite store differ only in how they keep rows; what the
//! rows mean is written once, in the modules beside this one.

use std::collections::BTreeMap;

use super::{Damage, Order};
use crate::codec::{OwnRow, Row, Sealed};
use crate::{
    Digest, Epoch, EventId, Head, Held, Holder, Kind, Lane, LaneState, Processes, Result, Seq,
    SessionId, State, Time,
};

/// A session's number within its store, in order of birth.
pub(crate) type Key = i64;

/// A session's row.
#[derive(Clone, Debug)]
pub(crate) struct SessionRow {
    pub(crate) key: Key,
    /// As folded, not as it reads: `running` may have no runner.
    pub(crate) head: Head,
    /// The chain's value at the head.
    pub(crate) chain: Digest,
    /// Whose events come before its own.
    pub(crate) base: Option<Base>,
    pub(crate) trashed_at: Option<Time>,
    pub(crate) damage: Option<Damage>,
    pub(crate) bytes: u64,
    /// The lane that was written last. It is kept here, not among the other lanes,
    /// since most sessions have one lane and most appends write to the same.
    pub(crate) lane: Option<(Lane, LaneState)>,
    /// As read; [`Rows::update_session`] does not write it.
    pub(crate) lease: Option<LeaseRow>,
}

/// A shared prefix: another session's events up to a seq.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Base {
    pub(crate) key: Key,
    pub(crate) at: Seq,
}

/// A lease's row. It outlives its holder, so that epochs never repeat.
#[derive(Clone, Debug)]
pub(crate) struct LeaseRow {
    pub(crate) epoch: Epoch,
    pub(crate) held: Option<(Holder, Time)>,
}

impl LeaseRow {
    /// The lease, if someone holds it.
    pub(crate) fn held(&self) -> Option<Held> {
        let (holder, expires) = self.held.clone()?;
        Some(Held { epoch: self.epoch, holder, expires })
    }
}

impl SessionRow {
    /// Who holds its lease, dead or alive.
    pub(crate) fn held(&self) -> Option<Held> {
        self.lease.as_ref().and_then(LeaseRow::held)
    }

    /// Who holds its lease and is alive.
    pub(crate) fn runner(&self, world: World<'_>) -> Option<Held> {
        self.held().filter(|held| !held.is_dead(world.now, world.processes))
    }

    /// The first event that is its own.
    pub(crate) fn own_from(&self) -> Seq {
        self.base.map_or(Seq::FIRST, |base| base.at.next())
    }
}

/// A stretch of one session's own events.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Stretch {
    pub(crate) key: Key,
    pub(crate) from: Seq,
    pub(crate) to: Seq,
}

/// Access to the rows within one transaction.
pub(crate) trait Rows {
    fn session(&self, id: &SessionId) -> Result<Option<SessionRow>>;
    fn session_by_key(&self, key: Key) -> Result<Option<SessionRow>>;
    /// Inserts a row and returns its key; the row's own is ignored.
    fn insert_session(&self, row: &SessionRow) -> Result<Key>;
    fn update_session(&self, row: &SessionRow) -> Result<()>;
    fn set_trashed(&self, key: Key, when: Option<Time>) -> Result<()>;

    fn put_lease(&self, key: Key, lease: &LeaseRow) -> Result<()>;

    /// The lanes of a session, but for the one in its row.
    fn lanes(&self, key: Key) -> Result<BTreeMap<Lane, LaneState>>;
    fn lane(&self, key: Key, lane: &Lane) -> Result<LaneState>;
    fn put_lane(&self, key: Key, lane: &Lane, state: &LaneState) -> Result<()>;

    /// Inserts an event with its spilled texts. Returns the bytes that it and the
    /// blobs it names take up. Fails if a blob that it names is not there.
    fn insert_event(&self, key: Key, sealed: &Sealed) -> Result<u64>;
    /// Replaces an event's row, for a scrub, and forgets what only it named.
    fn replace_event(&self, key: Key, sealed: &Sealed) -> Result<()>;
    fn event_by_id(&self, key: Key, id: &EventId) -> Result<Option<OwnRow>>;
    /// Hands out a stretch's rows in order, until the visitor has had enough. The
    /// visitor may read other rows meanwhile.
    fn visit(
        &self,
        stretch: Stretch,
        order: Order,
        visitor: &mut dyn FnMut(Row<'_>) -> Result<Flow>,
    ) -> Result<Flow>;
    /// A stretch's keyed events of some kinds, oldest first.
    fn facts(&self, stretch: Stretch, kinds: &[Kind]) -> Result<Vec<OwnRow>>;

    fn blob(&self, digest: &Digest) -> Result<Vec<u8>>;

    /// The newest snapshot of a session at or before a seq.
    fn snapshot(&self, key: Key, at: Seq) -> Result<Option<State>>;
    fn put_snapshot(&self, key: Key, state: &State) -> Result<()>;
    fn drop_snapshots(&self, key: Key) -> Result<()>;

    /// The session and its subagents' sessions, all the way down.
    fn family(&self, key: Key) -> Result<Vec<Key>>;
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

/// Go on, or enough?
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Flow {
    More,
    Enough,
}

/// What the logic knows of the world at the moment of a transaction.
#[derive(Clone, Copy, Debug)]
pub(crate) struct World<'a> {
    pub(crate) now: Time,
    pub(crate) processes: &'a dyn Processes,
}
