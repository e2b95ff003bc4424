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
    /// Git still sees the store's folder.
    GitignoreNotChanged {
        /// Why `.gitignore` could not be changed.
        why: String,
    },
    /// The user's other stores are not known.
    RegistryNotRead {
        /// Why not.
        why: String,
    },
    /// One of the user's stores is left out.
    StoreNotOpened {
        /// Why it could not be opened; names the store.
        why: String,
    },
    /// A session is in another workspace, which is used from now on.
    SessionElsewhere {
        /// How the session was named.
        name: String,
        /// That workspace's root.
        root: PathBuf,
    },
    /// The user's list of prices cannot be read; the one that ships is used.
    PricesNotRead {
        /// Why not.
        why: String,
    },
    /// Sessions were removed from the trash for good.
    TrashEmptied {
        /// How many.
        sessions: usize,
        /// For how many days they had been in it.
        days: u32,
    },
    /// The trash was not emptied of what is due, or old sessions not cleaned up.
    NotTidied {
        /// Why not.
        why: String,
    },
    /// The space of what was erased was not given back to the disk.
    SpaceNotFreed {
        /// Why not.
        why: String,
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
    /// `STATE.md` and `TASKS.md` do not show what the store says.
    MirrorNotCurrent {
        /// Why not.
        why: String,
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
    /// A subagent's worktree is no longer needed, and could not be removed.
    WorktreeNotRemoved {
        /// The subagent's session.
        session: SessionId,
        /// What git said.
        why: String,
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
    /// Nobody looked which of the subagents' worktrees are needed.
    WorktreesNotChecked {
        /// Why not.
        why: String,
    },
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
