//! A store whose process dies at a write of the test's choice.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use stepwell::log::LaneState;
use stepwell::model::{Digest, Owner};
use stepwell::store::changes::{ChangeCursor, Changes, Wait};
use stepwell::store::query::{Filter, Found, Page, Query, Search};
use stepwell::store::{
    Counts, DiskUse, Lease, LeaseRequest, Maintain, Removal, Scrub, Selection, Slice, Target,
    Verdict, Write, Written,
};
use stepwell::{Lane, Result, Seq, SessionId, SessionInfo, Store};

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
    fn batch(&self, writes: Vec<Write>) -> Result<Vec<Written>> {
        self.write(|inner| inner.batch(writes))
    }

    /// The dead give nothing back.
    fn release(&self, lease: &Lease) -> Result<()> {
        if self.left.load(Ordering::SeqCst) < 0 { Ok(()) } else { self.inner.release(lease) }
    }

    pass_on! {
        info(id: &SessionId) -> SessionInfo;
        lanes(id: &SessionId) -> BTreeMap<Lane, LaneState>;
        select(id: &SessionId, selection: Selection<'_>) -> Slice;
        list(query: &Query) -> Page;
        count(filter: &Filter) -> Counts;
        acquire(id: &SessionId, claim: &LeaseRequest) -> Lease;
        renew(lease: &Lease, ttl: Duration) -> Lease;
        keep_blobs(blobs: &[(Digest, &[u8])]) -> ();
        blobs(digests: &[Digest]) -> Vec<Vec<u8>>;
        search(search: &Search, redactor: &stepwell::log::Redactor) -> Found;
        changes(after: Option<&ChangeCursor>, wait: Wait<'_>) -> Changes;
    }

    fn maintain(&self) -> &dyn Maintain {
        self
    }
}

impl Maintain for Mortal {
    fn purge(&self, targets: &[Target]) -> Result<Removal> {
        self.write(|inner| inner.maintain().purge(targets))
    }

    fn trash(&self, targets: &[Target]) -> Result<Removal> {
        self.inner.maintain().trash(targets)
    }

    fn restore(&self, ids: &[SessionId]) -> Result<Removal> {
        self.inner.maintain().restore(ids)
    }

    fn scrub(&self, scrub: Scrub) -> Result<Seq> {
        self.inner.maintain().scrub(scrub)
    }

    fn disk_use(&self) -> Result<DiskUse> {
        self.inner.maintain().disk_use()
    }

    fn place(&self, id: &SessionId, at: Option<Seq>) -> Result<Option<stepwell::store::Place>> {
        self.inner.maintain().place(id, at)
    }

    fn verify(&self, id: &SessionId) -> Result<Verdict> {
        self.inner.maintain().verify(id)
    }

    fn repair(&self, id: &SessionId) -> Result<Verdict> {
        self.inner.maintain().repair(id)
    }

    fn stale_leases(&self) -> Result<Vec<(SessionId, Owner)>> {
        self.inner.maintain().stale_leases()
    }
}
