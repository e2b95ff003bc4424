//! The conformance suite against a [`SqliteStore`] in memory.

use std::sync::Arc;

use stepwell::Store;
use stepwell::sqlite::{SqliteOptions, SqliteStore};
use stepwell_conformance::{Fixture, TestClock, TestProcesses};

/// Opening it again gives the same store.
#[derive(Default)]
struct Memory(Option<Arc<SqliteStore>>);

fn memory() -> Memory {
    Memory::default()
}

impl Fixture for Memory {
    fn open(&mut self, clock: Arc<TestClock>, processes: Arc<TestProcesses>) -> Arc<dyn Store> {
        let options = SqliteOptions { clock, processes, ..SqliteOptions::default() };
        let make = || Arc::new(SqliteStore::in_memory_with(options).unwrap());
        Arc::clone(self.0.get_or_insert_with(make)) as Arc<dyn Store>
    }
}

stepwell_conformance::suite!(memory);
