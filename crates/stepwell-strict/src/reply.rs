//! What the server is told to say.

use std::time::Duration;

/// The answer to one request.
#[derive(Clone, Debug)]
pub enum Reply {
    /// The model speaks.
    Say(Say),
    /// The vendor refuses, or fails.
    Error(HttpError),
    /// The connection is closed before a word.
    Drop,
    /// Nothing happens until the caller hangs up.
    Hang,
    /// A web page, with status 200: what a wrong address or a gate on the way answers.
    Page(String),
    /// What the test wrote, byte for byte: what no vendor's form has.
    Raw(Raw),
}

impl Reply {
    /// A status and a body that are sent as they are.
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

/// A response that is sent as it is.
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
    /// With a header.
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
    /// What the vendor says.
    pub message: String,
    /// `code` for OpenAI, `type` for Anthropic; what fits the status if absent.
    pub code: Option<String>,
    /// The header `Retry-After`.
    pub retry_after: Option<String>,
}

impl HttpError {
    /// With the vendor's code.
    #[must_use]
    pub fn code(mut self, code: impl Into<String>) -> Self {
        self.code = Some(code.into());
        self
    }

    /// With the header `Retry-After`.
    #[must_use]
    pub fn retry_after(mut self, value: impl Into<String>) -> Self {
        self.retry_after = Some(value.into());
        self
    }
}

/// What the model says.
#[derive(Clone, Debug, Default)]
pub struct Say {
    /// The vendor's name for the answer, where Anthropic's words are spoken; `msg_1` if absent.
    pub id: Option<String>,
    /// In order.
    pub pieces: Vec<Piece>,
    /// What it used, if it says.
    pub tokens: Option<Tokens>,
    /// Why it stops; what fits the pieces if absent.
    pub stop: Option<Stop>,
    /// How the stream ends.
    pub ending: Ending,
    /// How long it thinks before the first word.
    pub delay: Duration,
    /// How it says it, where OpenAI's words are spoken.
    pub dialect: Dialect,
}

/// How those who speak as OpenAI does differ from it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Dialect {
    /// As OpenAI itself.
    #[default]
    OpenAi,
    /// Calls come whole and without `index`, as from Gemini's OpenAI endpoint and mistral.rs.
    Unnumbered,
    /// Calls come in pieces without `index`.
    UnnumberedPieces,
    /// Every call has the `index` 0, as from older Ollama.
    AllZero,
    /// The answer comes in one piece, though a stream was asked for.
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
        /// What it is signed with.
        signature: String,
    },
    /// Reasoning that Anthropic hides, as its encrypted data.
    Redacted(String),
    /// A tool call, its arguments in the chunks that are streamed.
    Call {
        /// The call's id.
        id: String,
        /// The tool.
        name: String,
        /// The arguments' text, cut into pieces.
        arguments: Vec<String>,
    },
}

/// Tokens of one call, in the terms of stepwell: input holds what was cached, output what
/// was reasoned.
#[derive(Clone, Copy, Debug, Default)]
pub struct Tokens {
    /// Sent.
    pub input: u64,
    /// Of those, read from the cache.
    pub cached: u64,
    /// Of those, written to the cache; OpenAI does not count them.
    pub cache_written: u64,
    /// Received.
    pub output: u64,
    /// Of those, hidden reasoning.
    pub reasoning: u64,
}

/// Why the model stops.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stop {
    /// It is done.
    Done,
    /// It calls tools.
    Tools,
    /// It used up its tokens.
    Length,
    /// What it says was filtered.
    Filtered,
}

/// How a stream ends.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Ending {
    /// As it should.
    #[default]
    Whole,
    /// Cleanly, after this many events, without the event that ends it.
    CutAfter(usize),
    /// The connection breaks after this many events.
    BrokenAfter(usize),
    /// After this many events comes an error event: the vendor is overloaded.
    OverloadedAfter(usize),
    /// After this many events nothing more comes.
    SilentAfter(usize),
    /// After this many events it pauses until the test says that it goes on.
    PausedAfter(usize),
    /// After this many events nothing more comes but what keeps the connection alive.
    KeptAliveAfter(usize),
}

impl Say {
    /// A text.
    pub fn text(text: impl Into<String>) -> Self {
        Self::default().saying(text)
    }

    /// With a text behind the rest.
    #[must_use]
    pub fn saying(mut self, text: impl Into<String>) -> Self {
        self.pieces.push(Piece::Text(text.into()));
        self
    }

    /// With reasoning behind the rest.
    #[must_use]
    pub fn thinking(mut self, text: impl Into<String>, signature: impl Into<String>) -> Self {
        self.pieces.push(Piece::Thinking { text: text.into(), signature: signature.into() });
        self
    }

    /// With hidden reasoning behind the rest.
    #[must_use]
    pub fn redacted(mut self, data: impl Into<String>) -> Self {
        self.pieces.push(Piece::Redacted(data.into()));
        self
    }

    /// With a tool call behind the rest.
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

    /// With the vendor's name for it.
    #[must_use]
    pub fn named(mut self, id: impl Into<String>) -> Self {
        self.id = Some(id.into());
        self
    }

    /// With what it used.
    #[must_use]
    pub fn using(mut self, tokens: Tokens) -> Self {
        self.tokens = Some(tokens);
        self
    }

    /// With the reason for which it stops.
    #[must_use]
    pub fn stopping(mut self, stop: Stop) -> Self {
        self.stop = Some(stop);
        self
    }

    /// With another end.
    #[must_use]
    pub fn ending(mut self, ending: Ending) -> Self {
        self.ending = ending;
        self
    }

    /// In another dialect of OpenAI's words.
    #[must_use]
    pub fn dialect(mut self, dialect: Dialect) -> Self {
        self.dialect = dialect;
        self
    }

    /// With a delay before the first word.
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

/// Cuts a text into chunks of a few characters, as models stream them.
pub(crate) fn chunks(text: &str) -> Vec<String> {
    let letters: Vec<char> = text.chars().collect();
    letters.chunks(5).map(|chunk| chunk.iter().collect()).collect()
}
