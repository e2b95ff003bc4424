//! What the caller should do about an error.

use serde::{Deserialize, Serialize};

/// What the caller should do about an error.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ErrorKind {
    /// What the store's own kind of error asks for.
    Store(stepwell::ErrorKind),
    /// What the workspace's own kind of error asks for.
    Workspace(stepwell_workspace::ErrorKind),
    /// The configuration or the spec must be mended first, or something named is not there.
    Config,
    /// What was asked is wrong; ask differently.
    Usage,
    /// It cannot be done as things stand.
    Invalid,
    /// The session has nothing of that name.
    Absent,
    /// The provider refused the credentials.
    Credentials,
    /// Somebody else is at it; try again later.
    Busy,
    /// What was done could not be saved, or files are half moved.
    Unsaved,
    /// It was interrupted.
    Interrupted,
}

impl ErrorKind {
    /// Is somebody else at it?
    #[must_use]
    pub const fn is_busy(self) -> bool {
        use stepwell::ErrorKind::{Busy, Fenced};
        use stepwell_workspace::ErrorKind as Workspace;
        match self {
            Self::Store(kind) | Self::Workspace(Workspace::Store(kind)) => {
                matches!(kind, Busy | Fenced)
            }
            kind => matches!(kind, Self::Busy),
        }
    }
}
