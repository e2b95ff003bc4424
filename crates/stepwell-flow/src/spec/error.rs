//! Why a spec cannot be used.

use super::problem::Problem;

/// Why a spec cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum SpecError {
    /// Its file cannot be read.
    #[error("{file}: {why}")]
    Unreadable {
        /// The file, as the user named it.
        file: String,
        /// The reason.
        why: String,
    },
    /// It is not a valid spec.
    #[error("{}", lines(.file, .problems))]
    Invalid {
        /// The spec, as the user named it.
        file: String,
        /// The problems in the order of the file. There is at least one.
        problems: Vec<Problem>,
    },
}

fn lines(file: &str, problems: &[Problem]) -> String {
    let lines = problems.iter().map(|problem| format!("{file}:{problem}"));
    lines.collect::<Vec<_>>().join("\n")
}
