//! Answers of the HTTP server, in addition to those of commands.

use schemars::JsonSchema;
use serde::Serialize;
use stepwell::model::Time;
use stepwell::{Seq, SessionId};

use crate::{FileDiff, SessionItem, Spending};

/// A page of a list.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct List<T> {
    /// The items on this page.
    pub items: Vec<T>,
    /// The cursor of the next page, for the parameter `cursor`; absent on the last page.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next: Option<String>,
}

/// Why a request failed (RFC 9457).
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct Problem {
    /// The type as a URI: always `about:blank`, since `kind` has it.
    #[serde(rename = "type")]
    pub form: String,
    /// The error, naming the thing.
    pub title: String,
    /// The HTTP status.
    pub status: u16,
    /// The kind of error: `invalid`, `absent`, `conflict`, `busy`, `denied` and so on.
    pub kind: String,
    /// The parameter, session or file in question.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub place: Option<String>,
    /// A suggestion.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hint: Option<String>,
}

/// A run that was started in its own process.
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
    /// Is it the default store?
    pub home: bool,
    /// Why it cannot be opened. Then no other request to it works.
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
    /// Is it read-only?
    pub read_only: bool,
}

/// A flow that can be started, with its variables.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct FlowSummary {
    /// The path of its spec, relative to the workspace.
    pub path: String,
    /// Its name.
    pub name: String,
    /// Its pattern.
    pub pattern: String,
    /// Its variables.
    pub variables: Vec<crate::PlanVariable>,
}

/// The server and its permissions.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct ServerInfo {
    /// The version of Stepwell.
    pub version: String,
    /// Who is logged in.
    pub caller: String,
    /// May this user change something?
    pub may_change: bool,
    /// May runs be started in the mode `yolo`?
    pub may_yolo: bool,
    /// May the sessions of this machine's other agents be imported?
    pub may_import: bool,
    /// May runs be started here at all?
    pub may_start: bool,
    /// The current time, for computing ages.
    pub now: Time,
}

/// A notable point of a session.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct Mark {
    /// The event.
    pub seq: Seq,
    /// When it was recorded.
    pub at: Time,
    /// Its kind: `step`, `checkpoint`, `gate`, `compacted`, `rewound` and so on.
    pub kind: String,
    /// Its name, if it has one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
}

/// Two sessions side by side.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct SessionComparison {
    /// The first session.
    pub left: ComparedSession,
    /// The second session.
    pub right: ComparedSession,
    /// The last event that they share; 0, if they share none.
    pub parted_at: Seq,
    /// The changes that turn the first session's files into the second one's.
    pub files: Vec<FileDiff>,
}

/// One of two sessions that are compared.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct ComparedSession {
    /// The session.
    pub session: SessionItem,
    /// What it spent after that event.
    pub since: Spending,
    /// Its steps after that event.
    pub steps: u64,
    /// The files that it changed after that event.
    pub files: Vec<FileDiff>,
}
