//! Who may do what: tokens, logins, and what every request has to pass.

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
    /// Look.
    Viewer,
    /// Look, answer, say, stop and start.
    Operator,
}

impl Role {
    /// Its word.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Viewer => "viewer",
            Self::Operator => "operator",
        }
    }
}

/// Somebody whose token or cookie was accepted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Caller {
    /// Their name, as the log has it: `web: NAME`.
    pub name: String,
    /// What they may do.
    pub role: Role,
    /// Are they the user whose machine this is? What others allow counts as `talk.from` says.
    pub is_user: bool,
}

impl Caller {
    /// Who they are, as the log has it.
    #[must_use]
    pub fn who(&self) -> Who {
        Who::from(format!("web: {}", self.name))
    }
}
