//! What marks the events of a write, so that they are known again after a lost connection
//! even if the client gave them no ids.

use std::sync::atomic::{AtomicU64, Ordering};

use stepwell::clock::{Entropy as _, SystemEntropy};
use stepwell::store::Write;

/// Gives each write of an open store a mark of its own.
#[derive(Debug)]
pub(crate) struct Marker {
    /// What no other store that is open has.
    store: [u8; 8],
    given: AtomicU64,
}

/// The marks of one batch's writes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Marks {
    store: [u8; 8],
    first: u64,
}

impl Marker {
    pub(crate) fn new() -> Self {
        let random = SystemEntropy.random();
        let mut store = [0; 8];
        store.copy_from_slice(&random[..8]);
        Self { store, given: AtomicU64::new(0) }
    }

    /// Marks for so many writes.
    pub(crate) fn marks(&self, writes: usize) -> Marks {
        let first = self.given.fetch_add(writes as u64, Ordering::Relaxed);
        Marks { store: self.store, first }
    }
}

impl Marks {
    /// The mark of a write, unless its first event has an id, which does the same.
    pub(crate) fn of(self, n: usize, write: &Write) -> Option<[u8; 16]> {
        let named = match write {
            Write::Create(create) => create.event_id.is_some(),
            Write::Append(append) => {
                append.events.as_slice().first().is_none_or(|event| event.id.is_some())
            }
            Write::Prune(_) => false,
        };
        let mut mark = [0; 16];
        mark[..8].copy_from_slice(&self.store);
        mark[8..].copy_from_slice(&(self.first + n as u64).to_le_bytes());
        (!named).then_some(mark)
    }
}
