//! Subscriptions to the changes of a store. However many wait, one of them polls for all.
//!
//! A waiter polls if no other one does, and hands out the changes that it finds. The others sleep
//! until they get one. When the poller has its own change, the next waiter polls. No thread
//! outlives its store.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use parking_lot::{Condvar, Mutex, MutexGuard};

use crate::error::Result;
use crate::model::SessionId;
use crate::store::Store;
use crate::store::changes::{ChangeCursor, ChangeKind, Changes, SessionChange, Wait};

/// How long one look lasts at most. Then another may take its turn.
const LOOK: Duration = Duration::from_secs(5);

/// How long a wait for news lasts that nothing else ends. News does not need it: it guards against
/// a change that a store failed to report.
pub const GUARD: Duration = Duration::from_secs(60);

/// What a subscriber is told.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Notice {
    /// A session changed.
    Changed(SessionChange),
    /// Anything may have changed: whoever keeps a list makes it anew.
    Reset,
}

/// A subscription to the changes of a store, or of one session. What changes after it was made
/// is not missed; changes of one session that were not fetched yet are told as one.
#[derive(Debug)]
pub struct Subscription {
    hub: Arc<Hub>,
    number: u64,
    told: Arc<Condvar>,
}

/// Ends a wait of a subscription, from any thread.
#[derive(Clone, Debug)]
pub struct Waker {
    hub: Arc<Hub>,
    number: u64,
}

/// Ends a wait of a subscription when it is dropped.
#[derive(Debug)]
pub struct WakeOnDrop(Waker);

impl Drop for WakeOnDrop {
    fn drop(&mut self) {
        self.0.wake();
    }
}

/// Those who are subscribed to one store.
#[derive(Debug)]
pub(crate) struct Hub {
    store: Arc<dyn Store>,
    state: Mutex<State>,
    /// The one who looks is to stop waiting.
    broken_off: AtomicBool,
}

#[derive(Debug, Default)]
struct State {
    /// Up to where changes were handed out; absent, while nobody is subscribed.
    cursor: Option<ChangeCursor>,
    /// The subscription that looks.
    looking: Option<u64>,
    given: u64,
    inboxes: HashMap<u64, Inbox>,
    /// Who wants to know of a session.
    by_session: HashMap<SessionId, Vec<u64>>,
    /// Who wants to know of all.
    of_all: Vec<u64>,
}

#[derive(Debug)]
struct Inbox {
    /// Is it told of every session?
    all: bool,
    sessions: Vec<SessionId>,
    /// Everything may have changed.
    reset: bool,
    /// The sessions that changed, and what is to be told of each.
    order: VecDeque<SessionId>,
    pending: HashMap<SessionId, Pending>,
    told: Arc<Condvar>,
    /// Does its owner wait right now?
    waiting: bool,
    /// Its owner is to stop waiting.
    woken: bool,
}

/// What is to be told of a session.
#[derive(Clone, Copy, Debug, Default)]
struct Pending {
    /// It was purged.
    removed: bool,
    /// What became of it, or of its successor, after that.
    kind: Option<ChangeKind>,
}

impl Hub {
    pub(crate) fn new(store: Arc<dyn Store>) -> Arc<Self> {
        let broken_off = AtomicBool::new(false);
        Arc::new(Self { store, state: Mutex::default(), broken_off })
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock()
    }

    /// Subscribes to one session, or to all.
    pub(crate) fn subscribe(self: &Arc<Self>, session: Option<SessionId>) -> Result<Subscription> {
        let mut state = self.state();
        if state.cursor.is_none() {
            state.cursor = Some(self.store.changes(None, Wait::NONE)?.cursor);
        }
        state.given += 1;
        let (number, told) = (state.given, Arc::new(Condvar::new()));
        match &session {
            Some(session) => state.by_session.entry(session.clone()).or_default().push(number),
            None => state.of_all.push(number),
        }
        let inbox = Inbox {
            all: session.is_none(),
            sessions: session.into_iter().collect(),
            reset: false,
            order: VecDeque::new(),
            pending: HashMap::new(),
            told: Arc::clone(&told),
            waiting: false,
            woken: false,
        };
        state.inboxes.insert(number, inbox);
        Ok(Subscription { hub: Arc::clone(self), number, told })
    }
}

impl State {
    /// Puts what was found into the inboxes of those whom it concerns.
    fn hand_out(&mut self, found: Changes) {
        self.cursor = Some(found.cursor);
        if found.gap {
            self.inboxes.values_mut().for_each(Inbox::reset);
            return;
        }
        for change in found.changes {
            let concerned = self.by_session.get(&change.session).into_iter().flatten();
            for number in concerned.chain(&self.of_all) {
                if let Some(inbox) = self.inboxes.get_mut(number) {
                    inbox.put(&change);
                }
            }
        }
    }

    /// Has one of those who wait look, if nobody does.
    fn pass_on(&self) {
        if self.looking.is_none()
            && let Some(next) = self.inboxes.values().find(|inbox| inbox.waiting)
        {
            next.told.notify_one();
        }
    }
}

impl Inbox {
    fn put(&mut self, change: &SessionChange) {
        let first = !self.pending.contains_key(&change.session);
        if first {
            self.order.push_back(change.session.clone());
        }
        let pending = self.pending.entry(change.session.clone()).or_default();
        match change.kind {
            ChangeKind::Removed => *pending = Pending { removed: true, kind: None },
            kind => pending.kind = Some(kind),
        }
        self.tell();
    }

    fn reset(&mut self) {
        (self.order, self.pending) = Default::default();
        self.reset = true;
        self.tell();
    }

    fn tell(&self) {
        if self.waiting {
            self.told.notify_one();
        }
    }

    /// Takes the next notice out.
    fn take(&mut self) -> Option<Notice> {
        if std::mem::take(&mut self.reset) {
            return Some(Notice::Reset);
        }
        let session = self.order.pop_front()?;
        let Pending { removed, kind } = self.pending.remove(&session)?;
        if removed && kind.is_some() {
            // A session of the same name was made since.
            self.pending.insert(session.clone(), Pending { removed: false, kind });
            self.order.push_front(session.clone());
        }
        let kind = kind.filter(|_| !removed).unwrap_or(ChangeKind::Removed);
        Some(Notice::Changed(SessionChange { session, kind }))
    }
}

impl Subscription {
    /// Subscribes to one more session. What changes in it from now on is not missed.
    pub fn add(&self, session: &SessionId) {
        let mut state = self.hub.state();
        let inbox = self.inbox(&mut state);
        if !inbox.all && !inbox.sessions.contains(session) {
            inbox.sessions.push(session.clone());
            state.by_session.entry(session.clone()).or_default().push(self.number);
        }
    }

    /// What ends a wait of this subscription.
    #[must_use]
    pub fn waker(&self) -> Waker {
        Waker { hub: Arc::clone(&self.hub), number: self.number }
    }

    /// Held by the owner of a thread that waits: dropping it ends the wait.
    #[must_use]
    pub fn wake_on_drop(&self) -> WakeOnDrop {
        WakeOnDrop(self.waker())
    }

    /// The next notice, or nothing if `timeout` passes or a [`Waker`] is used before there is one.
    #[expect(clippy::disallowed_methods, reason = "a wait is bounded in real time")]
    pub fn next(&self, timeout: Duration) -> Result<Option<Notice>> {
        let started = Instant::now();
        let mut state = self.hub.state();
        loop {
            let left = timeout.saturating_sub(started.elapsed());
            if std::mem::take(&mut self.inbox(&mut state).woken) {
                state.pass_on();
                return Ok(None);
            }
            if let Some(notice) = self.inbox(&mut state).take() {
                state.pass_on();
                return Ok(Some(notice));
            }
            if state.looking.is_none() {
                let found;
                (state, found) = self.look(state, left.min(LOOK));
                match found {
                    Ok(()) if left.is_zero() => {
                        state.pass_on();
                        return Ok(self.inbox(&mut state).take());
                    }
                    Ok(()) => {}
                    Err(error) => {
                        state.pass_on();
                        return Err(error);
                    }
                }
            } else if left.is_zero() {
                return Ok(None);
            } else {
                self.inbox(&mut state).waiting = true;
                self.told.wait_for(&mut state, left);
                self.inbox(&mut state).waiting = false;
            }
        }
    }

    fn inbox<'a>(&self, state: &'a mut State) -> &'a mut Inbox {
        state.inboxes.get_mut(&self.number).expect("only dropping the subscription takes it")
    }

    /// Looks for what changed, for all.
    fn look<'a>(
        &'a self,
        mut state: MutexGuard<'a, State>,
        longest: Duration,
    ) -> (MutexGuard<'a, State>, Result<()>) {
        state.looking = Some(self.number);
        self.hub.broken_off.store(false, Ordering::Relaxed);
        let cursor = state.cursor.clone();
        drop(state);
        let mut look = Look { hub: &self.hub, over: false };
        let wait = Wait { longest, broken_off: Some(&self.hub.broken_off) };
        let found = self.hub.store.changes(cursor.as_ref(), wait);
        look.over = true;
        let mut state = self.hub.state();
        state.looking = None;
        let found = found.map(|found| state.hand_out(found));
        (state, found)
    }
}

impl Waker {
    /// Ends the wait that is going on, or the next one.
    pub fn wake(&self) {
        let mut state = self.hub.state();
        let is_looking = state.looking == Some(self.number);
        let Some(inbox) = state.inboxes.get_mut(&self.number) else { return };
        inbox.woken = true;
        inbox.tell();
        if is_looking {
            self.hub.broken_off.store(true, Ordering::Relaxed);
        }
    }
}

/// Somebody looks; a panic ends that too.
struct Look<'a> {
    hub: &'a Hub,
    over: bool,
}

impl Drop for Look<'_> {
    fn drop(&mut self) {
        if !self.over {
            self.hub.state().looking = None;
        }
    }
}

impl Drop for Subscription {
    fn drop(&mut self) {
        let mut state = self.hub.state();
        let Some(inbox) = state.inboxes.remove(&self.number) else { return };
        state.of_all.retain(|number| *number != self.number);
        for session in inbox.sessions {
            let mut left = state.by_session.remove(&session).unwrap_or_default();
            left.retain(|number| *number != self.number);
            if !left.is_empty() {
                state.by_session.insert(session, left);
            }
        }
        if state.inboxes.is_empty() {
            state.cursor = None;
        }
    }
}
