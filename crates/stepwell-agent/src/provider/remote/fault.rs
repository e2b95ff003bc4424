//! Classifies a failed call, in a text that contains neither the prompt nor the key.

use std::io;
use std::net::IpAddr;
use std::time::Duration;

use reqwest::header::{HeaderMap, HeaderValue};
use reqwest::{StatusCode, Url};
use serde_json::Value;
use stepwell::Message;
use stepwell::model::Part;

use super::{Endpoint, Key};
use crate::provider::{CallError, Fault, Request};

/// How many characters of a vendor's message are shown.
const MAX_WORDS: usize = 300;

/// If a vendor's message and the request share this many bytes in a row, the message quotes the
/// request. Vendors' own phrases rarely occur in a prompt at this length.
const QUOTED: usize = 16;

/// Phrases by which vendors say that a conversation is too long.
const TOO_LONG: &[&str] = &[
    "context_length_exceeded",
    "maximum context length",
    "context window",
    "context length",
    "prompt is too long",
    "input is too long",
    "exceeds the maximum number of tokens",
    "too many tokens",
    "reduce the length",
    "request_too_large",
    "exceed_context_size_error",
];

/// Fields of an error that contain a message for people, the best first.
const WORDS: &[&str] =
    &["message", "detail", "msg", "error", "errors", "error_description", "status_msg", "title"];

/// A failure whose message may still contain the prompt or the key.
#[derive(Debug)]
pub(super) struct Failure {
    fault: Fault,
    /// Stepwell's own text.
    what: String,
    /// The vendor's message.
    said: Option<String>,
}

impl Failure {
    fn new(fault: Fault, what: impl Into<String>) -> Self {
        Self { fault, what: what.into(), said: None }
    }

    /// An answer without its end.
    pub(super) fn truncated() -> Self {
        Self::new(Fault::Truncated, "the answer was interrupted before its end")
    }

    /// A piece of an answer does not follow the protocol.
    pub(super) fn unreadable() -> Self {
        Self::new(Fault::Truncated, "a piece of its answer could not be parsed")
    }

    /// An answer announces tool calls and contains none.
    pub(super) fn no_calls() -> Self {
        Self::new(Fault::Truncated, "its answer announces tool calls and contains none")
    }

    /// The reason for an answer's end says that the provider failed.
    pub(super) fn failed(word: &str) -> Self {
        Self::new(Fault::Truncated, format!("its answer failed: it ended with {word:?}"))
    }

    /// The reason for an answer's end is unknown.
    pub(super) fn ended(word: &str) -> Self {
        let word = one_line(word);
        Self::new(Fault::Refused, format!("its answer ended for an unknown reason: {word:?}"))
    }

    /// An answer that pauses again and again.
    pub(super) fn paused(times: usize) -> Self {
        Self::new(Fault::Truncated, format!("its answer paused {times} times and did not end"))
    }

    /// A web page instead of a stream.
    pub(super) fn page() -> Self {
        Self::new(
            Fault::Refused,
            "it answered with a web page instead of an event stream; does its base_url lead to \
             the API?",
        )
    }

    /// The answer missed its deadline.
    pub(super) fn late(what: &str) -> Self {
        Self::new(Fault::TimedOut, what)
    }

    /// A whole body with a success status: an error, or an answer that is not a stream. Servers
    /// name errors in many ways; only errors contain messages for people.
    pub(super) fn in_one_piece(body: &[u8]) -> Self {
        let body = json(body);
        let error = VendorError::of(&body);
        if error.message.is_none() && !is_error(&body) {
            return Self::new(
                Fault::Refused,
                "it answered in one piece instead of an event stream; does it support streaming?",
            );
        }
        Self::in_place_of_answer(error)
    }

    /// A text with a success status that contains no event.
    pub(super) fn plain_text(text: &str) -> Self {
        Self::in_place_of_answer(VendorError::of(&Value::String(text.to_owned())))
    }

    fn in_place_of_answer(error: VendorError) -> Self {
        let fault = error.fault().unwrap_or(Fault::Refused);
        Self { fault, what: "it answered with an error".to_owned(), said: error.message }
    }

    /// An error event in the middle of a stream.
    pub(super) fn in_stream(event: &Value) -> Self {
        let error = VendorError::of(event);
        let fault = error.fault().unwrap_or(Fault::Unavailable);
        let what = "it failed in the middle of its answer".to_owned();
        Self { fault, what, said: error.message }
    }

    /// An unsuccessful status.
    pub(super) fn http(status: StatusCode, headers: &HeaderMap, body: &[u8]) -> Self {
        let text = text(body);
        let is_page = text.starts_with('<');
        let error = match json(body) {
            Value::Null if is_page => VendorError::of(&Value::Null),
            Value::Null => VendorError::of(&Value::String(text.into_owned())),
            body => VendorError::of(&body),
        };
        let fault = asked_again(sort(status, &error, headers), headers);
        let asked = match fault {
            Fault::RateLimited(Some(wait)) => format!(", it asks to wait {wait:.0?}"),
            _ => String::new(),
        };
        let page = if is_page { ", with a web page" } else { "" };
        let reason = status.canonical_reason().unwrap_or("an error");
        let what = format!("{} {reason}{page}{asked}", status.as_u16());
        Self { fault, what, said: error.message }
    }

    /// The request failed, or the connection broke.
    pub(super) fn transport(error: &reqwest::Error, endpoint: &Endpoint, url: &Url) -> Self {
        let host = url.host_str().unwrap_or_default();
        if error.is_timeout() {
            return Self::new(Fault::TimedOut, format!("{host} could not be reached in time"));
        }
        if error.is_connect() {
            if endpoint.proxy.is_none() && is_here(host) && was_refused(error) {
                return Self::not_running(&endpoint.provider, url);
            }
            return Self::new(Fault::Unavailable, format!("{host} could not be reached"));
        }
        if error.is_body() || error.is_decode() {
            return Self::new(Fault::Truncated, "the connection broke in the middle of its answer");
        }
        if error.is_builder() {
            return Self::new(Fault::Refused, "the request could not be built");
        }
        Self::new(Fault::Unavailable, "the connection broke before it answered")
    }

    fn not_running(provider: &str, url: &Url) -> Self {
        let host = url.host_str().unwrap_or_default();
        let port = url.port_or_known_default().unwrap_or_default();
        let hint = match provider {
            "ollama" => "start it with `ollama serve`",
            _ => "start the server, or correct its base_url",
        };
        Self::new(Fault::NotRunning, format!("no server listens on {host}:{port}; {hint}"))
    }

    /// Does the vendor reject the thinking in the request?
    pub(super) fn blames_thinking(&self) -> bool {
        let said = self.said.as_deref().unwrap_or_default();
        self.fault == Fault::Refused && said.contains("thinking") && said.contains("block")
    }

    /// The failure, with as much of the vendor's message as is safe to store.
    pub(super) fn into_call_error(self, endpoint: &Endpoint, request: Request<'_>) -> CallError {
        let said = self.said.map(|said| one_line(&said)).filter(|said| !said.is_empty());
        let what = match said {
            None => self.what,
            Some(said) if quotes(&said, request) => {
                format!("{} (its message quotes the conversation and is not shown)", self.what)
            }
            Some(said) => format!("{}: {}", self.what, without_key(&said, endpoint.key.as_ref())),
        };
        CallError { provider: endpoint.provider.clone(), what, fault: self.fault }
    }
}

/// Is this an error, and not a piece of an answer?
pub(super) fn is_error(body: &Value) -> bool {
    let body = body.get(0).unwrap_or(body);
    let says = |field: &str| {
        let nothing = |it: &Value| it.is_null() || *it == false || *it == "";
        body.get(field).is_some_and(|it| !nothing(it))
    };
    says("error")
        || says("detail")
        || body["object"] == "error"
        || body["type"] == "error"
        || error_of_choice(body).is_some()
}

/// `OpenRouter` puts the error of a model behind it in place of its answer.
fn error_of_choice(body: &Value) -> Option<&Value> {
    body["choices"][0].get("error").filter(|it| !it.is_null())
}

/// Does an event contain a message for people? Pieces of an answer never do.
pub(super) fn has_words(event: &Value) -> bool {
    words(event).is_some()
}

fn text(body: &[u8]) -> std::borrow::Cow<'_, str> {
    String::from_utf8_lossy(super::without_mark(body))
}

fn json(body: &[u8]) -> Value {
    serde_json::from_str(&text(body)).unwrap_or(Value::Null)
}

/// Is this the local machine? Servers print `0.0.0.0`, which means all of its addresses.
fn is_here(host: &str) -> bool {
    let address = host.trim_start_matches('[').trim_end_matches(']').parse::<IpAddr>();
    let own = |it: IpAddr| it.to_canonical().is_loopback() || it.is_unspecified();
    host == "localhost" || host.ends_with(".localhost") || address.is_ok_and(own)
}

fn was_refused(error: &reqwest::Error) -> bool {
    let mut causes = std::iter::successors(std::error::Error::source(error), |it| it.source());
    causes.any(|it| {
        let error = it.downcast_ref::<io::Error>();
        error.is_some_and(|it| it.kind() == io::ErrorKind::ConnectionRefused)
    })
}

fn sort(status: StatusCode, error: &VendorError, headers: &HeaderMap) -> Fault {
    match status.as_u16() {
        401 | 403 => Fault::Auth,
        404 => Fault::UnknownModel,
        408 => Fault::TimedOut,
        // The account is empty, so waiting is useless.
        429 if error.mentions(&["insufficient_quota", "billing"]) => Fault::Refused,
        429 => Fault::RateLimited(retry_after(headers)),
        500.. => match retry_after(headers) {
            None => Fault::Unavailable,
            wait => Fault::RateLimited(wait),
        },
        400 | 413 | 422 if error.is_too_long() => Fault::ContextFull,
        400 | 422 if error.names_unknown_model() => Fault::UnknownModel,
        // Gemini reports this with 400.
        400 if error.mentions(&["api_key_invalid", "api key not valid"]) => Fault::Auth,
        _ => Fault::Refused,
    }
}

/// OpenAI and Anthropic say whether a retry is useful.
fn asked_again(fault: Fault, headers: &HeaderMap) -> Fault {
    match headers.get("x-should-retry").map(HeaderValue::as_bytes) {
        Some(b"false") if fault.is_passing() => Fault::Refused,
        Some(b"true") if !fault.is_passing() && fault != Fault::ContextFull => Fault::Unavailable,
        _ => fault,
    }
}

/// How long the vendor asks to wait. A date is relative to the vendor's own clock in the `Date`
/// header, which may differ from ours.
fn retry_after(headers: &HeaderMap) -> Option<Duration> {
    let text = |name| headers.get(name)?.to_str().ok().map(str::trim);
    let number = |name| text(name)?.parse::<f64>().ok();
    let millis = number("retry-after-ms").map(|ms| ms / 1000.0);
    if let Some(seconds) = millis.or_else(|| number("retry-after")) {
        return Duration::try_from_secs_f64(seconds).ok();
    }
    let date = |name| httpdate::parse_http_date(text(name)?).ok();
    let (until, now) = (date("retry-after")?, date("date")?);
    Some(until.duration_since(now).unwrap_or_default())
}

/// A parsed vendor error.
struct VendorError {
    message: Option<String>,
    /// The HTTP status that the error itself names, if the response's status says nothing.
    code: Option<StatusCode>,
    /// Its type, code and message in lower case, for searching.
    all: String,
}

impl VendorError {
    fn of(body: &Value) -> Self {
        let body = body.get(0).unwrap_or(body);
        let error = body.get("error").filter(|it| !it.is_null());
        let error = error.or_else(|| error_of_choice(body)).unwrap_or(body);
        let message = words(error).filter(|it| !it.trim().is_empty());
        let fields = ["type", "code", "status", "details"].map(|field| match &error[field] {
            Value::Null => String::new(),
            Value::String(text) => text.clone(),
            other => other.to_string(),
        });
        let code = fields[1].parse().ok().filter(|code| (400..600).contains(code));
        let all = format!("{} {}", fields.join(" "), message.as_deref().unwrap_or_default());
        Self {
            message,
            code: code.and_then(|code: u16| StatusCode::from_u16(code).ok()),
            all: all.to_lowercase(),
        }
    }

    /// The fault, if the error's own text decides it.
    fn fault(&self) -> Option<Fault> {
        if let Some(status) = self.code {
            return Some(sort(status, self, &HeaderMap::new()));
        }
        let by_words: [(Fault, &[&str]); 4] = [
            (Fault::RateLimited(None), &["rate_limit", "too_many_requests", "resource_exhausted"]),
            (Fault::Unavailable, &["overloaded", "server_error", "api_error", "unavailable"]),
            (Fault::Auth, &["authentication", "permission", "invalid_api_key"]),
            (Fault::Refused, &["invalid_request"]),
        ];
        if self.is_too_long() {
            return Some(Fault::ContextFull);
        }
        if self.names_unknown_model() {
            return Some(Fault::UnknownModel);
        }
        by_words.into_iter().find(|(_, words)| self.mentions(words)).map(|(fault, _)| fault)
    }

    fn mentions(&self, words: &[&str]) -> bool {
        words.iter().any(|word| self.all.contains(word))
    }

    fn is_too_long(&self) -> bool {
        // Gemini: "The input token count (N) exceeds the maximum number of tokens allowed".
        let counts = self.all.contains("token count") && self.all.contains("exceed");
        counts || self.mentions(TOO_LONG)
    }

    fn names_unknown_model(&self) -> bool {
        let unknown = ["does not exist", "not found", "unknown model"];
        self.mentions(&["model_not_found"])
            || (self.all.contains("model") && self.mentions(&unknown))
    }
}

/// The error's message for people. `FastAPI` has a list of locations with messages, `MiniMax` an
/// object of its own.
fn words(error: &Value) -> Option<String> {
    match error {
        Value::String(text) => Some(text.clone()),
        Value::Array(items) => {
            let said: Vec<String> = items.iter().filter_map(words).collect();
            (!said.is_empty()).then(|| said.join("; "))
        }
        Value::Object(fields) => {
            let inner = || fields.values().filter(|it| it.is_object()).find_map(words);
            let said = WORDS.iter().find_map(|name| words(fields.get(*name)?)).or_else(inner)?;
            let place = fields.get("loc").and_then(Value::as_array).map(|place| {
                let step = |it: &Value| it.as_str().map_or_else(|| it.to_string(), str::to_owned);
                place.iter().map(step).collect::<Vec<_>>().join(".")
            });
            Some(match place {
                Some(place) => format!("{place}: {said}"),
                None => said,
            })
        }
        _ => None,
    }
}

fn one_line(text: &str) -> String {
    let words = text.split(|c: char| c.is_whitespace() || c.is_control());
    let line = words.filter(|word| !word.is_empty()).collect::<Vec<_>>().join(" ");
    match line.char_indices().nth(MAX_WORDS) {
        Some((end, _)) => format!("{}…", &line[..end]),
        None => line,
    }
}

/// Removes the key: vendors repeat a rejected key, whole or with stars in it.
fn without_key(said: &str, key: Option<&Key>) -> String {
    let Some(key) = key.map(Key::reveal).filter(|key| key.len() >= 4) else {
        return said.to_owned();
    };
    let said = said.replace(key, "…");
    let starred = |word: &str| {
        let ends = |n: usize| key.get(..n).is_some_and(|start| word.contains(start));
        word.contains("***") || (word.len() >= 8 && ends(8))
    };
    let words = said.split(' ').map(|word| if starred(word) { "…" } else { word });
    words.collect::<Vec<_>>().join(" ")
}

/// Does this message quote the request? A shared run of twice [`QUOTED`] bytes always covers a
/// whole window; short texts are searched whole.
fn quotes(said: &str, request: Request<'_>) -> bool {
    let bytes = said.as_bytes();
    let windows: Vec<&str> =
        (0..bytes.len() / QUOTED).filter_map(|n| said.get(n * QUOTED..(n + 1) * QUOTED)).collect();
    let repeats = |text: &str| {
        let short = one_line(text);
        let whole = (4..QUOTED * 2).contains(&short.len()) && said.contains(&short);
        whole || windows.iter().any(|window| text.contains(window))
    };
    repeats(request.system) || request.messages.iter().any(|message| any_text(message, &repeats))
}

fn any_text(message: &Message, repeats: &dyn Fn(&str) -> bool) -> bool {
    message.parts.iter().any(|part| match part {
        Part::Text(text) | Part::Thinking(text) => repeats(&text.text),
        Part::Image(image) => repeats(&image.data),
        Part::ToolCall(call) => repeats(&call.arguments),
        Part::ToolResult(result) => repeats(&result.text),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn sorted(status: u16, body: &Value) -> Fault {
        let status = StatusCode::from_u16(status).unwrap();
        Failure::http(status, &HeaderMap::new(), body.to_string().as_bytes()).fault
    }

    #[test]
    fn vendors_words_decide_where_the_status_does_not() {
        let said = |message: &str| json!({"error": {"message": message}});
        assert_eq!(
            sorted(400, &said("prompt is too long: 9 tokens > 8 maximum")),
            Fault::ContextFull
        );
        let gemini = "The input token count (9) exceeds the maximum number of tokens allowed (8).";
        assert_eq!(sorted(400, &said(gemini)), Fault::ContextFull);
        assert_eq!(
            sorted(413, &json!({"error": {"type": "request_too_large"}})),
            Fault::ContextFull
        );
        assert_eq!(
            sorted(400, &json!({"error": {"code": "model_not_found"}})),
            Fault::UnknownModel
        );
        assert_eq!(sorted(400, &said("The model `x` does not exist")), Fault::UnknownModel);
        assert_eq!(sorted(400, &said("API key not valid. Please pass a valid one.")), Fault::Auth);
        assert_eq!(sorted(400, &said("temperature must be below 2")), Fault::Refused);
        assert_eq!(sorted(429, &json!({"error": {"code": "insufficient_quota"}})), Fault::Refused);
        assert_eq!(sorted(529, &Value::Null), Fault::Unavailable);
        assert_eq!(sorted(307, &Value::Null), Fault::Refused);
    }

    #[test]
    fn a_wait_is_read_in_both_units() {
        let headers = |name: &'static str, value: &'static str| {
            let mut headers = HeaderMap::new();
            headers.insert(name, HeaderValue::from_static(value));
            retry_after(&headers)
        };
        assert_eq!(headers("retry-after", "2.5"), Some(Duration::from_millis(2500)));
        assert_eq!(headers("retry-after-ms", "20"), Some(Duration::from_millis(20)));
        assert_eq!(headers("retry-after", "-1"), None);
        // Without the vendor's clock a date is useless.
        assert_eq!(headers("retry-after", "Wed, 21 Oct 2026 07:28:00 GMT"), None);
    }

    #[test]
    fn keys_are_hidden_whole_and_starred() {
        let key = Key::new("sk-abcdefghijklmnop");
        let shown = without_key("Incorrect API key: sk-abcdefghijklmnop. See", Some(&key));
        assert_eq!(shown, "Incorrect API key: …. See");
        let shown = without_key("Incorrect API key: sk-abcde*****mnop. See", Some(&key));
        assert_eq!(shown, "Incorrect API key: … See");
    }
}
