//! A connection to an MCP server: handshake, tool list, calls, and close. Each has a deadline.

use std::time::Duration;

use parking_lot::Mutex;
use rmcp::model::{
    CallToolRequest, CallToolRequestParams, CallToolResult, CancelledNotificationParam,
    ClientCapabilities, ClientConfig, ClientRequest, CustomResult, ErrorCode, Implementation,
    JsonObject, ListToolsRequest, PaginatedRequestParams, ProtocolVersion, RequestId, ServerResult,
};
use rmcp::service::{
    ClientInitializeError, Peer, PeerRequestOptions, RunningService, ServiceError,
};
use rmcp::transport::streamable_http_client::StreamableHttpError;
use rmcp::transport::{DynamicTransportError, IntoTransport};
use rmcp::{ClientLifecycleMode, RoleClient, serve_client_with_lifecycle};
use stepwell_catalog::server::ServerName;
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};

use super::http::{self, HttpFault};
use super::offer::{Offered, Page, take};
use super::process::{DRAIN, Process};
use super::{MOST_LISTED, Reach, Server, one_line};
use crate::tool::ToolEnv;

/// How long a close may wait for pending messages: cancellations, and the goodbye.
const LEAVING: Duration = Duration::from_secs(1);

const CLOSED: &str = "it closed the connection";

/// How many of the dropped tools are named one by one.
const NAMED: usize = 3;

type Service = RunningService<RoleClient, ClientConfig>;

/// A connection.
pub(super) struct Connection {
    peer: Peer<RoleClient>,
    service: Mutex<Option<Service>>,
    process: Option<Process>,
    /// Cancellations that are still being sent.
    cancelling: Mutex<JoinSet<()>>,
}

impl std::fmt::Debug for Connection {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Connection").field("process", &self.process).finish_non_exhaustive()
    }
}

/// The tools of a server.
#[derive(Debug, Default)]
pub(super) struct Listed {
    pub(super) tools: Vec<Offered>,
    /// The parts of the list that are not used, and why.
    pub(super) left_out: Vec<String>,
}

/// Why a call has no result.
#[derive(Debug)]
pub(super) enum CallFault {
    /// The call never reached the server.
    Unasked(String),
    /// The server refused the call.
    Refused(String),
    /// The call was sent, and no answer will come.
    Lost(String),
    /// The call took too long and was cancelled.
    TimedOut,
}

impl Connection {
    /// Connects and lists the tools.
    pub(super) async fn open(server: &Server, place: &ToolEnv) -> Result<(Self, Listed), String> {
        // Servers of the newest protocol reject the handshake with a known error.
        let versions = vec![ProtocolVersion::LATEST];
        let newest = ClientLifecycleMode::Discover { preferred_versions: versions };
        match Self::attempt(server, place, ClientLifecycleMode::Initialize).await {
            Err(Unopened::NoHandshake(_)) => {
                Self::attempt(server, place, newest).await.map_err(Unopened::why)
            }
            opened => opened.map_err(Unopened::why),
        }
    }

    async fn attempt(
        server: &Server,
        place: &ToolEnv,
        lifecycle: ClientLifecycleMode,
    ) -> Result<(Self, Listed), Unopened> {
        let late = format!("it was not ready within {} s", server.start.as_secs_f32());
        let broken = |why: String| Unopened::Broken(why);
        match &server.reach {
            Reach::Program(program) => {
                let not_started = |error| broken(format!("it could not be started: {error}"));
                let (process, streams) = Process::start(program, place).map_err(not_started)?;
                let opened = timeout(server.start, begin(&server.name, streams, lifecycle)).await;
                match opened {
                    Ok(Ok((service, listed))) => Ok((Self::of(service, Some(process)), listed)),
                    Ok(Err(Unopened::Closed)) => Err(broken(process.explain(CLOSED).await)),
                    Ok(Err(other)) => Err(other),
                    Err(_) => Err(broken(process.quoted(&late))),
                }
            }
            Reach::Address(address) => {
                let transport = http::transport(address, server.start).map_err(broken)?;
                let opened = begin(&server.name, transport, lifecycle);
                let (service, listed) =
                    timeout(server.start, opened).await.unwrap_or(Err(broken(late)))?;
                Ok((Self::of(service, None), listed))
            }
        }
    }

    fn of(service: Service, process: Option<Process>) -> Self {
        if let Some(process) = &process {
            let (end, over) = (process.ended(), service.cancellation_token());
            tokio::spawn(async move {
                end.await;
                sleep(DRAIN).await;
                over.cancel();
            });
        }
        Self {
            peer: service.peer().clone(),
            service: Mutex::new(Some(service)),
            process,
            cancelling: Mutex::default(),
        }
    }

    /// Is the connection still open?
    pub(super) fn is_alive(&self) -> bool {
        !self.peer.is_transport_closed()
    }

    /// Calls a tool. Dropping the future cancels the call on the server.
    pub(super) async fn call(
        &self,
        own_name: &str,
        arguments: JsonObject,
        limit: Duration,
    ) -> Result<CallToolResult, CallFault> {
        let params = CallToolRequestParams::new(own_name.to_owned()).with_arguments(arguments);
        let request = ClientRequest::CallToolRequest(CallToolRequest::new(params));
        let options = PeerRequestOptions::no_options();
        let sent = self.peer.send_request_with_option(request, options).await;
        let Ok(handle) = sent else {
            return Err(CallFault::Unasked(self.explain(CLOSED).await));
        };
        let mut asked = Asked { connection: self, id: Some(handle.id.clone()) };
        let Ok(answered) = timeout(limit, handle.await_response()).await else {
            return Err(CallFault::TimedOut);
        };
        asked.id = None;
        match answered {
            Ok(ServerResult::CallToolResult(result)) => Ok(result),
            Ok(ServerResult::InputRequiredResult(_)) => Err(CallFault::Refused(
                "the tool asks for more input, which Stepwell cannot give".into(),
            )),
            Ok(_) => Err(CallFault::Lost("its answer is not a tool result".into())),
            Err(error) => Err(self.fault(error).await),
        }
    }

    async fn fault(&self, error: ServiceError) -> CallFault {
        match error {
            ServiceError::McpError(error) => CallFault::Refused(one_line(&error.message)),
            ServiceError::TransportSend(error) => match http_fault(&error) {
                Some(fault) if fault.is_unasked() => CallFault::Unasked(fault.to_string()),
                Some(fault) => CallFault::Lost(fault.to_string()),
                None => CallFault::Lost(self.explain(CLOSED).await),
            },
            ServiceError::UnexpectedResponse => {
                CallFault::Lost("its answer is not a tool result".to_owned())
            }
            _ => CallFault::Lost(self.explain(CLOSED).await),
        }
    }

    async fn explain(&self, otherwise: &str) -> String {
        match &self.process {
            Some(process) => process.explain(otherwise).await,
            None => otherwise.to_owned(),
        }
    }

    /// Asks the server to cancel a call.
    fn cancel(&self, id: RequestId) {
        let peer = self.peer.clone();
        let mut cancelling = self.cancelling.lock();
        cancelling.spawn(async move {
            let why = "the result is no longer needed".to_owned();
            // If the server is gone, the message is not needed.
            let _ =
                peer.notify_cancelled(CancelledNotificationParam::new(Some(id), Some(why))).await;
        });
    }

    /// Says goodbye to the server and waits briefly for it to end.
    pub(super) async fn close(&self) {
        let mut cancelling = {
            let mut cancelling = self.cancelling.lock();
            std::mem::take(&mut *cancelling)
        };
        let told = async { while cancelling.join_next().await.is_some() {} };
        let _ = timeout(LEAVING, told).await;
        let service = self.service.lock().take();
        if let Some(mut service) = service {
            // Everything else ends with the process.
            let _ = service.close_with_timeout(LEAVING).await;
        }
        if let Some(process) = &self.process {
            process.let_go().await;
        }
    }
}

/// A call that waits for its answer.
struct Asked<'a> {
    connection: &'a Connection,
    id: Option<RequestId>,
}

impl Drop for Asked<'_> {
    fn drop(&mut self) {
        if let Some(id) = self.id.take() {
            self.connection.cancel(id);
        }
    }
}

/// Why a connection failed to open.
enum Unopened {
    /// The server rejects the offered handshake.
    NoHandshake(String),
    /// The server closed its end.
    Closed,
    /// Anything else.
    Broken(String),
}

impl Unopened {
    fn why(self) -> String {
        match self {
            Self::NoHandshake(why) | Self::Broken(why) => why,
            Self::Closed => CLOSED.to_owned(),
        }
    }

    fn of(error: &ClientInitializeError) -> Self {
        match error {
            ClientInitializeError::JsonRpcError(error) => {
                let why = format!("it rejects the handshake: {}", one_line(&error.message));
                match error.code {
                    ErrorCode::METHOD_NOT_FOUND | ErrorCode::UNSUPPORTED_PROTOCOL_VERSION => {
                        Self::NoHandshake(why)
                    }
                    _ => Self::Broken(why),
                }
            }
            ClientInitializeError::TransportError { error, .. } => Self::sending(error),
            ClientInitializeError::ConnectionClosed(_) => Self::Closed,
            ClientInitializeError::NoCompatibleProtocolVersion { .. } => {
                Self::Broken("it supports no MCP version that Stepwell does".to_owned())
            }
            _ => Self::Broken("its answer to the handshake is not MCP".to_owned()),
        }
    }

    fn listing(error: &ServiceError) -> Self {
        match error {
            ServiceError::McpError(error) => {
                Self::Broken(format!("it does not list its tools: {}", one_line(&error.message)))
            }
            ServiceError::TransportSend(error) => Self::sending(error),
            ServiceError::UnexpectedResponse => {
                Self::Broken("its list of tools is not valid MCP".to_owned())
            }
            _ => Self::Closed,
        }
    }

    fn sending(error: &DynamicTransportError) -> Self {
        http_fault(error).map_or(Self::Closed, |fault| Self::Broken(fault.to_string()))
    }
}

/// The HTTP failure inside a transport error, if there is one.
fn http_fault(error: &DynamicTransportError) -> Option<&HttpFault> {
    match error.error.downcast_ref::<StreamableHttpError<HttpFault>>()? {
        StreamableHttpError::Client(fault) => Some(fault),
        _ => None,
    }
}

/// Performs the handshake and lists the tools.
async fn begin<T, E, A>(
    name: &ServerName,
    transport: T,
    lifecycle: ClientLifecycleMode,
) -> Result<(Service, Listed), Unopened>
where
    T: IntoTransport<RoleClient, E, A>,
    E: std::error::Error + Send + Sync + 'static,
{
    let us = Implementation::new("stepwell", env!("CARGO_PKG_VERSION"));
    let config = ClientConfig::new(ClientCapabilities::default(), us)
        .with_protocol_version(ProtocolVersion::LATEST_WITH_INITIALIZE);
    let service = serve_client_with_lifecycle(config, transport, lifecycle).await;
    let service = service.map_err(|error| Unopened::of(&error))?;
    let listed = list(name, &service).await?;
    Ok((service, listed))
}

/// Requests one page of tools.
async fn page(service: &Service, cursor: Option<String>) -> Result<Page, Unopened> {
    let params = PaginatedRequestParams::default().with_cursor(cursor);
    let request = ListToolsRequest { params: Some(params), ..ListToolsRequest::default() };
    let answered = service.send_request(ClientRequest::ListToolsRequest(request)).await;
    match answered.map_err(|error| Unopened::listing(&error))? {
        ServerResult::ListToolsResult(page) => {
            Ok(Page { tools: page.tools.into_iter().map(Ok).collect(), next: page.next_cursor })
        }
        // With a single malformed tool, the client library reports the whole list as a custom
        // result.
        ServerResult::CustomResult(CustomResult(list)) => {
            Page::of(&list).ok_or_else(|| Unopened::listing(&ServiceError::UnexpectedResponse))
        }
        _ => Err(Unopened::listing(&ServiceError::UnexpectedResponse)),
    }
}

/// Requests the tools page by page, up to a limit.
async fn list(name: &ServerName, service: &Service) -> Result<Listed, Unopened> {
    let mut listed = Listed::default();
    if service.peer_info().is_none_or(|info| info.capabilities.tools.is_none()) {
        return Ok(listed);
    }
    let (mut cursor, mut seen, mut refused) = (None, 0, 0);
    loop {
        let page = page(service, cursor).await?;
        for tool in page.tools {
            seen += 1;
            match tool.and_then(|tool| take(name, &tool)) {
                _ if seen > MOST_LISTED => {}
                Ok(offered) => listed.tools.push(offered),
                Err(why) if refused < NAMED => {
                    refused += 1;
                    listed.left_out.push(why);
                }
                Err(_) => refused += 1,
            }
        }
        cursor = page.next;
        if cursor.is_none() || seen > MOST_LISTED {
            break;
        }
    }
    if refused > NAMED {
        listed.left_out.push(format!("{} more that are too large", refused - NAMED));
    }
    if seen > MOST_LISTED {
        listed.left_out.push(format!("all after its first {MOST_LISTED} tools"));
    }
    Ok(listed)
}
