//! Events of work: steps, status, phases, files, nodes, tasks, and data of other systems.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use super::digest::Digest;
use super::id::Lane;
use super::phase::Phase;
use super::position::Seq;
use super::ranges::SeqRanges;
use super::status::{Status, StopReason};
use super::usage::Usage;

/// The mark that replaces erased text.
pub(crate) const ERASED: &str = "[scrubbed]";

/// The most tasks of a plan, since a model reads the plan as a whole.
pub const MAX_TASKS: usize = 500;

/// A step of a lane is complete: one answer of the model and the tool calls that it asked for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Step {
    /// The lane.
    #[serde(default)]
    pub lane: Lane,
    /// The number of the step in that lane, from 1.
    pub n: u64,
}

/// The session's status changed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct StatusChanged {
    /// The new status.
    pub status: Status,
    /// Why it stopped.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<StopReason>,
    /// What went wrong.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

/// The work entered another phase.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct PhaseChanged {
    /// The previous phase.
    pub from: Phase,
    /// The new phase.
    pub to: Phase,
}

/// The content of a path.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum FileState {
    /// Nothing.
    Absent,
    /// A file whose bytes are kept as a blob.
    File {
        /// The blob.
        blob: Digest,
        /// Its permission bits.
        mode: u32,
    },
    /// A symbolic link.
    Symlink {
        /// What it points at.
        target: String,
    },
    /// A file without stored bytes.
    NotCaptured {
        /// Its digest, if it could be computed.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        digest: Option<Digest>,
        /// Why: too large, a secret, not readable.
        why: String,
    },
}

/// A workspace file changed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct FileChanged {
    /// The path, relative to the workspace.
    pub path: String,
    /// The content before.
    pub before: FileState,
    /// The content after.
    pub after: FileState,
    /// The previous path, if the file was renamed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub renamed_from: Option<String>,
}

/// The state of a flow's node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum NodeState {
    /// Started.
    Started,
    /// Done, with its output recorded: it never runs again.
    Done,
    /// Failed.
    Failed,
    /// Not needed.
    Skipped,
}

/// A flow's node: the recorded result that makes flows resumable.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Node {
    /// The node's key.
    pub key: String,
    /// Its state.
    pub state: NodeState,
    /// Its output.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output: Option<serde_json::Value>,
    /// The tokens it used.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub usage: Option<Usage>,
    /// What went wrong.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

impl Node {
    /// Its result as text: the output's `response`, or else the whole output.
    #[must_use]
    pub fn answer(&self) -> Option<String> {
        let output = self.output.as_ref().filter(|output| !output.is_null())?;
        let response = output.get("response").unwrap_or(output);
        Some(response.as_str().map_or_else(|| response.to_string(), str::to_owned))
    }
}

/// Bodies were erased.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Scrubbed {
    /// The rule that made the matches.
    pub rule: String,
    /// The erased events, and the digests of their new bodies.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub erased: Vec<Erased>,
    /// Events that a prune emptied.
    #[serde(default, skip_serializing_if = "SeqRanges::is_empty")]
    pub pruned: SeqRanges,
    /// Events that a prune could not empty because a fork shares them. They no longer count here.
    #[serde(default, skip_serializing_if = "SeqRanges::is_empty")]
    pub hidden: SeqRanges,
}

/// One erased body.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Erased {
    /// The event.
    pub seq: Seq,
    /// Digest of the body that replaced the original.
    pub body: Digest,
}

/// A file that the run produced.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Artifact {
    /// The path, relative to the output folder.
    pub path: String,
    /// Digest of its bytes.
    pub digest: Digest,
}

/// The status of a planned task.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum TaskStatus {
    /// Not started.
    #[default]
    Pending,
    /// Started.
    Running,
    /// Done.
    Done,
    /// Failed.
    Failed,
    /// Skipped.
    Skipped,
    /// Failed for good.
    Unrecoverable,
}

impl TaskStatus {
    /// Every status.
    pub const ALL: [Self; 6] = [
        Self::Pending,
        Self::Running,
        Self::Done,
        Self::Failed,
        Self::Skipped,
        Self::Unrecoverable,
    ];

    /// The status's name.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Pending => "pending",
            Self::Running => "running",
            Self::Done => "done",
            Self::Failed => "failed",
            Self::Skipped => "skipped",
            Self::Unrecoverable => "unrecoverable",
        }
    }
}

impl fmt::Display for TaskStatus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

impl FromStr for TaskStatus {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        Self::ALL.into_iter().find(|status| status.as_str() == text).ok_or_else(|| {
            let words = Self::ALL.map(Self::as_str).join(", ");
            format!("unknown task status {text:?}; expected one of: {words}")
        })
    }
}

/// A planned task in its current state.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct Task {
    /// Its id within the session.
    pub id: String,
    /// The kind of change, such as `create` or `modify`.
    pub action: String,
    /// The work to be done.
    pub description: String,
    /// Ids of tasks that must be done before.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub deps: Vec<String>,
    /// Its status.
    pub status: TaskStatus,
    /// The files concerned.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub files: Vec<String>,
}

/// A question about the work, asked in its discuss phase, and its answer.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Question {
    /// Its id within the session.
    pub id: String,
    /// The question.
    pub text: String,
    /// The answer, if there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub answer: Option<String>,
    /// The user skipped it. A later answer still counts.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub skipped: bool,
}

impl Question {
    /// A question without an answer.
    pub fn new(id: impl Into<String>, text: impl Into<String>) -> Self {
        Self { id: id.into(), text: text.into(), answer: None, skipped: false }
    }

    /// The same question, answered.
    #[must_use]
    pub fn with_answer(self, answer: impl Into<String>) -> Self {
        Self { answer: Some(answer.into()), skipped: false, ..self }
    }

    /// The same question, skipped.
    #[must_use]
    pub fn skip(self) -> Self {
        Self { answer: None, skipped: true, ..self }
    }
}

/// Something went wrong. It adds to the session's error count.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Failure {
    /// The error's text.
    pub message: String,
}

/// Another system's data for which Stepwell has no field. It reaches no model and is returned only
/// to that system, so that an imported session can be exported without loss.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Foreign {
    /// The system's name.
    pub system: String,
    /// What the data is about.
    #[serde(default)]
    pub about: About,
    /// The data, in the system's own form.
    pub data: String,
}

/// What another system's data is about.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum About {
    /// The event just before it.
    #[default]
    Event,
    /// The session, from here on. A later one replaces it.
    Session,
    /// Itself: it only keeps its place in the order.
    Itself,
}
