//! The same server over HTTP (the protocol's "streamable HTTP"), for a web server that does its own
//! checks.
//!
//! The server keeps nothing between requests, in both eras of the protocol: it assigns no
//! `Mcp-Session-Id`, which is optional in the older era and absent in the newer one. So a restart
//! loses nothing.

use bytes::Bytes;
use http::{HeaderValue, Method, Request, Response, StatusCode, header};
use http_body_util::{BodyExt, Collected, Full};
use rmcp::model::{ClientJsonRpcMessage, ErrorData, ServerJsonRpcMessage};
use rmcp::transport::streamable_http_server::session::never::NeverSessionManager;
use rmcp::transport::streamable_http_server::{StreamableHttpServerConfig, StreamableHttpService};
use serde_json::Value;
use stepwell_wire::request_id;

use crate::server::Server;

/// A server that answers HTTP requests.
#[derive(Clone)]
pub struct HttpService(StreamableHttpService<Server, NeverSessionManager>);

impl std::fmt::Debug for HttpService {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("HttpService").finish_non_exhaustive()
    }
}

impl HttpService {
    /// Serves requests with this server.
    #[must_use]
    pub fn new(server: Server) -> Self {
        // The web server knows its own names, and checks hosts, origins, tokens and sizes first.
        let config = StreamableHttpServerConfig::default()
            .with_legacy_session_mode(false)
            .with_json_response(true)
            .disable_allowed_hosts()
            .disable_allowed_origins()
            .with_max_request_body_bytes(usize::MAX);
        let factory = move || Ok(server.clone());
        Self(StreamableHttpService::new(factory, NeverSessionManager::default().into(), config))
    }

    /// Answers a request. The caller MUST have checked its host, origin, sender and size.
    pub async fn answer(&self, request: Request<Bytes>) -> Response<Bytes> {
        if *request.method() == Method::POST
            && let Err(refused) = check(request.body())
        {
            return *refused;
        }
        let (head, body) = self.0.handle(request.map(Full::new)).await.into_parts();
        // The server sends no other messages, so an answer is a single complete message.
        let body = body.collect().await.map(Collected::to_bytes).unwrap_or_default();
        Response::from_parts(head, body)
    }
}

/// Is this one message of the protocol? For others the library's answer has another status and no
/// message, which clients cannot read.
fn check(body: &[u8]) -> Result<(), Box<Response<Bytes>>> {
    let value = serde_json::from_slice::<Value>(body).map_err(|why| {
        let why = format!("the message is not JSON: {why}");
        refuse(request_id(body).unwrap_or_default(), &ErrorData::parse_error(why, None))
    })?;
    let id = value.get("id").cloned().unwrap_or_default();
    match serde_json::from_value::<ClientJsonRpcMessage>(value) {
        Ok(_) => Ok(()),
        Err(_) => Err(refuse(id, &ErrorData::invalid_request("not a JSON-RPC message", None))),
    }
}

fn refuse(id: Value, error: &ErrorData) -> Box<Response<Bytes>> {
    let id = serde_json::from_value(id).ok();
    let message = ServerJsonRpcMessage::error(error.clone(), id);
    let body = serde_json::to_vec(&message).unwrap_or_default();
    let mut response = Response::new(Bytes::from(body));
    *response.status_mut() = StatusCode::BAD_REQUEST;
    let json = HeaderValue::from_static("application/json");
    response.headers_mut().insert(header::CONTENT_TYPE, json);
    Box::new(response)
}
