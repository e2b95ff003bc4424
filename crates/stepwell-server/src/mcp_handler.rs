//! What answers at `/mcp`. MCP is a front end of its own, which this one knows nothing of: whoever
//! starts the server gives it.

use std::fmt::Debug;
use std::future::Future;
use std::pin::Pin;

use axum::http::Response;
use bytes::Bytes;

use crate::security::Caller;

/// A request with its body.
pub type McpRequest = axum::http::Request<Bytes>;

/// An answer on its way.
pub type McpAnswer = Pin<Box<dyn Future<Output = Response<Bytes>> + Send>>;

/// Answers MCP requests that passed the guard.
pub trait McpHandler: Debug + Send + Sync {
    /// Answers a request of somebody; on a server that changes nothing, everybody is a viewer. A
    /// viewer MUST be offered nothing that changes anything. What others change MUST be recorded
    /// with [who](Caller::who) they are.
    fn answer(&self, request: McpRequest, caller: &Caller) -> McpAnswer;
}
