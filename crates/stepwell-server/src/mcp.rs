//! `/mcp`: requests that passed the guard reach what answers them.

use std::sync::Arc;

use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::{Response, StatusCode};
use bytes::Bytes;

use crate::mcp_handler::McpRequest;
use crate::problem::Problem;
use crate::received::{body, caller};
use crate::security::{Caller, Role};
use crate::site::Site;

/// Where it answers.
pub(crate) const PATH: &str = "/mcp";

/// `/mcp`, if there is something that answers.
pub(crate) async fn answer(State(site): State<Arc<Site>>, request: Request) -> Response<Body> {
    let answered = async {
        let caller = caller(&request)?;
        let Some(handler) = &site.mcp else {
            return Err(Problem::absent("this server does not speak MCP"));
        };
        let role = if site.limits.read_only { Role::Viewer } else { caller.role };
        let caller = Caller { role, ..caller };
        let (head, received) = request.into_parts();
        let received = body(received).await?;
        let request = McpRequest::from_parts(head, Bytes::from(received));
        // A fault there is an answer here, and the connection goes on.
        tokio::spawn(handler.answer(request, &caller)).await.map_err(|_| {
            Problem::new(StatusCode::INTERNAL_SERVER_ERROR, "defect", "a handler failed")
        })
    };
    match answered.await {
        Ok(response) => response.map(Body::from),
        Err(problem) => problem.response(),
    }
}
