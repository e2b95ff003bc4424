//! Changes of a session's attributes and checkpoints.

use std::collections::{BTreeMap, BTreeSet};

use schemars::JsonSchema;
use serde::Serialize;
use stepwell::model::{Checkpoint, CheckpointReason, Phase, Time};
use stepwell::work::RecordedCheckpoint;
use stepwell::{Seq, SessionId, Status};

/// A session's label.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct Label {
    /// The session.
    pub id: SessionId,
    /// Its label; null, if it has none.
    pub label: Option<String>,
}

/// A session's tags.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct Tags {
    /// The session.
    pub id: SessionId,
    /// All of its tags.
    pub tags: BTreeSet<String>,
}

/// Whether a session is exempt from cleanup.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct Pin {
    /// The session.
    pub id: SessionId,
    /// Is it exempt from cleanup?
    pub pinned: bool,
}

/// Whether a message is exempt from compaction.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct MessagePin {
    /// The session.
    pub id: SessionId,
    /// The message.
    pub seq: Seq,
    /// Is it exempt?
    pub pinned: bool,
    /// All pinned messages.
    pub pins: Vec<Seq>,
}

/// A session's metadata.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct Metadata {
    /// The session.
    pub id: SessionId,
    /// All entries.
    pub metadata: BTreeMap<String, serde_json::Value>,
}

/// A checkpoint of a session.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct CheckpointInfo {
    /// Its name; the last one of several with the same name counts.
    pub name: String,
    /// Its point.
    pub seq: Seq,
    /// When it was made.
    pub at: Time,
    /// Why it was made.
    pub reason: CheckpointReason,
    /// The phase at that point; absent, if there was none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub phase: Option<Phase>,
    /// Its metadata.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub metadata: BTreeMap<String, serde_json::Value>,
}

impl From<RecordedCheckpoint> for CheckpointInfo {
    fn from(it: RecordedCheckpoint) -> Self {
        let Checkpoint { name, reason, metadata } = it.checkpoint;
        Self { name, seq: it.seq, at: it.at, reason, phase: it.phase, metadata }
    }
}

/// A checkpoint that was just made.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct CheckpointMade {
    /// The session.
    pub id: SessionId,
    /// The checkpoint's name.
    pub checkpoint: String,
    /// Its point.
    pub seq: Seq,
}

/// A session that was just forked from another.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct Forked {
    /// The new session.
    pub id: SessionId,
    /// The session whose events it shares.
    pub parent: SessionId,
    /// The last event that it shares.
    pub at: Seq,
}

/// A session that was abandoned.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct Abandoned {
    /// The session.
    pub id: SessionId,
    /// Its status now.
    pub status: Status,
}

/// A running session that received a stop request.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct StopAsked {
    /// The session.
    pub id: SessionId,
    /// The process that runs it.
    pub asked: String,
}
