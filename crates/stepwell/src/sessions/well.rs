//! [`Stepwell`], the store of sessions that most callers use.

use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use crate::clock::{Clock, Entropy, SystemClock, SystemEntropy};
use crate::error::{Error, Result};
use crate::log::Redactor;
use crate::log::redact::redact_created;
use crate::model::{
    Created, Edited, Event, EventId, GateAnswered, IdFormat, Kind, Lane, NewEvent, Origin,
    Recorded, Said, Seq, SessionId, StopAsked, Time, Who,
};
use crate::sessions::keeper::Keeper;
use crate::sessions::subscribe::{Hub, Subscription};
use crate::sqlite::{SqliteOptions, SqliteStore};
use crate::store::STORE_FOLDER;
use crate::store::query::{Found, Page, Query, Search};
use crate::store::{
    Append, Create, Facts, LEASE_TTL, Lease, LeaseRequest, Processes, SessionInfo, Store,
    SystemProcesses, Write, Written,
};
use crate::trust::{
    self, AnswersFrom, Disregarded, Judge, MemoryNotes, Note, Notes, Weighed, given_at,
};

/// A store of sessions, with everything needed to run, resume and clean them up. Clones are cheap
/// and share the store.
#[derive(Clone, Debug)]
pub struct Stepwell {
    shared: Arc<Shared>,
    acting: Option<Arc<Acting>>,
}

/// The person for whom a front end writes, and the id of its next event.
#[derive(Clone, Debug, Default)]
pub struct Acting {
    /// The person; absent for this process's user.
    pub who: Option<Who>,
    /// The next event's id, so that a repeated request records nothing.
    pub event: Option<EventId>,
}

#[derive(Debug)]
struct Shared {
    store: Arc<dyn Store>,
    deps: Deps,
    keeper: Keeper,
    hub: Arc<Hub>,
    /// This process's user.
    who: OnceLock<Who>,
}

/// What a well needs from its environment.
#[derive(Clone, Debug)]
pub struct Deps {
    /// The clock.
    pub clock: Arc<dyn Clock>,
    /// The source of random bytes for ids.
    pub entropy: Arc<dyn Entropy>,
    /// This process, and whether others are alive.
    pub processes: Arc<dyn Processes>,
    /// The form of new ids.
    pub id_format: IdFormat,
    /// How long a lease lasts without renewal.
    pub lease_ttl: Duration,
    /// Redacts everything that is recorded through the well.
    pub redactor: Redactor,
    /// Records what this machine's user gives in sessions, so that it counts when they are resumed.
    pub notes: Arc<dyn Notes>,
    /// Whose answers and messages count.
    pub answers_from: AnswersFrom,
}

impl Default for Deps {
    fn default() -> Self {
        Self {
            clock: Arc::new(SystemClock),
            entropy: Arc::new(SystemEntropy),
            processes: Arc::new(SystemProcesses),
            id_format: IdFormat::default(),
            lease_ttl: LEASE_TTL,
            redactor: Redactor::default(),
            notes: Arc::new(MemoryNotes::default()),
            answers_from: AnswersFrom::default(),
        }
    }
}

/// How often notes and events are read until both are of the same moment. They change in between
/// only if other processes of the user write to the session.
const WEIGHINGS: usize = 10;

/// How many ids are generated before a taken one is returned.
const ID_TRIES: usize = 100;

impl Stepwell {
    /// Opens the store in a folder, usually `<workspace>/.stepwell`, and creates it if needed.
    pub fn open(folder: impl AsRef<Path>) -> Result<Self> {
        let store = SqliteStore::open_with(folder.as_ref(), SqliteOptions::default())?;
        Ok(Self::with(Arc::new(store), Deps::default()))
    }

    /// A store in memory, for runs that must leave nothing behind.
    ///
    /// # Panics
    /// If the memory cannot be allocated.
    #[must_use]
    pub fn in_memory() -> Self {
        let store = SqliteStore::in_memory().expect("a store in memory needs nothing but memory");
        Self::with(Arc::new(store), Deps::default())
    }

    /// A well over any store.
    #[must_use]
    pub fn with(store: Arc<dyn Store>, deps: Deps) -> Self {
        let keeper = Keeper::new(Arc::clone(&store), deps.lease_ttl);
        let hub = Hub::new(Arc::clone(&store));
        let who = OnceLock::new();
        Self { shared: Arc::new(Shared { store, deps, keeper, hub, who }), acting: None }
    }

    /// The store's folder for a folder: its own, or that of the nearest folder above, as git finds
    /// its root.
    #[must_use]
    pub fn discover(from: &Path) -> Option<PathBuf> {
        let from = std::path::absolute(from).ok()?;
        let mut folders = from.ancestors().map(|folder| folder.join(STORE_FOLDER));
        folders.find(|folder| folder.join("stepwell.db").is_file())
    }

    /// The store itself.
    #[must_use]
    pub fn store(&self) -> &Arc<dyn Store> {
        &self.shared.store
    }

    pub(crate) fn keeper(&self) -> &Keeper {
        &self.shared.keeper
    }

    /// What this machine's user gave in sessions, and how far they have seen each.
    pub(crate) fn notes(&self) -> &Arc<dyn Notes> {
        &self.shared.deps.notes
    }

    /// The present moment, by the clock of the store's server or else by the well's own.
    #[must_use]
    pub fn now(&self) -> Time {
        self.store().now().unwrap_or_else(|| self.shared.deps.clock.now())
    }

    /// The same store, used by a front end for another person: what it writes without a lease names
    /// them.
    #[must_use]
    pub fn acting(&self, acting: Acting) -> Self {
        Self { acting: Some(Arc::new(acting)), ..self.clone() }
    }

    /// The person for whom a front end writes.
    #[must_use]
    pub fn acting_who(&self) -> Option<&Who> {
        self.acting.as_ref()?.who.as_ref()
    }

    /// The id of the next event.
    pub(crate) fn event_name(&self) -> Option<EventId> {
        self.acting.as_ref()?.event
    }

    /// The author of what is written here: this process's user, or the person for whom a front end
    /// [writes](Self::acting).
    #[must_use]
    pub fn who(&self) -> &Who {
        self.acting_who().unwrap_or_else(|| self.user())
    }

    /// This process's user.
    fn user(&self) -> &Who {
        self.shared.who.get_or_init(|| self.shared.deps.processes.this().who())
    }

    /// A judge of a session's permissions for this user.
    pub fn judge(&self, id: &SessionId) -> Result<Judge> {
        let me = Who { login: self.store().login()?, ..self.user().clone() };
        let Deps { notes, answers_from, .. } = &self.shared.deps;
        Ok(Judge { me, given: notes.given(id), answers: *answers_from })
    }

    /// Which permissions of a session's log count.
    pub fn weigh(&self, id: &SessionId) -> Result<Weighed> {
        let mut tries = WEIGHINGS;
        loop {
            let judge = self.judge(id)?;
            let facts = self.store().keyed_events(id, &trust::JUDGED)?;
            tries -= 1;
            // Otherwise a note was added for an event that was read too late.
            if tries == 0 || self.shared.deps.notes.given(id) == judge.given {
                return Ok(judge.weigh(&facts));
            }
        }
    }

    /// Records redacted events, and notes those that are grants of this user.
    pub(crate) fn append(&self, append: Append) -> Result<Written> {
        let session = append.session.clone();
        let given = given_at(Seq::ZERO, append.events.as_slice());
        // Open during the write: a process that sees the events also sees their notes.
        let mut notebook = (!given.is_empty()).then(|| self.shared.deps.notes.open(&session));
        if let Some(notebook) = &mut notebook {
            let end = self.store().info(&session)?.head.seq;
            notebook.announce(end, &given.iter().map(|it| it.digest).collect::<Vec<_>>());
        }
        let written = self.store().batch(vec![Write::Append(append)]).inspect_err(|_| {
            notebook.iter_mut().for_each(|notebook| notebook.take_back());
        })?;
        let written = written.into_iter().next().expect("a batch answers each of its writes");
        if let Some(notebook) = &mut notebook {
            let note = |it: Note| Note { seq: Seq::new(written.first.get() + it.seq.get()), ..it };
            notebook.add(&given.into_iter().map(note).collect::<Vec<_>>());
        }
        tracing::info!(%session, seq = %written.last, "session_saved");
        Ok(written)
    }

    /// A new session id that no session has.
    #[must_use]
    pub fn new_id(&self) -> SessionId {
        self.new_id_like(self.shared.deps.id_format)
    }

    /// A new session id of another form, which no session has.
    #[must_use]
    pub fn new_id_like(&self, format: IdFormat) -> SessionId {
        let entropy = &self.shared.deps.entropy;
        let generate = || SessionId::generate(format, self.now(), entropy.random());
        // Six hex digits repeat within a busy second. If the store cannot be read, creating the
        // session returns that error.
        let taken = |id: &SessionId| self.store().exists(id).unwrap_or(false);
        let tries = std::iter::repeat_with(generate).take(ID_TRIES);
        tries.into_iter().find(|id| !taken(id)).unwrap_or_else(generate)
    }

    /// The first event of a new session for a task, for [`create`](Self::create).
    pub fn draft(&self, task: impl Into<String>) -> Created {
        Created::new(self.new_id(), task)
    }

    /// The redactor for everything that is recorded through the well. Data that must stay byte for
    /// byte is written to the [store](Self::store) directly.
    #[must_use]
    pub fn redactor(&self) -> &Redactor {
        &self.shared.deps.redactor
    }

    /// Redacts events, and adds the name of the person for whom a front end writes.
    pub(crate) fn redacted(&self, events: Vec<NewEvent>) -> Vec<NewEvent> {
        let signed = |mut event: NewEvent| {
            if let Event::Edited(edited) = &mut event.event
                && edited.who.is_none()
            {
                edited.who = self.acting_who().cloned().map(Box::new);
            }
            event
        };
        let redacted = |event: NewEvent| event.redacted(self.redactor());
        events.into_iter().map(signed).map(redacted).collect()
    }

    /// An event that names the person for whom a front end writes, for writes that do not name them
    /// otherwise. `None` without such a person.
    #[must_use]
    pub fn signature(&self) -> Option<NewEvent> {
        self.acting_who().map(|_| Edited::default().into())
    }

    /// Adds a [signature](Self::signature) to events that do not name their author.
    pub(crate) fn signed(&self, mut events: Vec<NewEvent>) -> Vec<NewEvent> {
        let says_who = |it: &NewEvent| matches!(it.event, Event::Edited(_));
        if !events.is_empty() && !events.iter().any(says_who) {
            events.extend(self.signature());
        }
        events
    }

    /// A session's first event, redacted.
    pub(crate) fn beginning(&self, mut created: Created, claim: Option<LeaseRequest>) -> Create {
        redact_created(self.redactor(), &mut created);
        Create { created, event_id: None, at: None, claim }
    }

    /// Creates a session without a lease, for an external agent. The events are recorded with it,
    /// all or none.
    pub fn create_unheld(&self, created: Created, events: Vec<NewEvent>) -> Result<()> {
        let session = created.id.clone();
        let mut writes = vec![Write::Create(self.beginning(created, None))];
        if !events.is_empty() {
            let events = self.redacted(events).into();
            let append = Append { session: session.clone(), epoch: None, expected: None, events };
            writes.push(Write::Append(append));
        }
        self.store().batch(writes)?;
        tracing::info!(%session, "session_created");
        Ok(())
    }

    /// A session's info.
    pub fn info(&self, id: &SessionId) -> Result<SessionInfo> {
        let info = self.store().info(id)?;
        tracing::info!(session = %id, seq = %info.head.seq, "session_loaded");
        Ok(info)
    }

    /// One page of sessions.
    pub fn list(&self, query: &Query) -> Result<Page> {
        self.store().list(query)
    }

    /// Searches sessions. Each message is found once: the task that repeats it, and forks that
    /// share it, are not separate hits. Excerpts are redacted, whatever is stored.
    pub fn search(&self, search: &Search) -> Result<Found> {
        let redactor = self.redactor().with_own_count();
        crate::store::search::sifted(&**self.store(), search, &redactor)
    }

    /// Changes a session's attributes, also while it runs.
    pub fn edit(&self, id: &SessionId, edited: Edited) -> Result<Seq> {
        self.append_freely(id, edited.into())
    }

    /// Answers a gate without a lease. A gate of a LangGraph session is refused: its graph takes
    /// answers only when it is resumed, and would never see this one.
    pub fn answer(&self, id: &SessionId, answer: GateAnswered) -> Result<Seq> {
        let source = self.store().info(id)?.head.source;
        if source.is_some_and(|source| source.system == "langgraph") {
            let why = "a graph asks this: resume the graph, with Command(resume=…)".to_owned();
            let kind = "gate_answered".to_owned();
            return Err(Error::Illegal { session: id.clone(), kind, why });
        }
        self.append_freely(id, answer.into())
    }

    /// Records events under a lease that this process holds, from any of its threads.
    pub fn append_held(&self, lease: &Lease, events: Vec<NewEvent>) -> Result<Written> {
        let (session, epoch) = (lease.session.clone(), Some(lease.epoch));
        let events = self.redacted(events).into();
        self.append(Append { session, epoch, expected: None, events })
    }

    /// Sends a message to a session's runner, or to its next one.
    pub fn say(&self, id: &SessionId, said: Said) -> Result<Seq> {
        self.append_freely(id, said.into())
    }

    /// Asks a session's runner to stop.
    pub fn ask_to_stop(&self, id: &SessionId, stop: StopAsked) -> Result<Seq> {
        self.append_freely(id, stop.into())
    }

    /// A lane's queued messages, in order. A user message that [names a queued one's
    /// seq](crate::model::Message::taking_in) delivers it.
    pub fn inbox(&self, id: &SessionId, lane: &Lane) -> Result<Vec<Recorded>> {
        let head = self.store().info(id)?.head;
        if head.unheard == 0 {
            return Ok(Vec::new());
        }
        let heard = self.store().lanes(id)?.get(lane).map_or(Seq::ZERO, |lane| lane.heard);
        // Messages to a fork's parent stay with the parent.
        let shared = match head.origin {
            Origin::Fork { at, .. } => at,
            _ => Seq::ZERO,
        };
        let from = heard.max(shared).next();
        let facts = Facts { from, ..Facts::under(&[Kind::Said], lane.as_str()) };
        self.store().keyed(id, facts)
    }

    /// A lane's queued messages that count for this user, and the reasons why others do not.
    pub fn heard(&self, id: &SessionId, lane: &Lane) -> Result<(Vec<Recorded>, Vec<Disregarded>)> {
        let said = self.inbox(id, lane)?;
        if said.is_empty() {
            return Ok((said, Vec::new()));
        }
        let judge = self.judge(id)?;
        let (mut heard, mut not) = (Vec::new(), Vec::new());
        for word in said {
            match judge.hears(&word) {
                None => heard.push(word),
                Some(why) => not.push(why),
            }
        }
        Ok((heard, not))
    }

    pub(crate) fn append_freely(&self, id: &SessionId, event: Event) -> Result<Seq> {
        let event = NewEvent { id: self.event_name(), ..event.into() };
        let events = self.redacted(vec![event]).into();
        let append = Append { session: id.clone(), epoch: None, expected: None, events };
        Ok(self.append(append)?.last)
    }

    /// Subscribes to changes of the whole store from now on. One subscription polls on behalf of
    /// all.
    pub fn subscribe(&self) -> Result<Subscription> {
        self.shared.hub.subscribe(None)
    }

    /// Subscribes to changes of one session from now on.
    pub fn subscribe_to(&self, id: &SessionId) -> Result<Subscription> {
        self.shared.hub.subscribe(Some(id.clone()))
    }

    /// Closes the well, and returns an error if that fails. Its open sessions and clones stay
    /// usable. Dropping the last clone closes it, too, without reporting errors.
    pub fn close(self) -> Result<()> {
        self.store().maintain().close()
    }

    /// The lease request of this well, for writes through the [store](Self::store).
    #[must_use]
    pub fn claim(&self) -> LeaseRequest {
        let deps = &self.shared.deps;
        LeaseRequest { holder: deps.processes.this(), ttl: deps.lease_ttl }
    }
}
