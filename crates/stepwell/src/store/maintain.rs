//! What keeps a store in order.

use std::path::Path;

use super::{DiskUse, Indexed, Place, Removal, Scrub, Target, Verdict};
use crate::error::{Error, Result};
use crate::model::{Owner, Seq, SessionId};

/// What keeps a store in order: trash and purge, scrubbing, verification and repair, its search
/// index, its space. A [`Store`](crate::store::Store) hands it out.
pub trait Maintain: std::fmt::Debug + Send + Sync {
    /// Moves sessions to the trash, with the sessions of their subagents. Those
    /// that run, that are gone, or that moved on since the caller looked are left.
    fn trash(&self, targets: &[Target]) -> Result<Removal>;

    /// Brings sessions back from the trash, with the subagents that went with them.
    fn restore(&self, ids: &[SessionId]) -> Result<Removal>;

    /// Erases sessions for good, with the sessions of their subagents; of one in the
    /// trash, with those that are there too. Running ones are left. Events that a fork
    /// shares live on in the fork. Bytes that a reader still sees may stay in the
    /// store's log until it is done.
    fn purge(&self, targets: &[Target]) -> Result<Removal>;

    /// Replaces bodies and records it. The chain still verifies, and shows that
    /// they were replaced. Needs the lease, unless the session is in the trash.
    fn scrub(&self, scrub: Scrub) -> Result<Seq>;

    /// Bytes in use, in all.
    fn disk_use(&self) -> Result<DiskUse>;

    /// A place in a session's log, or its end; none, if the log has no such event. The events that a
    /// fork shares are part of its log.
    fn place(&self, id: &SessionId, at: Option<Seq>) -> Result<Option<Place>>;

    /// Re-reads, re-hashes and re-folds a session.
    fn verify(&self, id: &SessionId) -> Result<Verdict>;

    /// Rebuilds what is derived from a session's events: its head, its lanes and
    /// its place in the search index. The events are not touched; a session whose
    /// log is damaged stays marked, readable up to the damage.
    fn repair(&self, id: &SessionId) -> Result<Verdict>;

    /// Leases that their holders never gave back, and who those are: processes that died, or
    /// fell silent for too long.
    fn stale_leases(&self) -> Result<Vec<(SessionId, Owner)>>;

    /// What is wrong with the store itself; nothing, if all is well. A server looks after its
    /// own files.
    fn integrity(&self) -> Result<Vec<String>> {
        Ok(Vec::new())
    }

    /// Brings the search index up to date, which a search does by itself, and tells now and then how
    /// far it is.
    fn catch_up(&self, _told: &dyn Fn(Indexed)) -> Result<()> {
        Ok(())
    }

    /// Builds the search index anew.
    fn rebuild_search(&self) -> Result<()> {
        Ok(())
    }

    /// Gives the space of what was erased back to the disk, where that is not done anyway.
    fn shrink(&self) -> Result<()> {
        Ok(())
    }

    /// Copies the whole store to a file, consistently, while it is in use.
    fn backup(&self, to: &Path) -> Result<()> {
        let what = "it has no file of its own to copy".to_owned();
        Err(Error::Unsupported { path: to.to_owned(), what })
    }

    /// Does what is left to do before a store goes, and tells if that fails. Dropping the store
    /// does the same, and tells nobody.
    fn close(&self) -> Result<()> {
        Ok(())
    }
}
