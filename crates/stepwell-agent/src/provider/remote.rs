//! Models behind a network: OpenAI, Anthropic, Gemini, Ollama, and all who speak as OpenAI does.
//!
//! A protocol is a module with two pure halves: the body of a request, and a reader that takes the
//! events of a stream into a draft of the answer. What a failure means is in `fault`. The one
//! driver here sends, waits, and feeds the reader.

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

/// How long a provider may be silent, unless a user says otherwise. Models with hidden
/// reasoning say nothing for minutes.
pub const DEFAULT_TIMEOUT: Duration = Duration::from_secs(300);

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

    fn body(self, provider: &str, request: Request<'_>, sampling: Sampling) -> Value {
        match self {
            Self::OpenAi => openai::body(provider, request, sampling),
            Self::Anthropic => anthropic::body(provider, request, sampling),
            Self::Gemini => gemini::body(provider, request, sampling),
        }
    }

    /// Where a model is asked, below the base URL. A query that the base has stays.
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

/// Is the answer whole?
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Progress {
    More,
    Done,
}

/// What reads the events of a protocol.
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

/// The data of an event that is no error.
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
    base_url: Url,
    http: reqwest::Client,
    headers: HeaderMap,
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

impl Sampling {
    /// Writes what was chosen into a body, under the names that a protocol has for it.
    fn write(self, body: &mut Value, temperature: &str, top_p: &str) {
        for (name, chosen) in [(temperature, self.temperature), (top_p, self.top_p)] {
            if let Some(chosen) = chosen {
                body[name] = chosen.into();
            }
        }
    }
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

    /// Of a model that is given a number of tokens to think with.
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
    /// Nothing is sent yet; what is wrong with the endpoint itself is said here.
    pub fn new(endpoint: Endpoint) -> Result<Self, CallError> {
        let wrong =
            |fault, what: String| CallError { provider: endpoint.provider.clone(), what, fault };
        if endpoint.base_url.is_none() && endpoint.key.as_ref().is_none_or(|k| k.0.is_empty()) {
            return Err(wrong(Fault::Auth, "it needs a key, and there is none".to_owned()));
        }
        let typed = endpoint.base_url.as_deref().unwrap_or(endpoint.protocol.vendor_url());
        let base_url = Url::parse(typed).ok().filter(Url::has_host).ok_or_else(|| {
            let what = format!("its base_url {typed:?} is not a URL such as http://host/v1");
            wrong(Fault::Refused, what)
        })?;
        let http = http(&endpoint).map_err(|error| {
            wrong(Fault::Refused, format!("its client cannot be made: {error}"))
        })?;
        let headers = headers(&endpoint).ok_or_else(|| {
            wrong(Fault::Auth, "its key holds characters that cannot be sent".to_owned())
        })?;
        Ok(Self { endpoint, base_url, http, headers, sampling: Sampling::default() })
    }

    /// The same model, choosing its words as freely as this.
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

    /// An answer, with what follows each of its pauses.
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

    /// Sends one request, and reads what answers it.
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
                    // Read to its end, the connection serves the next call, too.
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

/// The headers of every request: the key, if there is one, and what the protocol insists on.
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

/// The beginning of a stream of events, or the failure that came in its place.
async fn opening(response: &mut Response) -> reqwest::Result<Result<Vec<u8>, Failure>> {
    let mut body = Vec::new();
    let is_success = response.status().is_success();
    let mut is_stream = false;
    while !is_stream && body.len() < LONGEST_BODY {
        match response.chunk().await {
            Ok(Some(bytes)) => body.extend_from_slice(&bytes),
            // The status says enough.
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

/// How long the end of a stream is waited for behind the end of its answer: most send both at once.
const LINGER: Duration = Duration::from_millis(100);

/// How often an answer may pause.
const MOST_PAUSES: usize = 10;

/// As much of a body as is read where no stream is.
const LONGEST_BODY: usize = 1 << 20;

/// The byte order mark of UTF-8.
const MARK: &[u8] = b"\xef\xbb\xbf";

/// A text without its mark and the white space before it.
fn without_mark(body: &[u8]) -> &[u8] {
    body.strip_prefix(MARK).unwrap_or(body).trim_ascii_start()
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

/// A request as a protocol puts it, for those who want to see it, or check it.
#[must_use]
pub fn body(protocol: Protocol, provider: &str, request: Request<'_>) -> Value {
    protocol.body(provider, request, Sampling::default())
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
