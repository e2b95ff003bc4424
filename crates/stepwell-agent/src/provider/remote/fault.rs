//! What a failed call means, in words that hold neither the prompt nor the key.

use std::time::Duration;

use genai::webc::StreamTimeout;
use reqwest::StatusCode;
use reqwest::header::HeaderMap;
use serde_json::Value;
use stepwell::{Message, Part};

use super::no_stream::Instead;
use super::{Endpoint, Key};
use crate::provider::{CallError, Fault, Request};

/// As much of a vendor's words as is shown.
const MAX_WORDS: usize = 300;

/// A run of this many bytes that the vendor's words share with the request is a quotation.
/// Their own phrases are rarely that long in a prompt; a prompt's are.
const QUOTED: usize = 16;

/// Words by which vendors say that a conversation is too long.
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

/// A failure before it is known to be safe to show.
pub(super) struct Failure {
    fault: Fault,
    /// Our own words.
    what: String,
    /// The vendor's.
    said: Option<String>,
}

impl Failure {
    fn new(fault: Fault, what: impl Into<String>) -> Self {
        Self { fault, what: what.into(), said: None }
    }

    /// What the client library reports. Its own text holds whole requests, and is not used.
    pub(super) fn of(error: &genai::Error) -> Self {
        use genai::Error as E;
        match error {
            E::HttpError { status, body, headers, .. } => http(*status, body, headers),
            E::WebStream { error, .. } => stream(error.as_ref()),
            E::WebModelCall { webc_error, .. } | E::WebAdapterCall { webc_error, .. } => {
                match webc_error {
                    genai::webc::Error::ResponseFailedStatus { status, body, headers } => {
                        http(*status, body, headers)
                    }
                    genai::webc::Error::Reqwest(error) => transport(error),
                    _ => Self::new(Fault::Unavailable, "its answer could not be read"),
                }
            }
            E::ChatResponse { body, .. } => in_stream(body),
            E::StreamParse { .. } | E::JsonValueExt(_) | E::SerdeJson(_) => {
                Self::new(Fault::Truncated, "a piece of its answer could not be read")
            }
            E::RequiresApiKey { .. } | E::NoAuthResolver { .. } | E::NoAuthData { .. } => {
                Self::new(Fault::Auth, "it needs a key, and there is none")
            }
            _ => Self::new(Fault::Refused, "the request could not be made"),
        }
    }

    /// An answer without its end.
    pub(super) fn truncated() -> Self {
        Self::new(Fault::Truncated, "the answer broke off before its end")
    }

    /// Something came that is no stream of events.
    pub(super) fn no_stream(instead: Instead) -> Self {
        let what = match instead {
            Instead::Page => {
                "it answered with a web page, and not with a stream of events; does its base_url \
                 lead to the API?"
            }
            Instead::OnePiece => {
                "it answered in one piece, and not with a stream of events; does it stream?"
            }
            Instead::Unknown => {
                "it answered with something that is no stream of events: a web page, or an answer \
                 in one piece; does its base_url lead to the API, and does it stream?"
            }
        };
        Self::new(Fault::Refused, what)
    }

    /// An answer says that it calls tools, and calls none.
    pub(super) fn no_calls() -> Self {
        Self::new(Fault::Truncated, "it says that it calls tools, and names none")
    }

    /// The answer did not come in time.
    pub(super) fn late(what: &str) -> Self {
        Self::new(Fault::TimedOut, what)
    }

    /// Does the vendor refuse the thinking that it is shown?
    pub(super) fn blames_thinking(&self) -> bool {
        let said = self.said.as_deref().unwrap_or_default();
        self.fault == Fault::Refused && said.contains("thinking") && said.contains("block")
    }

    /// The failure with as much of the vendor's words as is safe to store.
    pub(super) fn into_call_error(self, endpoint: &Endpoint, request: Request<'_>) -> CallError {
        let said = self.said.map(|said| one_line(&said)).filter(|said| !said.is_empty());
        let what = match said {
            None => self.what,
            Some(said) if quotes(&said, request) => {
                format!("{} (its words quote the conversation and are not shown)", self.what)
            }
            Some(said) => format!("{}: {}", self.what, without_key(&said, endpoint.key.as_ref())),
        };
        CallError { provider: endpoint.provider.clone(), what, fault: self.fault }
    }
}

fn stream(error: &(dyn std::error::Error + Send + Sync + 'static)) -> Failure {
    if let Some(error) = error.downcast_ref::<genai::Error>() {
        return Failure::of(error);
    }
    if let Some(timeout) = error.downcast_ref::<StreamTimeout>() {
        let what = match timeout {
            StreamTimeout::Headers => "it did not begin to answer in time",
            StreamTimeout::Read => "it fell silent in the middle of its answer",
        };
        return Failure::new(Fault::TimedOut, what);
    }
    match error.downcast_ref::<reqwest::Error>() {
        Some(error) => transport(error),
        None => Failure::new(Fault::Truncated, "a piece of its answer could not be read"),
    }
}

fn transport(error: &reqwest::Error) -> Failure {
    if error.is_timeout() {
        return Failure::new(Fault::TimedOut, "it could not be reached in time");
    }
    if error.is_connect() {
        return Failure::new(Fault::Unavailable, "it could not be reached");
    }
    if error.is_body() || error.is_decode() {
        return Failure::new(Fault::Truncated, "the connection broke in the middle of its answer");
    }
    if error.is_builder() {
        return Failure::new(Fault::Refused, "the request could not be made");
    }
    Failure::new(Fault::Unavailable, "the connection broke before it answered")
}

/// An error event in the middle of a stream that had begun well.
fn in_stream(body: &Value) -> Failure {
    let error = VendorError::of(body);
    let fault = if error.mentions(&["rate_limit", "too_many_requests", "resource_exhausted"]) {
        Fault::RateLimited(None)
    } else if error.mentions(TOO_LONG) {
        Fault::ContextFull
    } else if error.mentions(&["invalid_request", "permission", "authentication"]) {
        Fault::Refused
    } else {
        Fault::Unavailable
    };
    Failure { fault, what: "it failed in the middle of its answer".to_owned(), said: error.said() }
}

fn http(status: StatusCode, body: &str, headers: &HeaderMap) -> Failure {
    let is_page = body.trim_start().starts_with('<');
    let body = serde_json::from_str(body).unwrap_or(Value::Null);
    let error = VendorError::of(&body);
    let reason = status.canonical_reason().unwrap_or("an error");
    let fault = sort(status, &error, headers);
    let asked = match fault {
        Fault::RateLimited(Some(wait)) => format!(", it asks to wait {wait:.0?}"),
        _ => String::new(),
    };
    let page = if is_page { ", with a web page" } else { "" };
    let what = format!("{} {reason}{page}{asked}", status.as_u16());
    Failure { fault, what, said: error.said() }
}

fn sort(status: StatusCode, error: &VendorError, headers: &HeaderMap) -> Fault {
    match status.as_u16() {
        401 | 403 => Fault::Auth,
        404 => Fault::UnknownModel,
        408 => Fault::TimedOut,
        // The account is empty: waiting does not fill it.
        429 if error.mentions(&["insufficient_quota", "billing"]) => Fault::Refused,
        429 => Fault::RateLimited(retry_after(headers)),
        500.. => Fault::Unavailable,
        400 | 413 | 422 if error.mentions(TOO_LONG) || error.counts_too_many_tokens() => {
            Fault::ContextFull
        }
        400 | 422 if error.mentions(&["model_not_found", "model not found"]) => Fault::UnknownModel,
        400 | 422 if error.names_unknown_model() => Fault::UnknownModel,
        // Gemini says so with 400.
        400 if error.mentions(&["api_key_invalid", "api key not valid"]) => Fault::Auth,
        _ => Fault::Refused,
    }
}

/// How long a vendor asks to wait. A date is not read: it needs a clock that agrees.
fn retry_after(headers: &HeaderMap) -> Option<Duration> {
    let number = |name| headers.get(name)?.to_str().ok()?.trim().parse::<f64>().ok();
    let millis = number("retry-after-ms").map(|ms| ms / 1000.0);
    let seconds = millis.or_else(|| number("retry-after"))?;
    Duration::try_from_secs_f64(seconds).ok()
}

/// An error in a vendor's form.
struct VendorError {
    message: String,
    /// Its type, code and message, in lower case, to look for words in.
    all: String,
}

impl VendorError {
    fn of(body: &Value) -> Self {
        let body = body.get(0).unwrap_or(body);
        let error = body.get("error").unwrap_or(body);
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let message = match error {
            Value::String(message) => message.clone(),
            _ => text(&error["message"]),
        };
        let details = error.get("details").map(Value::to_string).unwrap_or_default();
        let all = [text(&error["type"]), text(&error["code"]), text(&error["status"]), details];
        let all = format!("{} {message}", all.join(" ")).to_lowercase();
        Self { message, all }
    }

    fn mentions(&self, words: &[&str]) -> bool {
        words.iter().any(|word| self.all.contains(word))
    }

    /// Gemini: "The input token count (N) exceeds the maximum number of tokens allowed".
    fn counts_too_many_tokens(&self) -> bool {
        self.all.contains("token count") && self.all.contains("exceed")
    }

    fn names_unknown_model(&self) -> bool {
        self.all.contains("model")
            && self.mentions(&["does not exist", "not found", "unknown model"])
    }

    fn said(&self) -> Option<String> {
        (!self.message.trim().is_empty()).then(|| self.message.clone())
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

/// Vendors repeat a refused key, whole or with stars in it.
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

/// Do these words repeat the request? Any run of twice [`QUOTED`] bytes that they share
/// covers one whole window; short texts are looked for whole.
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
    use reqwest::header::HeaderValue;
    use serde_json::json;

    fn sorted(status: u16, body: &Value) -> Fault {
        let status = StatusCode::from_u16(status).unwrap();
        http(status, &body.to_string(), &HeaderMap::new()).fault
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
