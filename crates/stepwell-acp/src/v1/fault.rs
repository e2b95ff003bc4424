//! Errors of the library, as the protocol numbers them.

use stepwell::{ErrorKind as StoreErrorKind, SessionId};
use stepwell_runtime::{Error, ErrorKind};

use crate::rpc::{Result, RpcError};

/// An error of the library as the protocol numbers it.
pub(super) fn failed(error: &Error) -> RpcError {
    let code = match error.kind() {
        ErrorKind::Store(StoreErrorKind::Absent) | ErrorKind::Absent => RpcError::NOT_FOUND,
        ErrorKind::Store(StoreErrorKind::Invalid) | ErrorKind::Usage | ErrorKind::Config => {
            RpcError::INVALID_PARAMS
        }
        ErrorKind::Credentials => RpcError::AUTH_REQUIRED,
        ErrorKind::Interrupted => RpcError::CANCELLED,
        _ => RpcError::INTERNAL,
    };
    RpcError::new(code, error.to_string())
}

/// A session's name, read.
pub(super) fn session_id(name: &str) -> Result<SessionId, Error> {
    name.parse().map_err(|_| Error::Store(stepwell::Error::NoMatch(name.to_owned())))
}

/// Is it a name that no session can have, or that none has?
pub(super) fn is_no_id(error: &Error) -> bool {
    matches!(error, Error::Store(stepwell::Error::NoMatch(_)))
}
