//! What a model would be shown.

use schemars::JsonSchema;
use serde::Serialize;
use stepwell::{Message, Seq, SessionId};

/// What a model would be sent if it were asked now, and about how many tokens that is.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct ModelView {
    /// The session.
    pub id: SessionId,
    /// The model; null, if none is known.
    pub model: Option<String>,
    /// The tokens of all of it.
    pub tokens: u64,
    /// How many fit the model; null, if that is not known.
    pub context: Option<u64>,
    /// Above how many it is compacted; null, if it is not.
    pub limit: Option<u64>,
    /// What the agent is told before it begins.
    pub instructions: ViewInstructions,
    /// The tools that it is offered.
    pub tools: ViewTools,
    /// The conversation.
    pub messages: Vec<ViewMessage>,
}

/// What an agent is told before it begins.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct ViewInstructions {
    /// The text.
    pub text: String,
    /// Its tokens.
    pub tokens: u64,
}

/// The tools that an agent is offered.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct ViewTools {
    /// Their names.
    pub names: Vec<String>,
    /// The tokens of their descriptions.
    pub tokens: u64,
}

/// A message as the model is shown it.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct ViewMessage {
    /// The event.
    pub seq: Seq,
    /// Where it comes from.
    pub made: ViewMessageKind,
    /// Does it stay, whatever is compacted?
    pub pinned: bool,
    /// Its tokens.
    pub tokens: u64,
    /// The message.
    #[serde(flatten)]
    pub message: Message,
}

/// Where a message of a view comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ViewMessageKind {
    /// A compaction put it in place of others.
    Summary,
    /// It holds the results of the calls before it.
    Results,
    /// It was recorded so.
    Message,
}
