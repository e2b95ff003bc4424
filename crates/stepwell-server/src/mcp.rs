//! What answers at `/mcp`. MCP is a front end of its own, which this one knows nothing of: whoever
//! starts the server gives it.

use std::fmt::Debug;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::{Response, StatusCode};
use bytes::Bytes;

use crate::problem::Problem;
use crate::security::Role;
use crate::server::{body, caller};
use crate::site::Site;

/// Where it answers.
pub(crate) const PATH: &str = "/mcp";

/// A request with its body.
pub type McpRequest = axum::http::Request<Bytes>;

/// An answer on its way.
pub type McpAnswer = Pin<Box<dyn Future<Output = Response<Bytes>> + Send>>;

/// Answers MCP requests that passed the guard.
pub trait McpHandler: Debug + Send + Sync {
    /// Answers a request of somebody with that role; on a server that changes nothing, everybody
    /// is a viewer. A viewer MUST be offered nothing that changes anything.
    fn answer(&self, request: McpRequest, role: Role) -> McpAnswer;
}

/// `/mcp`, if there is something that answers.
pub(crate) async fn answer(State(site): State<Arc<Site>>, request: Request) -> Response<Body> {
    let answered = async {
        let caller = caller(&request)?;
        let Some(handler) = &site.mcp else {
            return Err(Problem::absent("this server does not speak MCP"));
        };
        let role = if site.limits.read_only { Role::Viewer } else { caller.role };
        let (head, received) = request.into_parts();
        let received = body(received).await?;
        let request = McpRequest::from_parts(head, Bytes::from(received));
        // A fault there is an answer here, and the connection goes on.
        tokio::spawn(handler.answer(request, role)).await.map_err(|_| {
            Problem::new(StatusCode::INTERNAL_SERVER_ERROR, "defect", "a handler failed")
        })
    };
    match answered.await {
        Ok(response) => response.map(Body::from),
        Err(problem) => problem.response(),
    }
}
