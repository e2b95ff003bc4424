//! The environment of a case: a fresh store, a clock, processes, and helpers.

use std::sync::Arc;
use std::time::Duration;

use stepwell::clock::Clock;
use stepwell::log::{Head, Redactor, State};
use stepwell::model::{Edited, EventId, Origin};
use stepwell::store::query::{Filter, Query, Search, Sort};
use stepwell::store::{
    Append, Create, LEASE_TTL, Lease, LeaseRequest, Order, Removal, Span, Target, Write, Written,
};
use stepwell::{Created, Event, Message, NewEvent, Recorded, Result, Seq, SessionId, Store};

use crate::{TestClock, TestProcesses};

/// An implementation under test, with empty data at first.
pub trait Fixture {
    /// Opens the data: empty the first time, later as it was left. Several handles may be open at
    /// once. A store without persistence returns the same one each time.
    fn open(&mut self, clock: Arc<TestClock>, processes: Arc<TestProcesses>) -> Arc<dyn Store>;
}

/// An implementation whose stored bytes a test can modify directly.
pub trait Damageable: Fixture {
    /// Changes the stored body of an event that the session recorded itself.
    fn damage(&mut self, session: &SessionId, seq: Seq);
}

/// A fixture with an open store, and the clock and processes that it sees.
#[derive(Debug)]
pub struct Harness<F> {
    fixture: F,
    store: Option<Arc<dyn Store>>,
    /// The store's clock.
    pub clock: Arc<TestClock>,
    /// The processes that the store sees.
    pub processes: Arc<TestProcesses>,
}

/// A session's id.
pub(crate) fn id(name: &str) -> SessionId {
    name.parse().unwrap()
}

/// A client's id for an event.
pub(crate) fn event_id(name: &str) -> EventId {
    EventId::derived(name.as_bytes())
}

/// A session to create.
pub(crate) fn created(name: &str) -> Created {
    Created::new(id(name), format!("the task of {name}"))
}

/// A message of the user.
pub(crate) fn say(text: &str) -> NewEvent {
    Message::user(text).into()
}

/// A lease request by a process with this pid.
pub(crate) fn claim(pid: u32) -> LeaseRequest {
    LeaseRequest { holder: TestProcesses::holder(pid), ttl: LEASE_TTL }
}

/// A request to create a session, with or without a lease.
pub(crate) fn create(created: Created, claim: Option<LeaseRequest>) -> Create {
    Create { created, event_id: None, at: None, claim }
}

/// The texts of messages, in order.
pub(crate) fn texts(events: &[Recorded]) -> Vec<String> {
    let text = |event: &Recorded| match &event.event {
        Event::Message(message) => Some(message.text()),
        _ => None,
    };
    events.iter().filter_map(text).collect()
}

/// The seqs of events, in order.
pub(crate) fn seqs(events: &[Recorded]) -> Vec<u64> {
    events.iter().map(|event| event.seq.get()).collect()
}

/// The removed sessions by name, sorted.
pub(crate) fn taken(removal: &Removal) -> Vec<&str> {
    let mut names: Vec<_> = removal.taken.iter().map(SessionId::as_str).collect();
    names.sort_unstable();
    names
}

/// Targets of a removal, in or out of the trash.
pub(crate) fn targets(names: &[&str]) -> Vec<Target> {
    names.iter().map(|name| Target::from(id(name))).collect()
}

impl<F: Fixture> Harness<F> {
    pub(crate) fn new(mut fixture: F) -> Self {
        let clock = Arc::new(TestClock::default());
        let processes = Arc::new(TestProcesses::default());
        let store = fixture.open(Arc::clone(&clock), Arc::clone(&processes));
        Self { fixture, store: Some(store), clock, processes }
    }

    /// The store under test.
    pub(crate) fn store(&self) -> &dyn Store {
        self.store.as_deref().expect("only `reopen` closes it")
    }

    /// The fixture itself.
    pub(crate) fn fixture(&mut self) -> &mut F {
        &mut self.fixture
    }

    /// Another handle on the same data.
    pub(crate) fn another(&mut self) -> Arc<dyn Store> {
        let (clock, processes) = (Arc::clone(&self.clock), Arc::clone(&self.processes));
        self.fixture.open(clock, processes)
    }

    /// Closes the store and opens the same data again.
    pub(crate) fn reopen(&mut self) {
        self.store = None;
        self.store = Some(self.another());
    }

    /// Advances the clock by a second.
    pub(crate) fn tick(&self) {
        self.clock.advance(Duration::from_secs(1));
    }

    /// Creates a session and acquires its lease, as process 1.
    pub(crate) fn begin(&self, name: &str) -> Lease {
        self.begin_as(created(name))
    }

    /// Lets a lease expire whose runner cannot be checked from here.
    pub(crate) fn run_out(&self, lease: &Lease, pid: u32) {
        self.processes.mark_unknown(&TestProcesses::holder(pid));
        self.clock.set(lease.expires);
    }

    /// The same, for a session described by the caller.
    pub(crate) fn begin_as(&self, created: Created) -> Lease {
        let create = create(created, Some(claim(1)));
        let written = self.store().write(Write::Create(create)).unwrap();
        written.lease.unwrap()
    }

    /// Creates a session without a lease.
    pub(crate) fn make(&self, created: Created) -> Written {
        let create = create(created, None);
        self.store().write(Write::Create(create)).unwrap()
    }

    /// Creates a fork with a lease of process 1.
    pub(crate) fn fork(&self, parent: &str, at: u64, name: &str) -> Lease {
        let origin = Origin::Fork { parent: id(parent), at: Seq::new(at) };
        self.begin_as(Created { origin, ..created(name) })
    }

    /// Creates a subagent's session with a lease of process 1.
    pub(crate) fn subagent(&self, parent: &str, name: &str) -> Lease {
        let origin = Origin::Subagent { parent: id(parent) };
        self.begin_as(Created { origin, ..created(name) })
    }

    /// Appends one event under a lease.
    pub(crate) fn add(&self, lease: &Lease, event: impl Into<NewEvent>) -> Written {
        self.try_add(lease, vec![event.into()]).unwrap()
    }

    /// Tries to append events under a lease.
    pub(crate) fn try_add(&self, lease: &Lease, events: Vec<NewEvent>) -> Result<Written> {
        self.store().write(Write::Append(Append {
            session: lease.session.clone(),
            epoch: Some(lease.epoch),
            expected: None,
            events: events.into(),
        }))
    }

    /// Tries to append an event without a lease.
    pub(crate) fn tell(&self, name: &str, event: impl Into<NewEvent>) -> Result<Written> {
        self.store().write(Write::Append(Append {
            session: id(name),
            epoch: None,
            expected: None,
            events: vec![event.into()].into(),
        }))
    }

    /// Edits a session without a lease.
    pub(crate) fn edit(&self, name: &str, edited: Edited) {
        self.tell(name, edited).unwrap();
    }

    /// Appends `n` numbered messages: "word 1", "word 2", …
    pub(crate) fn chat(&self, lease: &Lease, word: &str, n: usize) {
        let events = (1..=n).map(|n| say(&format!("{word} {n}"))).collect();
        self.try_add(lease, events).unwrap();
    }

    /// Every event of a session.
    pub(crate) fn log(&self, name: &str) -> Vec<Recorded> {
        let slice = self.store().events(&id(name), Span::ALL).unwrap();
        slice.intact(&id(name)).unwrap()
    }

    /// A session's head.
    pub(crate) fn head(&self, name: &str) -> Head {
        self.store().info(&id(name)).unwrap().head
    }

    /// Does this session exist?
    pub(crate) fn has(&self, name: &str) -> bool {
        self.store().exists(&id(name)).unwrap()
    }

    /// Releases a lease.
    pub(crate) fn release(&self, lease: &Lease) {
        self.store().release(lease).unwrap();
    }

    /// The names of the sessions that match a filter, oldest first.
    pub(crate) fn listed(&self, filter: Filter) -> Vec<String> {
        self.page_of(&Query {
            filter,
            sort: Sort::Created,
            order: Order::Oldest,
            ..Query::default()
        })
    }

    /// The names in one page.
    pub(crate) fn page_of(&self, query: &Query) -> Vec<String> {
        let page = self.store().list(query).unwrap();
        page.sessions.iter().map(|info| info.head.id.to_string()).collect()
    }

    /// The hits of a search for words, newest first.
    pub(crate) fn hits(&self, text: &str) -> Vec<(String, u64)> {
        self.found(&Search::new(text))
    }

    /// The hits of a search.
    pub(crate) fn found(&self, search: &Search) -> Vec<(String, u64)> {
        let found = self.store().search(search, &Redactor::default()).unwrap();
        found.hits.iter().map(|hit| (hit.session.to_string(), hit.seq.get())).collect()
    }

    /// Fails unless a session's head and lanes are the fold of its events, and a verification
    /// agrees.
    pub(crate) fn assert_folded(&self, name: &str) {
        let State { head, lanes } = State::fold(&self.log(name)).unwrap();
        let info = self.store().info(&id(name)).unwrap();
        let head = match info.held {
            Some(_) => head,
            None => head.without_runner(),
        };
        assert_eq!(info.head, head, "the head of {name}");
        let stored = self.store().lanes(&id(name)).unwrap();
        assert_eq!(stored, lanes, "the lanes of {name}");
        let verdict = self.store().maintain().verify(&id(name)).unwrap();
        assert!(verdict.is_sound(), "{name}: {verdict:?}");
        assert_eq!(verdict.intact, info.head.seq.get());
    }

    /// The time now.
    pub(crate) fn now(&self) -> stepwell::model::Time {
        self.clock.now()
    }
}
