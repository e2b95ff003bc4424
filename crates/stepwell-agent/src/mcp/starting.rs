//! Which servers are awaited, for those who wait with them.

use std::collections::BTreeSet;
use std::sync::Arc;

use parking_lot::Mutex;

/// The servers that have begun to start and are not ready yet. Clones are the same.
#[derive(Clone, Debug, Default)]
pub struct Starting(Arc<Mutex<BTreeSet<String>>>);

impl Starting {
    /// Their names.
    #[must_use]
    pub fn names(&self) -> Vec<String> {
        self.0.lock().iter().cloned().collect()
    }

    /// Notes that a server starts, until what is answered is dropped.
    pub(super) fn begin(&self, name: &str) -> Awaited {
        self.0.lock().insert(name.to_owned());
        Awaited { starting: self.clone(), name: name.to_owned() }
    }
}

/// A server that is awaited.
pub(super) struct Awaited {
    starting: Starting,
    name: String,
}

impl Drop for Awaited {
    fn drop(&mut self) {
        self.starting.0.lock().remove(&self.name);
    }
}
