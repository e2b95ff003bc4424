//! Imports, exports and handoffs of sessions.

use schemars::JsonSchema;
use serde::Serialize;
use stepwell::SessionId;

/// A format of sessions.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct FormatInfo {
    /// Its name, such as `claude-code`.
    pub format: String,
    /// The program or product that it belongs to.
    pub title: String,
    /// Can it be read?
    pub read: bool,
    /// Can it be written?
    pub write: bool,
    /// The places where its sessions are searched.
    pub places: Vec<String>,
}

/// The result of importing a session.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct Imported {
    /// The session's id here.
    pub session: SessionId,
    /// The result.
    pub imported: ImportResult,
    /// The file or folder that it was read from.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub from: Option<String>,
    /// That file's format.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub format: Option<String>,
    /// Its id there, if another session here already has that id.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub instead_of: Option<SessionId>,
    /// The session here that it continues.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub continues: Option<SessionId>,
}

/// The result of an import.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ImportResult {
    /// The session is new here.
    Imported,
    /// The session was here, and got new events.
    Updated,
    /// There was nothing new.
    Unchanged,
}

/// What an import of other agents' sessions did, or would do.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct ImportReport {
    /// Was nothing written?
    pub dry_run: bool,
    /// The agents whose folders were searched.
    pub agents: Vec<ImportedAgent>,
    /// Sessions that are new.
    pub imported: usize,
    /// Sessions that got new events.
    pub updated: usize,
    /// Sessions that were here already, with all of their events.
    pub unchanged: usize,
    /// Files that could not be read to their end.
    pub damaged: usize,
    /// Files whose sessions are in use here, or in the trash.
    pub skipped: usize,
    /// The sessions that are new or got new events.
    pub sessions: Vec<Imported>,
    /// What could not be read, and why.
    pub problems: Vec<String>,
}

/// What was imported of one agent.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct ImportedAgent {
    /// The agent.
    pub agent: String,
    /// Its format.
    pub format: String,
    /// The folder in which it keeps its sessions.
    pub folder: String,
    /// How many files with sessions are there.
    pub files: usize,
    /// How many of its sessions are new.
    pub imported: usize,
    /// How many of its sessions got new events.
    pub updated: usize,
}

/// A session that was written to a file.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct Exported {
    /// The file or folder.
    pub file: String,
    /// Its format.
    pub format: String,
    /// How many sessions it holds, subagents' included.
    pub sessions: usize,
    /// How many events.
    pub events: u64,
}

/// A session that was converted to another format.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct Converted {
    /// The session.
    pub session: SessionId,
    /// The file or folder that was written.
    pub file: String,
    /// Its format.
    pub format: String,
    /// How many sessions it holds, subagents' included.
    pub sessions: usize,
}

/// A session that another agent can continue.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct HandedOver {
    /// The session.
    pub session: SessionId,
    /// The other agent's format.
    pub agent: String,
    /// The file that the other agent reads.
    pub file: String,
    /// The folder to run the command in.
    pub folder: String,
    /// The command that continues the session, as a list of arguments.
    pub command: Vec<String>,
}
