//! The scripted replies of the server.

use std::time::Duration;

/// The reply to one request.
#[derive(Clone, Debug)]
pub enum Reply {
    /// An answer of the model.
    Say(Say),
    /// An error of the vendor.
    Error(HttpError),
    /// The connection closes without a byte.
    Drop,
    /// No reply until the caller hangs up.
    Hang,
    /// A web page with status 200, as from a wrong URL or a login page on the way.
    Page(String),
    /// A reply outside of the vendor's protocol, byte for byte.
    Raw(Raw),
}

impl Reply {
    /// A reply with this status and body, sent unchanged.
    pub fn raw(status: u16, body: impl Into<String>) -> Raw {
        Raw { status, headers: Vec::new(), body: body.into() }
    }

    /// An HTTP error in the vendor's form.
    pub fn error(status: u16, message: impl Into<String>) -> HttpError {
        HttpError { status, message: message.into(), code: None, retry_after: None }
    }
}

impl From<Raw> for Reply {
    fn from(raw: Raw) -> Self {
        Self::Raw(raw)
    }
}

impl From<Say> for Reply {
    fn from(say: Say) -> Self {
        Self::Say(say)
    }
}

impl From<HttpError> for Reply {
    fn from(error: HttpError) -> Self {
        Self::Error(error)
    }
}

/// A reply that is sent unchanged.
#[derive(Clone, Debug)]
pub struct Raw {
    /// The status.
    pub status: u16,
    /// The headers.
    pub headers: Vec<(&'static str, &'static str)>,
    /// The body.
    pub body: String,
}

impl Raw {
    /// Adds a header.
    #[must_use]
    pub fn header(mut self, name: &'static str, value: &'static str) -> Self {
        self.headers.push((name, value));
        self
    }
}

/// An HTTP error in the vendor's form.
#[derive(Clone, Debug)]
pub struct HttpError {
    /// The status.
    pub status: u16,
    /// The vendor's message.
    pub message: String,
    /// `code` for OpenAI, `type` for Anthropic; derived from the status if absent.
    pub code: Option<String>,
    /// The header `Retry-After`.
    pub retry_after: Option<String>,
}

impl HttpError {
    /// Sets the vendor's code.
    #[must_use]
    pub fn code(mut self, code: impl Into<String>) -> Self {
        self.code = Some(code.into());
        self
    }

    /// Sets the header `Retry-After`.
    #[must_use]
    pub fn retry_after(mut self, value: impl Into<String>) -> Self {
        self.retry_after = Some(value.into());
        self
    }
}

/// An answer of the model.
#[derive(Clone, Debug, Default)]
pub struct Say {
    /// The answer's id in Anthropic's API; `msg_1` if absent.
    pub id: Option<String>,
    /// Its pieces, in order.
    pub pieces: Vec<Piece>,
    /// Its tokens, if they are reported.
    pub tokens: Option<Tokens>,
    /// Why it stops; derived from the pieces if absent.
    pub stop: Option<Stop>,
    /// How the stream ends.
    pub ending: Ending,
    /// The delay before the first byte.
    pub delay: Duration,
    /// The dialect in OpenAI's API.
    pub dialect: Dialect,
}

/// Deviations of OpenAI-compatible servers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Dialect {
    /// OpenAI itself.
    #[default]
    OpenAi,
    /// Calls come whole and without `index`, as from Gemini's OpenAI endpoint and mistral.rs.
    Unnumbered,
    /// Calls come in pieces without `index`.
    UnnumberedPieces,
    /// Every call has the `index` 0, as from older Ollama.
    AllZero,
    /// The answer is not streamed, although a stream was requested.
    Unstreamed,
}

/// A piece of an answer.
#[derive(Clone, Debug)]
pub enum Piece {
    /// Text.
    Text(String),
    /// Visible reasoning; the signature is Anthropic's.
    Thinking {
        /// The reasoning.
        text: String,
        /// Its signature.
        signature: String,
    },
    /// Hidden reasoning of Anthropic, as encrypted data.
    Redacted(String),
    /// A tool call, with its arguments in the streamed pieces.
    Call {
        /// The call's id.
        id: String,
        /// The tool.
        name: String,
        /// The arguments' text in pieces.
        arguments: Vec<String>,
    },
}

/// Tokens of one call, in Stepwell's terms: input includes cached tokens, output includes
/// reasoning.
#[derive(Clone, Copy, Debug, Default)]
pub struct Tokens {
    /// Input tokens.
    pub input: u64,
    /// The part read from the cache.
    pub cached: u64,
    /// The part written to the cache; OpenAI does not count it.
    pub cache_written: u64,
    /// Output tokens.
    pub output: u64,
    /// The part that is hidden reasoning.
    pub reasoning: u64,
}

/// Why the model stops.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stop {
    /// It is done.
    Done,
    /// It calls tools.
    Tools,
    /// It reached the output limit.
    Length,
    /// Its text was filtered.
    Filtered,
}

/// How a stream ends.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Ending {
    /// Complete.
    #[default]
    Whole,
    /// Cleanly after this many events, without the final event.
    CutAfter(usize),
    /// The connection breaks after this many events.
    BrokenAfter(usize),
    /// With an error event after this many events: the vendor is overloaded.
    OverloadedAfter(usize),
    /// With silence after this many events.
    SilentAfter(usize),
    /// It pauses after this many events until the test continues it.
    PausedAfter(usize),
    /// With keep-alives only after this many events.
    KeptAliveAfter(usize),
}

impl Say {
    /// An answer of this text.
    pub fn text(text: impl Into<String>) -> Self {
        Self::default().saying(text)
    }

    /// Adds a text.
    #[must_use]
    pub fn saying(mut self, text: impl Into<String>) -> Self {
        self.pieces.push(Piece::Text(text.into()));
        self
    }

    /// Adds visible reasoning.
    #[must_use]
    pub fn thinking(mut self, text: impl Into<String>, signature: impl Into<String>) -> Self {
        self.pieces.push(Piece::Thinking { text: text.into(), signature: signature.into() });
        self
    }

    /// Adds hidden reasoning.
    #[must_use]
    pub fn redacted(mut self, data: impl Into<String>) -> Self {
        self.pieces.push(Piece::Redacted(data.into()));
        self
    }

    /// Adds a tool call.
    #[must_use]
    pub fn calling(
        mut self,
        id: impl Into<String>,
        name: impl Into<String>,
        arguments: &[&str],
    ) -> Self {
        let arguments = arguments.iter().map(|&piece| piece.to_owned()).collect();
        self.pieces.push(Piece::Call { id: id.into(), name: name.into(), arguments });
        self
    }

    /// Sets the answer's id.
    #[must_use]
    pub fn named(mut self, id: impl Into<String>) -> Self {
        self.id = Some(id.into());
        self
    }

    /// Sets the tokens.
    #[must_use]
    pub fn using(mut self, tokens: Tokens) -> Self {
        self.tokens = Some(tokens);
        self
    }

    /// Sets the reason for the stop.
    #[must_use]
    pub fn stopping(mut self, stop: Stop) -> Self {
        self.stop = Some(stop);
        self
    }

    /// Sets the end of the stream.
    #[must_use]
    pub fn ending(mut self, ending: Ending) -> Self {
        self.ending = ending;
        self
    }

    /// Sets the dialect.
    #[must_use]
    pub fn dialect(mut self, dialect: Dialect) -> Self {
        self.dialect = dialect;
        self
    }

    /// Sets the delay.
    #[must_use]
    pub fn after(mut self, delay: Duration) -> Self {
        self.delay = delay;
        self
    }

    pub(crate) fn stops(&self) -> Stop {
        let calls = self.pieces.iter().any(|piece| matches!(piece, Piece::Call { .. }));
        self.stop.unwrap_or(if calls { Stop::Tools } else { Stop::Done })
    }
}

/// Cuts a text into short chunks, as models stream it.
pub(crate) fn chunks(text: &str) -> Vec<String> {
    let letters: Vec<char> = text.chars().collect();
    letters.chunks(5).map(|chunk| chunk.iter().collect()).collect()
}
