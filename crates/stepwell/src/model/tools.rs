//! Calls of tools: what they may do, that they started, and how they ended.

use serde::{Deserialize, Serialize};

use super::digest::Digest;
use super::id::{Lane, SessionId};

/// How a tool may be treated after a crash.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Effect {
    /// Changes nothing: it may run again.
    Pure,
    /// Running it again has no further effect, if its target still looks as before.
    Idempotent,
    /// Keeps a record of its own: run again, it goes on where it stopped.
    Resumable,
    /// Anything else: it runs at most once.
    Unsafe,
}

/// A tool is about to run. On disk before it does.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ToolStarted {
    /// Whose call it is.
    #[serde(default)]
    pub lane: Lane,
    /// The call that asked for it.
    pub call_id: String,
    /// The tool.
    pub tool: String,
    /// How it may be treated after a crash.
    pub effect: Effect,
    /// Digest of the arguments' text.
    pub arguments: Digest,
    /// The files that it is about to change, with what they are and what they will be: a
    /// change that was made can be told from one that was not.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub targets: Vec<ToolTarget>,
    /// The session of the subagent that it starts: run again, it is taken up there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub child: Option<SessionId>,
}

/// A file that a tool is about to change.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ToolTarget {
    /// Where, relative to the workspace.
    pub path: String,
    /// Digest of what stands there; absent, nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub before: Option<Digest>,
    /// Digest of what will; absent, nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after: Option<Digest>,
}

/// How a tool's run ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// It did what it was asked.
    Done,
    /// It failed.
    Failed,
    /// The user did not allow it.
    Denied,
    /// It ran out of time.
    TimedOut,
    /// It was cut off; what it did is not known.
    Unknown,
}

/// A tool has run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ToolFinished {
    /// Whose call it was.
    #[serde(default)]
    pub lane: Lane,
    /// The call that asked for it.
    pub call_id: String,
    /// How it ended.
    pub outcome: Outcome,
    /// How long it took.
    pub duration_ms: u64,
}
