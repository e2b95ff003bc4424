//! Models over the network: OpenAI, Anthropic, Gemini, Ollama, and OpenAI-compatible servers.
//!
//! Each protocol is a module with two pure halves: the body of a request, and a reader that folds
//! the events of a stream into a draft answer. `fault` classifies failures. The single driver here
//! sends, waits, and feeds the reader.

mod anthropic;
mod calls;
mod draft;
mod fault;
mod gemini;
mod openai;
mod outgoing;
mod picture;
mod sse;
#[cfg(test)]
mod tests;

use std::fmt;
use std::sync::Once;
use std::time::Duration;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use reqwest::header::{HeaderMap, HeaderValue};
use reqwest::{Response, Url};
use serde_json::Value;
use tokio::time::Instant;

use self::draft::Draft;
use self::fault::Failure;
use self::sse::{Event, Events};
use super::{Answer, CallError, Delta, Fault, Provider, Request};

/// How long a provider may be silent, by default. Models with hidden reasoning can be silent for
/// minutes.
pub const DEFAULT_TIMEOUT: Duration = Duration::from_secs(300);

/// The API of an endpoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Protocol {
    /// OpenAI's chat completions, which most other servers support too.
    OpenAi,
    /// Anthropic's messages.
    Anthropic,
    /// Gemini's generateContent.
    Gemini,
}

impl Protocol {
    /// The vendor's base URL.
    #[must_use]
    pub const fn vendor_url(self) -> &'static str {
        match self {
            Self::OpenAi => "https://api.openai.com/v1/",
            Self::Anthropic => "https://api.anthropic.com/v1/",
            Self::Gemini => "https://generativelanguage.googleapis.com/v1beta/",
        }
    }

    fn body(self, provider: &str, request: Request<'_>, sampling: Sampling) -> Value {
        match self {
            Self::OpenAi => openai::body(provider, request, sampling),
            Self::Anthropic => anthropic::body(provider, request, sampling),
            Self::Gemini => gemini::body(provider, request, sampling),
        }
    }

    /// The URL for a model below the base URL. A query in the base URL is kept.
    fn url(self, base: &Url, model: &str) -> Url {
        let mut url = base.clone();
        if let Ok(mut path) = url.path_segments_mut() {
            path.pop_if_empty();
            match self {
                Self::OpenAi => path.extend(["chat", "completions"]),
                Self::Anthropic => path.push("messages"),
                Self::Gemini => {
                    path.push("models").extend(format!("{model}:streamGenerateContent").split('/'))
                }
            };
        }
        if self == Self::Gemini {
            url.query_pairs_mut().append_pair("alt", "sse");
        }
        url
    }

    fn reader(self, request: Request<'_>) -> Reader<'_> {
        match self {
            Self::OpenAi => Reader::OpenAi(openai::Reader::new(request.tools)),
            Self::Anthropic => Reader::Anthropic(anthropic::Reader::default()),
            Self::Gemini => Reader::Gemini(gemini::Reader::default()),
        }
    }
}

/// Is the answer complete?
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Progress {
    More,
    Done,
}

/// The stream reader of a protocol.
enum Reader<'a> {
    OpenAi(openai::Reader<'a>),
    Anthropic(anthropic::Reader),
    Gemini(gemini::Reader),
}

impl Reader<'_> {
    fn event(&mut self, event: &Event, draft: &mut Draft) -> Result<Progress, Failure> {
        Ok(match self {
            Self::OpenAi(reader) if event.data.trim() == "[DONE]" => reader.end(draft),
            Self::OpenAi(reader) => reader.event(&json(event)?, draft),
            Self::Anthropic(reader) => reader.event(&json(event)?, draft),
            Self::Gemini(reader) => reader.event(&json(event)?, draft),
        })
    }
}

/// The JSON data of an event, unless the event is an error.
fn json(event: &Event) -> Result<Value, Failure> {
    let data = serde_json::from_str(&event.data);
    if event.name == "error" {
        let said = data.unwrap_or_else(|_| Value::String(event.data.clone()));
        return Err(Failure::in_stream(&said));
    }
    let data = data.map_err(|_| Failure::unreadable())?;
    if fault::is_error(&data) {
        return Err(Failure::in_stream(&data));
    }
    Ok(data)
}

/// A secret that is only ever sent to its provider.
#[derive(Clone, PartialEq, Eq)]
pub struct Key(String);

impl Key {
    /// Surrounding white space is removed.
    #[must_use]
    pub fn new(text: &str) -> Self {
        Self(text.trim().to_owned())
    }

    pub(crate) fn reveal(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Key(…)")
    }
}

/// How to reach a provider.
#[derive(Clone, Debug)]
pub struct Endpoint {
    /// The provider's name in events.
    pub provider: String,
    /// The API that it speaks.
    pub protocol: Protocol,
    /// Its base URL, such as `http://localhost:11434/v1`; `None` for the vendor's.
    pub base_url: Option<String>,
    /// Its key. The vendors require one.
    pub key: Option<Key>,
    /// How long it may be silent: before its answer, and between two pieces. Keep-alive messages
    /// count as silence. A whole answer may take six times as long.
    pub timeout: Duration,
    /// The proxy, such as `http://proxy:3128`. The environment's proxy settings are ignored.
    pub proxy: Option<String>,
}

/// A model over the network.
pub struct Remote {
    endpoint: Endpoint,
    base_url: Url,
    http: reqwest::Client,
    headers: HeaderMap,
    sampling: Sampling,
}

/// Sampling and reasoning settings; absent ones are the provider's defaults.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Sampling {
    /// From 0 to 2.
    pub temperature: Option<f64>,
    /// Nucleus sampling: the probability mass to choose from, 0 to 1.
    pub top_p: Option<f64>,
    /// How long the model reasons before it answers.
    pub effort: Option<Effort>,
}

impl Sampling {
    /// Writes the settings into a request body, under the protocol's field names.
    fn write(self, body: &mut Value, temperature: &str, top_p: &str) {
        for (name, chosen) in [(temperature, self.temperature), (top_p, self.top_p)] {
            if let Some(chosen) = chosen {
                body[name] = chosen.into();
            }
        }
    }
}

/// How long a model reasons before it answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effort {
    /// Short.
    Low,
    /// Medium.
    Medium,
    /// Long.
    High,
}

impl Effort {
    /// All values.
    pub const ALL: [Self; 3] = [Self::Low, Self::Medium, Self::High];

    /// The value as users write it.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Low => "low",
            Self::Medium => "medium",
            Self::High => "high",
        }
    }

    /// The token budget for reasoning, for models that take one.
    const fn tokens(self) -> u64 {
        match self {
            Self::Low => 1024,
            Self::Medium => 8_000,
            Self::High => 24_000,
        }
    }
}

impl fmt::Debug for Remote {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Remote").field("endpoint", &self.endpoint).finish_non_exhaustive()
    }
}

impl Remote {
    /// Checks the endpoint; sends nothing yet.
    pub fn new(endpoint: Endpoint) -> Result<Self, CallError> {
        let wrong =
            |fault, what: String| CallError { provider: endpoint.provider.clone(), what, fault };
        if endpoint.base_url.is_none() && endpoint.key.as_ref().is_none_or(|k| k.0.is_empty()) {
            return Err(wrong(Fault::Auth, "it needs an API key, and none is set".to_owned()));
        }
        let typed = endpoint.base_url.as_deref().unwrap_or(endpoint.protocol.vendor_url());
        let base_url = Url::parse(typed).ok().filter(Url::has_host).ok_or_else(|| {
            let what = format!("its base_url {typed:?} is not a URL such as http://host/v1");
            wrong(Fault::Refused, what)
        })?;
        let http = http(&endpoint).map_err(|error| {
            wrong(Fault::Refused, format!("the HTTP client cannot be created: {error}"))
        })?;
        let headers = headers(&endpoint).ok_or_else(|| {
            wrong(Fault::Auth, "its key contains characters that cannot be sent".to_owned())
        })?;
        Ok(Self { endpoint, base_url, http, headers, sampling: Sampling::default() })
    }

    /// The same model with these sampling settings.
    #[must_use]
    pub fn with_sampling(self, sampling: Sampling) -> Self {
        Self { sampling, ..self }
    }

    async fn ask(
        &self,
        request: Request<'_>,
        told: &mut (dyn FnMut(Delta) + Send),
    ) -> Result<Answer, CallError> {
        let mut answer = self.whole(request, told).await;
        if answer.as_ref().is_err_and(Failure::blames_thinking) {
            let messages = outgoing::without_thinking(request.messages);
            answer = self.whole(Request { messages: &messages, ..request }, told).await;
        }
        answer.map_err(|failure| failure.into_call_error(&self.endpoint, request))
    }

    /// An answer, continued after each of its pauses.
    async fn whole(
        &self,
        request: Request<'_>,
        told: &mut (dyn FnMut(Delta) + Send),
    ) -> Result<Answer, Failure> {
        let mut draft = Draft::new(&self.endpoint.provider);
        let mut with_paused = None;
        for _ in 0..MOST_PAUSES {
            let spent = draft.usage.take();
            let messages = with_paused.as_deref().unwrap_or(request.messages);
            self.read(Request { messages, ..request }, &mut draft, told).await?;
            if let (Some(usage), Some(spent)) = (&mut draft.usage, spent) {
                *usage += spent;
            }
            let Some(paused) = draft.paused(request.model) else { return draft.finish(request) };
            with_paused = Some([request.messages, &[paused]].concat());
        }
        Err(Failure::paused(MOST_PAUSES))
    }

    /// Sends one request and reads its answer.
    async fn read(
        &self,
        request: Request<'_>,
        draft: &mut Draft,
        told: &mut (dyn FnMut(Delta) + Send),
    ) -> Result<(), Failure> {
        let Endpoint { protocol, provider, timeout, .. } = &self.endpoint;
        let url = protocol.url(&self.base_url, request.model);
        let broken = |error: reqwest::Error| Failure::transport(&error, &self.endpoint, &url);
        let body = protocol.body(provider, request, self.sampling);
        let sent = self.http.post(url.clone()).headers(self.headers.clone()).json(&body).send();
        let mut patience = Patience::new(*timeout);
        let mut response = patience.wait(sent).await?.map_err(broken)?;
        let front = patience.wait(opening(&mut response)).await?.map_err(broken)?;
        let (mut events, mut reader) = (Events::default(), protocol.reader(request));
        let mut came = events.push(&front?);
        let mut heard = false;
        loop {
            heard |= !came.is_empty();
            for event in &came {
                let progress = reader.event(event, draft)?;
                if !draft.news.is_empty() {
                    patience.heard();
                    draft.news.drain(..).for_each(&mut *told);
                }
                if progress == Progress::Done {
                    // A connection is only reused if the response was read to its end.
                    let rest = async { while let Ok(Some(_)) = response.chunk().await {} };
                    drop(tokio::time::timeout(LINGER, rest).await);
                    return Ok(());
                }
            }
            if events.is_over() {
                let text = events.stray().filter(|_| !heard);
                return Err(text.map_or_else(|| draft.unended(), Failure::plain_text));
            }
            let bytes = patience.wait(response.chunk()).await?.map_err(broken)?;
            came = match bytes {
                Some(bytes) => events.push(&bytes),
                None => events.end(),
            };
        }
    }
}

/// The headers of every request: the key, if there is one, and the protocol's own.
fn headers(endpoint: &Endpoint) -> Option<HeaderMap> {
    let mut headers = HeaderMap::new();
    if endpoint.protocol == Protocol::Anthropic {
        headers.insert("anthropic-version", HeaderValue::from_static("2023-06-01"));
    }
    let Some(key) = endpoint.key.as_ref().map(Key::reveal).filter(|key| !key.is_empty()) else {
        return Some(headers);
    };
    let (name, value) = match endpoint.protocol {
        Protocol::OpenAi => ("authorization", format!("Bearer {key}")),
        Protocol::Anthropic => ("x-api-key", key.to_owned()),
        Protocol::Gemini => ("x-goog-api-key", key.to_owned()),
    };
    let mut value = HeaderValue::from_str(&value).ok()?;
    value.set_sensitive(true);
    headers.insert(name, value);
    Some(headers)
}

/// The beginning of an event stream, or the failure that came instead.
async fn opening(response: &mut Response) -> reqwest::Result<Result<Vec<u8>, Failure>> {
    let mut body = Vec::new();
    let is_success = response.status().is_success();
    let mut is_stream = false;
    while !is_stream && body.len() < LONGEST_BODY {
        match response.chunk().await {
            Ok(Some(bytes)) => body.extend_from_slice(&bytes),
            // The status alone tells enough.
            Err(error) if is_success => return Err(error),
            Ok(None) | Err(_) => break,
        }
        let begins = without_mark(&body).first();
        let unclear = begins.is_none() || MARK.starts_with(&body);
        is_stream = is_success && !unclear && !matches!(begins, Some(b'<' | b'{' | b'['));
    }
    Ok(match without_mark(&body).first() {
        _ if !is_success => Err(Failure::http(response.status(), response.headers(), &body)),
        Some(b'<') => Err(Failure::page()),
        Some(b'{' | b'[') => Err(Failure::in_one_piece(&body)),
        _ => Ok(body),
    })
}

/// How long to wait for the end of the stream after the end of the answer: most servers send both
/// at once.
const LINGER: Duration = Duration::from_millis(100);

/// The most pauses of one answer.
const MOST_PAUSES: usize = 10;

/// How much of a body is read if it is not an event stream.
const LONGEST_BODY: usize = 1 << 20;

/// UTF-8's byte order mark.
const MARK: &[u8] = b"\xef\xbb\xbf";

/// The text without byte order mark and leading white space.
fn without_mark(body: &[u8]) -> &[u8] {
    body.strip_prefix(MARK).unwrap_or(body).trim_ascii_start()
}

/// A whole answer may take this many times the allowed silence. Otherwise a model that sends a word
/// now and then could hold a run for hours.
const WHOLE_ANSWER: u32 = 6;

/// The deadlines of an answer.
struct Patience {
    timeout: Duration,
    /// When the next piece must arrive, and when the whole answer must. A deadline beyond what the
    /// clock can express never arrives.
    next: Option<Instant>,
    whole: Option<Instant>,
    begun: bool,
}

impl Patience {
    fn new(timeout: Duration) -> Self {
        let now = Instant::now();
        let whole = timeout.checked_mul(WHOLE_ANSWER).and_then(|whole| now.checked_add(whole));
        Self { timeout, next: now.checked_add(timeout), whole, begun: false }
    }

    /// Restarts the silence deadline after a piece arrived.
    fn heard(&mut self) {
        self.next = Instant::now().checked_add(self.timeout);
        self.begun = true;
    }

    async fn wait<T>(&self, next: impl Future<Output = T>) -> Result<T, Failure> {
        let Some(until) = self.next.into_iter().chain(self.whole).min() else {
            return Ok(next.await);
        };
        tokio::time::timeout_at(until, next).await.map_err(|_| self.late(until))
    }

    fn late(&self, at: Instant) -> Failure {
        Failure::late(if self.whole.is_some_and(|whole| whole <= at) {
            "its answer did not finish in time"
        } else if self.begun {
            "it stopped sending in the middle of its answer"
        } else {
            "it did not start to answer in time"
        })
    }
}

impl Provider for Remote {
    fn name(&self) -> &str {
        &self.endpoint.provider
    }

    fn answer<'a>(
        &'a self,
        request: Request<'a>,
        told: &'a mut (dyn FnMut(Delta) + Send),
    ) -> BoxFuture<'a, Result<Answer, CallError>> {
        self.ask(request, told).boxed()
    }
}

/// The request body of a protocol, for tests and inspection.
#[must_use]
pub fn body(protocol: Protocol, provider: &str, request: Request<'_>) -> Value {
    protocol.body(provider, request, Sampling::default())
}

/// An HTTP client without redirects, which would carry the key to another host, and without the
/// environment's proxy.
fn http(endpoint: &Endpoint) -> reqwest::Result<reqwest::Client> {
    use_ring();
    let builder = reqwest::Client::builder()
        .no_proxy()
        .redirect(reqwest::redirect::Policy::none())
        .connect_timeout(endpoint.timeout);
    match &endpoint.proxy {
        Some(proxy) => builder.proxy(reqwest::Proxy::all(proxy)?).build(),
        None => builder.build(),
    }
}

/// TLS is built without a default crypto provider: this sets ring, once a process.
pub(crate) fn use_ring() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        // An error means that the program already chose a provider, which is fine.
        drop(rustls::crypto::ring::default_provider().install_default());
    });
}
