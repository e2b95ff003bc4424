//! The interface of the handler for `/mcp`. MCP is a separate front end, which this crate does not
//! know: the caller that starts the server provides it.

use std::fmt::Debug;
use std::future::Future;
use std::pin::Pin;

use axum::http::Response;
use bytes::Bytes;

use crate::security::Caller;

/// A request with its body.
pub type McpRequest = axum::http::Request<Bytes>;

/// A pending answer.
pub type McpAnswer = Pin<Box<dyn Future<Output = Response<Bytes>> + Send>>;

/// Answers MCP requests that passed the guard.
pub trait McpHandler: Debug + Send + Sync {
    /// Answers a caller's request; on a read-only server every caller is a viewer. A viewer MUST
    /// NOT be offered tools that change anything. Changes by others MUST be recorded with [their
    /// name](Caller::who).
    fn answer(&self, request: McpRequest, caller: &Caller) -> McpAnswer;
}
