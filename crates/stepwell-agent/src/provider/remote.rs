//! Models behind a network: OpenAI, Anthropic, Gemini, Ollama, and all who speak as OpenAI does.
//!
//! The client library (genai) carries requests, knows the addresses and reads the streams.
//! What a conversation looks like on the wire is written here for OpenAI and Anthropic,
//! because the library rewrites model names, moves thinking, and parses arguments that
//! must stay as the model wrote them.

mod anthropic;
mod calls;
mod fault;
mod frames;
mod gemini;
mod no_stream;
mod openai;
mod outgoing;
mod picture;
mod reading;

use std::fmt;
use std::sync::Once;
use std::time::Duration;

use futures_util::future::BoxFuture;
use futures_util::{FutureExt, StreamExt};
use genai::adapter::AdapterKind;
use genai::chat::{ChatOptions, ChatRequest, ChatStreamEvent, ReasoningEffort};
use genai::resolver::AuthData;
use genai::{Client, ModelIden, ServiceTarget};
use tokio::time::Instant;

use self::anthropic::Thoughts;
use self::fault::Failure;
use self::frames::Frames;
use self::reading::Reading;
use super::{Answer, CallError, Delta, Fault, Provider, Request};

/// How long a provider may be silent, unless a user says otherwise. Models with hidden
/// reasoning say nothing for minutes.
pub const DEFAULT_TIMEOUT: Duration = Duration::from_secs(300);

/// What stands in for a key where none is needed: the client library insists on one, and
/// local servers do not look.
const NO_KEY: &str = "none";

/// Whose words an endpoint speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Protocol {
    /// OpenAI's chat completions, which most others speak too.
    OpenAi,
    /// Anthropic's messages.
    Anthropic,
    /// Gemini's generateContent.
    Gemini,
}

impl Protocol {
    /// Where the vendor itself answers.
    #[must_use]
    pub const fn vendor_url(self) -> &'static str {
        match self {
            Self::OpenAi => "https://api.openai.com/v1/",
            Self::Anthropic => "https://api.anthropic.com/v1/",
            Self::Gemini => "https://generativelanguage.googleapis.com/v1beta/",
        }
    }

    const fn adapter(self) -> AdapterKind {
        match self {
            Self::OpenAi => AdapterKind::OpenAI,
            Self::Anthropic => AdapterKind::Anthropic,
            Self::Gemini => AdapterKind::Gemini,
        }
    }
}

/// A secret that shows itself to nobody but the provider.
#[derive(Clone, PartialEq, Eq)]
pub struct Key(String);

impl Key {
    /// A key; white space around it is not part of it.
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

/// Where a provider is reached, and how.
#[derive(Clone, Debug)]
pub struct Endpoint {
    /// The provider's name, as it is recorded.
    pub provider: String,
    /// Whose words it speaks.
    pub protocol: Protocol,
    /// Where it answers, such as `http://localhost:11434/v1`; the vendor if absent.
    pub base_url: Option<String>,
    /// Its key. The vendors need one.
    pub key: Option<Key>,
    /// How long it may be silent: before its answer begins, and between two pieces of it. What
    /// only keeps the connection alive is silence. A whole answer may take six times as long.
    pub timeout: Duration,
    /// The proxy on the way, such as `http://proxy:3128`. The environment is not asked.
    pub proxy: Option<String>,
}

/// A model behind a network.
pub struct Remote {
    endpoint: Endpoint,
    base_url: String,
    client: Client,
    /// What the client sends with.
    http: reqwest::Client,
    sampling: Sampling,
}

/// How freely a model chooses its words, and how long it thinks; absent, as its provider has it.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Sampling {
    /// From 0 to 2.
    pub temperature: Option<f64>,
    /// Of how much of the likeliest it chooses, from 0 to 1.
    pub top_p: Option<f64>,
    /// How long it thinks before it answers.
    pub effort: Option<Effort>,
}

/// How long a model thinks before it answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effort {
    /// Not long.
    Low,
    /// As long as most questions need.
    Medium,
    /// Long.
    High,
}

impl Effort {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Low, Self::Medium, Self::High];

    /// What users call it.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Low => "low",
            Self::Medium => "medium",
            Self::High => "high",
        }
    }
}

impl From<Effort> for ReasoningEffort {
    fn from(effort: Effort) -> Self {
        match effort {
            Effort::Low => Self::Low,
            Effort::Medium => Self::Medium,
            Effort::High => Self::High,
        }
    }
}

impl fmt::Debug for Remote {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Remote").field("endpoint", &self.endpoint).finish_non_exhaustive()
    }
}

impl Remote {
    /// Nothing is sent yet; what is wrong with the endpoint itself is said here.
    pub fn new(endpoint: Endpoint) -> Result<Self, CallError> {
        let wrong =
            |fault, what: String| CallError { provider: endpoint.provider.clone(), what, fault };
        if endpoint.base_url.is_none() && endpoint.key.as_ref().is_none_or(|k| k.0.is_empty()) {
            return Err(wrong(Fault::Auth, "it needs a key, and there is none".to_owned()));
        }
        let mut base_url =
            endpoint.base_url.clone().unwrap_or_else(|| endpoint.protocol.vendor_url().to_owned());
        if !base_url.ends_with('/') {
            base_url.push('/');
        }
        if !reqwest::Url::parse(&base_url).is_ok_and(|url| url.has_host()) {
            let what = format!("its base_url {base_url:?} is not a URL such as http://host/v1");
            return Err(wrong(Fault::Refused, what));
        }
        let http = http(&endpoint).map_err(|error| {
            wrong(Fault::Refused, format!("its client cannot be made: {error}"))
        })?;
        let client = Client::builder().with_reqwest(http.clone()).build();
        let client =
            client.map_err(|_| wrong(Fault::Refused, "its client cannot be made".to_owned()))?;
        Ok(Self { endpoint, base_url, client, http, sampling: Sampling::default() })
    }

    /// The same model, choosing its words as freely as this.
    #[must_use]
    pub fn with_sampling(self, sampling: Sampling) -> Self {
        Self { sampling, ..self }
    }

    fn target(&self, model: &str) -> ServiceTarget {
        let key = self.endpoint.key.as_ref().map(Key::reveal).filter(|key| !key.is_empty());
        ServiceTarget {
            endpoint: genai::resolver::Endpoint::from_owned(self.base_url.as_str()),
            auth: AuthData::from_single(key.unwrap_or(NO_KEY)),
            model: ModelIden::new(self.endpoint.protocol.adapter(), model),
        }
    }

    async fn ask(
        &self,
        request: Request<'_>,
        told: &mut (dyn FnMut(Delta) + Send),
    ) -> Result<Answer, CallError> {
        let provider = self.endpoint.provider.as_str();
        let wire = match self.endpoint.protocol {
            Protocol::OpenAi => openai::encode(provider, request),
            Protocol::Anthropic => anthropic::encode(provider, request, Thoughts::Kept),
            Protocol::Gemini => gemini::encode(provider, request),
        };
        let failure = match self.send(wire, request, told).await {
            Ok(answer) => return Ok(answer),
            Err(failure) => failure,
        };
        if !(self.endpoint.protocol == Protocol::Anthropic && failure.blames_thinking()) {
            return Err(failure.into_call_error(&self.endpoint, request));
        }
        let wire = anthropic::encode(provider, request, Thoughts::Left);
        let again = self.send(wire, request, told).await;
        again.map_err(|failure| failure.into_call_error(&self.endpoint, request))
    }

    async fn send(
        &self,
        wire: WireRequest,
        request: Request<'_>,
        told: &mut (dyn FnMut(Delta) + Send),
    ) -> Result<Answer, Failure> {
        let frames = Frames::default();
        let protocol = self.endpoint.protocol;
        let options = frames.watching(self.options(wire.options), protocol);
        let target = self.target(&wire.model);
        let response = self.client.exec_chat_stream(target, wire.chat, Some(&options)).await;
        let mut stream = response.map_err(|error| Failure::of(&error))?.stream;
        let mut reading = Reading::new(protocol, &self.endpoint.provider);
        let mut patience = Patience::new(self.endpoint.timeout);
        while let Some(event) = patience.wait(stream.next()).await? {
            match event.map_err(|error| Failure::of(&error))? {
                // What only keeps the connection alive is no part of the answer.
                ChatStreamEvent::Start | ChatStreamEvent::Heartbeat => continue,
                ChatStreamEvent::Chunk(chunk) => {
                    reading.text(&chunk.content);
                    told(Delta::Text(chunk.content));
                }
                ChatStreamEvent::ReasoningChunk(chunk) => {
                    reading.thinking(&chunk.content);
                    told(Delta::Thinking(chunk.content));
                }
                ChatStreamEvent::ThoughtSignatureChunk(_) => reading.signed(),
                // The library drops calls that are not numbered: they are read from the events.
                ChatStreamEvent::ToolCallChunk(_) if protocol == Protocol::OpenAi => {
                    told(Delta::Call);
                }
                ChatStreamEvent::ToolCallChunk(chunk) => {
                    reading.call(chunk.tool_call);
                    told(Delta::Call);
                }
                ChatStreamEvent::End(end) => {
                    reading.calls(frames.calls());
                    return reading.finish(end, request, frames.told());
                }
            }
            patience.heard();
        }
        if !frames.is_no_stream() {
            return Err(Failure::truncated());
        }
        let instead = no_stream::look(&self.http, &self.base_url, protocol).await;
        Err(Failure::no_stream(instead))
    }

    /// Everything is captured: a stream without capture forgets signatures and usage.
    fn options(&self, options: ChatOptions) -> ChatOptions {
        let mut options = options;
        if let Some(temperature) = self.sampling.temperature {
            options = options.with_temperature(temperature);
        }
        if let Some(top_p) = self.sampling.top_p {
            options = options.with_top_p(top_p);
        }
        if let Some(effort) = self.sampling.effort {
            options = options.with_reasoning_effort(effort.into());
        }
        options
            .with_capture_content(true)
            .with_capture_reasoning_content(true)
            .with_capture_tool_calls(true)
            .with_capture_usage(true)
            .with_stream_header_timeout(self.endpoint.timeout)
            .with_stream_read_timeout(self.endpoint.timeout)
    }
}

/// How many times as long as a provider may be silent a whole answer may take: a model that
/// says a word now and then for hours is as bad as one that says none.
const WHOLE_ANSWER: u32 = 6;

/// How long an answer is waited for.
struct Patience {
    timeout: Duration,
    /// When something of the answer must have come, and when all of it. A time that cannot be
    /// told never comes.
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

    /// Something of the answer came.
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
            "its answer did not come to an end in time"
        } else if self.begun {
            "it fell silent in the middle of its answer"
        } else {
            "it did not begin to answer in time"
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

/// What the client library is given to send.
struct WireRequest {
    /// The name that the library sees; where it can, the true one travels in the body.
    model: String,
    chat: ChatRequest,
    options: ChatOptions,
}

/// A conversation as a protocol puts it, without its tools; nothing for Gemini, whose words
/// are the client library's. For those who want to see it, or check it.
#[must_use]
pub fn body(protocol: Protocol, provider: &str, request: Request<'_>) -> Option<serde_json::Value> {
    let wire = match protocol {
        Protocol::OpenAi => openai::encode(provider, request),
        Protocol::Anthropic => anthropic::encode(provider, request, Thoughts::Kept),
        Protocol::Gemini => return None,
    };
    wire.options.extra_body
}

/// An HTTP client that goes where it is told: no redirects, which would carry the key to
/// another host, and no proxy out of the environment.
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

/// TLS is built without a default for its cryptography: it is ring, once in a process.
pub(crate) fn use_ring() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        // An error says that the program chose one already, which is as good.
        drop(rustls::crypto::ring::default_provider().install_default());
    });
}
