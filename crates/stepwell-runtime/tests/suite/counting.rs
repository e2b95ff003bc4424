//! A store that counts the events that are read.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use stepwell::backend::write::Prepared;
use stepwell::{
    ChangeCursor, Changes, Counts, Digest, DiskUse, EventId, Facts, Filter, Found, Lane, LaneState,
    Lease, LeaseRequest, Maintain, MemoryStore, Owner, Page, Query, RecordQuery, Recorded,
    Redactor, Removal, Result, Scrub, Search, Seq, SessionId, SessionInfo, Slice, Span, Store,
    Target, Verdict, Written,
};

/// A store in memory that counts the events that are read.
#[derive(Debug, Default)]
pub(crate) struct Counting {
    inner: MemoryStore,
    events: AtomicUsize,
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
    fn events(&self, id: &SessionId, span: Span) -> Result<Slice> {
        let read = self.inner.events(id, span)?;
        self.events.fetch_add(read.events.len(), Ordering::SeqCst);
        Ok(read)
    }

    fn keyed(&self, id: &SessionId, facts: Facts<'_>) -> Result<Vec<Recorded>> {
        let read = self.inner.keyed(id, facts)?;
        self.events.fetch_add(read.len(), Ordering::SeqCst);
        Ok(read)
    }

    pass_on! {
        batch_prepared(prepared: Vec<Prepared>) -> Vec<Written>;
        release(lease: &Lease) -> ();
        info(id: &SessionId) -> SessionInfo;
        place(id: &SessionId, at: Option<Seq>) -> Option<stepwell::store::Place>;
        lanes(id: &SessionId) -> BTreeMap<Lane, LaneState>;
        records(id: &SessionId, query: &RecordQuery) -> Vec<Recorded>;
        event(id: &SessionId, event: &EventId) -> Option<Recorded>;
        blobs(digests: &[Digest]) -> Vec<Vec<u8>>;
        list(query: &Query) -> Page;
        count(filter: &Filter) -> Counts;
        acquire(id: &SessionId, claim: &LeaseRequest) -> Lease;
        renew(lease: &Lease, ttl: Duration) -> Lease;
        keep_blobs(blobs: &[(Digest, &[u8])]) -> ();
        blob(digest: &Digest) -> Vec<u8>;
        search(search: &Search, redactor: &Redactor) -> Found;
        wait_after(id: &SessionId, seq: Seq, timeout: Duration) -> Seq;
        changes(after: Option<&ChangeCursor>, timeout: Duration) -> Changes;
    }
}

impl Maintain for Counting {
    pass_on! {
        purge(targets: &[Target]) -> Removal;
        trash(targets: &[Target]) -> Removal;
        restore(ids: &[SessionId]) -> Removal;
        scrub(scrub: Scrub) -> Seq;
        disk_use() -> DiskUse;
        verify(id: &SessionId) -> Verdict;
        repair(id: &SessionId) -> Verdict;
        stale_leases() -> Vec<(SessionId, Owner)>;
    }
}
