//! The errors of a flow.

use stepwell::error::Listing;
use stepwell::{ErrorKind, Remedy};

use crate::spec::{BadVariable, SpecError};
use crate::template::TemplateError;

/// A result with this crate's error.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Why a flow cannot be read or cannot continue.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The spec is unreadable or invalid.
    #[error(transparent)]
    Spec(#[from] SpecError),
    /// A variable is unknown, missing, or has a value that does not fit.
    #[error(transparent)]
    Variable(#[from] BadVariable),
    /// A template cannot be rendered.
    #[error("{what}: {source}")]
    Template {
        /// Where the spec has the template.
        what: String,
        /// What is wrong with it.
        source: TemplateError,
    },
    /// The store failed, so nothing done since is recorded. Never ignore this.
    #[error(transparent)]
    Store(#[from] stepwell::Error),
    /// An agent's run cannot continue.
    #[error(transparent)]
    Agent(stepwell_agent::Error),
    /// A bug: an invariant does not hold.
    #[error("{0}")]
    Unexpected(String),
    /// The session does not belong to a flow.
    #[error("session {0} does not belong to a flow")]
    NoFlow(stepwell::SessionId),
}

impl From<stepwell_agent::Error> for Error {
    fn from(error: stepwell_agent::Error) -> Self {
        match error {
            stepwell_agent::Error::Store(error) => Self::Store(error),
            error => Self::Agent(error),
        }
    }
}

impl Error {
    /// What the caller should do.
    #[must_use]
    pub const fn kind(&self) -> ErrorKind {
        match self {
            Self::Store(error) => error.kind(),
            Self::Agent(error) => error.kind(),
            Self::Spec(_)
            | Self::Variable(_)
            | Self::Template { .. }
            | Self::Unexpected(_)
            | Self::NoFlow(_) => ErrorKind::Invalid,
        }
    }

    /// What would help, the best first.
    #[must_use]
    pub fn remedies(&self) -> Vec<Remedy> {
        vec![match self {
            Self::Store(error) => return error.remedies(),
            Self::Agent(error) => return error.remedies(),
            Self::Spec(SpecError::Invalid { .. }) => Remedy::List(Listing::SpecKeys),
            Self::Variable(BadVariable::Missing { name, others, .. }) => {
                Remedy::GiveVariables(std::iter::once(name).chain(others).cloned().collect())
            }
            Self::Variable(_) => Remedy::List(Listing::Variables),
            Self::Spec(_) | Self::Template { .. } | Self::Unexpected(_) | Self::NoFlow(_) => {
                return Vec::new();
            }
        }]
    }
}
