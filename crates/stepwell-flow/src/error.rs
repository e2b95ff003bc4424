//! What can go wrong with a flow.

use crate::spec::{BadVariable, SpecError};
use crate::template::TemplateError;

/// The result of a flow's parts.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Why a flow cannot be read, or cannot go on.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A spec cannot be used.
    #[error(transparent)]
    Spec(#[from] SpecError),
    /// A variable cannot be what the user set it to.
    #[error(transparent)]
    Variable(#[from] BadVariable),
    /// A template cannot be filled.
    #[error("{what}: {source}")]
    Template {
        /// What it is for.
        what: String,
        /// Why.
        source: TemplateError,
    },
    /// Nothing that was done since is recorded. It must be loud.
    #[error(transparent)]
    Store(#[from] stepwell::Error),
    /// An agent's run could not go on.
    #[error(transparent)]
    Agent(stepwell_agent::Error),
    /// Something that cannot happen did.
    #[error("{0}")]
    Unexpected(String),
    /// A session is none of a flow.
    #[error("{0} is no session of a flow")]
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
