//! What can go wrong in a tool, in words for the agent that called it.

use stepwell::{ErrorKind, Remedy, SessionId};

/// The result of everything that can fail here.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// What went wrong.
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
    #[error("{session} has no event {seq}; it has the events 1 to {last}")]
    NoEvent { session: SessionId, seq: u64, last: u64 },
    #[error("{session} did not change {path:?}")]
    NoFile { session: SessionId, path: String },
    #[error("{path:?} at seq {at}: {why}")]
    NoContent { path: String, at: u64, why: String },
    #[error("{session} ended before, as {phase}")]
    EndedOtherwise { session: SessionId, phase: String },
    #[error("{0:?} is no resource of this server; resources/templates/list names their forms")]
    NoResource(String),
    #[error("the connection failed: {0}")]
    Connection(String),
    #[error("an answer could not be written as JSON: {0}")]
    Json(#[from] serde_json::Error),
}

impl Error {
    /// What would help, the best first.
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
