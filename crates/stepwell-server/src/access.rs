//! The access log: who asked for what, when, and how it went.

use std::fmt;
use std::net::SocketAddr;

use serde::Serialize;
use stepwell::Time;

/// A request that was answered. Its query, its headers and its body, which may hold secrets, are
/// no part of it.
#[derive(Clone, Debug, Serialize)]
pub struct AccessEntry {
    /// When the answer began.
    pub at: Time,
    /// The name of the caller's token; absent, nobody known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub who: Option<String>,
    /// Where the connection came from.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub from: Option<SocketAddr>,
    /// The request's method.
    pub method: String,
    /// The request's path.
    pub path: String,
    /// The answer's status.
    pub status: u16,
}

/// Keeps an access log.
pub trait AccessLog: fmt::Debug + Send + Sync {
    /// Keeps a request. It must not block for long, and has nobody to tell if it fails.
    fn keep(&self, entry: &AccessEntry);
}
