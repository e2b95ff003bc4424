//! A store whose process dies at a write of the test's choice.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use stepwell::backend::write::Prepared;
use stepwell::{
    ChangeCursor, Changes, Counts, Digest, DiskUse, EventId, Facts, Filter, Found, Lane, LaneState,
    Lease, LeaseRequest, Maintain, Owner, Page, Query, RecordQuery, Recorded, Removal, Result,
    Scrub, Search, Seq, SessionId, SessionInfo, Slice, Span, Store, Target, Verdict, Written,
};

/// Does the process die before its last write, or when that is durable?
#[derive(Clone, Copy, Debug)]
pub(crate) enum Death {
    Before,
    After,
}

/// A store that panics at a write: for whoever comes later, its process has died.
#[derive(Debug)]
pub(crate) struct Mortal {
    inner: Arc<dyn Store>,
    left: AtomicI64,
    death: Death,
}

impl Mortal {
    /// Dies at its write number `writes`, counted from zero.
    pub(crate) fn after(inner: Arc<dyn Store>, writes: i64, death: Death) -> Self {
        Self { inner, left: AtomicI64::new(writes), death }
    }

    fn write<T>(&self, write: impl FnOnce(&dyn Store) -> Result<T>) -> Result<T> {
        let last = self.left.fetch_sub(1, Ordering::SeqCst) <= 0;
        assert!(!(last && matches!(self.death, Death::Before)), "the process dies");
        let written = write(&*self.inner);
        assert!(!last, "the process dies");
        written
    }
}

macro_rules! pass_on {
    ($($name:ident($($arg:ident: $of:ty),*) -> $answer:ty;)*) => {
        $(fn $name(&self, $($arg: $of),*) -> Result<$answer> {
            self.inner.$name($($arg),*)
        })*
    };
}

impl Store for Mortal {
    fn batch_prepared(&self, prepared: Vec<Prepared>) -> Result<Vec<Written>> {
        self.write(|inner| inner.batch_prepared(prepared))
    }

    /// The dead give nothing back.
    fn release(&self, lease: &Lease) -> Result<()> {
        if self.left.load(Ordering::SeqCst) < 0 { Ok(()) } else { self.inner.release(lease) }
    }

    pass_on! {
        info(id: &SessionId) -> SessionInfo;
        place(id: &SessionId, at: Option<Seq>) -> Option<stepwell::store::Place>;
        lanes(id: &SessionId) -> BTreeMap<Lane, LaneState>;
        events(id: &SessionId, span: Span) -> Slice;
        keyed(id: &SessionId, facts: Facts<'_>) -> Vec<Recorded>;
        records(id: &SessionId, query: &RecordQuery) -> Vec<Recorded>;
        event(id: &SessionId, event: &EventId) -> Option<Recorded>;
        blobs(digests: &[Digest]) -> Vec<Vec<u8>>;
        list(query: &Query) -> Page;
        count(filter: &Filter) -> Counts;
        acquire(id: &SessionId, claim: &LeaseRequest) -> Lease;
        renew(lease: &Lease, ttl: Duration) -> Lease;
        keep_blobs(blobs: &[(Digest, &[u8])]) -> ();
        blob(digest: &Digest) -> Vec<u8>;
        search(search: &Search, redactor: &stepwell::Redactor) -> Found;
        wait_after(id: &SessionId, seq: Seq, timeout: Duration) -> Seq;
        changes(after: Option<&ChangeCursor>, timeout: Duration) -> Changes;
    }
}

impl Maintain for Mortal {
    fn purge(&self, targets: &[Target]) -> Result<Removal> {
        self.write(|inner| inner.purge(targets))
    }

    pass_on! {
        trash(targets: &[Target]) -> Removal;
        restore(ids: &[SessionId]) -> Removal;
        scrub(scrub: Scrub) -> Seq;
        disk_use() -> DiskUse;
        verify(id: &SessionId) -> Verdict;
        repair(id: &SessionId) -> Verdict;
        stale_leases() -> Vec<(SessionId, Owner)>;
    }
}
