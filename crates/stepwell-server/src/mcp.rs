//! `/mcp`: passes requests from the guard on to the MCP handler.

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

/// The path.
pub(crate) const PATH: &str = "/mcp";

/// `/mcp`, if there is a handler.
pub(crate) async fn answer(State(site): State<Arc<Site>>, request: Request) -> Response<Body> {
    let answered = async {
        let caller = caller(&request)?;
        let Some(handler) = &site.mcp else {
            return Err(Problem::absent("this server does not support MCP"));
        };
        let role = if site.limits.read_only { Role::Viewer } else { caller.role };
        let caller = Caller { role, ..caller };
        let (head, received) = request.into_parts();
        let received = body(received).await?;
        let request = McpRequest::from_parts(head, Bytes::from(received));
        // A panic of the handler becomes an answer, and the connection survives.
        tokio::spawn(handler.answer(request, &caller)).await.map_err(|_| {
            Problem::new(StatusCode::INTERNAL_SERVER_ERROR, "defect", "a handler failed")
        })
    };
    match answered.await {
        Ok(response) => response.map(Body::from),
        Err(problem) => problem.response(),
    }
}
