//! What the HTTP server answers with, beside what commands do.

use schemars::JsonSchema;
use serde::Serialize;
use stepwell::model::Time;
use stepwell::{Seq, SessionId};

use crate::{FileDiff, SessionItem, Spending};

/// A page of a list.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct List<T> {
    /// What is on this page.
    pub items: Vec<T>,
    /// Where the next page begins, for the parameter `cursor`; absent on the last one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next: Option<String>,
}

/// Why a request was not carried out (RFC 9457).
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct Problem {
    /// The kind, as an address: `about:blank`, since `kind` says it.
    #[serde(rename = "type")]
    pub form: String,
    /// What is wrong, naming the thing.
    pub title: String,
    /// The status of the answer.
    pub status: u16,
    /// What to do about it: `invalid`, `absent`, `conflict`, `busy`, `denied` and so on.
    pub kind: String,
    /// Where: the parameter, the session or the file.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub place: Option<String>,
    /// What to try next.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hint: Option<String>,
}

/// A run was started in a process of its own.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct RunStarted {
    /// Its session.
    pub id: SessionId,
}

/// A store that the server shows.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct ServedStore {
    /// Its name in requests, for the parameter `store`.
    pub key: String,
    /// Its folder, or its address without a password.
    pub name: String,
    /// The workspace that it belongs to.
    pub workspace: String,
    /// Is it the one that is meant where none is named?
    pub home: bool,
    /// Why it cannot be opened. Nothing else can be asked of it then.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub problem: Option<String>,
}

/// An agent that a run can be started with.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct AgentSummary {
    /// Its name.
    pub name: String,
    /// The model that it uses, if it has one of its own.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// Does it change nothing?
    pub read_only: bool,
}

/// A flow that can be started, with what it asks for.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct FlowSummary {
    /// The path of its spec, below the workspace.
    pub path: String,
    /// Its name.
    pub name: String,
    /// Its pattern.
    pub pattern: String,
    /// Its variables.
    pub variables: Vec<crate::PlanVariable>,
}

/// What the server itself is and allows.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct ServerInfo {
    /// The version of Stepwell.
    pub version: String,
    /// Who is logged in.
    pub caller: String,
    /// May they change something?
    pub may_change: bool,
    /// May runs be started that ask nobody?
    pub may_yolo: bool,
    /// May the sessions of this machine's other agents be imported?
    pub may_import: bool,
    /// May runs be started here at all?
    pub may_start: bool,
    /// The time, to tell ages by.
    pub now: Time,
}

/// A point of a session that people look for.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct Mark {
    /// The event.
    pub seq: Seq,
    /// When it was recorded.
    pub at: Time,
    /// What it is: `step`, `checkpoint`, `gate`, `compacted`, `rewound` and so on.
    pub kind: String,
    /// Its name, if it has one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
}

/// Two sessions side by side.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct SessionComparison {
    /// The one.
    pub left: ComparedSession,
    /// The other.
    pub right: ComparedSession,
    /// The last event that both share; 0, if they share none.
    pub parted_at: Seq,
    /// What would make the files that the one changed into those of the other.
    pub files: Vec<FileDiff>,
}

/// One of two sessions that are compared.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct ComparedSession {
    /// The session.
    pub session: SessionItem,
    /// What it did since the two parted.
    pub since: Spending,
    /// Steps since then.
    pub steps: u64,
    /// Files that it changed since then.
    pub files: Vec<FileDiff>,
}
