//! Stores and what is beside them: backups, copies, worktrees.

use schemars::JsonSchema;
use serde::Serialize;
use stepwell::{SessionId, Status};

/// A store: its engine, where it is, and what an acknowledged step survives.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct StoreInfo {
    /// `SQLite` or `PostgreSQL`.
    pub engine: String,
    /// The engine's version.
    pub version: String,
    /// A path, or an address without its password.
    pub store: String,
    /// The team's part of the database.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub namespace: Option<String>,
    /// The version of the tables.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub schema: Option<u32>,
    /// `primary` or `standby`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub role: Option<String>,
    /// How many sessions it holds.
    pub sessions: u64,
    /// What an acknowledged step survives.
    pub durability: Durability,
    /// Why a step survives that much.
    pub because: String,
    /// The servers that repeat what it writes.
    pub standbys: Vec<StoreStandby>,
}

/// What an acknowledged step survives.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Durability {
    /// It may be lost.
    None,
    /// It survives a crash of its machine.
    Local,
    /// It survives the loss of the primary.
    Replicated,
    /// A standby cannot say.
    Unknown,
}

/// A server that repeats what another writes.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct StoreStandby {
    /// Its name.
    pub name: String,
    /// Such as `streaming`.
    pub state: String,
    /// Such as `sync` or `async`.
    pub sync: String,
    /// How many bytes it is behind.
    pub behind_bytes: u64,
}

/// A session that was copied to another store.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct Copied {
    /// The session.
    pub session: SessionId,
    /// What was copied of it.
    pub copied: CopyResult,
    /// Was it moved to the trash there, because it is in the trash here?
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub trashed: bool,
}

/// What was copied of a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum CopyResult {
    /// All of it.
    Made,
    /// What was not there yet.
    Completed,
    /// Nothing: all of it was there.
    AlreadyThere,
}

/// The SQL that lets a role use a namespace.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct RoleScript {
    /// The statements.
    pub sql: String,
}

/// How long a store keeps what was deleted.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct StoreRetention {
    /// After how many days in the trash a session is erased.
    pub retention_days: u32,
    /// After how many days without activity a session is moved to the trash by itself.
    pub cleanup_after_days: Option<u32>,
    /// The role that may change this, if the store is a team's.
    pub owner: Option<String>,
}

/// A copy of a store that was made.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct BackedUp {
    /// The file.
    pub file: String,
    /// Its size.
    pub bytes: u64,
}

/// A store that was made from a backup.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct StoreRestored {
    /// The store.
    pub store: String,
    /// How many sessions it holds.
    pub sessions: u64,
    /// What the store that was there before is called now.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub replaced: Option<String>,
}

/// A workspace that was made ready.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct StoreMade {
    /// The store.
    pub store: String,
    /// Is it new?
    pub made_store: bool,
    /// Is its `stepwell.toml` new?
    pub made_config: bool,
    /// Was `.gitignore` changed?
    pub changed_gitignore: bool,
}

/// Manual pages that were written.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct ManualPages {
    /// The folder.
    pub folder: String,
    /// How many pages it holds.
    pub pages: usize,
}

/// A git worktree of a subagent.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct Worktree {
    /// The subagent's session.
    pub id: SessionId,
    /// Its branch.
    pub branch: String,
    /// Its folder.
    pub path: String,
    /// How it stands; null, if git cannot say.
    pub state: Option<WorktreeState>,
    /// What it holds that nothing else keeps, if that is how it stands.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub paths: Vec<String>,
    /// The commit that is not merged, if it is on no branch either.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub commit: Option<String>,
    /// Why git cannot say how it stands.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// Does a session work in it, or may one go on there?
    pub in_use: bool,
    /// That session.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub used_by: Option<SessionId>,
    /// How the subagent's session stands; null, if it was erased.
    pub status: Option<Status>,
    /// What the subagent was asked for; null, if its session was erased.
    pub task: Option<String>,
    /// The session that started it; null, if its session was erased.
    pub parent: Option<SessionId>,
}

/// How a worktree stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum WorktreeState {
    /// It has no commits and no changes of its own.
    Clean,
    /// All of its commits are part of what is checked out, and nothing else was changed.
    Merged,
    /// It holds commits that are not merged.
    Unmerged,
    /// It holds changes that are not committed.
    Uncommitted,
    /// It is clean or merged, but holds files that git ignores.
    Ignored,
    /// It holds a git repository of its own.
    Nested,
    /// Something other than its branch is checked out in it.
    Elsewhere,
    /// Its branch is checked out in the workspace or in another worktree, which is named.
    CheckedOut,
    /// Its folder was removed by hand, and its branch holds no commits of its own.
    Gone,
    /// Its folder is there, but git does not know it as a worktree any more.
    Broken,
}

impl WorktreeState {
    /// Would nothing be lost without it?
    #[must_use]
    pub const fn is_done(self) -> bool {
        matches!(self, Self::Clean | Self::Merged)
    }
}

/// A worktree that was removed.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct WorktreeRemoved {
    /// The subagent's session.
    pub removed: SessionId,
}
