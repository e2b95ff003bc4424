//! Models: the one question that is asked of them, and the ways in which they fail.
//!
//! A provider turns our messages into its own words and back. Nothing of its client
//! library shows here, so that it can be replaced.

pub mod name;
pub mod remote;
pub mod retry;
pub mod script;

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;
use serde::{Deserialize, Serialize};
use stepwell::Message;
use stepwell::model::{Money, Usage};

pub use stepwell_catalog::model_name;

/// Answers as a model.
pub trait Provider: fmt::Debug + Send + Sync {
    /// The provider's name, as it is recorded: `openai`, `anthropic`, `script`.
    fn name(&self) -> &str;

    /// Asks for the next message of a conversation.
    ///
    /// The messages are a valid conversation (`stepwell::View::check`). What arrives is told to
    /// `told` as it comes; only a complete answer is returned: a stream that breaks off is
    /// [`Fault::Truncated`], whatever it said before. Dropping the future cancels the call.
    fn answer<'a>(
        &'a self,
        request: Request<'a>,
        told: &'a mut (dyn FnMut(Delta) + Send),
    ) -> BoxFuture<'a, Result<Answer, CallError>>;
}

impl<P: Provider + ?Sized> Provider for Arc<P> {
    fn name(&self) -> &str {
        (**self).name()
    }

    fn answer<'a>(
        &'a self,
        request: Request<'a>,
        told: &'a mut (dyn FnMut(Delta) + Send),
    ) -> BoxFuture<'a, Result<Answer, CallError>> {
        (**self).answer(request, told)
    }
}

/// What a model is asked.
#[derive(Clone, Copy, Debug)]
pub struct Request<'a> {
    /// The model's name as the user typed it, without the provider.
    pub model: &'a str,
    /// Standing instructions.
    pub system: &'a str,
    /// The conversation.
    pub messages: &'a [Message],
    /// The tools that it may call.
    pub tools: &'a [ToolSpec],
    /// The most tokens that it may answer with.
    pub max_output: u64,
    /// How far the run is, for models that answer from a script.
    pub turn: Turn<'a>,
}

/// How far a run is when it asks: what it had before that still counts, shown or not.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Turn<'a> {
    /// What it asks for.
    pub purpose: Purpose,
    /// The answers that it had.
    pub answers: u64,
    /// The summaries that it asked for.
    pub summaries: u64,
    /// The lane that asks.
    pub lane: &'a str,
}

/// What a request asks for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Purpose {
    /// The next message of the conversation.
    #[default]
    Answer,
    /// A summary of what is about to be left out of it.
    Summary,
}

/// A tool as a model is told of it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ToolSpec {
    /// Its name.
    pub name: String,
    /// What it does, for the model.
    pub description: String,
    /// JSON Schema of its arguments: an object.
    pub parameters: serde_json::Value,
}

/// A piece of an answer, as it comes. For showing only.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Delta {
    /// Text.
    Text(String),
    /// Visible reasoning.
    Thinking(String),
    /// A part of what is not shown before it is whole, such as a tool call. Front ends are not told.
    Call,
    /// What came of this answer so far is void: it broke off, and is asked for anew.
    Void,
}

/// What the model is told when its answer was cut short. It is said in the user's place and
/// is no request of theirs.
pub const GO_ON: &str = "Your answer was cut off: it was as long as an answer may be. Go on \
                         exactly where it stopped.";

/// What the model is told when its answer said nothing. No request of the user's, either.
pub const SAY_SOMETHING: &str = "Your answer was empty. Go on with the work; if nothing is left to \
                                 do, say so, and what came of it.";

/// What the model is told when it is to go on with work that was stopped before it was done,
/// though its last answer asked for nothing. No request of the user's, either.
pub const NOT_DONE: &str = "The work was stopped before it was done. Go on with it where it \
                            stopped; if nothing is left to do, say so, and what came of it.";

/// What stands for an answer that said nothing: no provider takes an empty message back.
pub const NO_ANSWER: &str = "(no answer)";

/// Is this said in the user's place, and no request of theirs?
#[must_use]
pub fn is_aside(text: &str) -> bool {
    [GO_ON, SAY_SOMETHING, NOT_DONE].contains(&text)
}

/// A complete answer.
#[derive(Clone, Debug, PartialEq)]
pub struct Answer {
    /// The model's message: text, thinking, tool calls, with the provider's opaque data.
    /// A call's arguments are the model's own text, even if they are no JSON.
    pub message: Message,
    /// Its tokens, if the provider said.
    pub usage: Option<Usage>,
    /// What it cost, if the provider said: otherwise the tokens are priced.
    pub cost: Option<Money>,
    /// Why it ended.
    pub ended: Ended,
}

/// Why an answer ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ended {
    /// The model had said what it wanted.
    Complete,
    /// It used up the tokens that it may answer with.
    OutputLimit,
    /// The model refused, or its provider did not let it answer.
    Refused,
}

/// A call failed. The text is safe to show and to store: it holds no prompt and no key.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{provider}: {what}")]
pub struct CallError {
    /// Which provider.
    pub provider: String,
    /// What it said, or what happened to it.
    pub what: String,
    /// What to do about it.
    pub fault: Fault,
}

/// What to do about a failed call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// The credentials are missing or refused: give others.
    Auth,
    /// There is no such model: name another.
    UnknownModel,
    /// The provider does not take the request: asking again is of no use.
    Refused,
    /// The model refuses to answer, or its provider does not let it: ask for something else.
    Declined,
    /// Nothing listens at its address, which is on this machine: start it.
    NotRunning,
    /// The conversation does not fit the model.
    ContextFull,
    /// Too many requests: wait, at least this long if it said, and ask again.
    RateLimited(Option<Duration>),
    /// It could not be reached, or failed: ask again.
    Unavailable,
    /// The answer broke off: ask again.
    Truncated,
    /// It took too long: ask again.
    TimedOut,
}

impl Fault {
    /// Is it worth asking again?
    #[must_use]
    pub const fn is_passing(self) -> bool {
        matches!(self, Self::RateLimited(_) | Self::Unavailable | Self::Truncated | Self::TimedOut)
    }
}
