//! What can go wrong in a run apart from what the machine decides.

/// The result of a run's parts.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Why a run could not go on, or not even begin.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// Nothing that was done since is recorded. It must be loud.
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
