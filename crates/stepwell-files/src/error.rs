//! What can go wrong when files are captured or moved back.

use stepwell::{ErrorKind, Remedy};

/// The result of working with a session's files.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Why files could not be captured or moved back.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The store could not be read or written.
    #[error(transparent)]
    Store(#[from] stepwell::Error),
    /// Files could not be moved back; they are as they were.
    #[error("the files could not be moved back and are as they were: {why}")]
    NotMoved {
        /// What was in the way.
        why: String,
    },
    /// Files could not be moved back, and what was done of it could not be taken back.
    #[error("the files were moved back in part only: {why}")]
    HalfMoved {
        /// What was in the way.
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
