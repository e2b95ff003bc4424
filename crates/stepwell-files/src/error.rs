//! Errors while files are captured or restored.

use stepwell::{ErrorKind, Remedy};

/// The result of an operation on a session's files.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Why files could not be captured or restored.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The store could not be read or written.
    #[error(transparent)]
    Store(#[from] stepwell::Error),
    /// The rewind failed; all files are unchanged.
    #[error("the files could not be moved back and are as they were: {why}")]
    NotMoved {
        /// The reason.
        why: String,
    },
    /// The rewind failed halfway, and the files could not be changed back.
    #[error("the files were moved back in part only: {why}")]
    HalfMoved {
        /// The reason.
        why: String,
    },
}

impl Error {
    /// What the caller should do.
    #[must_use]
    pub const fn kind(&self) -> ErrorKind {
        match self {
            Self::Store(error) => error.kind(),
            Self::NotMoved { .. } => ErrorKind::Conflict,
            Self::HalfMoved { .. } => ErrorKind::Damaged,
        }
    }

    /// What would help, the best first.
    #[must_use]
    pub fn remedies(&self) -> Vec<Remedy> {
        match self {
            Self::Store(error) => error.remedies(),
            Self::HalfMoved { .. } => vec![Remedy::Retry],
            Self::NotMoved { .. } => Vec::new(),
        }
    }
}
