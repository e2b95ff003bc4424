//! A request as it arrived.

use serde_json::Value;

/// Whose words a request speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Protocol {
    /// `/v1/chat/completions`
    OpenAi,
    /// `/v1/responses`
    Responses,
    /// `/v1/messages`
    Anthropic,
}

/// A request as it arrived.
#[derive(Clone, Debug)]
pub struct Asked {
    /// Whose words it speaks.
    pub protocol: Protocol,
    /// Its headers, by their lower-case name.
    pub headers: Vec<(String, String)>,
    /// Its body.
    pub body: Value,
    /// Its body as it was written.
    pub text: String,
    /// The vendor's words, if it was rejected.
    pub rejected: Option<String>,
}

impl Asked {
    /// A header of it, by its lower-case name.
    #[must_use]
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(key, _)| key == name).map(|(_, value)| value.as_str())
    }
}
