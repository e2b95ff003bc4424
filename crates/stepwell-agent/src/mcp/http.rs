//! An MCP server over HTTP: the requests, the limit on answers, and what a failure means for the
//! call.
//!
//! The requests are made here because the client library would read answers of any length and
//! follow redirects. Unsolicited messages are not requested.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt as _;
use futures_util::stream::BoxStream;
use reqwest::header::{ACCEPT, CONTENT_TYPE, HeaderName, HeaderValue};
use reqwest::{RequestBuilder, Response, StatusCode};
use rmcp::model::{ClientJsonRpcMessage, JsonRpcMessage, ServerJsonRpcMessage};
use rmcp::transport::common::client_side_sse::ExponentialBackoff;
use rmcp::transport::streamable_http_client::{
    SseError, StreamableHttpClient, StreamableHttpClientTransport,
    StreamableHttpClientTransportConfig, StreamableHttpError, StreamableHttpPostResponse,
};
use sse_stream::{Sse, SseStream};

use super::{Address, LARGEST_MESSAGE, one_line};
use crate::provider::remote::use_ring;

/// How often an interrupted stream is requested again, and the first pause before that; the pauses
/// double.
const RESUMED: usize = 3;
const PAUSE: Duration = Duration::from_millis(500);

const JSON: &str = "application/json";
const EVENTS: &str = "text/event-stream";
const SESSION: &str = "mcp-session-id";

type Fault = StreamableHttpError<HttpFault>;
type Headers = HashMap<HeaderName, HeaderValue>;

/// Why a request failed. The text holds neither the address nor a key.
#[derive(Debug, thiserror::Error)]
pub(super) enum HttpFault {
    #[error("it cannot be reached: {0}")]
    Unreached(String),
    #[error("{0}")]
    Refused(String),
    #[error("{0}")]
    Broken(String),
}

impl HttpFault {
    /// Is it certain that the server did nothing?
    pub(super) const fn is_unasked(&self) -> bool {
        matches!(self, Self::Unreached(_) | Self::Refused(_))
    }

    fn sending(error: &reqwest::Error) -> Self {
        let why = causes(error);
        if error.is_connect() { Self::Unreached(why) } else { Self::Broken(why) }
    }
}

/// The causes of an error. The error itself is left out because it names the address.
fn causes(error: &reqwest::Error) -> String {
    let causes = std::iter::successors(std::error::Error::source(error), |it| it.source());
    causes.last().map_or_else(|| "the request failed".to_owned(), ToString::to_string)
}

/// A transport to the server at an address.
pub(super) fn transport(
    address: &Address,
    timeout: Duration,
) -> Result<StreamableHttpClientTransport<HttpClient>, String> {
    use_ring();
    // As for models: no redirects, which would carry the key to another host, and no proxy from the
    // environment. Connections are not reused: a reused one may turn out to be dead only after a
    // call was written, and then it is unclear whether the call was made.
    let client = reqwest::Client::builder()
        .no_proxy()
        .redirect(reqwest::redirect::Policy::none())
        .pool_max_idle_per_host(0)
        .connect_timeout(timeout)
        .build();
    let client = client.map_err(|error| format!("its client cannot be made: {error}"))?;
    let mut config = StreamableHttpClientTransportConfig::with_uri(address.url.as_str());
    let mut patience = ExponentialBackoff::default();
    patience.max_times = Some(RESUMED);
    patience.base_duration = PAUSE;
    config.retry_config = Arc::new(patience);
    config.custom_headers = headers(address)?;
    config.auth_header = address.key.as_ref().map(|key| key.reveal().to_owned());
    Ok(StreamableHttpClientTransport::with_client(HttpClient { client }, config))
}

fn headers(address: &Address) -> Result<Headers, String> {
    let header = |(name, value): (&String, &String)| {
        let wrong = || format!("the header {name:?} cannot be sent");
        let mut value = HeaderValue::from_str(value).map_err(|_| wrong())?;
        value.set_sensitive(true);
        Ok((HeaderName::from_bytes(name.as_bytes()).map_err(|_| wrong())?, value))
    };
    address.headers.iter().map(header).collect()
}

#[derive(Clone, Debug)]
pub(super) struct HttpClient {
    client: reqwest::Client,
}

impl StreamableHttpClient for HttpClient {
    type Error = HttpFault;

    async fn post_message(
        &self,
        uri: Arc<str>,
        message: ClientJsonRpcMessage,
        session_id: Option<Arc<str>>,
        auth_header: Option<String>,
        custom_headers: Headers,
    ) -> Result<StreamableHttpPostResponse, Fault> {
        let in_session = session_id.is_some();
        let request = self.client.post(&*uri).header(ACCEPT, format!("{JSON}, {EVENTS}"));
        let request = with(request, session_id, auth_header, custom_headers).json(&message);
        let response = send(request).await?;
        let status = response.status();
        if matches!(status, StatusCode::ACCEPTED | StatusCode::NO_CONTENT) {
            return Ok(StreamableHttpPostResponse::Accepted);
        }
        if status == StatusCode::NOT_FOUND && in_session {
            return Err(StreamableHttpError::SessionExpired);
        }
        let session = response.headers().get(SESSION);
        let session = session.and_then(|it| it.to_str().ok()).map(ToOwned::to_owned);
        if status.is_success() && has_type(&response, EVENTS) {
            return Ok(StreamableHttpPostResponse::Sse(events(response), session));
        }
        let body = body(response).await?;
        let parsed = serde_json::from_slice::<ServerJsonRpcMessage>(&body);
        match parsed {
            Ok(answer) if status.is_success() => {
                Ok(StreamableHttpPostResponse::Json(answer, session))
            }
            Ok(refusal @ JsonRpcMessage::Error(_)) if !is_about_key(status) => {
                Ok(StreamableHttpPostResponse::Json(refusal, session))
            }
            // Only requests have an answer.
            _ if status.is_success() && !matches!(message, JsonRpcMessage::Request(_)) => {
                Ok(StreamableHttpPostResponse::Accepted)
            }
            _ => Err(StreamableHttpError::Client(refusal(status, &body))),
        }
    }

    async fn delete_session(
        &self,
        uri: Arc<str>,
        session_id: Arc<str>,
        auth_header: Option<String>,
        custom_headers: Headers,
    ) -> Result<(), Fault> {
        let request = self.client.delete(&*uri);
        send(with(request, Some(session_id), auth_header, custom_headers)).await.map(drop)
    }

    async fn get_stream(
        &self,
        uri: Arc<str>,
        session_id: Option<Arc<str>>,
        last_event_id: Option<String>,
        auth_header: Option<String>,
        custom_headers: Headers,
    ) -> Result<BoxStream<'static, Result<Sse, SseError>>, Fault> {
        // Only an interrupted answer is requested again; there is no stream for unsolicited
        // messages.
        let Some(last) = last_event_id else {
            return Err(StreamableHttpError::ServerDoesNotSupportSse);
        };
        let request = self.client.get(&*uri).header(ACCEPT, EVENTS).header("last-event-id", last);
        let response = send(with(request, session_id, auth_header, custom_headers)).await?;
        let status = response.status();
        if !status.is_success() || !has_type(&response, EVENTS) {
            return Err(StreamableHttpError::Client(refusal(status, &[])));
        }
        Ok(events(response))
    }
}

fn with(
    mut request: RequestBuilder,
    session: Option<Arc<str>>,
    key: Option<String>,
    headers: Headers,
) -> RequestBuilder {
    for (name, value) in headers {
        request = request.header(name, value);
    }
    if let Some(session) = session {
        request = request.header(SESSION, &*session);
    }
    match key {
        Some(key) => request.bearer_auth(key),
        None => request,
    }
}

async fn send(request: RequestBuilder) -> Result<Response, Fault> {
    let sent = request.send().await;
    sent.map_err(|error| StreamableHttpError::Client(HttpFault::sending(&error)))
}

fn has_type(response: &Response, kind: &str) -> bool {
    let found = response.headers().get(CONTENT_TYPE);
    found.is_some_and(|found| found.as_bytes().starts_with(kind.as_bytes()))
}

fn too_long() -> String {
    format!("its answer is longer than {} MiB", LARGEST_MESSAGE >> 20)
}

/// The whole answer, up to the size limit.
async fn body(mut response: Response) -> Result<Vec<u8>, Fault> {
    let broken = |why| StreamableHttpError::Client(HttpFault::Broken(why));
    let mut body = Vec::new();
    while let Some(chunk) = response.chunk().await.map_err(|error| broken(causes(&error)))? {
        if body.len() + chunk.len() > LARGEST_MESSAGE {
            return Err(broken(too_long()));
        }
        body.extend_from_slice(&chunk);
    }
    Ok(body)
}

/// The answer to one request, event by event.
fn events(response: Response) -> BoxStream<'static, Result<Sse, SseError>> {
    let mut taken = 0;
    let chunks = response.bytes_stream().map(move |chunk| {
        let chunk = chunk.map_err(|error| HttpFault::Broken(causes(&error)))?;
        taken += chunk.len();
        if taken > LARGEST_MESSAGE {
            return Err(HttpFault::Broken(too_long()));
        }
        Ok(chunk)
    });
    SseStream::from_bytes_stream(chunks).boxed()
}

const fn is_about_key(status: StatusCode) -> bool {
    matches!(status, StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN)
}

fn refusal(status: StatusCode, body: &[u8]) -> HttpFault {
    let said = one_line(&String::from_utf8_lossy(body));
    let said = if said.is_empty() { String::new() } else { format!(": {said}") };
    if is_about_key(status) {
        HttpFault::Refused(format!("it rejects the key (HTTP {status}){said}"))
    } else if status.is_redirection() {
        HttpFault::Refused(format!("it redirects (HTTP {status}), and redirects are not followed"))
    } else if status.is_client_error() {
        HttpFault::Refused(format!("it rejects the request (HTTP {status}){said}"))
    } else if status.is_success() {
        HttpFault::Broken(format!("its answer is not MCP{said}"))
    } else {
        HttpFault::Broken(format!("it failed (HTTP {status}){said}"))
    }
}
