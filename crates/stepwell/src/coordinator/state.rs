//! What the keys of a coordinator are doing, as plain data.
//!
//! Every transition is a method of [`Keys`]: it takes an input, changes this value and nothing else,
//! and returns what the driver has to do. No thread, lock, clock or channel is in here, which is what
//! lets the tests walk through every order in which the inputs can arrive.
//!
//! An idle key has no entry. A waiter lives inside the entry of the drain it waits for, so "somebody
//! waits, but nothing runs" cannot be written down.

use std::collections::HashMap;
use std::hash::Hash;
use std::io;
use std::sync::Arc;

/// How a call to [`run`](super::Coordinator::run) ended.
#[derive(Debug, PartialEq, Eq)]
#[must_use = "a drain can fail, be interrupted or be refused"]
pub enum Outcome<E> {
    /// The drain returned `Ok`, and nobody had interrupted it.
    Done,
    /// The drain returned an error or panicked, and nobody had interrupted it.
    Failed(Arc<Failure<E>>),
    /// The drain was interrupted before it ended, whatever it then returned.
    Interrupted,
    /// No drain was started or joined.
    Refused(Refused),
}

// Derived, this would ask for `E: Clone`, which errors that hold an `io::Error` are not.
impl<E> Clone for Outcome<E> {
    fn clone(&self) -> Self {
        match self {
            Self::Done => Self::Done,
            Self::Failed(failure) => Self::Failed(Arc::clone(failure)),
            Self::Interrupted => Self::Interrupted,
            Self::Refused(refused) => Self::Refused(*refused),
        }
    }
}

/// Why a drain failed. Everyone who waited for it shares the one value.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum Failure<E> {
    /// The drain returned this error.
    #[error(transparent)]
    Error(E),
    /// The drain panicked with this message.
    #[error("the drain panicked: {0}")]
    Panicked(String),
}

/// Why the coordinator did not take a call. Nothing was started, joined or recorded.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refused {
    /// The coordinator has been shut down, for good.
    #[error("the coordinator has been shut down")]
    ShutDown,
    /// The call came from the drain of the very key it would wait for, and would never return.
    #[error("a drain cannot wait for itself")]
    OwnDrain,
    /// The system would not start a thread for the drain. Trying again later may work.
    #[error("no thread could be started for the drain: {0}")]
    NoThread(io::ErrorKind),
}

/// What the drain itself reported.
pub(super) type Ending<E> = Result<(), Arc<Failure<E>>>;

/// All keys that are busy.
///
/// `W` is whoever waits for an answer. `T` is the token through which one drain is interrupted; each
/// drain gets a new one, so that no request can reach the drain after it.
#[derive(Clone, Debug)]
pub(super) struct Keys<K, W, T> {
    active: HashMap<K, Active<W, T>>,
    closed: bool,
}

/// A key whose drain is running.
#[derive(Clone, Debug)]
struct Active<W, T> {
    token: T,
    interrupted: bool,
    /// A wake came after this drain started: another drain follows, however this one ends.
    again: bool,
    /// Those who learn how this drain ended.
    waiters: Vec<W>,
    /// Those who are let go when the key is idle. They outlast this drain if another one follows.
    idlers: Vec<W>,
}

/// What a demand for a drain comes to.
#[derive(Debug)]
pub(super) enum Demand<T> {
    /// The key was idle: the driver MUST now start a drain with this token, or `abandon` the key.
    Start(T),
    /// A drain is running, and the demand is recorded with it.
    Recorded,
}

/// What the end of a drain leaves to do.
#[derive(Debug)]
pub(super) struct Ended<W, T, E> {
    /// To be told to each of `waiters`.
    pub(super) outcome: Outcome<E>,
    pub(super) waiters: Vec<W>,
    pub(super) next: Next<W, T>,
}

/// What a key does after a drain.
#[derive(Debug)]
pub(super) enum Next<W, T> {
    /// It drains again, with this token.
    Drain(T),
    /// It is idle, and these are let go.
    Idle(Vec<W>),
}

/// A key whose drain has to stop because the coordinator was closed.
#[derive(Debug)]
pub(super) struct Stopping<K, T> {
    pub(super) key: K,
    pub(super) token: T,
    /// A wake was recorded that no drain will follow any more.
    pub(super) wake_dropped: bool,
}

impl<K, W, T> Keys<K, W, T>
where
    K: Eq + Hash + Clone,
    T: Clone + Default,
{
    pub(super) fn new() -> Self {
        Self { active: HashMap::new(), closed: false }
    }

    pub(super) fn is_busy(&self, key: &K) -> bool {
        self.active.contains_key(key)
    }

    /// `waiter` joins the drain that is running, else the one that starts now.
    pub(super) fn run(&mut self, key: &K, waiter: W) -> Result<Demand<T>, Refused> {
        self.refuse_if_closed()?;
        if let Some(active) = self.active.get_mut(key) {
            active.waiters.push(waiter);
            return Ok(Demand::Recorded);
        }
        Ok(Demand::Start(self.start(key, vec![waiter], Vec::new())))
    }

    /// A drain starts after this moment: now, or once the one that is running has ended.
    pub(super) fn wake(&mut self, key: &K) -> Result<Demand<T>, Refused> {
        self.refuse_if_closed()?;
        if let Some(active) = self.active.get_mut(key) {
            active.again = true;
            return Ok(Demand::Recorded);
        }
        Ok(Demand::Start(self.start(key, Vec::new(), Vec::new())))
    }

    /// The token to fire, if a drain is running.
    pub(super) fn interrupt(&mut self, key: &K) -> Option<T> {
        let active = self.active.get_mut(key)?;
        active.interrupted = true;
        Some(active.token.clone())
    }

    /// Holds `idler` until the key is idle; gives it back if it is idle now.
    pub(super) fn await_idle(&mut self, key: &K, idler: W) -> Option<W> {
        let Some(active) = self.active.get_mut(key) else {
            return Some(idler);
        };
        active.idlers.push(idler);
        None
    }

    /// The drain of `key` has ended. Only the driver of that drain says so, once.
    pub(super) fn ended<E>(&mut self, key: &K, ending: &Ending<E>) -> Ended<W, T, E> {
        let ended = self.active.remove(key).expect("an entry stays until its drain has ended");
        let outcome = match ending {
            _ if ended.interrupted => Outcome::Interrupted,
            Ok(()) => Outcome::Done,
            Err(failure) => Outcome::Failed(Arc::clone(failure)),
        };
        let next = if ended.again {
            Next::Drain(self.start(key, Vec::new(), ended.idlers))
        } else {
            Next::Idle(ended.idlers)
        };
        Ended { outcome, waiters: ended.waiters, next }
    }

    /// The drain that was to start did not. MUST directly follow the [`Demand::Start`], so that
    /// nobody can have joined.
    pub(super) fn abandon(&mut self, key: &K) {
        self.active.remove(key);
    }

    /// Refuses every demand from now on, interrupts what runs and drops what would have followed.
    pub(super) fn close(&mut self) -> Vec<Stopping<K, T>> {
        self.closed = true;
        let stop = |(key, active): (&K, &mut Active<W, T>)| {
            active.interrupted = true;
            let wake_dropped = std::mem::take(&mut active.again);
            Stopping { key: key.clone(), token: active.token.clone(), wake_dropped }
        };
        self.active.iter_mut().map(stop).collect()
    }

    /// Every drain begins here, with nothing left over from the one before it but the idlers.
    fn start(&mut self, key: &K, waiters: Vec<W>, idlers: Vec<W>) -> T {
        let token = T::default();
        let active =
            Active { token: token.clone(), interrupted: false, again: false, waiters, idlers };
        self.active.insert(key.clone(), active);
        token
    }

    #[cfg(test)]
    pub(super) fn waiting(&self, key: &K) -> usize {
        let waiting = |active: &Active<W, T>| active.waiters.len() + active.idlers.len();
        self.active.get(key).map_or(0, waiting)
    }

    fn refuse_if_closed(&self) -> Result<(), Refused> {
        if self.closed { Err(Refused::ShutDown) } else { Ok(()) }
    }
}

#[cfg(test)]
mod tests;
