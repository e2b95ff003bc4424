//! Subscriptions to the changes of a store. One waiter polls on behalf of all.
//!
//! A waiter polls if no other one does, and distributes the changes to all inboxes. The others
//! sleep until one arrives. When the poller gets its own change, it wakes the next waiter to poll.
//! No thread outlives its store.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use parking_lot::{Condvar, Mutex, MutexGuard};

use crate::error::Result;
use crate::model::SessionId;
use crate::store::Store;
use crate::store::changes::{ChangeCursor, ChangeKind, Changes, SessionChange, Wait};

/// The longest time that one subscription polls. Then another one takes its turn.
const LOOK: Duration = Duration::from_secs(5);

/// A bound for waits that only a change can end. Changes arrive without it: it guards against a
/// store that fails to report one.
pub const GUARD: Duration = Duration::from_secs(60);

/// A message to a subscriber.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Notice {
    /// A session changed.
    Changed(SessionChange),
    /// Anything may have changed: lists must be read again.
    Reset,
}

/// A subscription to the changes of a store, or of some sessions. It misses no change after it was
/// made. Changes of one session that were not read yet arrive as one.
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

/// The subscriptions to one store.
#[derive(Debug)]
pub(crate) struct Hub {
    store: Arc<dyn Store>,
    state: Mutex<State>,
    /// Asks the poller to stop waiting.
    broken_off: AtomicBool,
}

#[derive(Debug, Default)]
struct State {
    /// Where the next poll starts; absent without subscriptions.
    cursor: Option<ChangeCursor>,
    /// The subscription that polls.
    looking: Option<u64>,
    given: u64,
    inboxes: HashMap<u64, Inbox>,
    /// Subscriptions by session.
    by_session: HashMap<SessionId, Vec<u64>>,
    /// Subscriptions to all sessions.
    of_all: Vec<u64>,
}

#[derive(Debug)]
struct Inbox {
    /// Is it subscribed to all sessions?
    all: bool,
    sessions: Vec<SessionId>,
    /// Anything may have changed.
    reset: bool,
    /// The changed sessions, in order.
    order: VecDeque<SessionId>,
    pending: HashMap<SessionId, Pending>,
    told: Arc<Condvar>,
    /// Is its owner waiting?
    waiting: bool,
    /// Should its owner stop waiting?
    woken: bool,
}

/// The changes of a session that its subscriber has not read.
#[derive(Clone, Copy, Debug, Default)]
struct Pending {
    /// It was purged.
    removed: bool,
    /// The last change after that, of this session or of a new one with its id.
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
    /// Puts changes into the inboxes of their subscribers.
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

    /// Wakes a waiter to poll, if none polls.
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

    /// Removes the next notice.
    fn take(&mut self) -> Option<Notice> {
        if std::mem::take(&mut self.reset) {
            return Some(Notice::Reset);
        }
        let session = self.order.pop_front()?;
        let Pending { removed, kind } = self.pending.remove(&session)?;
        if removed && kind.is_some() {
            // A new session with the same id exists since.
            self.pending.insert(session.clone(), Pending { removed: false, kind });
            self.order.push_front(session.clone());
        }
        let kind = kind.filter(|_| !removed).unwrap_or(ChangeKind::Removed);
        Some(Notice::Changed(SessionChange { session, kind }))
    }
}

impl Subscription {
    /// Subscribes to one more session. Changes from now on are not missed.
    pub fn add(&self, session: &SessionId) {
        let mut state = self.hub.state();
        let inbox = self.inbox(&mut state);
        if !inbox.all && !inbox.sessions.contains(session) {
            inbox.sessions.push(session.clone());
            state.by_session.entry(session.clone()).or_default().push(self.number);
        }
    }

    /// A handle that ends a wait of this subscription.
    #[must_use]
    pub fn waker(&self) -> Waker {
        Waker { hub: Arc::clone(&self.hub), number: self.number }
    }

    /// A handle that ends the wait when dropped, for the owner of the waiting thread.
    #[must_use]
    pub fn wake_on_drop(&self) -> WakeOnDrop {
        WakeOnDrop(self.waker())
    }

    /// Waits for the next notice. `None` if `timeout` passes or a [`Waker`] is used first.
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

    /// Polls the store on behalf of all.
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
    /// Ends the present wait, or the next one.
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

/// Marks the poller, also if it panics.
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
