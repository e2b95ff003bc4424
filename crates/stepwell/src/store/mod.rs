//! The contract of every store, and the types of its queries and answers.

pub(crate) mod admit;
pub mod changes;
pub(crate) mod lease;
pub(crate) mod links;
pub(crate) mod maintain;
mod new_events;
mod over;
pub(crate) mod prune;
pub mod query;
pub(crate) mod read;
mod record;
pub(crate) mod remove;
mod replacements;
pub(crate) mod rows;
pub(crate) mod search;
pub(crate) mod several;
pub(crate) mod slice;
pub(crate) mod write;

pub use lease::{LEASE_TTL, Lease, LeaseInfo, Liveness, Processes, SystemProcesses};
pub use links::{
    STORE_FOLDER, refuse_link, refuse_links_below, refuse_links_in_store, refuse_shared,
};
pub use rows::Facts;
pub use search::MAX_SEARCHED_BYTES;
pub use several::{Excerpt, LOOK_BACK};

use std::collections::BTreeMap;
use std::time::Duration;

use crate::error::Result;
use crate::log::codec::Login;
use crate::log::{Head, LaneState, Redactor};
use crate::model::{Created, Digest, Epoch, EventId, Lane, Owner, Recorded, Seq, SessionId, Time};

pub(crate) use changes::{ChangeCursor, Changes, Wait};
pub use maintain::Maintain;
pub use new_events::NewEvents;
use query::{Filter, Found, NewestQuery, Page, Query, RecordQuery, Search};

/// A place for sessions. Methods that are the same for every store are methods of `dyn Store`;
/// maintenance is in [`Maintain`].
///
/// Every method is safe to call from many threads and, for a store on disk, from many processes at
/// once. [`Error::kind`](crate::error::Error::kind) says what a caller should do about an error.
///
/// # The contract
///
/// - **Durable.** When [`batch`](Store::batch), [`keep_blobs`](Store::keep_blobs) or a
///   change of trash or leases returns `Ok`, its effect MUST survive the death of
///   the process and, for a store on disk, loss of power. When it returns an
///   error, it MUST have had no effect, except that some blobs may be stored. After an
///   [`ErrorKind::Io`](crate::error::ErrorKind::Io) the effect is unknown, and the caller
///   retries with the same event ids.
/// - **Append-only.** Only [`purge`](Maintain::purge), [`scrub`](Maintain::scrub) and
///   [`Write::Prune`] remove or change events.
/// - **Dense.** A session's seqs are 1, 2, 3, … without a gap, in the order in
///   which their appends returned.
/// - **Fenced.** An append with an epoch other than the newest MUST be refused,
///   however late it arrives.
/// - **Isolated.** Damage to one session MUST NOT make another unreadable.
/// - **Constant.** The cost of an append MUST NOT grow with the session's length. A
///   gate, its answer, a rewind or an undo may read earlier events of these
///   kinds; in a fork, it may also visit the fork's ancestors.
pub trait Store: std::fmt::Debug + Send + Sync {
    /// Applies several writes in order, all or none, in one durable transaction. The results come
    /// in the order of the writes. A later write sees the earlier ones: the second may append to a
    /// session that the first created. Events SHOULD be [encoded](Write::encode) before any lock is
    /// taken.
    fn batch(&self, writes: Vec<Write>) -> Result<Vec<Written>>;

    /// A session's info. `running` without a live runner MUST read as `interrupted`, here and in
    /// every other answer. Sessions in the trash are found as well.
    fn info(&self, id: &SessionId) -> Result<SessionInfo>;

    /// Each lane's part of the session's state.
    fn lanes(&self, id: &SessionId) -> Result<BTreeMap<Lane, LaneState>>;

    /// Events of a session, including those that a fork shares. Each MUST be checked against the
    /// chain; a [span](Selection::Span) ends at the first that fails. Events that are not selected
    /// MUST NOT be read, except the one before each, which the chain needs.
    fn select(&self, id: &SessionId, selection: Selection<'_>) -> Result<Slice>;

    /// A few events of each of several sessions, in the order of the ids, each checked against the
    /// chain. A damaged or missing session MUST NOT hide the others. A store on a server SHOULD
    /// answer in one round trip, and in one more if texts are in blobs.
    fn excerpts(
        &self,
        ids: &[SessionId],
        wanted: &Excerpt<'_>,
    ) -> Result<Vec<Result<Vec<Recorded>>>> {
        Ok(ids.iter().map(|id| several::excerpt(self, id, wanted)).collect())
    }

    /// One page of sessions. Each matching session, including damaged ones, MUST be in exactly one
    /// page, as long as it does not change between them. A store on a server SHOULD answer in one
    /// round trip.
    fn list(&self, query: &Query) -> Result<Page>;

    /// The number of matching sessions, by status.
    fn count(&self, filter: &Filter) -> Result<Counts>;

    /// Searches tasks, messages, calls, results, paths and errors. Events that a fork shares are
    /// found in the session that recorded them. Everything acknowledged before the call MUST be
    /// found, unless the store is open for reading only: then the answer says how much it could not
    /// see. The redactor is applied to a hit's text before the excerpt is cut.
    fn search(&self, search: &Search, redactor: &Redactor) -> Result<Found>;

    /// Acquires a session's lease if no process holds it, or its process is dead (a local process
    /// that has ended, or another one whose lease expired). Otherwise fails with
    /// [`Error::Held`](crate::error::Error::Held). The new epoch is larger than any before.
    fn acquire(&self, id: &SessionId, claim: &LeaseRequest) -> Result<Lease>;

    /// Extends a lease from now. Fails with [`Error::Fenced`](crate::error::Error::Fenced) if the
    /// lease was lost, and with [`Error::Trashed`](crate::error::Error::Trashed) if the session is
    /// in the trash. An expired lease that no other process acquired is renewed.
    fn renew(&self, lease: &Lease, ttl: Duration) -> Result<Lease>;

    /// Releases a lease. Releasing a lost lease is not an error.
    fn release(&self, lease: &Lease) -> Result<()>;

    /// Stores bytes under digests that the caller computed, by any algorithm. Each blob is stored
    /// once. The store SHOULD flush once for all. On failure, some of them may be stored. An event
    /// that names a blob keeps it. A blob that no event names may be removed after a day, or when
    /// the last event that named it is purged; an append that names it then fails with
    /// [`Error::NoBlob`](crate::error::Error::NoBlob). Bytes under a wrong digest read as a damaged
    /// blob.
    fn keep_blobs(&self, blobs: &[(Digest, &[u8])]) -> Result<()>;

    /// The bytes of blobs, in order, each checked against its digest.
    fn blobs(&self, digests: &[Digest]) -> Result<Vec<Vec<u8>>>;

    /// The changes in the whole store since a cursor, as soon as there is one, or when the wait is
    /// over. Without a cursor it returns the store's present position at once. A caller first takes
    /// that, then lists sessions, then polls for changes.
    ///
    /// No change may be missed. The next answer or a later one MUST list each session that was
    /// created, written to, trashed, restored or purged, or whose lease was acquired, released,
    /// expired or lost its process. A cursor MUST stay valid when the store is reopened.
    /// A store that cannot tell what changed since a cursor returns a [gap](Changes::gap).
    fn changes(&self, after: Option<&ChangeCursor>, wait: Wait<'_>) -> Result<Changes>;

    /// What only a store on a server has.
    fn server(&self) -> Option<&dyn Server> {
        None
    }

    /// The store's maintenance.
    fn maintain(&self) -> &dyn Maintain;
}

/// The knowledge of a store's server.
pub trait Server {
    /// The present moment, by the server's clock, so that a team's machines agree.
    fn now(&self) -> Time;

    /// This process's login at the server. MUST come from the server.
    fn login(&self) -> Result<Option<String>>;

    /// An event's author. MUST come from the server's own records.
    fn written_by(&self, id: &SessionId, seq: Seq) -> Result<Login>;
}

/// Which events of a session to return.
#[derive(Clone, Copy)]
pub enum Selection<'a> {
    /// A span of its log.
    Span(Span),
    /// Keyed events, in order.
    Keyed(Facts<'a>),
    /// Records by their keys. Pruned records are not found.
    Records(&'a RecordQuery),
    /// The record with the largest key in a range, and the records that belong to it, as of one
    /// moment. Empty if the session's chain has the known value.
    Newest(NewestQuery<'a>),
    /// The event with a client's id.
    Named(&'a EventId),
}

/// One write of a batch.
#[derive(Clone, Debug)]
#[expect(clippy::large_enum_variant, reason = "a batch holds a handful of them")]
pub enum Write {
    /// Creates a session.
    Create(Create),
    /// Appends to a session.
    Append(Append),
    /// Empties events of a session.
    Prune(Prune),
}

impl Write {
    /// Encodes the events of an append, unless they are encoded. A store does this before its turn
    /// to write.
    pub fn encode(&mut self) -> Result<()> {
        match self {
            Self::Append(append) => append.events.encode(),
            Self::Create(_) | Self::Prune(_) => Ok(()),
        }
    }

    /// The session that it writes to.
    #[must_use]
    pub fn session(&self) -> &SessionId {
        match self {
            Self::Create(create) => &create.created.id,
            Self::Append(append) => &append.session,
            Self::Prune(prune) => &prune.session,
        }
    }

    /// The size of its encoded events, including texts in blobs.
    #[must_use]
    pub fn bytes(&self) -> usize {
        match self {
            Self::Append(append) => append.events.bytes(),
            Self::Create(_) | Self::Prune(_) => 0,
        }
    }
}

/// Creates a session. With [`Origin::Fork`](crate::model::Origin::Fork) it shares its parent's
/// events up to the fork point, at a cost that does not depend on their number; its own first event
/// follows them.
#[derive(Clone, Debug)]
pub struct Create {
    /// Its first event.
    pub created: Created,
    /// The client's id for that event. If the session exists and began with the same id, the answer
    /// is as if it had just been created.
    pub event_id: Option<EventId>,
    /// When it began, if not now.
    pub at: Option<Time>,
    /// The lease to acquire in the same transaction, under [`Epoch::FIRST`].
    pub claim: Option<LeaseRequest>,
}

/// A request for a lease.
#[derive(Clone, Debug)]
pub struct LeaseRequest {
    /// The requesting process.
    pub holder: Owner,
    /// How long the lease lasts without renewal.
    pub ttl: Duration,
}

/// Appends events to a session.
#[derive(Clone, Debug)]
pub struct Append {
    /// The session.
    pub session: SessionId,
    /// The epoch of the caller's lease. Only events that [need no
    /// lease](crate::model::Event::needs_no_lease) may omit it.
    pub epoch: Option<Epoch>,
    /// A condition, checked in the same transaction.
    pub expected: Option<Expected>,
    /// The events. If the first one's id was recorded before, the whole append was: the same answer
    /// is given again, and nothing is written.
    pub events: NewEvents,
}

/// A condition of a write. If it does not hold, nothing is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Expected {
    /// The session is at this seq: a compare-and-swap.
    At(Seq),
    /// No prune has emptied this event.
    Intact(Seq),
}

/// Empties events that are no longer needed: records, and messages of sessions that another program
/// drives. The state that a head is folded from stays, the chain still verifies, and a `scrubbed`
/// event lists them. An event that a fork shares keeps its contents for the fork and no longer
/// counts here. The cost depends only on the listed events.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Prune {
    /// The session.
    pub session: SessionId,
    /// The epoch of the caller's lease. A session that another program drives needs none while no
    /// process holds it.
    pub epoch: Option<Epoch>,
    /// A condition, checked in the same transaction.
    pub expected: Option<Expected>,
    /// The events to empty. Pruned ones are skipped; if no other is left, nothing is recorded.
    pub seqs: Vec<Seq>,
    /// The reason, which is recorded.
    pub rule: String,
}

/// The result of a write.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Written {
    /// The first recorded event.
    pub first: Seq,
    /// The last recorded event.
    pub last: Seq,
    /// The lease of a new session.
    pub lease: Option<Lease>,
}

/// A session's state, as lists and queries return it.
#[derive(Clone, Debug, PartialEq)]
pub struct SessionInfo {
    /// Its head. If `damage` says that the head is unreadable, only its id and times are valid.
    pub head: Head,
    /// The lease of its live runner.
    pub held: Option<LeaseInfo>,
    /// Its first own event; those before it are shared with the session that keeps them.
    pub own_from: Seq,
    /// When it was moved to the trash.
    pub trashed_at: Option<Time>,
    /// The first known damage.
    pub damage: Option<Damage>,
    /// The size of its own events and of the blobs they name.
    pub bytes: u64,
}

/// Where a session is damaged. Events before it are readable.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Damage {
    /// The first damaged event; zero for the head.
    pub seq: Seq,
    /// What is wrong with it.
    pub what: String,
}

impl Damage {
    /// The damage as an error, for callers that need the whole session.
    #[must_use]
    pub fn into_error(self, session: &SessionId) -> crate::error::Error {
        crate::error::Error::Damaged { session: session.clone(), seq: self.seq, what: self.what }
    }
}

/// A range of a session's events.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Span {
    /// The first event, included.
    pub from: Seq,
    /// The last event, included.
    pub to: Seq,
    /// The order of the events.
    pub order: Order,
    /// The most events to return.
    pub limit: usize,
}

impl Span {
    /// All events, oldest first.
    pub const ALL: Self =
        Self { from: Seq::FIRST, to: Seq::MAX, order: Order::Oldest, limit: usize::MAX };

    /// Events after `seq`, oldest first.
    #[must_use]
    pub const fn after(seq: Seq) -> Self {
        Self { from: seq.next(), ..Self::ALL }
    }

    /// The last `limit` events, newest first.
    #[must_use]
    pub const fn last(limit: usize) -> Self {
        Self { order: Order::Newest, limit, ..Self::ALL }
    }
}

/// An order by age.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Order {
    /// Oldest first.
    Oldest,
    /// Newest first.
    #[default]
    Newest,
}

/// Events, up to the first damaged one in the requested order.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Slice {
    /// The events.
    pub events: Vec<Recorded>,
    /// How many of them were replaced by a scrub.
    pub scrubbed: u64,
    /// How many of them were emptied by a prune.
    pub pruned: u64,
    /// The scrubbed and pruned ones, with their present bytes.
    pub replaced: Vec<Replaced>,
    /// For a newest record: the chain's value at the session's end, unless records may change
    /// without changing it.
    pub chain: Option<Digest>,
    /// The damage that ended the events early.
    pub damage: Option<Damage>,
}

/// An event whose recorded body was replaced.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Replaced {
    /// Its seq.
    pub seq: Seq,
    /// Its present bytes.
    pub body: Vec<u8>,
}

impl Slice {
    /// The events, or the damage as an error.
    pub fn intact(self, session: &SessionId) -> Result<Vec<Recorded>> {
        match self.damage {
            None => Ok(self.events),
            Some(damage) => Err(damage.into_error(session)),
        }
    }
}

/// Numbers of sessions by status.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Sessions by status. A status without sessions is absent.
    pub by_status: BTreeMap<crate::model::Status, u64>,
    /// Sessions known to be damaged, of any status.
    pub damaged: u64,
}

impl Counts {
    /// The number of all sessions.
    #[must_use]
    pub fn total(&self) -> u64 {
        self.by_status.values().sum()
    }
}

/// A session to be removed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Target {
    /// The session.
    pub id: SessionId,
    /// If given, the session is removed only if it is still at this seq and no session of its
    /// family is pinned: a cleanup judged it in that state.
    pub unless_past: Option<Seq>,
    /// Where the session must be.
    pub place: query::TrashScope,
}

impl From<SessionId> for Target {
    fn from(id: SessionId) -> Self {
        Self { id, unless_past: None, place: query::TrashScope::Anywhere }
    }
}

/// The result of removing or restoring sessions.
#[derive(Debug, Default)]
pub struct Removal {
    /// The removed or restored sessions, including those of subagents.
    pub taken: Vec<SessionId>,
    /// The sessions left unchanged, and why.
    pub left: Vec<(SessionId, crate::error::Error)>,
}

/// Bodies to replace.
#[derive(Clone, Debug)]
pub struct Scrub {
    /// The session.
    pub session: SessionId,
    /// The epoch of the caller's lease. A session in the trash needs none, because no process
    /// writes to it.
    pub epoch: Option<Epoch>,
    /// The rule that made the matches, which is recorded.
    pub rule: String,
    /// The new content of each event. The kind stays. An event that a fork shares is scrubbed in
    /// the session that recorded it.
    pub replacements: Vec<(Seq, crate::model::Event)>,
}

/// Bytes in use.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DiskUse {
    /// Size of events' bodies.
    pub events: u64,
    /// Size of blobs, compressed, each counted once.
    pub blobs: u64,
    /// Size of the whole store, including indexes.
    pub total: u64,
}

/// Progress of indexing the events that were not in the search index.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Indexed {
    /// Indexed so far.
    pub done: u64,
    /// All that were not indexed.
    pub all: u64,
}

/// A seq in a log with the chain's value there, which proves that all events up to it are
/// unchanged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    /// The event's seq.
    pub seq: Seq,
    /// The chain's value at it.
    pub chain: Digest,
}

/// The result of a verification.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Verdict {
    /// How many events from the first on are unchanged.
    pub intact: u64,
    /// Of those, how many a scrub replaced.
    pub scrubbed: u64,
    /// Of those, how many a prune emptied.
    pub pruned: u64,
    /// The first damaged event.
    pub damage: Option<Damage>,
    /// Does the derived data equal the fold of the events?
    pub derived: Derived,
}

/// Whether derived data equals the fold of the events.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Derived {
    /// It does.
    Right,
    /// It does not; a repair rebuilds it.
    Wrong,
}

impl Verdict {
    /// Is everything undamaged?
    #[must_use]
    pub fn is_sound(&self) -> bool {
        self.damage.is_none() && self.derived == Derived::Right
    }
}
