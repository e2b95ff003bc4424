//! The records of work: tools, steps, files, nodes, gates, tasks, and moves of the view.

use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use super::digest::Digest;
use super::id::{Lane, SessionId};
use super::money::Money;
use super::phase::Phase;
use super::position::Seq;
use super::ranges::SeqRanges;
use super::status::{Status, StopReason};
use super::talk::{Answer, Who};
use super::time::Time;
use super::usage::Usage;

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

/// A question for a human that pauses the run.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Gate {
    /// Its name within the session.
    pub id: String,
    /// The question.
    pub prompt: String,
    /// The answer if nobody gives one in time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub default: Option<String>,
    /// Until when it may be answered.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deadline: Option<Time>,
    /// The tool call that may not run unasked; absent, the gate asks for words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub call: Option<Box<AskedCall>>,
    /// The subagent's session that asks; absent, the session itself does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub asker: Option<SessionId>,
}

impl Gate {
    /// A question that asks for words.
    pub fn new(id: impl Into<String>, prompt: impl Into<String>) -> Self {
        Self { id: id.into(), prompt: prompt.into(), ..Self::default() }
    }
}

/// A tool call that waits for a person: what they need to know to decide.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct AskedCall {
    /// The tool.
    pub tool: String,
    /// What it may do.
    pub effect: Effect,
    /// The call's arguments, without secrets.
    pub arguments: String,
    /// What it would change, line by line, where that can be told.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub detail: Option<String>,
    /// What may be answered.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub choices: Vec<Choice>,
    /// Did the arguments hold a secret? It is not kept. So only the process that runs the session
    /// can carry the call out, and only an answer under its lease can allow it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub holds_secret: bool,
}

/// What may be answered to a call that waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Choice {
    /// It may run.
    Once,
    /// It may run, and so may every later call of the tool in this session.
    Always,
    /// It may not run.
    Deny,
    /// Neither it nor any later call of the tool in this session may run.
    Never,
}

impl Choice {
    /// Every choice.
    pub const ALL: [Self; 4] = [Self::Once, Self::Always, Self::Deny, Self::Never];
}

/// A gate was answered. Each gate takes one answer; it may come from anyone.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct GateAnswered {
    /// Which gate.
    pub id: String,
    /// The answer.
    pub answer: Answer,
    /// Who gave it.
    pub who: Who,
    /// The last event that its giver saw: if a rewind took that back since, the answer is
    /// refused, since it might mean something else now.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seen: Option<Seq>,
}

impl GateAnswered {
    /// An answer to a gate.
    pub fn new(id: impl Into<String>, answer: impl Into<Answer>, who: impl Into<Who>) -> Self {
        Self { id: id.into(), answer: answer.into(), who: who.into(), seen: None }
    }

    /// The same answer, given by someone who saw the log up to a seq.
    #[must_use]
    pub fn having_seen(mut self, seen: Seq) -> Self {
        self.seen = Some(seen);
        self
    }
}

/// Why a checkpoint was taken.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum CheckpointReason {
    /// Someone asked for it.
    #[default]
    Manual,
    /// The phase changed.
    Phase,
    /// The runner takes them now and then.
    Automatic,
}

/// A named seq.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Checkpoint {
    /// Its name; a later one of the same name takes its place.
    pub name: String,
    /// Why it was taken.
    pub reason: CheckpointReason,
    /// Whatever its maker wants to remember.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub metadata: BTreeMap<String, serde_json::Value>,
}

impl Checkpoint {
    /// The one that is taken when the work enters a phase.
    #[must_use]
    pub fn of_phase(phase: Phase) -> Self {
        let (name, reason) = (format!("phase-{phase}"), CheckpointReason::Phase);
        Self { name, reason, metadata: BTreeMap::new() }
    }

    /// One that is taken without being asked for.
    pub fn automatic(name: impl Into<String>) -> Self {
        let (name, reason) = (name.into(), CheckpointReason::Automatic);
        Self { name, reason, metadata: BTreeMap::new() }
    }
}

/// A prefix of a lane's view was replaced by a summary. The originals stay.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Compacted {
    /// Whose view.
    #[serde(default)]
    pub lane: Lane,
    /// The first message that it replaces.
    pub from: Seq,
    /// The last one.
    pub to: Seq,
    /// What stands in their place; absent, they are left out without a word.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub summary: Option<String>,
    /// Messages in the range that stay as they are.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub pinned: Vec<Seq>,
    /// Estimated tokens of the view before.
    #[serde(default)]
    pub tokens_before: u64,
    /// Estimated tokens of the view after.
    #[serde(default)]
    pub tokens_after: u64,
    /// Tokens of the call that wrote the summary.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub usage: Option<Usage>,
    /// What that call cost; absent beside a usage, the price was not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost: Option<Money>,
    /// The model that was asked for the summary; absent, none was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// Why what that model said is not the summary; absent, it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fault: Option<String>,
}

impl Compacted {
    /// Leaves messages of a lane out, without a word in their place.
    #[must_use]
    pub fn new(lane: Lane, from: Seq, to: Seq) -> Self {
        Self {
            lane,
            from,
            to,
            summary: None,
            pinned: Vec::new(),
            tokens_before: 0,
            tokens_after: 0,
            usage: None,
            cost: None,
            model: None,
            fault: None,
        }
    }

    /// Were messages left out without a model's summary of them?
    #[must_use]
    pub const fn is_truncation(&self) -> bool {
        self.model.is_none() || self.fault.is_some()
    }
}

/// What a rewind moves back.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Scope {
    /// What the model is shown, with tasks, phase, goal, nodes and gates.
    Chat,
    /// The workspace's files.
    Files,
    /// Both.
    Both,
}

impl Scope {
    /// Does it move the view?
    #[must_use]
    pub const fn moves_view(self) -> bool {
        matches!(self, Self::Chat | Self::Both)
    }

    /// Does it move files?
    #[must_use]
    pub const fn moves_files(self) -> bool {
        matches!(self, Self::Files | Self::Both)
    }
}

/// What a move of the view brings back. The store fills it in when it records the
/// move, so that the fold needs no look into the past.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct Restored {
    /// The phase at that point.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub phase: Option<Phase>,
    /// How often plan had gone back to discuss.
    #[serde(skip_serializing_if = "is_none_yet")]
    pub discuss_returns: u32,
    /// The goal at that point.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub goal: Option<String>,
    /// How many gates were open.
    #[serde(skip_serializing_if = "is_none_yet")]
    pub open_gates: u32,
}

fn is_none_yet(n: &u32) -> bool {
    *n == 0
}

/// Files are about to be moved back. On disk before the first of them is touched, so that
/// a move that was cut off is finished, and never half done for good.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Rewinding {
    /// The file events that follow at once, recorded together with this one, say what each
    /// file is and what it is to become. The [`Rewound`] or the [`Undone`] that comes after
    /// they were moved ends it.
    Begun {
        /// The event whose files come back.
        to: Seq,
        /// What is moved.
        scope: Scope,
        /// The move that is taken back by this: a rewind, or the taking back of one.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        undoes: Option<Seq>,
        /// How many file events follow.
        files: u64,
    },
    /// It could not be done, and what was done of it was taken back: the file events that
    /// were recorded together with this one.
    Dropped {
        /// The one that began.
        of: Seq,
        /// Why it could not be done.
        why: String,
    },
}

/// The session was moved back.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Rewound {
    /// The last event that counts.
    pub to: Seq,
    /// What was moved.
    pub scope: Scope,
    /// What that brought back.
    #[serde(default)]
    pub restored: Restored,
}

/// A compaction or a rewind was taken back.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Undone {
    /// The originals are shown again; what came later stays.
    Compaction {
        /// The compaction.
        of: Seq,
    },
    /// All is again as it was just before the move: a rewind, or the taking back of one.
    Rewind {
        /// The move.
        of: Seq,
        /// What it had moved.
        scope: Scope,
        /// What taking it back restored.
        #[serde(default)]
        restored: Restored,
    },
}

/// A choice of the user that is remembered for this session.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Permission {
    /// What it is about, such as a tool or a command's first word.
    pub rule: String,
    /// May it run?
    pub allow: bool,
    /// Who chose that; absent in what was recorded before it was noted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub who: Option<Who>,
}

impl Permission {
    /// A choice that is not said to be anybody's.
    pub fn new(rule: impl Into<String>, allow: bool) -> Self {
        Self { rule: rule.into(), allow, who: None }
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
            format!("{text:?} is no status of a task; use one of {words}")
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
}

/// Something went wrong. It feeds the session's error count.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Failure {
    /// What.
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
