//! What a person should know although nobody asked: typed, so that each front end words it.

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

use serde::Serialize;
use stepwell::{Seq, SessionId};

/// Something that a person should know although nobody asked.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "notice", rename_all = "snake_case")]
pub enum Notice {
    /// Something was not done, and all else continues.
    Warning {
        /// What was not done.
        what: String,
        /// Why not.
        why: String,
    },
    /// A session is in another workspace, which is used from now on.
    SessionElsewhere {
        /// How the session was named.
        name: String,
        /// That workspace's root.
        root: PathBuf,
    },
    /// Sessions were removed from the trash for good.
    TrashEmptied {
        /// How many.
        sessions: usize,
        /// For how many days they had been in it.
        days: u32,
    },
    /// Old sessions were moved to the trash.
    CleanedUp {
        /// How many.
        sessions: usize,
    },
    /// An old session stays: a rewind of it was cut off, and only it knows how to finish that.
    HalfRewoundKept {
        /// The session.
        session: SessionId,
    },
    /// A session stays in the trash: a rewind of it was cut off.
    HalfRewoundKeptInTrash {
        /// The session.
        session: SessionId,
    },
    /// A worktree that was removed is there again.
    WorktreeRestored {
        /// The session that works in it.
        session: SessionId,
    },
    /// A subagent's worktree was removed: nothing in it was left to merge.
    WorktreeRemoved {
        /// The subagent's session.
        session: SessionId,
    },
    /// Something could not be repaired.
    RepairFailed {
        /// What, and why not.
        why: String,
    },
    /// A session could not be repaired: what lies before the damage can be read.
    StaysDamaged {
        /// The session.
        session: SessionId,
        /// The first event that cannot be read.
        seq: Seq,
    },
}

impl Notice {
    /// Something was not done, and all else continues.
    pub(crate) fn warning(what: impl Into<String>, why: &impl ToString) -> Self {
        Self::Warning { what: what.into(), why: why.to_string() }
    }
}

/// Where notices go: those of a workspace, or of whoever works in one.
pub struct Notices<N = Notice>(Arc<dyn Fn(&N) + Send + Sync>);

impl<N> Notices<N> {
    /// Notices that this function is told of, on whichever thread.
    pub fn to(tell: impl Fn(&N) + Send + Sync + 'static) -> Self {
        Self(Arc::new(tell))
    }

    /// Notices that nobody reads.
    #[must_use]
    pub fn to_nobody() -> Self {
        Self::to(|_| {})
    }

    /// Tells of one.
    #[expect(clippy::needless_pass_by_value, reason = "callers make it for this")]
    pub fn tell(&self, notice: N) {
        (self.0)(&notice);
    }
}

impl<N> Clone for Notices<N> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<N> fmt::Debug for Notices<N> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Notices")
    }
}
