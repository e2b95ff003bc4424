//! Errors of tools, worded for the agent that called them.

use stepwell::{ErrorKind, Remedy, SessionId};

/// The result of a tool.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// An error of a tool.
#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "each message says what its variant and its fields mean")]
pub enum Error {
    #[error(transparent)]
    Store(#[from] stepwell::Error),
    #[error(transparent)]
    Workspace(#[from] stepwell_workspace::Error),
    #[error("wrong arguments: {0}")]
    Arguments(String),
    #[error("there is no store in this workspace yet, so there are no sessions")]
    NoStore,
    #[error("there is no store {0:?} among those that this server looks into")]
    UnknownStore(String),
    #[error("{session} has no event {seq}; its events are 1 to {last}")]
    NoEvent { session: SessionId, seq: u64, last: u64 },
    #[error("{session} did not change {path:?}")]
    NoFile { session: SessionId, path: String },
    #[error("{path:?} at seq {at}: {why}")]
    NoContent { path: String, at: u64, why: String },
    #[error("{session} already ended, as {phase}")]
    EndedOtherwise { session: SessionId, phase: String },
    #[error("unknown resource {0:?}; resources/templates/list has their forms")]
    NoResource(String),
    #[error("the connection failed: {0}")]
    Connection(String),
    #[error("an answer could not be written as JSON: {0}")]
    Json(#[from] serde_json::Error),
}

impl Error {
    /// What the agent can do next, the best first.
    pub(crate) fn remedies(&self) -> Vec<Remedy> {
        match self {
            Self::Store(error) => error.remedies(),
            Self::Workspace(error) => error.remedies(),
            _ => Vec::new(),
        }
    }

    /// What the caller should do.
    #[must_use]
    pub const fn kind(&self) -> ErrorKind {
        match self {
            Self::Store(error) => error.kind(),
            Self::NoStore
            | Self::UnknownStore(_)
            | Self::NoEvent { .. }
            | Self::NoFile { .. }
            | Self::NoContent { .. }
            | Self::NoResource(_) => ErrorKind::Absent,
            Self::EndedOtherwise { .. } => ErrorKind::Conflict,
            Self::Connection(_) | Self::Json(_) => ErrorKind::Io,
            Self::Workspace(_) | Self::Arguments(_) => ErrorKind::Invalid,
        }
    }
}
