//! The suite against [`MemoryStore`].

use std::sync::Arc;

use stepwell::{MemoryStore, Store};
use stepwell_conformance::{Fixture, TestClock, TestProcesses};

/// A store that keeps nothing: opening it again gives the same one.
#[derive(Default)]
struct Memory(Option<Arc<MemoryStore>>);

fn memory() -> Memory {
    Memory::default()
}

impl Fixture for Memory {
    fn open(&mut self, clock: Arc<TestClock>, processes: Arc<TestProcesses>) -> Arc<dyn Store> {
        let make = || Arc::new(MemoryStore::with(clock, processes));
        Arc::clone(self.0.get_or_insert_with(make)) as Arc<dyn Store>
    }
}

stepwell_conformance::suite!(memory);
