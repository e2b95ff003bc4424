//! A store that counts the events that are read.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use stepwell::log::{LaneState, Redactor};
use stepwell::model::Digest;
use stepwell::sqlite::SqliteStore;
use stepwell::store::changes::{ChangeCursor, Changes, Wait};
use stepwell::store::query::{Filter, Found, Page, Query, Search};
use stepwell::store::{Counts, Lease, LeaseRequest, Maintain, Selection, Slice, Write, Written};
use stepwell::{Lane, Result, SessionId, SessionInfo, Store};

/// A store in memory that counts the events that are read.
#[derive(Debug)]
pub(crate) struct Counting {
    inner: SqliteStore,
    events: AtomicUsize,
}

impl Default for Counting {
    fn default() -> Self {
        Self { inner: SqliteStore::in_memory().unwrap(), events: AtomicUsize::default() }
    }
}

impl Counting {
    pub(crate) fn reset(&self) {
        self.events.store(0, Ordering::SeqCst);
    }

    /// How many events were read since.
    pub(crate) fn events(&self) -> usize {
        self.events.load(Ordering::SeqCst)
    }
}

macro_rules! pass_on {
    ($($name:ident($($arg:ident: $of:ty),*) -> $answer:ty;)*) => {
        $(fn $name(&self, $($arg: $of),*) -> Result<$answer> {
            self.inner.$name($($arg),*)
        })*
    };
}

impl Store for Counting {
    fn select(&self, id: &SessionId, selection: Selection<'_>) -> Result<Slice> {
        let read = self.inner.select(id, selection)?;
        if matches!(selection, Selection::Span(_) | Selection::Keyed(_)) {
            self.events.fetch_add(read.events.len(), Ordering::SeqCst);
        }
        Ok(read)
    }

    pass_on! {
        batch(writes: Vec<Write>) -> Vec<Written>;
        release(lease: &Lease) -> ();
        info(id: &SessionId) -> SessionInfo;
        lanes(id: &SessionId) -> BTreeMap<Lane, LaneState>;
        list(query: &Query) -> Page;
        count(filter: &Filter) -> Counts;
        acquire(id: &SessionId, claim: &LeaseRequest) -> Lease;
        renew(lease: &Lease, ttl: Duration) -> Lease;
        keep_blobs(blobs: &[(Digest, &[u8])]) -> ();
        blobs(digests: &[Digest]) -> Vec<Vec<u8>>;
        search(search: &Search, redactor: &Redactor) -> Found;
        changes(after: Option<&ChangeCursor>, wait: Wait<'_>) -> Changes;
    }

    fn maintain(&self) -> &dyn Maintain {
        &self.inner
    }
}
