//! Stores, backups, copies and worktrees.

use schemars::JsonSchema;
use serde::Serialize;
use stepwell::{SessionId, Status};

/// A store: its engine, its place, and what an acknowledged step survives.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct StoreInfo {
    /// `SQLite` or `PostgreSQL`.
    pub engine: String,
    /// The engine's version.
    pub version: String,
    /// A path, or a URL without its password.
    pub store: String,
    /// The team's namespace in the database.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub namespace: Option<String>,
    /// The version of the schema.
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
    /// The servers that replicate it.
    pub standbys: Vec<StoreStandby>,
}

/// What an acknowledged step survives.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Durability {
    /// Nothing is guaranteed.
    None,
    /// A crash of its machine.
    Local,
    /// The loss of the primary.
    Replicated,
    /// Unknown, because a standby cannot say.
    Unknown,
}

/// A server that replicates another one.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct StoreStandby {
    /// Its name.
    pub name: String,
    /// For example `streaming`.
    pub state: String,
    /// For example `sync` or `async`.
    pub sync: String,
    /// How many bytes it lags behind.
    pub behind_bytes: u64,
}

/// A session that was copied to another store.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct Copied {
    /// The session.
    pub session: SessionId,
    /// The copied part.
    pub copied: CopyResult,
    /// Was it moved to the trash there, because it is in the trash here?
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub trashed: bool,
}

/// The copied part of a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum CopyResult {
    /// All of it.
    Made,
    /// The part that was not there yet.
    Completed,
    /// Nothing: everything was there.
    AlreadyThere,
}

/// The SQL that lets a role use a namespace.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct RoleScript {
    /// The SQL statements.
    pub sql: String,
}

/// How long a store keeps deleted and unused sessions.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct StoreRetention {
    /// Days in the trash after which a session is erased.
    pub retention_days: u32,
    /// Days without activity after which a session is deleted automatically.
    pub cleanup_after_days: Option<u32>,
    /// The role that may change this, in a team's store.
    pub owner: Option<String>,
}

/// A backup of a store.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct BackedUp {
    /// The file.
    pub file: String,
    /// Its size.
    pub bytes: u64,
}

/// A store that was restored from a backup.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct StoreRestored {
    /// The store.
    pub store: String,
    /// How many sessions it holds.
    pub sessions: u64,
    /// The new name of the store that was there before.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub replaced: Option<String>,
}

/// An initialised workspace.
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
    /// Its state; null, if git cannot say.
    pub state: Option<WorktreeState>,
    /// The paths that are kept nowhere else and cause this state.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub paths: Vec<String>,
    /// The unmerged commit, if no branch contains it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub commit: Option<String>,
    /// Why git cannot determine its state.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// Does a session work in it, or could one be resumed there?
    pub in_use: bool,
    /// That session.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub used_by: Option<SessionId>,
    /// The status of the subagent's session; null, if it was erased.
    pub status: Option<Status>,
    /// The subagent's task; null, if its session was erased.
    pub task: Option<String>,
    /// The session that started it; null, if its session was erased.
    pub parent: Option<SessionId>,
}

/// The state of a worktree.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum WorktreeState {
    /// It has no commits and no changes of its own.
    Clean,
    /// All of its commits are part of the checked-out branch, and it has no other changes.
    Merged,
    /// It has unmerged commits.
    Unmerged,
    /// It has uncommitted changes.
    Uncommitted,
    /// It is clean or merged, but contains files that git ignores.
    Ignored,
    /// It contains another git repository.
    Nested,
    /// Something other than its branch is checked out in it.
    Elsewhere,
    /// Its branch is checked out in the workspace or in another worktree, which `paths` names.
    CheckedOut,
    /// Its folder was removed by hand, and its branch has no commits of its own.
    Gone,
    /// Its folder exists, but git does not know it as a worktree.
    Broken,
}

impl WorktreeState {
    /// Can it be removed without a loss?
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
