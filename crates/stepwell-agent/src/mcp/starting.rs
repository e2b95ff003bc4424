//! The servers that are still starting, for front ends that show them.

use std::collections::BTreeSet;
use std::sync::Arc;

use parking_lot::Mutex;

/// The servers that are still starting. Clones share one set.
#[derive(Clone, Debug, Default)]
pub struct Starting(Arc<Mutex<BTreeSet<String>>>);

impl Starting {
    /// Their names.
    #[must_use]
    pub fn names(&self) -> Vec<String> {
        self.0.lock().iter().cloned().collect()
    }

    /// Adds a server until the returned guard is dropped.
    pub(super) fn begin(&self, name: &str) -> Awaited {
        self.0.lock().insert(name.to_owned());
        Awaited { starting: self.clone(), name: name.to_owned() }
    }
}

/// Removes its server from the set when dropped.
pub(super) struct Awaited {
    starting: Starting,
    name: String,
}

impl Drop for Awaited {
    fn drop(&mut self) {
        self.starting.0.lock().remove(&self.name);
    }
}
