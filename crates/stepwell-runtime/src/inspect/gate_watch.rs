//! Questions as they open and close, in one store or in several.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::mpsc;
use std::sync::{Arc, Weak};
use std::time::Duration;

use stepwell::model::Kind;
use stepwell::sessions::{GUARD, Notice, Subscription, WakeOnDrop};
use stepwell::store::Facts;
use stepwell::work::Gates;
use stepwell::{Error as StoreError, SessionId, Status, Stepwell};
use stepwell_files::forwarded::asked_in;
use stepwell_wire::{GateChange, GateChangeKind, OpenGate};

use super::gates::{open_gates, sessions_with_gates};
use crate::error::{Error, Result};

/// A store whose questions are watched.
#[derive(Debug)]
pub struct WatchedStore {
    /// What it is called, where several are watched.
    pub name: Option<String>,
    /// The store.
    pub well: Stepwell,
    /// Only this session of it.
    pub session: Option<SessionId>,
}

impl WatchedStore {
    fn subscribe(&self) -> Result<Subscription> {
        Ok(match &self.session {
            Some(session) => self.well.subscribe_to(session)?,
            None => self.well.subscribe()?,
        })
    }
}

/// The questions that wait in some stores, kept current by the stores' change feeds.
#[derive(Debug)]
pub struct GateWatch {
    news: mpsc::Receiver<(usize, GateNews)>,
    to: mpsc::Sender<(usize, GateNews)>,
    /// How many stores were added.
    stores: usize,
    /// What waits, by store and session.
    open: BTreeMap<(usize, SessionId), Vec<OpenGate>>,
    /// The threads end when this is gone.
    wanted: Arc<()>,
    /// Behind `wanted`: the threads look at it when they wake.
    wakes: Vec<WakeOnDrop>,
}

/// What a watch tells.
#[derive(Debug)]
pub enum GateNews {
    /// Questions opened or closed. The first news of each store is what waits there, if anything.
    Changed(Vec<GateChange>),
    /// A session, or a whole store, can no longer be watched.
    Lost {
        /// The store, where several are watched.
        store: Option<String>,
        /// The session; absent, the store.
        session: Option<SessionId>,
        /// Why it cannot be watched.
        error: Error,
    },
}

impl GateWatch {
    /// Begins to watch.
    ///
    /// # Errors
    /// If no thread can be started.
    pub fn new(stores: Vec<WatchedStore>) -> Result<Self> {
        let (to, news) = mpsc::channel();
        let (open, wanted) = (BTreeMap::new(), Arc::new(()));
        let mut watch = Self { news, to, stores: 0, open, wanted, wakes: Vec::new() };
        stores.into_iter().try_for_each(|store| watch.add(store))?;
        Ok(watch)
    }

    /// Watches another store too, such as one that was made since. Each store has a thread that
    /// waits for its changes.
    ///
    /// # Errors
    /// If no thread can be started.
    pub fn add(&mut self, store: WatchedStore) -> Result<()> {
        let number = self.stores;
        self.stores += 1;
        // Subscribed first, so that nothing falls between the list and the changes.
        let subscription = match store.subscribe() {
            Ok(subscription) => subscription,
            Err(error) => {
                let lost = GateNews::Lost { store: store.name, session: None, error };
                let _ = self.to.send((number, lost));
                return Ok(());
            }
        };
        self.wakes.push(subscription.wake_on_drop());
        let (to, alive) = (self.to.clone(), Arc::downgrade(&self.wanted));
        let named = std::thread::Builder::new().name("stepwell-gates".to_owned());
        let watch = move || {
            let tell = |news: GateNews| to.send((number, news)).is_ok();
            let name = store.name.clone();
            if let Err(error) = Watcher::new(store).watch(&subscription, &tell, &alive) {
                tell(GateNews::Lost { store: name, session: None, error });
            }
        };
        named.spawn(watch).map_err(Error::Thread).map(drop)
    }

    /// The next news; nothing, if `timeout` passes before there are any.
    pub fn next(&mut self, timeout: Duration) -> Option<GateNews> {
        let (store, news) = self.news.recv_timeout(timeout).ok()?;
        if let GateNews::Changed(changes) = &news {
            changes.iter().for_each(|change| self.note(store, change));
        }
        Some(news)
    }

    /// What waits now, store by store.
    pub fn open(&self) -> impl Iterator<Item = &OpenGate> {
        self.open.values().flatten()
    }

    fn note(&mut self, store: usize, change: &GateChange) {
        let key = (store, change.gate.session_id.clone());
        let waiting = self.open.entry(key).or_default();
        waiting.retain(|open| !is_same(open, &change.gate));
        if change.change == GateChangeKind::Opened {
            waiting.push(change.gate.clone());
        }
    }
}

/// One store, as its thread watches it.
struct Watcher {
    store: WatchedStore,
    open: BTreeMap<SessionId, Vec<OpenGate>>,
    /// Sessions that could not be read, which was told once.
    lost: BTreeSet<SessionId>,
}

impl Watcher {
    fn new(store: WatchedStore) -> Self {
        Self { store, open: BTreeMap::new(), lost: BTreeSet::new() }
    }

    /// Tells what waits and what changes, until nobody wants to know.
    fn watch(
        &mut self,
        subscription: &Subscription,
        tell: &dyn Fn(GateNews) -> bool,
        wanted: &Weak<()>,
    ) -> Result<()> {
        let mut first = Some(Notice::Reset);
        loop {
            let notice = match first.take() {
                Some(notice) => Some(notice),
                // It may have been let go before the thread began to wait.
                None if wanted.strong_count() == 0 => return Ok(()),
                None => subscription.next(GUARD)?,
            };
            if wanted.strong_count() == 0 {
                return Ok(());
            }
            let changed = match notice {
                Some(Notice::Reset) => self.all()?,
                Some(Notice::Changed(change)) => BTreeSet::from([change.session]),
                None => continue,
            };
            for session in changed {
                if !self.look(&session).is_none_or(tell) {
                    return Ok(());
                }
            }
        }
    }

    /// Every session in which something waits, or did.
    fn all(&self) -> Result<BTreeSet<SessionId>> {
        let mut all: BTreeSet<SessionId> = self.open.keys().cloned().collect();
        match &self.store.session {
            Some(session) => drop(all.insert(session.clone())),
            None => all.extend(sessions_with_gates(&self.store.well)?),
        }
        Ok(all)
    }

    /// Looks at a session's questions, and says what is new.
    fn look(&mut self, session: &SessionId) -> Option<GateNews> {
        let store = self.store.name.clone();
        match self.changes(session) {
            Ok(changes) if changes.is_empty() => None,
            Ok(changes) => Some(GateNews::Changed(changes)),
            // It is told once, and does not hide the others.
            Err(error) => self.lost.insert(session.clone()).then(|| {
                let session = Some(session.clone());
                GateNews::Lost { store, session, error }
            }),
        }
    }

    fn changes(&mut self, session: &SessionId) -> Result<Vec<GateChange>> {
        let mut now = waiting(&self.store.well, session)?;
        if self.store.session.is_none() {
            let mut told = Vec::new();
            for open in now {
                if !self.is_told_elsewhere(&open)? {
                    told.push(open);
                }
            }
            now = told;
        }
        now.iter_mut().for_each(|open| open.store.clone_from(&self.store.name));
        let before = self.open.get(session).cloned().unwrap_or_default();
        let mut changes = Vec::new();
        for gone in before.iter().filter(|gate| !now.iter().any(|it| is_same(it, gate))) {
            changes.push(closed(&self.store.well, gone)?);
        }
        let new = now.iter().filter(|gate| !before.iter().any(|it| is_same(it, gate)));
        changes.extend(new.map(|gate| change(GateChangeKind::Opened, gate)));
        match now.is_empty() {
            true => drop(self.open.remove(session)),
            false => drop(self.open.insert(session.clone(), now)),
        }
        Ok(changes)
    }

    /// Was a subagent's question told where it is asked too, below or above this session?
    fn is_told_elsewhere(&self, open: &OpenGate) -> Result<bool> {
        let asked_in = asked_in(&**self.store.well.store(), &open.session_id, &open.gate.id)?;
        Ok(asked_in.iter().filter(|it| it.session != open.session_id).any(|it| {
            let told = self.open.get(&it.session).into_iter().flatten();
            { told }.any(|told| told.gate.id == it.asked.gate.id)
        }))
    }
}

/// A question that is asked again under its name is another one.
fn is_same(one: &OpenGate, other: &OpenGate) -> bool {
    one.gate.id == other.gate.id && one.asked_at == other.asked_at
}

/// What waits in a session. What is in the trash, purged or abandoned waits for nobody.
fn waiting(well: &Stepwell, session: &SessionId) -> Result<Vec<OpenGate>> {
    let info = match well.info(session) {
        Ok(info) => info,
        Err(StoreError::NoSession(_)) => return Ok(Vec::new()),
        Err(error) => return Err(error.into()),
    };
    let waits = info.head.status != Status::Abandoned && info.trashed_at.is_none();
    if waits { open_gates(well, Some(session)) } else { Ok(Vec::new()) }
}

fn change(change: GateChangeKind, gate: &OpenGate) -> GateChange {
    let (answer, who, answered_at) = (None, None, None);
    GateChange { change, gate: gate.clone(), answer, who, answered_at }
}

/// How a question closed: with whose answer, if it was answered.
fn closed(well: &Stepwell, gate: &OpenGate) -> Result<GateChange> {
    let mut closed = change(GateChangeKind::Closed, gate);
    let (session, name) = (&gate.session_id, gate.gate.id.as_str());
    let gates = match Gates::named(&**well.store(), session, name) {
        Ok(gates) => gates,
        Err(StoreError::NoSession(_)) => return Ok(closed),
        Err(error) => return Err(error.into()),
    };
    let mut all = gates.asked.into_iter();
    let Some(asked) = all.find(|it| it.gate.id == name && it.at == gate.asked_at) else {
        return Ok(closed);
    };
    let facts = Facts::under(&[Kind::GateAnswered], name);
    let events = well.store().keyed(session, facts)?;
    let event = events.iter().find(|event| Some(event.seq) == asked.answered_at);
    closed.answered_at = event.map(|event| event.at);
    closed.who = asked.answer.as_ref().map(|answer| answer.who.to_string());
    closed.answer = asked.answer.map(|answer| answer.answer.text().into_owned());
    Ok(closed)
}
