//! Tool calls: their effects, their start and their outcome.

use serde::{Deserialize, Serialize};

use super::digest::Digest;
use super::id::{Lane, SessionId};

/// What a tool call may change, and so whether it may run again after a crash.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Effect {
    /// Changes nothing: may run again.
    Pure,
    /// Running it again has no further effect if its target is unchanged.
    Idempotent,
    /// Keeps its own record: a second run continues where the first stopped.
    Resumable,
    /// Anything else: runs at most once.
    Unsafe,
}

/// A tool is about to run. This is on disk before it does.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ToolStarted {
    /// The lane of the call.
    #[serde(default)]
    pub lane: Lane,
    /// The call's id.
    pub call_id: String,
    /// The tool's name.
    pub tool: String,
    /// Whether it may run again after a crash.
    pub effect: Effect,
    /// Digest of the arguments' text.
    pub arguments: Digest,
    /// The files that it is about to change, with their digests before and after. They show later
    /// whether the change was made.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub targets: Vec<ToolTarget>,
    /// The session of the subagent that it starts. A second run of the tool resumes that session.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub child: Option<SessionId>,
}

/// A file that a tool is about to change.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ToolTarget {
    /// Its path, relative to the workspace.
    pub path: String,
    /// Digest of the content before; absent if the file does not exist.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub before: Option<Digest>,
    /// Digest of the content after; absent if the file is removed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after: Option<Digest>,
}

/// How a tool call ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// The tool succeeded.
    Done,
    /// The tool failed.
    Failed,
    /// The user denied it.
    Denied,
    /// The tool ran out of time.
    TimedOut,
    /// The tool was interrupted; its effects are unknown.
    Unknown,
}

/// A tool has run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ToolFinished {
    /// The lane of the call.
    #[serde(default)]
    pub lane: Lane,
    /// The call's id.
    pub call_id: String,
    /// How it ended.
    pub outcome: Outcome,
    /// How long it ran.
    pub duration_ms: u64,
}
