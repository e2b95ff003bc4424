//! Files as a session found and left them.

use schemars::JsonSchema;
use serde::Serialize;
use stepwell::model::{FileState, Time};
use stepwell::{Seq, SessionId};

/// One version of a file.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct FileVersion {
    /// Where, relative to the workspace.
    pub path: String,
    /// The event that tells of it.
    pub seq: Seq,
    /// When it came about.
    pub at: Time,
    /// How it came about.
    pub change: FileVersionKind,
    /// The path that it had before.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub renamed_from: Option<String>,
    /// What stood there before; absent, if someone else made this version.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub before: Option<FileState>,
    /// What stood there then.
    pub after: FileState,
}

/// How a version of a file came about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum FileVersionKind {
    /// The session made the file.
    Created,
    /// The session removed the file.
    Deleted,
    /// The session moved it here.
    Renamed,
    /// The session changed it.
    Changed,
    /// Someone else made it so, and the session replaced it.
    Found,
}

/// What a file held at a point of a session.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct FileContent {
    /// The session.
    pub id: SessionId,
    /// Where, relative to the workspace.
    pub path: String,
    /// The point.
    pub at: Seq,
    /// What stood there.
    pub state: FileState,
    /// Its text; absent, if it is no text.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
}

/// What a session did to a file between two points.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct FileDiff {
    /// Where, relative to the workspace.
    pub path: String,
    /// What happened there.
    pub change: FileDiffKind,
    /// The path that it had before.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub renamed_from: Option<String>,
    /// Lines that were added.
    pub added: usize,
    /// Lines that were removed.
    pub removed: usize,
    /// The change as a unified diff.
    pub diff: String,
}

/// What happened at a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum FileDiffKind {
    /// A file was made.
    Created,
    /// A file was removed.
    Deleted,
    /// A file came from another path.
    Renamed,
    /// A file changed.
    Changed,
}
