//! Maintenance of a store.

use std::path::Path;

use super::{DiskUse, Indexed, Place, Removal, Scrub, Target, Verdict};
use crate::error::{Error, Result};
use crate::model::{Owner, Seq, SessionId};

/// Maintenance of a store: trash and purge, scrubbing, verification and repair, the search index,
/// disk space. [`Store::maintain`](crate::store::Store::maintain) returns it.
pub trait Maintain: std::fmt::Debug + Send + Sync {
    /// Moves sessions to the trash, with the sessions of their subagents. Sessions that run, do not
    /// exist, or changed since the caller read them are left.
    fn trash(&self, targets: &[Target]) -> Result<Removal>;

    /// Restores sessions from the trash, with the subagents' sessions that were moved there
    /// together with them.
    fn restore(&self, ids: &[SessionId]) -> Result<Removal>;

    /// Erases sessions for good, with the sessions of their subagents. With a session in the trash,
    /// only those in the trash are erased. Running sessions are left. Events that a fork shares
    /// stay in the fork. Bytes that a reader still uses may stay in the store's log until it is
    /// done.
    fn purge(&self, targets: &[Target]) -> Result<Removal>;

    /// Replaces bodies and records the replacement. The chain still verifies, and shows that they
    /// were replaced. Needs the lease, unless the session is in the trash.
    fn scrub(&self, scrub: Scrub) -> Result<Seq>;

    /// The store's disk use.
    fn disk_use(&self) -> Result<DiskUse>;

    /// The chain's value at a seq of a session's log, or at its end. `None` if the log has no such
    /// event. The events that a fork shares are part of its log.
    fn place(&self, id: &SessionId, at: Option<Seq>) -> Result<Option<Place>>;

    /// Reads all of a session's events again, checks their digests, and folds them.
    fn verify(&self, id: &SessionId) -> Result<Verdict>;

    /// Rebuilds what is derived from a session's events: its head, its lanes and its part of the
    /// search index. The events are not changed. A session with a damaged log stays marked as
    /// damaged, and readable up to the damage.
    fn repair(&self, id: &SessionId) -> Result<Verdict>;

    /// Leases that were never released, with their processes, which are dead or have been silent
    /// for too long.
    fn stale_leases(&self) -> Result<Vec<(SessionId, Owner)>>;

    /// What is wrong with the store as a whole; empty if nothing is. A server checks its own files.
    fn integrity(&self) -> Result<Vec<String>> {
        Ok(Vec::new())
    }

    /// Brings the search index up to date, as a search also does, and reports the progress now and
    /// then.
    fn catch_up(&self, _told: &dyn Fn(Indexed)) -> Result<()> {
        Ok(())
    }

    /// Rebuilds the search index.
    fn rebuild_search(&self) -> Result<()> {
        Ok(())
    }

    /// Returns the space of erased data to the disk, if the store does not do that on its own.
    fn shrink(&self) -> Result<()> {
        Ok(())
    }

    /// Copies the whole store to a file, consistently, while it is in use.
    fn backup(&self, to: &Path) -> Result<()> {
        let what = "it has no file of its own to copy".to_owned();
        Err(Error::Unsupported { path: to.to_owned(), what })
    }

    /// Finishes pending work before the store is dropped, and returns an error if that fails.
    /// Dropping the store does the same without reporting errors.
    fn close(&self) -> Result<()> {
        Ok(())
    }
}
