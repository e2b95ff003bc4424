//! What can go wrong in a run apart from what the machine decides.

use stepwell::error::Action;
use stepwell::{ErrorKind, Remedy, SessionId};

/// The result of a run's parts.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Why a run could not go on, or not even begin.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Nothing that was done since is recorded. It must be loud.
    #[error(transparent)]
    Store(#[from] stepwell::Error),
    /// The session has no conversation, so that a request would say nothing.
    #[error("{session} has nothing to send to a model: {why}")]
    NothingToSend {
        /// The session.
        session: SessionId,
        /// What it holds instead.
        why: String,
    },
    /// An agent is to have a tool that is not there.
    #[error("there is no tool {entry:?}{}", near.as_ref().map(|it| format!("; did you mean {it}?")).unwrap_or_default())]
    NoTool {
        /// The tool, as the agent names it.
        entry: String,
        /// What was perhaps meant.
        near: Option<String>,
    },
    /// An agent is to have the tools of an MCP server that could not be reached.
    #[error("MCP server {server}: {why}")]
    ServerAbsent {
        /// The server.
        server: String,
        /// What happened to it.
        why: String,
    },
    /// Files could not be captured or moved back.
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
