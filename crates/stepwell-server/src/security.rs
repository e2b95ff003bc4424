//! Access control: tokens, logins, and the checks on every request.

mod certificate;
mod guard;
mod headers;
mod login;
mod logouts;
mod origin;
mod stamp;
mod token;
mod tokens;

pub use certificate::certificate;
pub(crate) use guard::{Entrance, Guard, Passed};
pub(crate) use headers::harden;
pub use login::OneTimeLink;
pub(crate) use login::{BrowserLogin, Credential, Logins, Refused};
pub(crate) use logouts::Logouts;
pub use origin::Origin;
pub use token::{NamedToken, Token};
pub use tokens::{TokenFiles, Tokens};

use stepwell::model::Who;

/// What a caller may do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Role {
    /// Read.
    Viewer,
    /// Read, answer, send messages, stop and start.
    Operator,
}

impl Role {
    /// Its name.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Viewer => "viewer",
            Self::Operator => "operator",
        }
    }
}

/// A caller with a valid token or cookie.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Caller {
    /// The name in the log: `web: NAME`.
    pub name: String,
    /// The role.
    pub role: Role,
    /// The user who runs the server? Approvals by others count as `talk.from` says.
    pub is_user: bool,
}

impl Caller {
    /// The author for events in the log.
    #[must_use]
    pub fn who(&self) -> Who {
        Who::from(format!("web: {}", self.name))
    }
}
