//! The records of work: tools, steps, files, nodes, gates, tasks, and moves of the view.

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

/// The most tasks that a session plans: a plan is shown to a model as a whole.
pub const MAX_TASKS: usize = 500;

/// A step of a lane is complete: one model turn and the tools that it asked for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Step {
    /// Whose step it is.
    #[serde(default)]
    pub lane: Lane,
    /// Which step of that lane, from 1.
    pub n: u64,
}

/// The run stands differently now.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct StatusChanged {
    /// How it stands.
    pub status: Status,
    /// Why it stopped.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<StopReason>,
    /// What went wrong.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

/// The work is in another phase now.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct PhaseChanged {
    /// The phase it left.
    pub from: Phase,
    /// The phase it is in.
    pub to: Phase,
}

/// What stood at a path.
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
    /// A file whose bytes are not kept.
    NotCaptured {
        /// Its digest, if it could be taken.
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
    /// Where, relative to the workspace.
    pub path: String,
    /// What stood there before.
    pub before: FileState,
    /// What stands there now.
    pub after: FileState,
    /// The path that it had before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub renamed_from: Option<String>,
}

/// How a flow's node stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum NodeState {
    /// It began.
    Started,
    /// It is done, and its output is recorded: it never runs again.
    Done,
    /// It failed.
    Failed,
    /// It was not needed.
    Skipped,
}

/// A flow's node: the memo that makes flows resumable.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Node {
    /// Which node.
    pub key: String,
    /// How it stands.
    pub state: NodeState,
    /// What it produced.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output: Option<serde_json::Value>,
    /// Its tokens.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub usage: Option<Usage>,
    /// What went wrong.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

impl Node {
    /// What it came to, as text: its response, or all of its output if it has none.
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
    /// The rule that they matched.
    pub rule: String,
    /// Which events, and what stands there now.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub erased: Vec<Erased>,
    /// Events that a prune emptied.
    #[serde(default, skip_serializing_if = "SeqRanges::is_empty")]
    pub pruned: SeqRanges,
    /// Events that a prune left as they are, because a fork shares them, and that no longer
    /// count here.
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
    /// Where, relative to the output folder.
    pub path: String,
    /// Digest of its bytes.
    pub digest: Digest,
}

/// How a planned task stands.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum TaskStatus {
    /// Not begun.
    #[default]
    Pending,
    /// Begun.
    Running,
    /// Done.
    Done,
    /// Failed.
    Failed,
    /// Left out.
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

    /// Its word.
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
            format!("{text:?} is no status of a task; expected one of: {words}")
        })
    }
}

/// A planned task, as it stands now.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct Task {
    /// Its name within the session.
    pub id: String,
    /// Such as `create` or `modify`.
    pub action: String,
    /// What is to be done.
    pub description: String,
    /// Tasks that come first.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub deps: Vec<String>,
    /// How it stands.
    pub status: TaskStatus,
    /// The files that it is about.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub files: Vec<String>,
}

/// A question asked while discussing the work, and its answer.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Question {
    /// Its name within the session.
    pub id: String,
    /// The question.
    pub text: String,
    /// The answer, once there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub answer: Option<String>,
    /// Nobody will answer it: the user skipped it. A later answer counts all the same.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub skipped: bool,
}

impl Question {
    /// A question that nobody answered yet.
    pub fn new(id: impl Into<String>, text: impl Into<String>) -> Self {
        Self { id: id.into(), text: text.into(), answer: None, skipped: false }
    }

    /// With its answer.
    #[must_use]
    pub fn with_answer(self, answer: impl Into<String>) -> Self {
        Self { answer: Some(answer.into()), skipped: false, ..self }
    }

    /// As one that the user skipped.
    #[must_use]
    pub fn skip(self) -> Self {
        Self { answer: None, skipped: true, ..self }
    }
}

/// Something went wrong. It feeds the session's error count.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Failure {
    /// What went wrong.
    pub message: String,
}

/// What another system keeps that Stepwell has no word for. It is shown to no model, and
/// given back to that system alone, so that a session that came from there can return
/// without loss.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Foreign {
    /// The system.
    pub system: String,
    /// What it is about.
    #[serde(default)]
    pub about: About,
    /// What is kept, in a form that is that system's own.
    pub data: String,
}

/// What a system's own data is about.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum About {
    /// The event just before it.
    #[default]
    Event,
    /// The session, from here on: a later one takes its place.
    Session,
    /// Nothing else: it stands where it stood there.
    Itself,
}
