//! Model providers: the one request to them, and the ways in which it fails.
//!
//! A provider translates between Stepwell's messages and its own protocol. No type of its HTTP
//! client appears here, so the client can be replaced.

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

/// A model provider.
pub trait Provider: fmt::Debug + Send + Sync {
    /// The provider's name in events: `openai`, `anthropic`, `script`.
    fn name(&self) -> &str;

    /// Asks for the next message of a conversation.
    ///
    /// `messages` must be a valid conversation (`stepwell::View::check`). `told` receives pieces as
    /// they arrive. Only a complete answer is returned: an interrupted stream is
    /// [`Fault::Truncated`], whatever it brought. Dropping the future cancels the call.
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

/// A request to a model.
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
    /// The most output tokens.
    pub max_output: u64,
    /// How far the run is, for scripted models.
    pub turn: Turn<'a>,
}

/// How far a run is: its past answers that still count, shown or not.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Turn<'a> {
    /// What the request is for.
    pub purpose: Purpose,
    /// Answers so far.
    pub answers: u64,
    /// Summaries so far.
    pub summaries: u64,
    /// The lane that makes the request.
    pub lane: &'a str,
}

/// What a request is for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Purpose {
    /// The next message of the conversation.
    #[default]
    Answer,
    /// A summary of messages that are about to be replaced.
    Summary,
}

/// The description of a tool for a model.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ToolSpec {
    /// Its name.
    pub name: String,
    /// What it does, for the model.
    pub description: String,
    /// JSON Schema of its arguments: an object.
    pub parameters: serde_json::Value,
}

/// A piece of an answer while it arrives. For display only.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Delta {
    /// Text.
    Text(String),
    /// Visible reasoning.
    Thinking(String),
    /// A piece that is only shown when it is complete, such as a tool call. Front ends do not
    /// receive it.
    Call,
    /// The pieces so far are void: the answer was interrupted and is requested again.
    Void,
}

/// The message to the model after a truncated answer. It is a user message, but not a request of
/// the user's.
pub const GO_ON: &str =
    "Your answer was truncated at the output limit. Continue exactly where it stopped.";

/// The message to the model after an empty answer. Not a request of the user's either.
pub const SAY_SOMETHING: &str = "Your answer was empty. Continue the work; if nothing is left to \
    do, say so, and say what the result is.";

/// The message to the model when it must continue work that was stopped early, although its last
/// answer made no calls. Not a request of the user's either.
pub const NOT_DONE: &str = "The work was stopped before it was done. Continue where it stopped; \
    if nothing is left to do, say so, and say what the result is.";

/// Replaces an empty answer in the conversation: no provider accepts an empty message.
pub const NO_ANSWER: &str = "(no answer)";

/// Is this one of the user messages that are not requests of the user's?
#[must_use]
pub fn is_aside(text: &str) -> bool {
    [GO_ON, SAY_SOMETHING, NOT_DONE].contains(&text)
}

/// A complete answer.
#[derive(Clone, Debug, PartialEq)]
pub struct Answer {
    /// The model's message: text, thinking, tool calls, with the provider's opaque data. A call's
    /// arguments are the model's own text, even if they are not valid JSON.
    pub message: Message,
    /// The provider's token counts, if it reported them.
    pub usage: Option<Usage>,
    /// The provider's own cost, if it reported one; otherwise the tokens are priced here.
    pub cost: Option<Money>,
    /// Why it ended.
    pub ended: Ended,
}

/// Why an answer ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ended {
    /// The model finished its answer.
    Complete,
    /// The answer reached the output limit.
    OutputLimit,
    /// The model refused, or its provider blocked the answer.
    Refused,
}

/// A failed call. The text is safe to show and to store: it contains no prompt and no key.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{provider}: {what}")]
pub struct CallError {
    /// Which provider.
    pub provider: String,
    /// The provider's message, or a description of the failure.
    pub what: String,
    /// The kind of failure, which says how to go on.
    pub fault: Fault,
}

/// The kind of a failure, and the remedy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// The credentials are missing or rejected: provide others.
    Auth,
    /// The model does not exist: name another.
    UnknownModel,
    /// The provider rejects the request: a retry is useless.
    Refused,
    /// The model or its provider refuses to answer: change the request.
    Declined,
    /// No server listens at its local address: start it.
    NotRunning,
    /// The conversation exceeds the model's context.
    ContextFull,
    /// Too many requests: retry, after this time if the provider gave one.
    RateLimited(Option<Duration>),
    /// The provider is unreachable or failed: retry.
    Unavailable,
    /// The answer was interrupted: retry.
    Truncated,
    /// The call timed out: retry.
    TimedOut,
}

impl Fault {
    /// Is a retry worthwhile?
    #[must_use]
    pub const fn is_passing(self) -> bool {
        matches!(self, Self::RateLimited(_) | Self::Unavailable | Self::Truncated | Self::TimedOut)
    }
}
