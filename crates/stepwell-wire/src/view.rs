//! The view: what a model would be sent.

use schemars::JsonSchema;
use serde::Serialize;
use stepwell::{Message, Seq, SessionId};

/// What a model would be sent now, with approximate tokens.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct ModelView {
    /// The session.
    pub id: SessionId,
    /// The model; null, if unknown.
    pub model: Option<String>,
    /// The tokens of everything.
    pub tokens: u64,
    /// The model's context length; null, if unknown.
    pub context: Option<u64>,
    /// The tokens above which it is compacted; null, if it never is.
    pub limit: Option<u64>,
    /// The agent's instructions.
    pub instructions: ViewInstructions,
    /// The agent's tools.
    pub tools: ViewTools,
    /// The conversation.
    pub messages: Vec<ViewMessage>,
}

/// The instructions of an agent.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct ViewInstructions {
    /// The text.
    pub text: String,
    /// Its tokens.
    pub tokens: u64,
}

/// The tools of an agent.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct ViewTools {
    /// Their names.
    pub names: Vec<String>,
    /// The tokens of their descriptions.
    pub tokens: u64,
}

/// A message in a view.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct ViewMessage {
    /// The event.
    pub seq: Seq,
    /// Its origin.
    pub made: ViewMessageKind,
    /// Is it exempt from compaction?
    pub pinned: bool,
    /// Its tokens.
    pub tokens: u64,
    /// The message.
    #[serde(flatten)]
    pub message: Message,
}

/// The origin of a message in a view.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ViewMessageKind {
    /// The summary of a compaction.
    Summary,
    /// The results of the calls before it.
    Results,
    /// A recorded message.
    Message,
}
