//! One drain at a time for each key, however many callers ask for it.
//!
//! The decisions are in `state`, as plain data; this is the lock, the threads and the channels around
//! it. The contract is written on [`Coordinator`].

use std::any::Any;
use std::collections::HashMap;
use std::fmt;
use std::hash::Hash;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc::{self, Sender};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, ThreadId};
use std::time::Duration;

use state::{Demand, Ending, Keys, Next};
pub use state::{Failure, Outcome, Refused};

mod state;

/// Runs one drain at a time for each key, however many callers ask for it.
///
/// A *drain* is the function that does whatever work is waiting for a key: for a session, say. The
/// coordinator decides when it runs, and tells those who asked how it went. It works inside one
/// process and keeps nothing on disk.
///
/// # Contract
///
/// The calls on one coordinator take effect one after the other; "before", "after" and "running" refer
/// to that order. A drain has ended once the coordinator has taken note of its return.
///
/// 1. **One at a time.** At most one drain of a key runs at any moment. Each busy key has a thread of
///    its own, so different keys drain in parallel.
/// 2. **Run joins.** [`run`](Self::run) on an idle key starts a drain; on a busy key it joins the
///    drain that is *running*, even if a wake has already asked for another. It returns the outcome of
///    that one drain. A drain that is joined may be past the point where it looked for work, so a
///    caller that *adds* work says so with `wake`.
/// 3. **A wake is never lost.** After a [`wake`](Self::wake) that returned `Ok` a drain starts: at
///    once if the key was idle, else when the running drain has ended, be it done, failed or
///    interrupted. However many wakes come during one drain, exactly one more follows it. Only a
///    shutdown lets go of a wake, and it names the key. Nobody waits for the outcome of a wake: a
///    drain that must not fail unseen records its own failures.
/// 4. **An interrupt hits the running drain and no other.** Those who wait for that drain learn
///    [`Outcome::Interrupted`], even if it succeeds or fails after the request. On an idle key nothing
///    happens, then or later. A drain that is due because of a wake still follows.
/// 5. **A panic is a failure.** It is caught and told as [`Failure::Panicked`], and the key goes on.
///    What the drain shares with others is theirs to keep sound, as with a poisoned lock.
/// 6. **Idle costs nothing.** An idle key has no thread and no entry.
///
/// A drain may call the coordinator, usually to wake another key. It MUST NOT wait for itself, and
/// drains MUST NOT wait for each other in a circle. The plain case, a call for its own key from the
/// drain's own thread, is [refused](Refused::OwnDrain); any longer circle waits forever.
///
/// # Drop
///
/// Dropping a coordinator is a [`shutdown`](Self::shutdown) whose answer nobody reads: it waits until
/// the drains have ended and what they captured is released. A drain that never looks at its
/// [`Interrupt`] keeps the drop waiting. A drain that owns its coordinator through an `Arc` keeps it
/// from ever being dropped; give it a `Weak`.
///
/// # Example
///
/// ```
/// use std::sync::{Arc, Mutex};
/// use stepwell::coordinator::{Coordinator, Outcome};
///
/// let inbox = Arc::new(Mutex::new(vec!["hello", "world"]));
/// let work = Arc::clone(&inbox);
/// let sessions = Coordinator::new(move |session: &u32, interrupt| {
///     while !interrupt.is_requested() {
///         match work.lock().map_err(|_| "the inbox is damaged")?.pop() {
///             Some(message) => assert!(!message.is_empty(), "session {session} got nothing"),
///             None => break,
///         }
///     }
///     Ok::<(), &str>(())
/// });
///
/// assert_eq!(sessions.run(&7), Outcome::Done);
///
/// inbox.lock().unwrap().push("again");
/// sessions.wake(&7)?; // returns at once, and is never lost
/// sessions.await_idle(&7)?;
/// assert!(inbox.lock().unwrap().is_empty());
/// # Ok::<(), stepwell::coordinator::Refused>(())
/// ```
pub struct Coordinator<K: Eq + Hash + Clone, E> {
    board: Arc<Mutex<Board<K, E>>>,
    drain: Arc<Drain<K, E>>,
    /// What a drain's thread is built from. A test puts in one that the system refuses.
    thread: fn() -> thread::Builder,
}

/// How one drain learns that it should stop. A clone is of the same request.
///
/// The default is a token that nobody requests, for calling a drain without a coordinator.
#[derive(Clone, Debug, Default)]
pub struct Interrupt(Arc<Signal>);

#[derive(Debug, Default)]
struct Signal {
    requested: Mutex<bool>,
    changed: Condvar,
}

type Drain<K, E> = dyn Fn(&K, &Interrupt) -> Result<(), E> + Send + Sync;

/// A waiter is sent its outcome; an idler is let go by dropping it, unsent.
type Waiter<E> = Sender<Outcome<E>>;

/// What the one lock guards.
struct Board<K, E> {
    keys: Keys<K, Waiter<E>, Interrupt>,
    /// Which key each of our threads drains, to notice one that would wait for itself.
    threads: HashMap<ThreadId, K>,
}

impl Interrupt {
    /// Whether this drain should stop. Once true, it stays true.
    #[must_use]
    pub fn is_requested(&self) -> bool {
        *lock(&self.0.requested)
    }

    /// Waits until the drain should stop, for at most `timeout`, and says whether it should.
    ///
    /// This is how a drain pauses: an interrupt cuts the pause short.
    #[must_use]
    pub fn wait(&self, timeout: Duration) -> bool {
        let requested = lock(&self.0.requested);
        let waited = self.0.changed.wait_timeout_while(requested, timeout, |requested| !*requested);
        *waited.unwrap_or_else(PoisonError::into_inner).0
    }

    fn request(&self) {
        *lock(&self.0.requested) = true;
        self.0.changed.notify_all();
    }
}

impl<K, E> Coordinator<K, E>
where
    K: Eq + Hash + Clone + Send + 'static,
    E: Send + Sync + 'static,
{
    /// A coordinator whose keys are all idle.
    pub fn new<F>(drain: F) -> Self
    where
        F: Fn(&K, &Interrupt) -> Result<(), E> + Send + Sync + 'static,
    {
        let board = Board { keys: Keys::new(), threads: HashMap::new() };
        Self {
            board: Arc::new(Mutex::new(board)),
            drain: Arc::new(drain),
            thread: || thread::Builder::new().name("stepwell-drain".to_owned()),
        }
    }

    /// Drains `key` and waits for the end, or joins the drain that is running.
    pub fn run(&self, key: &K) -> Outcome<E> {
        let (waiter, outcome) = mpsc::channel();
        if let Err(refused) = self.join(key, waiter) {
            return Outcome::Refused(refused);
        }
        outcome.recv().expect("a drain tells its waiters before it lets go of them")
    }

    /// Records that work came in for `key`, without waiting: a drain starts after this call, now or
    /// when the running one has ended.
    ///
    /// # Errors
    /// [`Refused::ShutDown`], or [`Refused::NoThread`] if the key was idle and stays so.
    pub fn wake(&self, key: &K) -> Result<(), Refused> {
        let mut board = lock(&self.board);
        let demand = board.keys.wake(key)?;
        self.meet(demand, &mut board, key)
    }

    fn join(&self, key: &K, waiter: Waiter<E>) -> Result<(), Refused> {
        let mut board = lock(&self.board);
        board.refuse_own_drain(key)?;
        let demand = board.keys.run(key, waiter)?;
        self.meet(demand, &mut board, key)
    }

    /// Starts the thread of a key that was idle. Its caller holds the lock, so if there is no thread
    /// to be had nobody can have joined yet.
    fn meet(
        &self,
        demand: Demand<Interrupt>,
        board: &mut Board<K, E>,
        key: &K,
    ) -> Result<(), Refused> {
        let Demand::Start(interrupt) = demand else {
            return Ok(());
        };
        let (shared, drain, own) = (Arc::clone(&self.board), Arc::clone(&self.drain), key.clone());
        let body = move || drain_until_idle(&shared, drain, &own, interrupt);
        match (self.thread)().spawn(body) {
            Ok(handle) => {
                board.threads.insert(handle.thread().id(), key.clone());
                Ok(())
            }
            Err(error) => {
                board.keys.abandon(key);
                Err(Refused::NoThread(error.kind()))
            }
        }
    }
}

impl<K: Eq + Hash + Clone, E> Coordinator<K, E> {
    /// Asks the running drain of `key` to stop, without waiting. False if the key is idle: then
    /// nothing happens, and the next drain is not affected.
    pub fn interrupt(&self, key: &K) -> bool {
        let token = lock(&self.board).keys.interrupt(key);
        token.inspect(Interrupt::request).is_some()
    }

    /// Waits until no drain of `key` is running and none is due. It may be busy again by the time
    /// this returns.
    ///
    /// # Errors
    /// [`Refused::OwnDrain`] if the caller is the drain it would wait for.
    pub fn await_idle(&self, key: &K) -> Result<(), Refused> {
        let (idler, idle) = mpsc::channel();
        {
            let mut board = lock(&self.board);
            board.refuse_own_drain(key)?;
            board.keys.await_idle(key, idler);
        }
        // An idler is let go unsent, so the only answer is that the other end has gone.
        let _gone = idle.recv();
        Ok(())
    }

    /// Whether a drain of `key` is running or due.
    #[must_use]
    pub fn is_busy(&self, key: &K) -> bool {
        lock(&self.board).keys.is_busy(key)
    }

    /// Refuses every later `run` and `wake`, interrupts all drains and waits until they have ended.
    ///
    /// Returns the keys for which a wake was recorded that no drain will follow now. A second call
    /// waits as well and returns none. Called by a drain, it does not wait: it would be for itself.
    pub fn shutdown(&self) -> Vec<K> {
        let (idler, idle) = mpsc::channel();
        let mut unserved = Vec::new();
        {
            let mut board = lock(&self.board);
            let called_by_drain = board.threads.contains_key(&thread::current().id());
            for stopping in board.keys.close() {
                stopping.token.request();
                if !called_by_drain {
                    board.keys.await_idle(&stopping.key, idler.clone());
                }
                if stopping.wake_dropped {
                    unserved.push(stopping.key);
                }
            }
        }
        drop(idler);
        let _gone = idle.recv();
        unserved
    }
}

impl<K: Eq + Hash + Clone, E> Drop for Coordinator<K, E> {
    fn drop(&mut self) {
        self.shutdown();
    }
}

impl<K: Eq + Hash + Clone, E> fmt::Debug for Coordinator<K, E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Coordinator").finish_non_exhaustive()
    }
}

impl<K: Eq, E> Board<K, E> {
    fn refuse_own_drain(&self, key: &K) -> Result<(), Refused> {
        match self.threads.get(&thread::current().id()) {
            Some(own) if own == key => Err(Refused::OwnDrain),
            _ => Ok(()),
        }
    }
}

/// The life of a key's thread: one drain after the other until none is due.
fn drain_until_idle<K, E>(
    board: &Mutex<Board<K, E>>,
    drain: Arc<Drain<K, E>>,
    key: &K,
    mut interrupt: Interrupt,
) where
    K: Eq + Hash + Clone,
{
    loop {
        // Outlives the lock: an error may run foreign code when it is dropped.
        let ending = attempt(&*drain, key, &interrupt);
        let mut board = lock(board);
        let ended = board.keys.ended(key, &ending);
        for waiter in ended.waiters {
            // `run` holds the other end until it has the outcome.
            let _told = waiter.send(ended.outcome.clone());
        }
        match ended.next {
            Next::Drain(token) => interrupt = token,
            Next::Idle(idlers) => {
                board.threads.remove(&thread::current().id());
                // Before anyone can see the key idle: after a shutdown nothing holds on to what the
                // drain captured. If this is the last copy, no one else is left to want the lock.
                drop(drain);
                drop(board);
                drop(idlers);
                return;
            }
        }
    }
}

fn attempt<K, E>(drain: &Drain<K, E>, key: &K, interrupt: &Interrupt) -> Ending<E> {
    let failure = match catch_unwind(AssertUnwindSafe(|| drain(key, interrupt))) {
        Ok(Ok(())) => return Ok(()),
        Ok(Err(error)) => Failure::Error(error),
        Err(payload) => Failure::Panicked(panic_message(payload)),
    };
    Err(Arc::new(failure))
}

fn panic_message(payload: Box<dyn Any + Send>) -> String {
    match payload.downcast::<String>() {
        Ok(message) => *message,
        Err(payload) => match payload.downcast::<&str>() {
            Ok(message) => (*message).to_owned(),
            Err(payload) => {
                // Dropping a foreign payload could panic once more, outside the catch.
                std::mem::forget(payload);
                "a value that is not a string".to_owned()
            }
        },
    }
}

/// Only whole transitions happen under our locks, so a poisoned one guards nothing half done.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests;
