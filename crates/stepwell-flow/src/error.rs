//! What can go wrong with a flow.

use crate::spec::{BadVariable, Problem};
use crate::template::TemplateError;

/// The result of a flow's parts.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Why a flow cannot be read, or cannot go on.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A file cannot be read.
    #[error("{file}: {why}")]
    Unreadable {
        /// Which.
        file: String,
        /// What is in the way.
        why: String,
    },
    /// A spec does not say what to do.
    #[error("{}", told(.file, .problems))]
    Invalid {
        /// The spec.
        file: String,
        /// What is wrong with it, in the order of the file. There is at least one.
        problems: Vec<Problem>,
    },
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
}

fn told(file: &str, problems: &[Problem]) -> String {
    let lines = problems.iter().map(|problem| format!("{file}:{problem}"));
    lines.collect::<Vec<_>>().join("\n")
}
