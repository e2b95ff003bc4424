//! Deleted, restored and erased sessions.

use schemars::JsonSchema;
use serde::Serialize;
use stepwell::{Seq, SessionId};

/// A session that was moved to the trash.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct Deleted {
    /// The session.
    pub deleted: SessionId,
}

/// A session that was restored from the trash.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct Restored {
    /// The session.
    pub restored: SessionId,
}

/// A session that was erased for good.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct Erased {
    /// The session.
    pub erased: SessionId,
}

/// A session that a cleanup removed, or would remove.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct CleanupItem {
    /// The session.
    pub session: SessionId,
    /// The rule that selected it: `age`, `count` or `bytes`.
    pub because: String,
    /// Its size.
    pub bytes: u64,
    /// How many subagents' sessions go with it.
    pub subagents: usize,
    /// Was it removed?
    pub removed: bool,
}

/// A session that a cleanup keeps although a rule selects it.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct CleanupKept {
    /// The session.
    pub session: SessionId,
    /// Why it stays.
    pub stays_because: String,
}

/// How many sessions a cleanup removed.
#[derive(Clone, Copy, Debug, Serialize, JsonSchema)]
pub struct CleanupTotal {
    /// The number, with subagents' sessions.
    pub sessions_removed: usize,
}

/// A session in which text was erased.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct Scrubbed {
    /// The session.
    pub session: SessionId,
    /// How many of its events were changed.
    pub events: usize,
    /// The event that records the erasure.
    pub scrubbed_at: Seq,
}
