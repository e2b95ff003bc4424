//! A store as Python holds it.

use std::sync::Arc;

use pyo3::prelude::*;
use stepwell::model::Epoch;
use stepwell::sqlite::Access;
use stepwell::{ErrorKind, SessionId, Stepwell};

use crate::convert::session;
use crate::errors::{of_kind, raised};
use crate::given::Text;
use crate::open::{Handle, Target};

/// A store of sessions.
#[pyclass(frozen, weakref, module = "stepwell._core")]
pub(crate) struct Well {
    pub(crate) handle: Arc<Handle>,
}

impl Well {
    /// Does something with the store, without the interpreter's lock.
    pub(crate) fn run<T: Send>(
        &self,
        py: Python<'_>,
        work: impl FnOnce(&Stepwell) -> stepwell::Result<T> + Send,
    ) -> PyResult<T> {
        self.handle.run(py, work)
    }
}

#[pymethods]
impl Well {
    /// Opens a store: a folder, or the address of a server. It is there when this returns.
    #[staticmethod]
    #[pyo3(signature = (target, *, read_only = false))]
    fn open(py: Python<'_>, target: Text<'_>, read_only: bool) -> PyResult<Self> {
        let access = if read_only { Access::Read } else { Access::Write };
        let well = Self { handle: Arc::new(Handle::new(Target::of(&target, access)?)) };
        well.run(py, |_| Ok(()))?;
        Ok(well)
    }

    /// A store in memory.
    #[staticmethod]
    fn memory() -> Self {
        Self { handle: Arc::new(Handle::new(Target::Memory)) }
    }

    /// Where the store is, without a password.
    #[getter]
    fn place(&self) -> String {
        self.handle.target().shown()
    }

    /// Was it closed?
    #[getter]
    fn closed(&self) -> bool {
        self.handle.is_closed()
    }

    /// Closes the store, when the calls that are under way have ended.
    fn close(&self, py: Python<'_>) {
        self.handle.close(py);
    }

    /// Closes the store until a fork is done.
    fn before_fork(&self, py: Python<'_>) {
        self.handle.before_fork(py);
    }

    /// Opens it again, in whichever process.
    fn after_fork(&self) {
        self.handle.after_fork();
    }

    /// Takes the lease of a session.
    fn hold(&self, py: Python<'_>, id: Text<'_>) -> PyResult<Hold> {
        let id = session(&id)?;
        let held = self.run(py, |well| well.lock(&id))?;
        let number = self.handle.keep(held);
        Ok(Hold { handle: Arc::clone(&self.handle), id, number, process: std::process::id() })
    }
}

/// The right to write to a session, until it is released.
#[pyclass(frozen, module = "stepwell._core")]
pub(crate) struct Hold {
    handle: Arc<Handle>,
    id: SessionId,
    number: u64,
    process: u32,
}

#[pymethods]
impl Hold {
    /// Whose lease it is.
    #[getter]
    fn session(&self) -> String {
        self.id.to_string()
    }

    /// Gives the lease back.
    fn release(&self, py: Python<'_>) {
        let held = self.handle.release(self.number);
        py.detach(move || drop(held));
    }
}

impl Hold {
    /// The epoch under which its holder writes. A fork gave the lease back: the parent takes
    /// it again, and the child does not have it.
    pub(crate) fn epoch(&self, py: Python<'_>) -> PyResult<Epoch> {
        if let Some(epoch) = self.handle.epoch(self.number) {
            return Ok(epoch);
        }
        let lost = |what: &str| of_kind(ErrorKind::Fenced, format!("session {}: {what}", self.id));
        if self.process != std::process::id() {
            return Err(lost("its lease stayed with the process that forked"));
        }
        if !self.handle.is_wanted(self.number) {
            return Err(lost("the hold was released"));
        }
        let held = self.handle.run_for(py, |well| well.lock(&self.id), |error| raised(&error))?;
        let epoch = held.lease().epoch;
        self.handle.keep_again(self.number, held);
        Ok(epoch)
    }
}
