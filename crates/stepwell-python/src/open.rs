//! A store that is opened when it is needed, and closed around a `fork()`.
//!
//! A child of `fork()` must not use its parent's connections, and SQLite keeps its locks per
//! process: a second connection to the same file would trust locks that the child does not
//! have. So the store is closed in the parent before the fork, when no call is under way, and
//! both processes open it anew at their next call.
//!
//! The mutex below is only ever taken with the interpreter's lock held, so that no thread
//! can hold it while another one forks.

use std::collections::HashMap;
use std::sync::{Arc, mpsc};
use std::time::Duration;

use parking_lot::{Mutex, MutexGuard};
use pyo3::prelude::*;
use stepwell::model::Epoch;
use stepwell::sessions::Deps;
use stepwell::sqlite::{Access, SqliteOptions, SqliteStore};
use stepwell::{ErrorKind, Session, SessionId, Stepwell, Store};
use stepwell_postgres::{Address, PostgresOptions, PostgresStore};

use crate::errors::{invalid, of_kind, raised};

/// How long a call, or the one that waits for the calls, pauses before it looks again.
const GLANCE: Duration = Duration::from_millis(1);

/// Where a store is, so that it can be opened again.
#[derive(Clone, Debug)]
pub(crate) enum Target {
    /// In a folder.
    Folder(String, Access),
    /// On a server.
    Server(Box<Address>, Access),
    /// In this process alone.
    Memory,
}

impl Target {
    /// The store that a name means: a server's address or a folder.
    pub(crate) fn of(name: &str, access: Access) -> PyResult<Self> {
        let address = Address::of_store(name).map_err(|error| raised(&error))?;
        Ok(match address {
            Some(address) => Self::Server(Box::new(address), access),
            None => Self::Folder(name.to_owned(), access),
        })
    }

    fn open(&self) -> stepwell::Result<Stepwell> {
        let store: Arc<dyn Store> = match self {
            Self::Folder(folder, access) => {
                let options = SqliteOptions { access: *access, ..SqliteOptions::default() };
                Arc::new(SqliteStore::open_with(folder.as_ref(), options)?)
            }
            Self::Server(address, access) => {
                let options = PostgresOptions { access: *access, ..PostgresOptions::default() };
                Arc::new(PostgresStore::open_with((**address).clone(), options)?)
            }
            Self::Memory => Arc::new(SqliteStore::in_memory()?),
        };
        Ok(Stepwell::with(store, Deps::default()))
    }

    /// The place as people may see it, without a password.
    pub(crate) fn shown(&self) -> String {
        match self {
            Self::Folder(folder, _) => folder.clone(),
            Self::Server(address, _) => address.shown().display().to_string(),
            Self::Memory => ":memory:".to_owned(),
        }
    }
}

/// The store, if it is open, and how many calls use it.
#[derive(Debug)]
pub(crate) struct Handle {
    target: Target,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    well: Option<Stepwell>,
    /// Calls that are under way.
    calls: usize,
    phase: Phase,
    process: u32,
    /// Sessions whose leases are held; absent, a fork gave the lease back.
    holds: HashMap<u64, Option<Session>>,
    next_hold: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    Open,
    /// A fork is about to happen: calls wait.
    Forking,
    Closed,
}

impl Handle {
    pub(crate) fn new(target: Target) -> Self {
        let state = State {
            well: None,
            calls: 0,
            phase: Phase::Open,
            process: std::process::id(),
            holds: HashMap::new(),
            next_hold: 0,
        };
        Self { target, state: Mutex::new(state) }
    }

    pub(crate) fn target(&self) -> &Target {
        &self.target
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.lock().phase == Phase::Closed
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock()
    }

    /// Keeps a session that is held, under a number.
    pub(crate) fn keep(&self, session: Session) -> u64 {
        let mut state = self.lock();
        let number = state.next_hold;
        state.next_hold += 1;
        state.holds.insert(number, Some(session));
        number
    }

    /// Keeps a session whose lease was taken again.
    pub(crate) fn keep_again(&self, number: u64, session: Session) {
        self.lock().holds.insert(number, Some(session));
    }

    /// The epoch of a lease that is held.
    pub(crate) fn epoch(&self, number: u64) -> Option<Epoch> {
        let state = self.lock();
        state.holds.get(&number).and_then(Option::as_ref).map(|held| held.lease().epoch)
    }

    /// The epoch under which a session is held here.
    pub(crate) fn epoch_of(&self, id: &SessionId) -> Option<Epoch> {
        let state = self.lock();
        let mut held = state.holds.values().flatten().map(Session::lease);
        held.find(|lease| lease.session == *id).map(|lease| lease.epoch)
    }

    /// Is a hold still wanted, though a fork gave its lease back?
    pub(crate) fn is_wanted(&self, number: u64) -> bool {
        self.lock().holds.contains_key(&number)
    }

    /// Takes a session out, to be dropped without the interpreter's lock.
    pub(crate) fn release(&self, number: u64) -> Option<Session> {
        self.lock().holds.remove(&number).flatten()
    }

    /// Does something with the store, without the interpreter's lock.
    pub(crate) fn run<T: Send>(
        &self,
        py: Python<'_>,
        work: impl FnOnce(&Stepwell) -> stepwell::Result<T> + Send,
    ) -> PyResult<T> {
        self.run_for(py, work, |error| raised(&error))
    }

    /// The same, for work with another error.
    pub(crate) fn run_for<T: Send, E: Send>(
        &self,
        py: Python<'_>,
        work: impl FnOnce(&Stepwell) -> Result<T, E> + Send,
        raise: impl FnOnce(E) -> PyErr,
    ) -> PyResult<T> {
        let well = self.enter(py)?;
        let done = py.detach(|| {
            let done = work(&well);
            drop(well);
            done
        });
        self.leave();
        done.map_err(raise)
    }

    /// Lets a thread of its own read from the store, and gives what it sends to `take`, which works
    /// with the interpreter meanwhile. Sending says no when nobody takes any more.
    pub(crate) fn run_ahead<T: Send>(
        &self,
        py: Python<'_>,
        work: impl FnOnce(&Stepwell, &mut dyn FnMut(T) -> bool) -> stepwell::Result<()> + Send,
        mut take: impl FnMut(T) -> PyResult<()>,
    ) -> PyResult<()> {
        let well = self.enter(py)?;
        let (sender, receiver) = mpsc::channel();
        let done = std::thread::scope(|scope| {
            let reader = scope.spawn(move || work(&well, &mut |piece| sender.send(piece).is_ok()));
            let receiver = Mutex::new(receiver);
            let next = || receiver.lock().recv().ok();
            let mut taken = Ok(());
            while let (Ok(()), Some(piece)) = (&taken, py.detach(next)) {
                taken = take(piece);
            }
            drop(receiver);
            let read = py.detach(|| reader.join());
            read.map(|read| taken.and(read.map_err(|error| raised(&error))))
        });
        self.leave();
        done.unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    }

    fn enter(&self, py: Python<'_>) -> PyResult<Stepwell> {
        loop {
            let mut state = self.lock();
            match state.phase {
                Phase::Closed => return Err(invalid("the store is closed; open it again")),
                // The forking thread ends this while the others wait their turn.
                Phase::Forking => {
                    drop(state);
                    py.detach(|| std::thread::park_timeout(GLANCE));
                    continue;
                }
                Phase::Open => {}
            }
            if let Some(well) = &state.well {
                let well = well.clone();
                state.calls += 1;
                return Ok(well);
            }
            let pid = std::process::id();
            if matches!(self.target, Target::Memory) && state.process != pid {
                let what = "a store in memory stays in the process that made it";
                return Err(of_kind(ErrorKind::Incompatible, what.to_owned()));
            }
            drop(state);
            let target = self.target.clone();
            let opened = py.detach(move || target.open()).map_err(|error| raised(&error))?;
            let mut state = self.lock();
            // Another thread may have been faster; its store is as good.
            if state.phase == Phase::Open && state.well.is_none() {
                state.well = Some(opened);
                state.process = pid;
            } else {
                drop(state);
                py.detach(move || drop(opened));
            }
        }
    }

    fn leave(&self) {
        self.lock().calls -= 1;
    }

    /// Waits for the calls that are under way, and takes the store out.
    fn take(&self, py: Python<'_>, phase: Phase) -> Option<Stepwell> {
        {
            let mut state = self.lock();
            if state.phase == Phase::Closed {
                return None;
            }
            state.phase = phase;
        }
        // `leave` needs the interpreter's lock: let it go while waiting.
        while self.lock().calls > 0 {
            py.detach(|| std::thread::park_timeout(GLANCE));
        }
        let mut state = self.lock();
        let held: Vec<Session> = state.holds.values_mut().filter_map(Option::take).collect();
        let well = state.well.take();
        drop(state);
        py.detach(move || drop(held));
        well
    }

    /// Closes the store for good.
    pub(crate) fn close(&self, py: Python<'_>) {
        let well = self.take(py, Phase::Closed);
        py.detach(move || drop(well));
    }

    /// Closes the store until the fork is done. A store in memory has to stay.
    pub(crate) fn before_fork(&self, py: Python<'_>) {
        if let Some(well) = self.take(py, Phase::Forking) {
            if matches!(self.target, Target::Memory) {
                self.lock().well = Some(well);
            } else {
                py.detach(move || drop(well));
            }
        }
    }

    /// Lets calls in again; both processes open the store at their next one.
    pub(crate) fn after_fork(&self) {
        let mut state = self.lock();
        if state.phase == Phase::Forking {
            state.phase = Phase::Open;
        }
        if matches!(self.target, Target::Memory) && state.process != std::process::id() {
            // Its locks may be held by threads that the child does not have.
            std::mem::forget(state.well.take());
        }
    }
}
