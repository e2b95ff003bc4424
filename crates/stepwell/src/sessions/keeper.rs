//! Renews the leases of open sessions in the background.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use parking_lot::{Condvar, Mutex, MutexGuard};

use crate::error::Error;
use crate::model::{Event, Kind, SessionId, StopAsked};
use crate::store::{Facts, Lease, Store};

/// The shortest pause between renewals.
const SHORTEST: Duration = Duration::from_millis(50);

/// A thread that renews leases five times in their lifetime. So a failed renewal is noticed
/// before half of it has passed, even with the store's own retries. It starts with the first lease.
#[derive(Debug)]
pub(crate) struct Keeper {
    shared: Arc<Shared>,
    thread: Mutex<Option<JoinHandle<()>>>,
}

#[derive(Debug)]
struct Shared {
    store: Arc<dyn Store>,
    ttl: Duration,
    kept: Mutex<Kept>,
    changed: Condvar,
}

/// A callback, called once when someone asks a session's runner to stop.
pub(crate) type OnStop = Arc<dyn Fn(&StopAsked) + Send + Sync>;

/// A callback, called when renewals of a lease begin to fail.
pub(crate) type OnDoubt = Arc<dyn Fn(&Error) + Send + Sync>;

#[derive(Default)]
struct Kept {
    leases: HashMap<SessionId, Lease>,
    /// Callbacks for requests to stop.
    on_stop: HashMap<SessionId, OnStop>,
    /// Callbacks for leases that cannot be renewed.
    on_doubt: HashMap<SessionId, OnDoubt>,
    /// Sessions whose doubt callback was called and whose lease has not been renewed since.
    in_doubt: HashSet<SessionId>,
    closing: bool,
}

impl std::fmt::Debug for Kept {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Kept").field("leases", &self.leases).finish_non_exhaustive()
    }
}

impl Keeper {
    pub(crate) fn new(store: Arc<dyn Store>, ttl: Duration) -> Self {
        let shared = Shared { store, ttl, kept: Mutex::default(), changed: Condvar::new() };
        Self { shared: Arc::new(shared), thread: Mutex::default() }
    }

    /// Renews a lease from now on.
    pub(crate) fn keep(&self, lease: Lease) {
        self.shared.kept().leases.insert(lease.session.clone(), lease);
        let mut thread = self.thread.lock();
        if thread.is_none() {
            let shared = Arc::clone(&self.shared);
            let named = std::thread::Builder::new().name("stepwell-leases".to_owned());
            // Without the thread, a lease lasts for its time to live. The next session that opens
            // tries again.
            *thread = named.spawn(move || shared.renew_until_closed()).ok();
        }
    }

    /// Registers a callback for requests to stop this lease's runner. They are read before each
    /// renewal.
    pub(crate) fn watch_stops(&self, lease: &Lease, on_stop: OnStop) {
        self.shared.kept().on_stop.insert(lease.session.clone(), on_stop);
    }

    /// Registers a callback for a lease that cannot be renewed, and so may be lost soon.
    pub(crate) fn watch_doubts(&self, lease: &Lease, on_doubt: OnDoubt) {
        self.shared.kept().on_doubt.insert(lease.session.clone(), on_doubt);
    }

    /// Stops renewing a lease, unless the session has a newer one by now.
    pub(crate) fn forget(&self, lease: &Lease) {
        self.shared.kept().forget(lease);
    }
}

impl Kept {
    fn forget(&mut self, lease: &Lease) {
        if self.leases.get(&lease.session).is_some_and(|kept| kept.epoch == lease.epoch) {
            self.leases.remove(&lease.session);
            self.on_stop.remove(&lease.session);
            self.on_doubt.remove(&lease.session);
            self.in_doubt.remove(&lease.session);
        }
    }
}

impl Drop for Keeper {
    fn drop(&mut self) {
        self.shared.kept().closing = true;
        self.shared.changed.notify_all();
        let thread = self.thread.lock().take();
        if let Some(thread) = thread {
            // The thread ends after its current renewal. A panic in it was already reported.
            let _ = thread.join();
        }
    }
}

impl Shared {
    fn kept(&self) -> MutexGuard<'_, Kept> {
        self.kept.lock()
    }

    fn renew_until_closed(&self) {
        let mut kept = self.kept();
        while !kept.closing {
            let pause = self.changed.wait_for(&mut kept, (self.ttl / 5).max(SHORTEST));
            if pause.timed_out() && !kept.closing {
                let leases: Vec<Lease> = kept.leases.values().cloned().collect();
                let watched = kept.on_stop.clone();
                drop(kept);
                let mut told = Vec::new();
                for lease in &leases {
                    if let Some(on_stop) = watched.get(&lease.session)
                        && let Some(stop) = self.stop_asked(lease)
                    {
                        on_stop(&stop);
                        told.push(&lease.session);
                    }
                }
                let renewed: Vec<Renewal> = leases.iter().map(|lease| self.renew(lease)).collect();
                kept = self.kept();
                for session in told {
                    kept.on_stop.remove(session);
                }
                for (lease, renewal) in leases.iter().zip(renewed) {
                    kept.note(lease, renewal);
                }
            }
        }
    }

    /// The request to stop that is addressed to a lease, if there is one.
    fn stop_asked(&self, lease: &Lease) -> Option<StopAsked> {
        // If the read fails, the next renewal tries again.
        let asked = self.store.keyed(&lease.session, Facts::of(&[Kind::StopAsked])).ok()?;
        asked.into_iter().rev().find_map(|asked| match asked.event {
            Event::StopAsked(stop) if stop.epoch == lease.epoch => Some(stop),
            _ => None,
        })
    }

    fn renew(&self, lease: &Lease) -> Renewal {
        match self.store.renew(lease, self.ttl) {
            // A session in the trash may be restored.
            Ok(_) | Err(Error::Trashed(_)) => Renewal::Done,
            Err(Error::Fenced { .. } | Error::NoSession(_)) => Renewal::Lost,
            Err(error) => Renewal::Failed(error),
        }
    }
}

/// The result of renewing a lease.
enum Renewal {
    Done,
    /// Lost for good. The session's next append returns that error.
    Lost,
    Failed(Error),
}

impl Kept {
    /// Applies the result of renewing a lease.
    fn note(&mut self, lease: &Lease, renewal: Renewal) {
        let session = &lease.session;
        match renewal {
            Renewal::Done => drop(self.in_doubt.remove(session)),
            Renewal::Lost => self.forget(lease),
            Renewal::Failed(error) => {
                tracing::warn!(%session, %error, "lease_not_renewed");
                if self.in_doubt.insert(session.clone())
                    && let Some(on_doubt) = self.on_doubt.get(session)
                {
                    on_doubt(&error);
                }
            }
        }
    }
}
