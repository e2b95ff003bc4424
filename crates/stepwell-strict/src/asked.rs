//! A received request.

use serde_json::Value;

/// The API of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Protocol {
    /// `/v1/chat/completions`
    OpenAi,
    /// `/v1/responses`
    Responses,
    /// `/v1/messages`
    Anthropic,
}

/// A received request.
#[derive(Clone, Debug)]
pub struct Asked {
    /// Its API.
    pub protocol: Protocol,
    /// Its headers, with lower-case names.
    pub headers: Vec<(String, String)>,
    /// Its parsed body.
    pub body: Value,
    /// Its body as received.
    pub text: String,
    /// The error message, if it was rejected.
    pub rejected: Option<String>,
}

impl Asked {
    /// A header, by its lower-case name.
    #[must_use]
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(key, _)| key == name).map(|(_, value)| value.as_str())
    }
}
