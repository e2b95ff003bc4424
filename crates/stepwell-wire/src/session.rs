//! Sessions, in lists and in detail.

use std::collections::{BTreeMap, BTreeSet};
use std::str::FromStr;

use schemars::JsonSchema;
use serde::Serialize;
use stepwell::log::{FlowRef, LaneState, PREVIEW_BYTES};
use stepwell::model::{Driver, Facts, Origin, Phase, Project, SpecHash, Spent, Time, Usage};
use stepwell::work::{FlowState, NodeInfo};
use stepwell::{Recorded, Seq, SessionId, SessionInfo, Status, StopReason};

use crate::Dollars;

/// The status of a session, in lists.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum SessionStatus {
    /// A runner works on it.
    Running,
    /// It waits for a person.
    Paused,
    /// It was stopped by a signal, or its process died.
    Interrupted,
    /// It was stopped by a limit.
    Partial,
    /// Done.
    Success,
    /// It ended with an error.
    Failed,
    /// Its user abandoned it.
    Abandoned,
    /// Another program keeps it, and nothing says that it runs.
    Idle,
    /// A part of it cannot be read, whatever its status was.
    Damaged,
}

impl SessionStatus {
    /// Its name in JSON.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Running => Status::Running.as_str(),
            Self::Paused => Status::Paused.as_str(),
            Self::Interrupted => Status::Interrupted.as_str(),
            Self::Partial => Status::Partial.as_str(),
            Self::Success => Status::Success.as_str(),
            Self::Failed => Status::Failed.as_str(),
            Self::Abandoned => Status::Abandoned.as_str(),
            Self::Idle => Status::Idle.as_str(),
            Self::Damaged => "damaged",
        }
    }
}

impl FromStr for SessionStatus {
    type Err = String;

    /// Parses a status; `completed` is accepted for `success`.
    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "damaged" => Ok(Self::Damaged),
            _ => text
                .parse::<Status>()
                .map(Into::into)
                .map_err(|error: stepwell::model::UnknownStatus| format!("{error}; or damaged")),
        }
    }
}

impl SessionStatus {
    /// The status; `None` for a damaged session.
    #[must_use]
    pub const fn status(self) -> Option<Status> {
        Some(match self {
            Self::Running => Status::Running,
            Self::Paused => Status::Paused,
            Self::Interrupted => Status::Interrupted,
            Self::Partial => Status::Partial,
            Self::Success => Status::Success,
            Self::Failed => Status::Failed,
            Self::Abandoned => Status::Abandoned,
            Self::Idle => Status::Idle,
            Self::Damaged => return None,
        })
    }
}

impl From<Status> for SessionStatus {
    fn from(status: Status) -> Self {
        match status {
            Status::Running => Self::Running,
            Status::Paused => Self::Paused,
            Status::Interrupted => Self::Interrupted,
            Status::Partial => Self::Partial,
            Status::Success => Self::Success,
            Status::Failed => Self::Failed,
            Status::Abandoned => Self::Abandoned,
            Status::Idle => Self::Idle,
        }
    }
}

impl From<&SessionInfo> for SessionStatus {
    fn from(info: &SessionInfo) -> Self {
        match info.damage {
            Some(_) => Self::Damaged,
            None => info.head.status.into(),
        }
    }
}

/// A session in a list.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct Session<M = u64> {
    /// Its id.
    pub id: SessionId,
    /// Its status; a damaged session is `damaged`, whatever its status was.
    pub status: SessionStatus,
    /// Why it stopped.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stop_reason: Option<StopReason>,
    /// Did a person stop it?
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub stopped: bool,
    /// The error.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// The phase of its work.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub phase: Option<Phase>,
    /// The user's task.
    pub task: String,
    /// Its agent; empty, if it has no name.
    pub agent: String,
    /// The model that it used last; empty, if unknown.
    pub model: String,
    /// The model's provider; empty, if unknown.
    pub provider: String,
    /// Its workspace; empty, if unknown.
    pub workspace: String,
    /// Its driver: Stepwell, or another program.
    pub driver: Driver,
    /// The system that it was imported from, or that keeps it here; absent, if it began here.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub source: Option<String>,
    /// Its id in that system.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub source_id: Option<String>,
    /// The parent of a subagent's session or a fork.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub parent: Option<SessionId>,
    /// The last event that a fork shares with its parent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub forked_at: Option<Seq>,
    /// Its name, given by a user.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub label: Option<String>,
    /// Its tags.
    pub tags: BTreeSet<String>,
    /// The user's own metadata.
    pub metadata: BTreeMap<String, serde_json::Value>,
    /// The keys of metadata that is too long for a list.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub metadata_left_out: Vec<String>,
    /// What Stepwell itself knows of it: the files that it was imported from, the call that started it as a
    /// subagent, whether messages are left out.
    #[serde(skip_serializing_if = "Facts::is_empty")]
    // Clients load the schema of each tool before they ask anything, so it does not repeat this.
    #[schemars(with = "BTreeMap<String, serde_json::Value>")]
    pub facts: Facts,
    /// The last word of an agent that Stepwell does not run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub summary: Option<String>,
    /// What the work is to achieve.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub goal: Option<String>,
    /// The budget of the whole session in dollars.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub budget: Option<Dollars>,
    /// Is it exempt from cleanup?
    pub pinned: bool,
    /// Its last event.
    pub seq: Seq,
    /// Complete steps.
    pub steps: u64,
    /// Recorded messages.
    pub messages: M,
    /// What it spent itself, without its subagents.
    #[serde(flatten)]
    pub spending: Spending,
    /// Recorded errors.
    pub errors: u64,
    /// How often it was resumed.
    pub resumes: u64,
    /// Open questions.
    pub open_gates: u64,
    /// Queued messages that no run has read yet; absent, if there are none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unheard: Option<u64>,
    /// The beginning of an unfinished rewind.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rewinding: Option<Seq>,
    /// When it began.
    pub created_at: Time,
    /// When it last changed.
    pub updated_at: Time,
    /// The size of its own events.
    pub bytes: u64,
    /// When it was deleted, if it is in the trash.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub trashed_at: Option<Time>,
    /// Its runner.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub held_by: Option<String>,
    /// The damage.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub damage: Option<Damage>,
}

impl From<&SessionInfo> for Session {
    fn from(info: &SessionInfo) -> Self {
        info.clone().into()
    }
}

impl From<SessionInfo> for Session {
    fn from(info: SessionInfo) -> Self {
        let messages = info.head.messages;
        Self::of(info, messages)
    }
}

impl<M> Session<M> {
    /// A session, with its messages or their number.
    #[must_use]
    pub fn of(info: SessionInfo, messages: M) -> Self {
        let status = SessionStatus::from(&info);
        let stopped = info.head.was_stopped();
        let head = info.head;
        let provider = head.model_provider().to_owned();
        let (source, source_id) = match head.source {
            Some(source) => (Some(source.system), Some(source.id)),
            None => (None, None),
        };
        let forked_at = match head.origin {
            Origin::Fork { at, .. } => Some(at),
            _ => None,
        };
        Self {
            id: head.id,
            status,
            stop_reason: head.stop_reason,
            stopped,
            error: head.error,
            phase: head.phase,
            task: head.task,
            agent: head.agent,
            model: head.model,
            provider,
            workspace: head.workspace,
            driver: head.driver,
            source,
            source_id,
            parent: head.origin.parent().cloned(),
            forked_at,
            label: head.label,
            tags: head.tags,
            metadata: head.metadata,
            metadata_left_out: Vec::new(),
            facts: head.facts,
            summary: head.summary,
            goal: head.goal,
            budget: head.budget.map(Into::into),
            pinned: head.pinned,
            seq: head.seq,
            steps: head.steps,
            messages,
            spending: (&head.spent).into(),
            errors: head.errors,
            resumes: head.resumes,
            open_gates: head.open_gates,
            unheard: Some(head.unheard).filter(|words| *words > 0),
            rewinding: head.rewinding,
            created_at: head.created_at,
            updated_at: head.updated_at,
            bytes: info.bytes,
            trashed_at: info.trashed_at,
            held_by: info.held.map(|held| held.holder.to_string()),
            damage: info.damage.as_ref().map(Damage::from),
        }
    }
}

impl<M> Session<M> {
    /// The same for a list, in which each session takes a bounded part: long texts are cut, and long
    /// entries of the metadata are only named.
    #[must_use]
    pub fn listed(mut self) -> Self {
        for text in [&mut self.goal, &mut self.summary].into_iter().flatten() {
            text.truncate(text.floor_char_boundary(PREVIEW_BYTES));
        }
        if let Some(outcome) = self.facts.subagent.as_mut().and_then(|it| it.outcome.as_mut()) {
            outcome.files.clear();
            outcome.why.truncate(outcome.why.floor_char_boundary(PREVIEW_BYTES));
        }
        let mut room = PREVIEW_BYTES;
        let size = |value: &serde_json::Value| value.to_string().len();
        for (name, value) in std::mem::take(&mut self.metadata) {
            match room.checked_sub(name.len() + size(&value)) {
                Some(left) => {
                    room = left;
                    self.metadata.insert(name, value);
                }
                None => self.metadata_left_out.push(cut_name(name)),
            }
        }
        self.metadata_left_out.truncate(LEFT_OUT);
        self
    }
}

/// How many omitted keys are named.
const LEFT_OUT: usize = 20;

/// A shortened key of the user's metadata.
fn cut_name(mut name: String) -> String {
    name.truncate(name.floor_char_boundary(100));
    name
}

/// Spending of model calls.
#[derive(Clone, Copy, Debug, Serialize, JsonSchema)]
pub struct Spending {
    /// Dollars, exact; a lower bound if `unpriced_calls` is not zero.
    pub cost: Dollars,
    /// Calls of unknown price.
    pub unpriced_calls: u64,
    /// Answered calls.
    pub calls: u64,
    /// Their tokens.
    pub tokens: Usage,
}

impl From<&Spent> for Spending {
    fn from(spent: &Spent) -> Self {
        Self {
            cost: spent.cost.into(),
            unpriced_calls: spent.unpriced,
            calls: spent.calls,
            tokens: spent.usage,
        }
    }
}

/// The damage of a session.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct Damage {
    /// The first event that cannot be read; 0, if the head cannot be read.
    pub seq: Seq,
    /// A description.
    pub what: String,
}

impl From<&stepwell::store::Damage> for Damage {
    fn from(damage: &stepwell::store::Damage) -> Self {
        Self { seq: damage.seq, what: damage.what.clone() }
    }
}

/// A session in a list, with its subagents' spending.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct SessionItem {
    /// The session.
    #[serde(flatten)]
    pub session: Session,
    /// What it and its subagents spent, if it has any.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub with_subagents: Option<Spending>,
    /// Its flow. `show` has the states and outputs of its nodes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub flow: Option<ListedFlow>,
    /// Its estimated cost, if only its tokens are known.
    #[serde(rename = "estimated_cost_usd", skip_serializing_if = "Option::is_none")]
    pub estimate: Option<Dollars>,
    /// The session's store, if several are listed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub store: Option<String>,
}

/// The flow of a session in a list.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct ListedFlow {
    /// Its name.
    pub name: String,
    /// Its pattern, such as `chain`.
    pub pattern: String,
    /// SHA-256 of the spec's raw bytes.
    pub spec_hash: SpecHash,
}

impl From<&FlowRef> for ListedFlow {
    fn from(flow: &FlowRef) -> Self {
        Self { name: flow.name.clone(), pattern: flow.pattern.clone(), spec_hash: flow.hash }
    }
}

/// A session in detail.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct SessionDetails {
    /// The session.
    #[serde(flatten)]
    pub session: Session<Messages>,
    /// How many of its messages were rewound: they are recorded, but no longer count.
    #[serde(skip_serializing_if = "is_zero")]
    pub rewound_messages: u64,
    /// What it and its subagents spent, if it has any.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub with_subagents: Option<Spending>,
    /// Its estimated cost, if only its tokens are known. It is in no other sum.
    #[serde(rename = "estimated_cost_usd", skip_serializing_if = "Option::is_none")]
    pub estimate: Option<Dollars>,
    /// Its lanes: `main`, and those of a flow.
    pub lanes: Vec<LaneInfo>,
    /// Paths of files that it changed, each once, in order of their first change.
    pub files: Vec<String>,
    /// Its checkpoints.
    pub checkpoints: Vec<NamedSeq>,
    /// Paths of the files that it produced.
    pub artifacts: Vec<String>,
    /// Its flow, with the states of the nodes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub flow: Option<FlowState>,
    /// The state of its work, if it is guided.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub work: Option<crate::WorkState>,
    /// Nodes of a session without a flow here.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub nodes: Vec<NodeInfo>,
    /// Its project, as far as it is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub project: Option<Project>,
    /// When it was last resumed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub resumed_at: Option<Time>,
    /// The sessions below it, parents before children, if requested.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub children: Option<Vec<Child>>,
    /// Its last messages that count, unless more were requested.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_messages: Option<Vec<Recorded>>,
    /// All of its events, if requested.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub events: Option<Vec<Recorded>>,
}

/// The messages of a session.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(untagged)]
pub enum Messages {
    /// Their number.
    Count(u64),
    /// All of them, if requested.
    All(Vec<RecordedMessage>),
}

/// A message as it was recorded.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct RecordedMessage {
    /// The message.
    #[serde(flatten)]
    pub recorded: Recorded,
    /// Was it rewound? Then it no longer counts.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub rewound: bool,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks so")]
fn is_zero(n: &u64) -> bool {
    *n == 0
}

/// The work and spending of one lane.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct LaneInfo {
    /// The lane's name.
    pub lane: String,
    /// Recorded messages.
    pub messages: u64,
    /// Complete steps.
    pub steps: u64,
    /// What it spent.
    #[serde(flatten)]
    pub spending: Spending,
}

impl LaneInfo {
    /// From a lane's state.
    #[must_use]
    pub fn new(lane: &stepwell::Lane, state: &LaneState) -> Self {
        Self {
            lane: lane.to_string(),
            messages: state.messages,
            steps: state.steps,
            spending: (&state.spent).into(),
        }
    }
}

/// A named event.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct NamedSeq {
    /// The name.
    pub name: String,
    /// The event.
    pub seq: Seq,
    /// When it was recorded.
    pub at: Time,
}

/// A subagent's session or a fork.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct Child {
    /// Its id.
    pub id: SessionId,
    /// Its relation to the parent.
    pub kind: ChildKind,
    /// The last event that a fork shares with its parent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub at: Option<Seq>,
    /// Its status.
    pub status: SessionStatus,
    /// Its parent.
    pub parent: SessionId,
}

/// The relation of a session to its parent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ChildKind {
    /// It shares the parent's first events.
    Fork,
    /// The parent's agent started it.
    Subagent,
}

impl ChildKind {
    /// Its name in JSON.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Fork => "fork",
            Self::Subagent => "subagent",
        }
    }
}
