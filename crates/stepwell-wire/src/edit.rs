//! What became of a session's own attributes, and of points of it.

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

/// Whether a session is kept from cleanup.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct Pin {
    /// The session.
    pub id: SessionId,
    /// Is it kept from cleanup?
    pub pinned: bool,
}

/// Whether a message stays in the conversation, whatever is compacted.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct MessagePin {
    /// The session.
    pub id: SessionId,
    /// The message.
    pub seq: Seq,
    /// Does it stay?
    pub pinned: bool,
    /// All messages that stay.
    pub pins: Vec<Seq>,
}

/// A session's metadata.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct Metadata {
    /// The session.
    pub id: SessionId,
    /// All of it.
    pub metadata: BTreeMap<String, serde_json::Value>,
}

/// A checkpoint of a session.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct CheckpointInfo {
    /// Its name; of several with the same name, the last one counts.
    pub name: String,
    /// The point that it names.
    pub seq: Seq,
    /// When it was made.
    pub at: Time,
    /// Why it was made.
    pub reason: CheckpointReason,
    /// The phase that the work was in; absent, if it has none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub phase: Option<Phase>,
    /// What is remembered with it.
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
    /// The point that it names.
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

/// A session that was given up.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct Abandoned {
    /// The session.
    pub id: SessionId,
    /// How it stands now.
    pub status: Status,
}

/// A running session that was asked to stop.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct StopAsked {
    /// The session.
    pub id: SessionId,
    /// The process that was asked.
    pub asked: String,
}
