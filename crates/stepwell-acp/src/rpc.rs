//! JSON-RPC as the protocol uses it: one message in, one kind of thing out. Pure.

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use stepwell_wire::request_id;

/// The name of a request. Its answer repeats it.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(untagged)]
pub(crate) enum Id {
    /// `null`: allowed, and answered.
    Null,
    /// A whole number.
    Number(i64),
    /// A text.
    Text(String),
}

impl Id {
    /// The id that a damaged message shows, if any.
    pub(crate) fn of(shown: Option<Value>) -> Self {
        shown.and_then(|id| serde_json::from_value(id).ok()).unwrap_or(Self::Null)
    }
}

/// A message from the client.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Incoming {
    /// It wants an answer.
    Request {
        /// Its name.
        id: Id,
        /// What is wanted.
        method: String,
        /// With what.
        params: Value,
    },
    /// It wants none.
    Notification {
        /// What it is about.
        method: String,
        /// What it says.
        params: Value,
    },
    /// It answers one of our requests.
    Response {
        /// The request that it answers.
        id: Id,
        /// The answer.
        answer: Result<Value, RpcError>,
    },
    /// It is no message; this is what its sender is told.
    Wrong {
        /// The request that was meant, as far as that can be told.
        id: Id,
        /// What is wrong.
        error: RpcError,
    },
}

/// Why a request got no result.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, thiserror::Error)]
#[error("{message}")]
pub(crate) struct RpcError {
    /// The kind, as the specification numbers them.
    pub(crate) code: i64,
    /// What went wrong, in words.
    pub(crate) message: String,
    /// More of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) data: Option<Value>,
}

/// The result of whatever answers a request.
pub(crate) type Result<T, E = RpcError> = std::result::Result<T, E>;

impl RpcError {
    pub(crate) const PARSE: i64 = -32700;
    pub(crate) const INVALID_REQUEST: i64 = -32600;
    pub(crate) const METHOD_NOT_FOUND: i64 = -32601;
    pub(crate) const INVALID_PARAMS: i64 = -32602;
    pub(crate) const INTERNAL: i64 = -32603;
    pub(crate) const CANCELLED: i64 = -32800;
    pub(crate) const AUTH_REQUIRED: i64 = -32000;
    pub(crate) const NOT_FOUND: i64 = -32002;

    pub(crate) fn new(code: i64, message: impl Into<String>) -> Self {
        Self { code, message: message.into(), data: None }
    }

    pub(crate) fn invalid_request(message: impl Into<String>) -> Self {
        Self::new(Self::INVALID_REQUEST, message)
    }

    pub(crate) fn invalid_params(message: impl Into<String>) -> Self {
        Self::new(Self::INVALID_PARAMS, message)
    }

    pub(crate) fn method_not_found(method: &str) -> Self {
        let method: String = method.chars().take(100).collect();
        Self::new(Self::METHOD_NOT_FOUND, format!("there is no method {method:?}"))
    }

    pub(crate) fn not_found(what: impl Into<String>) -> Self {
        Self::new(Self::NOT_FOUND, what)
    }

    pub(crate) fn internal(message: impl std::fmt::Display) -> Self {
        Self::new(Self::INTERNAL, message.to_string())
    }

    pub(crate) fn cancelled() -> Self {
        Self::new(Self::CANCELLED, "the request was cancelled")
    }
}

/// What a line says; none, if it is empty.
pub(crate) fn read(line: &[u8]) -> Option<Incoming> {
    let line = line.strip_prefix(b"\xef\xbb\xbf").unwrap_or(line).trim_ascii();
    if line.is_empty() {
        return None;
    }
    Some(match serde_json::from_slice::<Value>(line) {
        Ok(value) => sort(value),
        Err(why) => Incoming::Wrong {
            id: Id::of(request_id(line)),
            error: RpcError::new(RpcError::PARSE, format!("the message is no JSON: {why}")),
        },
    })
}

fn sort(value: Value) -> Incoming {
    let wrong = |id: Option<Id>, why: &str| Incoming::Wrong {
        id: id.unwrap_or(Id::Null),
        error: RpcError::invalid_request(why),
    };
    let Value::Object(mut fields) = value else {
        // Batches are not part of the protocol.
        return wrong(None, "a message is one JSON object");
    };
    let id = fields.remove("id");
    let named = id.as_ref().map(|id| serde_json::from_value::<Id>(id.clone()).ok());
    if fields.get("jsonrpc") != Some(&json!("2.0")) {
        return wrong(named.flatten(), "`jsonrpc` is not \"2.0\"");
    }
    if named == Some(None) {
        return wrong(None, "`id` is no whole number, no text and not null");
    }
    let named = named.flatten();
    let Some(method) = fields.remove("method") else {
        return answer(named, fields);
    };
    let Value::String(method) = method else { return wrong(named, "`method` is no text") };
    let params = fields.remove("params").unwrap_or(Value::Null);
    if !matches!(params, Value::Null | Value::Object(_) | Value::Array(_)) {
        return wrong(named, "`params` is neither an object nor an array");
    }
    match named {
        Some(id) => Incoming::Request { id, method, params },
        None => Incoming::Notification { method, params },
    }
}

/// What a message without a method says: it answers something, or nothing.
fn answer(id: Option<Id>, mut fields: serde_json::Map<String, Value>) -> Incoming {
    let error = RpcError::invalid_request("there is neither a method, nor a result, nor an error");
    let Some(id) = id else { return Incoming::Wrong { id: Id::Null, error } };
    if let Some(failed) = fields.remove("error") {
        let unclear = || RpcError::internal("the client's error has no known form");
        let failed = serde_json::from_value(failed).unwrap_or_else(|_| unclear());
        return Incoming::Response { id, answer: Err(failed) };
    }
    match fields.remove("result") {
        Some(result) => Incoming::Response { id, answer: Ok(result) },
        None => Incoming::Wrong { id, error },
    }
}

/// An answer as a line's value.
pub(crate) fn response(id: &Id, answer: Result<Value>) -> Value {
    match answer {
        Ok(result) => json!({"jsonrpc": "2.0", "id": id, "result": result}),
        Err(error) => json!({"jsonrpc": "2.0", "id": id, "error": error}),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn code(line: &str) -> Option<i64> {
        match read(line.as_bytes()) {
            Some(Incoming::Wrong { error, .. }) => Some(error.code),
            _ => None,
        }
    }

    #[test]
    fn what_is_no_message_gets_the_error_of_the_specification() {
        assert_eq!(code("{"), Some(RpcError::PARSE));
        assert_eq!(code("\u{0}"), Some(RpcError::PARSE));
        for wrong in [
            "[]",
            "1",
            "\"a\"",
            "null",
            "[{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"initialize\"}]",
            "{}",
            "{\"jsonrpc\":\"1.0\",\"id\":1,\"method\":\"initialize\"}",
            "{\"jsonrpc\":\"2.0\",\"id\":[],\"method\":\"initialize\"}",
            "{\"jsonrpc\":\"2.0\",\"id\":1.5,\"method\":\"initialize\"}",
            "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":7}",
            "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"initialize\",\"params\":3}",
            "{\"jsonrpc\":\"2.0\",\"id\":1}",
        ] {
            assert_eq!(code(wrong), Some(RpcError::INVALID_REQUEST), "{wrong}");
        }
    }

    #[test]
    fn a_wrong_request_is_answered_under_its_own_id() {
        let read = read(b"{\"jsonrpc\":\"2.0\",\"id\":\"x\",\"method\":7}");
        assert!(matches!(read, Some(Incoming::Wrong { id: Id::Text(id), .. }) if id == "x"));
    }

    #[test]
    fn a_text_with_half_a_character_is_named_under_the_requests_id() {
        let line = br#"{"jsonrpc":"2.0","id":7,"method":"a","params":{"text":"\ud800"}}"#;
        let Some(Incoming::Wrong { id, error }) = read(line) else { panic!("it was taken") };
        assert_eq!((id, error.code), (Id::Number(7), RpcError::PARSE));
        assert!(error.message.contains("hex escape"), "{error}");
    }

    #[test]
    fn requests_notifications_and_answers_are_told_apart() {
        let request = read(b"\xef\xbb\xbf {\"jsonrpc\":\"2.0\",\"id\":null,\"method\":\"a\"} \r\n");
        assert!(matches!(request, Some(Incoming::Request { id: Id::Null, .. })));
        let told = read(b"{\"jsonrpc\":\"2.0\",\"method\":\"a\",\"params\":{}}");
        assert!(matches!(told, Some(Incoming::Notification { .. })));
        let answer =
            read(b"{\"jsonrpc\":\"2.0\",\"id\":1,\"error\":{\"code\":-1,\"message\":\"no\"}}");
        assert!(matches!(answer, Some(Incoming::Response { answer: Err(_), .. })));
        let answer = read(b"{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":null}");
        assert!(matches!(answer, Some(Incoming::Response { answer: Ok(Value::Null), .. })));
        assert_eq!(read(b" \n"), None);
    }
}
