//! Errors of a run, apart from the stops that the machine decides on.

use stepwell::error::Action;
use stepwell::{ErrorKind, Remedy, SessionId};

/// The result of a part of a run.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Why a run could not begin or continue.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Recording failed: nothing since then is saved, so a front end must say it loudly.
    #[error(transparent)]
    Store(#[from] stepwell::Error),
    /// The session has no conversation, so a request would be empty.
    #[error("{session} has nothing to send to a model: {why}")]
    NothingToSend {
        /// The session.
        session: SessionId,
        /// What the session holds instead.
        why: String,
    },
    /// The agent lists a tool that does not exist.
    #[error("there is no tool {entry:?}{}", near.as_ref().map(|it| format!("; did you mean {it}?")).unwrap_or_default())]
    NoTool {
        /// The tool, as the agent names it.
        entry: String,
        /// The most similar tool.
        near: Option<String>,
    },
    /// The agent lists tools of an MCP server that could not be reached.
    #[error("MCP server {server}: {why}")]
    ServerAbsent {
        /// The server.
        server: String,
        /// Why it could not be reached.
        why: String,
    },
    /// Files could not be captured or restored.
    #[error(transparent)]
    Files(#[from] stepwell_files::Error),
}

impl Error {
    /// What the caller should do.
    #[must_use]
    pub const fn kind(&self) -> ErrorKind {
        match self {
            Self::Store(error) => error.kind(),
            Self::Files(error) => error.kind(),
            Self::NothingToSend { .. } | Self::NoTool { .. } | Self::ServerAbsent { .. } => {
                ErrorKind::Invalid
            }
        }
    }

    /// What would help, the best first.
    #[must_use]
    pub fn remedies(&self) -> Vec<Remedy> {
        match self {
            Self::Store(error) => error.remedies(),
            Self::Files(error) => error.remedies(),
            Self::NothingToSend { session, .. } => {
                vec![Remedy::Session(Action::Say, session.clone())]
            }
            Self::NoTool { .. } | Self::ServerAbsent { .. } => Vec::new(),
        }
    }
}
