//! Whether what a session's log allows was allowed by this user.

use stepwell::SessionId;
use stepwell_workspace::{Workspace, ownership};

/// Whether what a session's log allows was allowed by this user. It is found by the user's own
/// mark, and cannot be made up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Trust {
    own: bool,
}

impl Trust {
    /// The session is somebody else's: what its log allows is asked again.
    pub const FOREIGN: Self = Self { own: false };

    /// What the user's mark says of a session.
    #[must_use]
    pub fn of(workspace: &Workspace, session: &SessionId) -> Self {
        Self { own: ownership::is_own(workspace, session) }
    }

    /// A session that begins now is the user's own.
    pub(crate) const fn new_session() -> Self {
        Self { own: true }
    }

    /// Whoever chooses when to be asked makes the session their own.
    pub(crate) const fn or_chosen(self, chose_mode: bool) -> Self {
        Self { own: self.own || chose_mode }
    }

    /// Does what the log allows count?
    #[must_use]
    pub const fn is_own(self) -> bool {
        self.own
    }
}
