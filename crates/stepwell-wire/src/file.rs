//! The files of a session.

use schemars::JsonSchema;
use serde::Serialize;
use stepwell::model::{FileState, Time};
use stepwell::{Seq, SessionId};

/// One version of a file.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct FileVersion {
    /// The path, relative to the workspace.
    pub path: String,
    /// The event that records it.
    pub seq: Seq,
    /// When it was recorded.
    pub at: Time,
    /// How this version arose.
    pub change: FileVersionKind,
    /// Its earlier path, if it was moved.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub renamed_from: Option<String>,
    /// The state before; absent, if someone else made this version.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub before: Option<FileState>,
    /// The state of this version.
    pub after: FileState,
}

/// How a version of a file arose.
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
    /// Someone else made it, and the session replaced it.
    Found,
}

/// The content of a file at a point of a session.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct FileContent {
    /// The session.
    pub id: SessionId,
    /// The path, relative to the workspace.
    pub path: String,
    /// The point.
    pub at: Seq,
    /// The file's state.
    pub state: FileState,
    /// Its text; absent, if it is not text.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
}

/// The net change of a file between two points.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct FileDiff {
    /// The path, relative to the workspace.
    pub path: String,
    /// The kind of the change.
    pub change: FileDiffKind,
    /// Its earlier path, if it was moved.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub renamed_from: Option<String>,
    /// Lines that were added.
    pub added: usize,
    /// Lines that were removed.
    pub removed: usize,
    /// The change as a unified diff.
    pub diff: String,
}

/// The kind of a change.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum FileDiffKind {
    /// The file was created.
    Created,
    /// The file was deleted.
    Deleted,
    /// The file was moved from another path.
    Renamed,
    /// The file was changed.
    Changed,
}
