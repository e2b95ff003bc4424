//! The contract that every store keeps, and the words of its questions and answers.

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

/// Where sessions live: what a store must be able to do. What is asked of every store in the same
/// way is written once over it, as methods of `dyn Store`; what keeps a store in
/// order is its [`Maintain`].
///
/// Every method is safe to call from many threads and, for a store on disk, from
/// many processes at once. Errors tell the caller what to do through
/// [`Error::kind`](crate::error::Error::kind).
///
/// # The contract
///
/// - **Durable.** When [`batch`](Store::batch), [`keep_blobs`](Store::keep_blobs) or a
///   change of trash or leases returns `Ok`, its effect MUST survive the death of
///   the process and, for a store on disk, loss of power. When it returns an
///   error, none of it is there, except that an [`ErrorKind::Io`](crate::error::ErrorKind::Io)
///   may leave the caller not knowing: it then asks again under the same event ids.
/// - **Append-only.** Nothing but [`purge`](Maintain::purge), [`scrub`](Maintain::scrub) and
///   [`Write::Prune`] removes or changes an event.
/// - **Dense.** A session's seqs are 1, 2, 3, … without a gap, in the order in
///   which their appends returned.
/// - **Fenced.** An append with an epoch other than the newest MUST be refused,
///   however late it arrives.
/// - **Isolated.** Damage to one session MUST NOT make another unreadable.
/// - **Constant.** The cost of an append MUST NOT grow with the session's length. A
///   gate, its answer, a rewind or an undoing may look at the earlier ones of these
///   kinds; a fork's may pass through the sessions that it grew out of.
pub trait Store: std::fmt::Debug + Send + Sync {
    /// Does several writes, in order, all or none, in one durable transaction. The
    /// answers come in the order of the writes. A later write sees the earlier
    /// ones: a session made by the first may be appended to by the second. Events SHOULD be
    /// [encoded](Write::encode) before any lock is taken.
    fn batch(&self, writes: Vec<Write>) -> Result<Vec<Written>>;

    /// How a session stands. `running` without a living lease holder MUST read as
    /// `interrupted`, here and in every other answer. Sessions in the trash are
    /// found as well.
    fn info(&self, id: &SessionId) -> Result<SessionInfo>;

    /// What each lane of a session did and spent.
    fn lanes(&self, id: &SessionId) -> Result<BTreeMap<Lane, LaneState>>;

    /// Events of a session, those that a fork shares included. Each one MUST be
    /// checked against the chain; a [span](Selection::Span) ends at the first that fails. Events
    /// that are not selected MUST NOT be read, but for the one before each, which the chain needs.
    fn select(&self, id: &SessionId, selection: Selection<'_>) -> Result<Slice>;

    /// A few events of each of several sessions, in the order of the ids, each checked against
    /// the chain. One that is damaged, or not there, MUST NOT hide the others. A store on a server
    /// SHOULD answer in one round trip, and one more if texts were spilled.
    fn excerpts(
        &self,
        ids: &[SessionId],
        wanted: &Excerpt<'_>,
    ) -> Result<Vec<Result<Vec<Recorded>>>> {
        Ok(ids.iter().map(|id| several::excerpt(self, id, wanted)).collect())
    }

    /// One page of sessions. Each session that matches MUST be in exactly one page,
    /// as long as it does not change between them; damaged ones included. A store on a server
    /// SHOULD answer in one round trip.
    fn list(&self, query: &Query) -> Result<Page>;

    /// How many sessions match, by status.
    fn count(&self, filter: &Filter) -> Result<Counts>;

    /// Searches tasks, messages, calls, results, paths and errors. Events that a fork
    /// shares are found in the session that they were recorded in. Everything that
    /// was acknowledged before the call MUST be found, unless the store is open
    /// for reading only: then the answer says how much it could not see. The redactor takes the
    /// secrets out of what is shown of a hit, before it is cut.
    fn search(&self, search: &Search, redactor: &Redactor) -> Result<Found>;

    /// Takes the lease of a session: if nobody holds it, or its holder is dead
    /// (a local process that is gone, or one elsewhere whose lease expired). Else fails with
    /// [`Error::Held`](crate::error::Error::Held). The new epoch is larger than any before.
    fn acquire(&self, id: &SessionId, claim: &LeaseRequest) -> Result<Lease>;

    /// Extends a lease from now. Fails with [`Error::Fenced`](crate::error::Error::Fenced)
    /// if it was lost, and with [`Error::Trashed`](crate::error::Error::Trashed) if the
    /// session went to the trash. An expired lease that nobody took is renewed.
    fn renew(&self, lease: &Lease, ttl: Duration) -> Result<Lease>;

    /// Gives a lease back. One that was lost already is no error.
    fn release(&self, lease: &Lease) -> Result<()>;

    /// Stores bytes under digests that the caller took of them, by whichever algorithm, each
    /// once, and SHOULD do so with one flush. When it fails, some of them may be there. An
    /// event that names a blob keeps it. One that no event names may go after a day, or when
    /// the last event that named it is purged; an append that names it then fails with
    /// [`Error::NoBlob`](crate::error::Error::NoBlob). Bytes under a digest that is not theirs read
    /// as a damaged blob.
    fn keep_blobs(&self, blobs: &[(Digest, &[u8])]) -> Result<()>;

    /// The bytes of blobs, in order, each checked against its digest.
    fn blobs(&self, digests: &[Digest]) -> Result<Vec<Vec<u8>>>;

    /// What changed in the whole store since a cursor, as soon as something did, or when the
    /// wait is over. Without a cursor it answers at once with where the store is now: a
    /// caller takes that first, then lists sessions, then asks for changes.
    ///
    /// Nothing MUST be missed: a session that was made, written to, trashed, restored or purged,
    /// and one whose lease was taken, given back, ran out or lost its holder, is named by the
    /// next answer or a later one. A cursor MUST stay good when the store is opened again. If a
    /// store cannot tell what changed since a cursor, it says so ([`Changes::gap`]).
    fn changes(&self, after: Option<&ChangeCursor>, wait: Wait<'_>) -> Result<Changes>;

    /// What only a store on a server knows.
    fn server(&self) -> Option<&dyn Server> {
        None
    }

    /// What keeps it in order.
    fn maintain(&self) -> &dyn Maintain;
}

/// What a store on a server knows by its server.
pub trait Server {
    /// Now, by the server's clock: what a team shares is not judged by the clock of one of its
    /// machines.
    fn now(&self) -> Time;

    /// The login that the server knows this process by. MUST be what the server says.
    fn login(&self) -> Result<Option<String>>;

    /// Who wrote an event. MUST be what the server noted.
    fn written_by(&self, id: &SessionId, seq: Seq) -> Result<Login>;
}

/// Which events of one session are meant.
#[derive(Clone, Copy)]
pub enum Selection<'a> {
    /// A stretch of its log.
    Span(Span),
    /// Those that have a key, in order.
    Keyed(Facts<'a>),
    /// Records by their keys. One that was pruned is not found.
    Records(&'a RecordQuery),
    /// The record under the largest of some keys, and those beside it, of one moment; none, if the
    /// session's chain is the one that is known.
    Newest(NewestQuery<'a>),
    /// The one that bears a client's id.
    Named(&'a EventId),
}

/// One write of a batch.
#[derive(Clone, Debug)]
#[expect(clippy::large_enum_variant, reason = "a batch holds a handful of them")]
pub enum Write {
    /// Makes a session.
    Create(Create),
    /// Appends to one.
    Append(Append),
    /// Empties events of one.
    Prune(Prune),
}

impl Write {
    /// Encodes the events of an append, unless that was done. A store does so before its turn to
    /// write comes.
    pub fn encode(&mut self) -> Result<()> {
        match self {
            Self::Append(append) => append.events.encode(),
            Self::Create(_) | Self::Prune(_) => Ok(()),
        }
    }

    /// The session that it is about.
    #[must_use]
    pub fn session(&self) -> &SessionId {
        match self {
            Self::Create(create) => &create.created.id,
            Self::Append(append) => &append.session,
            Self::Prune(prune) => &prune.session,
        }
    }

    /// How many bytes its encoded events have, long texts included.
    #[must_use]
    pub fn bytes(&self) -> usize {
        match self {
            Self::Append(append) => append.events.bytes(),
            Self::Create(_) | Self::Prune(_) => 0,
        }
    }
}

/// Makes a session. With [`Origin::Fork`](crate::model::Origin::Fork) it shares its
/// parent's events up to the fork point, whose cost does not depend on how many
/// they are; its own first event follows them.
#[derive(Clone, Debug)]
pub struct Create {
    /// Its first event.
    pub created: Created,
    /// The client's name for that event. A session that exists already and began
    /// with the same one is answered as if it had just been made.
    pub event_id: Option<EventId>,
    /// When it began, if that is not now.
    pub at: Option<Time>,
    /// Who takes its lease in the same transaction, under [`Epoch::FIRST`].
    pub claim: Option<LeaseRequest>,
}

/// Who wants a lease, and for how long.
#[derive(Clone, Debug)]
pub struct LeaseRequest {
    /// The process that wants it.
    pub holder: Owner,
    /// How long.
    pub ttl: Duration,
}

/// Appends events to a session.
#[derive(Clone, Debug)]
pub struct Append {
    /// The session.
    pub session: SessionId,
    /// The epoch of the lease under which this is written. Only events that
    /// [need no lease](crate::model::Event::needs_no_lease) do without.
    pub epoch: Option<Epoch>,
    /// What must hold, checked in the same transaction.
    pub expected: Option<Expected>,
    /// What to record. If the first one's id was recorded before, the whole append
    /// was: it is answered again, and nothing is written.
    pub events: NewEvents,
}

/// What a write takes for granted. If it does not hold, nothing is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Expected {
    /// The session is at this seq: a compare-and-swap.
    At(Seq),
    /// No prune has emptied this event.
    Intact(Seq),
}

/// Empties events that are no longer needed: records, and messages of a session that another
/// program drives. What a head is folded from stays, the chain still verifies, and a `scrubbed`
/// event says which they are. An event that a fork shares keeps its contents for the fork and no
/// longer counts here. The cost depends on the events that are named, and on nothing else.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Prune {
    /// The session.
    pub session: SessionId,
    /// The epoch of the lease under which this is done. A session that another program drives
    /// needs none while nobody holds it.
    pub epoch: Option<Epoch>,
    /// What must hold, checked in the same transaction.
    pub expected: Option<Expected>,
    /// Which events. Those that were pruned before are passed over; if there are no others,
    /// nothing is recorded.
    pub seqs: Vec<Seq>,
    /// Why, for the record.
    pub rule: String,
}

/// What a write did.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Written {
    /// The first event it recorded.
    pub first: Seq,
    /// The last one.
    pub last: Seq,
    /// The lease that came with a new session.
    pub lease: Option<Lease>,
}

/// How a session stands.
#[derive(Clone, Debug, PartialEq)]
pub struct SessionInfo {
    /// Its head. If `damage` says that this could not be read, only its id and
    /// times mean anything.
    pub head: Head,
    /// Who holds its lease and is alive.
    pub held: Option<LeaseInfo>,
    /// The first event that is its own; those before it are shared with another session,
    /// in which they are kept.
    pub own_from: Seq,
    /// When it went to the trash.
    pub trashed_at: Option<Time>,
    /// The first damage that is known of.
    pub damage: Option<Damage>,
    /// Bytes of its own events and of the blobs they name.
    pub bytes: u64,
}

/// Where a session is damaged. What lies before can be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Damage {
    /// The first damaged event; zero, the head.
    pub seq: Seq,
    /// How it shows.
    pub what: String,
}

impl Damage {
    /// The damage as the error of whoever needs the session whole.
    #[must_use]
    pub fn into_error(self, session: &SessionId) -> crate::error::Error {
        crate::error::Error::Damaged { session: session.clone(), seq: self.seq, what: self.what }
    }
}

/// Which events are asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Span {
    /// The first, both ends included.
    pub from: Seq,
    /// The last.
    pub to: Seq,
    /// Which come first.
    pub order: Order,
    /// At most this many.
    pub limit: usize,
}

impl Span {
    /// Every event, oldest first.
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

/// Which come first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Order {
    /// The oldest.
    Oldest,
    /// The newest.
    #[default]
    Newest,
}

/// Events, up to the first damaged one in the order that was asked for.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Slice {
    /// The events.
    pub events: Vec<Recorded>,
    /// Of these, how many say what a scrub put there.
    pub scrubbed: u64,
    /// How many were emptied by a prune.
    pub pruned: u64,
    /// All of these, with what stands there now.
    pub replaced: Vec<Replaced>,
    /// If the newest record was asked for: the chain's value at the session's end, unless records
    /// may change without a change of it.
    pub chain: Option<Digest>,
    /// Why there are no more.
    pub damage: Option<Damage>,
}

/// An event that no longer says what was recorded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Replaced {
    /// Which one.
    pub seq: Seq,
    /// The bytes that stand there now.
    pub body: Vec<u8>,
}

impl Slice {
    /// All of them, or the error of whoever needs all.
    pub fn intact(self, session: &SessionId) -> Result<Vec<Recorded>> {
        match self.damage {
            None => Ok(self.events),
            Some(damage) => Err(damage.into_error(session)),
        }
    }
}

/// Sessions by status.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// How many stand so. Those that none do are left out.
    pub by_status: BTreeMap<crate::model::Status, u64>,
    /// How many are known to be damaged, whatever their status.
    pub damaged: u64,
}

impl Counts {
    /// All of them.
    #[must_use]
    pub fn total(&self) -> u64 {
        self.by_status.values().sum()
    }
}

/// A session that is to go.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Target {
    /// The session.
    pub id: SessionId,
    /// If given, only while it is still at this seq, and nothing of its family is
    /// pinned: a cleanup judged it there.
    pub unless_past: Option<Seq>,
    /// Only if it is there.
    pub place: query::TrashScope,
}

impl From<SessionId> for Target {
    fn from(id: SessionId) -> Self {
        Self { id, unless_past: None, place: query::TrashScope::Anywhere }
    }
}

/// What became of sessions that were to go, or to come back.
#[derive(Debug, Default)]
pub struct Removal {
    /// Those that went, with their subagents' sessions.
    pub taken: Vec<SessionId>,
    /// Those that were left, and why.
    pub left: Vec<(SessionId, crate::error::Error)>,
}

/// Bodies to be replaced.
#[derive(Clone, Debug)]
pub struct Scrub {
    /// The session.
    pub session: SessionId,
    /// The epoch of the lease under which this is done. A session in the trash needs
    /// none: nobody writes to it there.
    pub epoch: Option<Epoch>,
    /// The rule that they matched, for the record.
    pub rule: String,
    /// What each event is to say instead. The kind stays. An event that a fork
    /// shares is scrubbed in the session that it was recorded in.
    pub replacements: Vec<(Seq, crate::model::Event)>,
}

/// Bytes in use.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DiskUse {
    /// Events' bodies.
    pub events: u64,
    /// Blobs, compressed, each once.
    pub blobs: u64,
    /// All that the store takes up, its indexes included.
    pub total: u64,
}

/// How many events of those that were not in the search index are in it now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Indexed {
    /// Those that are.
    pub done: u64,
    /// All of them.
    pub all: u64,
}

/// A place in a log, and the chain's value there: it says that all up to the event is as it was.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    /// Where the event stands.
    pub seq: Seq,
    /// The chain's value at it.
    pub chain: Digest,
}

/// What a verification found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Verdict {
    /// Events that are as they were recorded, from the first on.
    pub intact: u64,
    /// Of those, the ones whose bodies a scrub replaced.
    pub scrubbed: u64,
    /// Of those, the ones that a prune emptied.
    pub pruned: u64,
    /// The first event that is not.
    pub damage: Option<Damage>,
    /// Does what is stored beside the events equal their fold?
    pub derived: Derived,
}

/// Does what is stored beside the events equal their fold?
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Derived {
    /// They are equal.
    Right,
    /// No; a repair makes it so.
    Wrong,
}

impl Verdict {
    /// Is all well?
    #[must_use]
    pub fn is_sound(&self) -> bool {
        self.damage.is_none() && self.derived == Derived::Right
    }
}
