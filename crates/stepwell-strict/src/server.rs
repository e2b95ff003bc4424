//! The server: its port, the received requests, and the queue of replies.

use std::collections::{HashSet, VecDeque};
use std::convert::Infallible;
use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use futures_util::stream::{Stream, StreamExt};
use http_body_util::combinators::BoxBody;
use http_body_util::{BodyExt, Full, StreamBody};
use hyper::body::{Frame, Incoming};
use hyper::header::{CONTENT_TYPE, HeaderMap, HeaderValue, RETRY_AFTER};
use hyper::service::service_fn;
use hyper::{Request, Response, StatusCode};
use hyper_util::rt::TokioIo;
use parking_lot::{Mutex, MutexGuard};
use serde_json::Value;
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio::task::JoinHandle;

use crate::asked::{Asked, Protocol};
use crate::reply::{Dialect, Ending, HttpError, Piece, Raw, Reply, Say};
use crate::{anthropic, openai, responses};

type Body = BoxBody<Bytes, io::Error>;
type Answering = Box<dyn FnMut(&Asked) -> Reply + Send>;

/// Checks of a request, besides the vendors' rules.
#[derive(Clone, Debug)]
pub struct Rules {
    /// The accepted key; empty for none.
    pub key: String,
    /// The accepted models; empty for all.
    pub models: Vec<String>,
    /// The context length in tokens, at four bytes of the request each.
    pub context: Option<usize>,
    /// The context length including the requested output limit, as local servers count.
    pub context_with_answer: Option<usize>,
}

impl Default for Rules {
    fn default() -> Self {
        Self {
            key: "sk-strict-0123456789".to_owned(),
            models: Vec::new(),
            context: None,
            context_with_answer: None,
        }
    }
}

/// A provider on a loopback port. Dropping it stops it.
pub struct Strict {
    address: SocketAddr,
    shared: Arc<Shared>,
    task: JoinHandle<()>,
}

struct Shared {
    rules: Rules,
    state: Mutex<State>,
    arrived: watch::Sender<usize>,
    hung_up: watch::Sender<usize>,
    /// How often paused streams were continued.
    go_on: watch::Sender<usize>,
}

#[derive(Default)]
struct State {
    queue: VecDeque<Reply>,
    otherwise: Option<Answering>,
    asked: Vec<Asked>,
    /// The signatures of the thinking blocks that were sent.
    signatures: HashSet<String>,
}

impl fmt::Debug for Strict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Strict").field("address", &self.address).finish_non_exhaustive()
    }
}

impl Drop for Strict {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Strict {
    /// Listens on a free loopback port, on the current runtime.
    pub async fn start(rules: Rules) -> io::Result<Self> {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await?;
        let address = listener.local_addr()?;
        let shared = Arc::new(Shared {
            rules,
            state: Mutex::default(),
            arrived: watch::Sender::new(0),
            hung_up: watch::Sender::new(0),
            go_on: watch::Sender::new(0),
        });
        let serving = Arc::clone(&shared);
        let task = tokio::spawn(async move {
            while let Ok((socket, _)) = listener.accept().await {
                let shared = Arc::clone(&serving);
                tokio::spawn(async move {
                    let service = service_fn(|request| handle(Arc::clone(&shared), request));
                    let connection = hyper::server::conn::http1::Builder::new()
                        .serve_connection(TokioIo::new(socket), service);
                    // Callers that hang up are part of the tests.
                    drop(connection.await);
                });
            }
        });
        Ok(Self { address, shared, task })
    }

    /// The base URL of both protocols.
    #[must_use]
    pub fn base_url(&self) -> String {
        format!("http://{}/v1", self.address)
    }

    /// The accepted key.
    #[must_use]
    pub fn key(&self) -> &str {
        &self.shared.rules.key
    }

    /// Queues a reply. A rejected request consumes none.
    pub fn push(&self, reply: impl Into<Reply>) {
        self.shared.state().queue.push_back(reply.into());
    }

    /// Computes replies when the queue is empty.
    pub fn answer_with(&self, answer: impl FnMut(&Asked) -> Reply + Send + 'static) {
        self.shared.state().otherwise = Some(Box::new(answer));
    }

    /// Accepts signatures of thinking from another server.
    pub fn trust_signature(&self, signature: impl Into<String>) {
        self.shared.state().signatures.insert(signature.into());
    }

    /// Continues paused streams.
    pub fn go_on(&self) {
        self.shared.go_on.send_modify(|count| *count += 1);
    }

    /// Every request so far.
    #[must_use]
    pub fn asked(&self) -> Vec<Asked> {
        self.shared.state().asked.clone()
    }

    /// How many requests were rejected as invalid (not for their key, model or length).
    #[must_use]
    pub fn rejected(&self) -> usize {
        self.shared.state().asked.iter().filter(|asked| asked.rejected.is_some()).count()
    }

    /// Waits until this many requests have arrived.
    pub async fn arrived(&self, times: usize) {
        reached(&self.shared.arrived, times).await;
    }

    /// Waits until this many callers have hung up before their answer was complete.
    pub async fn hung_up(&self, times: usize) {
        reached(&self.shared.hung_up, times).await;
    }
}

async fn reached(counter: &watch::Sender<usize>, times: usize) {
    // This fails only without a sender, and the caller holds one.
    drop(counter.subscribe().wait_for(|count| *count >= times).await);
}

impl Shared {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock()
    }
}

async fn handle(shared: Arc<Shared>, request: Request<Incoming>) -> io::Result<Response<Body>> {
    let protocol = match request.uri().path() {
        "/v1/chat/completions" => Protocol::OpenAi,
        "/v1/responses" => Protocol::Responses,
        "/v1/messages" => Protocol::Anthropic,
        _ => return Ok(plain(StatusCode::NOT_FOUND, "no such path")),
    };
    let (head, body) = request.into_parts();
    let bytes = body.collect().await.map_err(io::Error::other)?.to_bytes();
    let text = String::from_utf8_lossy(&bytes).into_owned();
    let body: Value = serde_json::from_str(&text).unwrap_or(Value::Null);
    let stream = body["stream"] == Value::Bool(true);
    let asked = Asked { protocol, headers: pairs(&head.headers), body, text, rejected: None };

    let watched = Watched { shared: Arc::clone(&shared), complete: false };
    match decide(&shared, asked) {
        Reply::Error(error) => Ok(watched.completed(failed(protocol, &error))),
        Reply::Drop => {
            watched.completed(());
            Err(io::Error::other("dropped by the test"))
        }
        Reply::Hang => std::future::pending().await,
        Reply::Page(page) => Ok(watched.completed(web_page(&page))),
        Reply::Raw(raw) => Ok(watched.completed(as_it_is(&raw))),
        Reply::Say(say) => {
            tokio::time::sleep(say.delay).await;
            Ok(if stream && say.dialect != Dialect::Unstreamed {
                streamed(protocol, &say, watched)
            } else {
                whole(protocol, &say, watched)
            })
        }
    }
}

fn as_it_is(raw: &Raw) -> Response<Body> {
    let status = StatusCode::from_u16(raw.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let mut response = plain(status, &raw.body);
    response.headers_mut().remove(CONTENT_TYPE);
    for (name, value) in &raw.headers {
        response.headers_mut().insert(*name, HeaderValue::from_static(value));
    }
    response
}

fn web_page(page: &str) -> Response<Body> {
    let mut response = plain(StatusCode::OK, page);
    let kind = HeaderValue::from_static("text/html");
    response.headers_mut().insert(CONTENT_TYPE, kind);
    response
}

/// The reply to a request: by its key, by the vendor's rules, then by the test.
fn decide(shared: &Shared, mut asked: Asked) -> Reply {
    let mut state = shared.state();
    let refused = access(&shared.rules, &asked);
    if refused.is_none() {
        let checked = match asked.protocol {
            Protocol::OpenAi => openai::check(&asked.body),
            Protocol::Responses => responses::check(&asked.body),
            Protocol::Anthropic => anthropic::check(&asked, &state.signatures),
        };
        asked.rejected = checked.err();
    }
    let rejected = asked.rejected.clone();
    state.asked.push(asked.clone());
    shared.arrived.send_modify(|count| *count += 1);
    if let Some(error) = refused {
        return error.into();
    }
    if let Some(message) = rejected {
        return Reply::error(400, message).into();
    }
    let reply = match (state.queue.pop_front(), state.otherwise.as_mut()) {
        (Some(reply), _) => reply,
        (None, Some(answer)) => answer(&asked),
        (None, None) => Reply::error(500, "the test queued no more answers").into(),
    };
    if let Reply::Say(say) = &reply {
        let signed = say.pieces.iter().filter_map(|piece| match piece {
            Piece::Thinking { signature, .. } => Some(signature.clone()),
            Piece::Redacted(data) => Some(data.clone()),
            _ => None,
        });
        state.signatures.extend(signed);
    }
    reply
}

/// Checks key, model and length, with the vendors' messages.
fn access(rules: &Rules, asked: &Asked) -> Option<HttpError> {
    let (header, expected) = match asked.protocol {
        Protocol::OpenAi | Protocol::Responses if rules.key.is_empty() => {
            ("authorization", String::new())
        }
        Protocol::OpenAi | Protocol::Responses => {
            ("authorization", format!("Bearer {}", rules.key))
        }
        Protocol::Anthropic => ("x-api-key", rules.key.clone()),
    };
    let given = asked.header(header).unwrap_or_default();
    if given != expected {
        return Some(match asked.protocol {
            Protocol::Anthropic => Reply::error(401, "invalid x-api-key"),
            _ => Reply::error(401, format!("Incorrect API key provided: {given}."))
                .code("invalid_api_key"),
        });
    }
    let model = asked.body["model"].as_str().unwrap_or_default();
    if !rules.models.is_empty() && !rules.models.iter().any(|known| known == model) {
        return Some(match asked.protocol {
            Protocol::Anthropic => Reply::error(404, format!("model: {model}")),
            _ => Reply::error(
                404,
                format!("The model `{model}` does not exist or you do not have access to it."),
            )
            .code("model_not_found"),
        });
    }
    let tokens = asked.text.len() / 4;
    let limits = ["max_tokens", "max_completion_tokens"].map(|field| asked.body[field].as_u64());
    let answer = limits.into_iter().flatten().max().unwrap_or(0);
    let both = tokens.saturating_add(usize::try_from(answer).unwrap_or(usize::MAX));
    if let Some(most) = rules.context_with_answer.filter(|most| both > *most) {
        return Some(Reply::error(
            400,
            format!(
                "This model's maximum context length is {most} tokens. However, you requested \
                 {both} tokens ({tokens} in the messages, {answer} in the completion)."
            ),
        ));
    }
    let most = rules.context.filter(|most| tokens > *most)?;
    Some(match asked.protocol {
        Protocol::Anthropic => {
            Reply::error(400, format!("prompt is too long: {tokens} tokens > {most} maximum"))
        }
        _ => Reply::error(
            400,
            format!(
                "This model's maximum context length is {most} tokens. However, your messages \
                 resulted in {tokens} tokens. Please reduce the length of the messages."
            ),
        )
        .code("context_length_exceeded"),
    })
}

fn pairs(headers: &HeaderMap) -> Vec<(String, String)> {
    let value = |value: &[u8]| String::from_utf8_lossy(value).into_owned();
    headers.iter().map(|(k, v)| (k.as_str().to_owned(), value(v.as_bytes()))).collect()
}

fn failed(protocol: Protocol, error: &HttpError) -> Response<Body> {
    let body = match protocol {
        Protocol::OpenAi => openai::error(error),
        Protocol::Responses => responses::error(error),
        Protocol::Anthropic => anthropic::error(error),
    };
    let status = StatusCode::from_u16(error.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let mut response = plain(status, &body.to_string());
    if let Some(value) = error.retry_after.as_ref().and_then(|value| value.parse().ok()) {
        response.headers_mut().insert(RETRY_AFTER, value);
    }
    response
}

fn whole(protocol: Protocol, say: &Say, watched: Watched) -> Response<Body> {
    let body = match protocol {
        Protocol::OpenAi => openai::whole(say),
        Protocol::Responses => responses::whole(say),
        Protocol::Anthropic => anthropic::whole(say),
    };
    watched.completed(plain(StatusCode::OK, &body.to_string()))
}

fn streamed(protocol: Protocol, say: &Say, watched: Watched) -> Response<Body> {
    let (mut events, overloaded) = match protocol {
        Protocol::OpenAi => (openai::events(say), openai::overloaded()),
        Protocol::Responses => (responses::events(say), responses::overloaded()),
        Protocol::Anthropic => (anthropic::events(say), anthropic::overloaded()),
    };
    let (kept, end) = match say.ending {
        Ending::Whole | Ending::PausedAfter(_) => (events.len(), End::Clean),
        Ending::CutAfter(n) | Ending::OverloadedAfter(n) => (n, End::Clean),
        Ending::BrokenAfter(n) => (n, End::Broken),
        Ending::SilentAfter(n) => (n, End::Silent),
        Ending::KeptAliveAfter(n) => (n, End::KeptAlive(tokio::time::interval(KEEP_ALIVE))),
    };
    events.truncate(kept);
    if matches!(say.ending, Ending::OverloadedAfter(_)) {
        events.push(overloaded);
    }
    // Each event is sent in two pieces, which cuts characters and lines in the middle.
    let pieces: Vec<Bytes> = events
        .into_iter()
        .flat_map(|event| {
            let bytes = Bytes::from(event);
            let middle = bytes.len() / 2;
            [bytes.slice(..middle), bytes.slice(middle..)]
        })
        .collect();
    let pause = match say.ending {
        Ending::PausedAfter(n) => Some(Pause {
            left: pieces.len().saturating_sub(2 * n),
            until: Box::pin(next_go_on(watched.shared.go_on.subscribe())),
        }),
        _ => None,
    };
    let body = Streaming { pieces: pieces.into(), end, pause, watched: Some(watched) };
    let body = StreamBody::new(body.map(|piece| piece.map(Frame::data)));
    let mut response = Response::new(BodyExt::boxed(body));
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("text/event-stream"));
    response
}

fn plain(status: StatusCode, body: &str) -> Response<Body> {
    let body = Full::new(Bytes::from(body.to_owned())).map_err(|never: Infallible| match never {});
    let mut response = Response::new(BodyExt::boxed(body));
    *response.status_mut() = status;
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    response
}

enum End {
    Clean,
    Broken,
    Silent,
    KeptAlive(tokio::time::Interval),
}

/// The interval of keep-alives in a silent stream.
const KEEP_ALIVE: Duration = Duration::from_millis(20);

/// A streamed body. It yields to the runtime between its pieces, so that each is sent separately.
struct Streaming {
    pieces: VecDeque<Bytes>,
    end: End,
    pause: Option<Pause>,
    watched: Option<Watched>,
}

/// A pause of a stream: at this number of remaining pieces, until a signal.
struct Pause {
    left: usize,
    until: Pin<Box<dyn Future<Output = ()> + Send + Sync>>,
}

async fn next_go_on(mut told: watch::Receiver<usize>) {
    // The sender is gone, and so is the connection.
    let _ = told.changed().await;
}

impl Stream for Streaming {
    type Item = io::Result<Bytes>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let left = self.pieces.len();
        if let Some(pause) = self.pause.as_mut().filter(|pause| pause.left == left) {
            std::task::ready!(pause.until.as_mut().poll(cx));
            self.pause = None;
        }
        if let Some(piece) = self.pieces.pop_front() {
            return Poll::Ready(Some(Ok(piece)));
        }
        match &mut self.end {
            End::Silent => Poll::Pending,
            End::KeptAlive(beat) => {
                beat.poll_tick(cx).map(|_| Some(Ok(Bytes::from_static(b": keep-alive\n\n"))))
            }
            End::Clean => {
                if let Some(watched) = self.watched.take() {
                    watched.completed(());
                }
                Poll::Ready(None)
            }
            End::Broken => {
                if let Some(watched) = self.watched.take() {
                    watched.completed(());
                }
                Poll::Ready(Some(Err(io::Error::other("broken by the test"))))
            }
        }
    }
}

/// Counts a caller that hangs up before the end of its answer.
struct Watched {
    shared: Arc<Shared>,
    complete: bool,
}

impl Watched {
    fn completed<T>(mut self, with: T) -> T {
        self.complete = true;
        with
    }
}

impl Drop for Watched {
    fn drop(&mut self) {
        if !self.complete {
            self.shared.hung_up.send_modify(|count| *count += 1);
        }
    }
}
