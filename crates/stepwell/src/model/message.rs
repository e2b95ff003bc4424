//! Messages of a conversation with a model.

use serde::{Deserialize, Serialize};

use super::id::Lane;
use super::money::Money;
use super::position::Seq;
use super::time::Time;
use super::usage::Usage;

/// Who speaks in a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Role {
    /// Instructions.
    System,
    /// The user, or a program in the user's name.
    User,
    /// The model.
    Assistant,
    /// Tools, with the results of the model's calls.
    Tool,
}

/// Who wrote a message. Its role says only in whose name the model reads it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Author {
    /// The one that the role names.
    #[default]
    Speaker,
    /// The program that ran the agent: context, reminders and instructions that it injected under
    /// the role.
    Program,
}

impl Author {
    fn is_speaker(&self) -> bool {
        *self == Self::Speaker
    }
}

/// One message of a lane's conversation.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Message {
    /// The conversation it belongs to.
    #[serde(default)]
    pub lane: Lane,
    /// Who speaks.
    pub role: Role,
    /// Who wrote it.
    #[serde(default, skip_serializing_if = "Author::is_speaker")]
    pub author: Author,
    /// Its content, in order.
    pub parts: Vec<Part>,
    /// The model that answered.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// Tokens of the model call that produced it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub usage: Option<Usage>,
    /// The cost of that call. Absent beside a usage if the price was unknown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost: Option<Money>,
    /// The model call that produced it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub call: Option<Box<ModelCall>>,
    /// The [`Said`](crate::model::talk::Said) event that this message delivers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub said: Option<Seq>,
}

/// A model call: its times, and its provider's metadata.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct ModelCall {
    /// When the request was sent.
    #[serde(skip_serializing_if = "Option::is_none", serialize_with = "super::time::to_micros")]
    #[cfg_attr(feature = "schema", schemars(with = "Option<Time>"))]
    pub asked_at: Option<Time>,
    /// When the first piece of the answer arrived.
    #[serde(skip_serializing_if = "Option::is_none", serialize_with = "super::time::to_micros")]
    #[cfg_attr(feature = "schema", schemars(with = "Option<Time>"))]
    pub first_at: Option<Time>,
    /// The provider's id of the answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub response_id: Option<String>,
    /// Why the model stopped, in the provider's terms.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub finish_reason: Option<String>,
}

/// One part of a message.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Part {
    /// Plain text.
    Text(Text),
    /// The model's visible reasoning.
    Thinking(Text),
    /// An image.
    Image(Image),
    /// The model calls a tool.
    ToolCall(ToolCall),
    /// The result of a tool call.
    ToolResult(ToolResult),
}

/// Text, with what the provider attached to it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Text {
    /// The text.
    pub text: String,
    /// The provider's own data.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub opaque: Option<Opaque>,
}

/// An image.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Image {
    /// The media type, such as `image/png`.
    pub media_type: String,
    /// The bytes in base64, or a URL.
    pub data: String,
    /// The provider's own data.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub opaque: Option<Opaque>,
}

/// A model's request to use a tool.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ToolCall {
    /// The provider's id of this call, which the result repeats.
    pub id: String,
    /// The tool's name.
    pub name: String,
    /// The arguments' JSON text, byte for byte as the model wrote it. It may be malformed.
    pub arguments: String,
    /// The provider's own data.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub opaque: Option<Opaque>,
}

/// The result of one tool call.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ToolResult {
    /// The call that it answers.
    pub call_id: String,
    /// The tool's output, or why it failed.
    pub text: String,
    /// Did the tool fail?
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_error: bool,
    /// Images that the tool returned.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub images: Vec<Image>,
    /// The provider's own data.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub opaque: Option<Opaque>,
}

/// A provider's own data, such as a signature. It is kept byte for byte and sent back only to that
/// provider.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Opaque {
    /// The provider.
    pub provider: String,
    /// The data, as the provider sent it.
    pub data: String,
}

impl Message {
    /// A message in the main lane.
    #[must_use]
    pub fn new(role: Role, parts: Vec<Part>) -> Self {
        let (model, usage, cost) = (None, None, None);
        let (lane, author) = (Lane::main(), Author::Speaker);
        Self { lane, role, author, parts, model, usage, cost, call: None, said: None }
    }

    /// A message with instructions.
    pub fn system(text: impl Into<String>) -> Self {
        Self::new(Role::System, vec![Part::text(text)])
    }

    /// A message of the user.
    pub fn user(text: impl Into<String>) -> Self {
        Self::new(Role::User, vec![Part::text(text)])
    }

    /// A message of the model.
    pub fn assistant(text: impl Into<String>) -> Self {
        Self::new(Role::Assistant, vec![Part::text(text)])
    }

    /// A message with a tool's result.
    pub fn tool_result(call_id: impl Into<String>, text: impl Into<String>) -> Self {
        let result =
            ToolResult { call_id: call_id.into(), text: text.into(), ..ToolResult::default() };
        Self::new(Role::Tool, vec![Part::ToolResult(result)])
    }

    /// The same message with another tool call at its end.
    #[must_use]
    pub fn calling(
        mut self,
        id: impl Into<String>,
        name: impl Into<String>,
        arguments: impl Into<String>,
    ) -> Self {
        self.parts.push(Part::ToolCall(ToolCall {
            id: id.into(),
            name: name.into(),
            arguments: arguments.into(),
            opaque: None,
        }));
        self
    }

    /// The same message in another lane.
    #[must_use]
    pub fn in_lane(mut self, lane: Lane) -> Self {
        self.lane = lane;
        self
    }

    /// The same message, marked as injected by the program that ran the agent.
    #[must_use]
    pub fn injected(mut self) -> Self {
        self.author = Author::Program;
        self
    }

    /// Did the user write this, and not a program in the user's name?
    #[must_use]
    pub fn is_from_user(&self) -> bool {
        self.role == Role::User && self.author == Author::Speaker
    }

    /// The same message with the usage of the call that produced it. `cost` is absent if the
    /// model's price is unknown.
    #[must_use]
    pub fn spending(mut self, usage: Usage, cost: Option<Money>) -> Self {
        self.usage = Some(usage);
        self.cost = cost;
        self
    }

    /// The same message, as the delivery of the `Said` event at a seq.
    #[must_use]
    pub fn taking_in(mut self, said: Seq) -> Self {
        self.said = Some(said);
        self
    }

    /// The tool calls in it, in order.
    pub fn calls(&self) -> impl Iterator<Item = &ToolCall> {
        self.parts.iter().filter_map(|part| match part {
            Part::ToolCall(call) => Some(call),
            _ => None,
        })
    }

    /// The tool results in it, in order.
    pub fn results(&self) -> impl Iterator<Item = &ToolResult> {
        self.parts.iter().filter_map(|part| match part {
            Part::ToolResult(result) => Some(result),
            _ => None,
        })
    }

    /// Its plain text, with line breaks between the parts.
    #[must_use]
    pub fn text(&self) -> String {
        let texts: Vec<_> = self.parts.iter().filter_map(Part::as_text).collect();
        texts.join("\n")
    }
}

impl Part {
    /// A part of plain text.
    pub fn text(text: impl Into<String>) -> Self {
        Self::Text(Text { text: text.into(), opaque: None })
    }

    /// About how many bytes it takes.
    pub(crate) fn weight(&self) -> usize {
        let opaque = |it: &Option<Opaque>| it.as_ref().map_or(0, |it| it.data.len());
        let image = |it: &Image| it.data.len() + opaque(&it.opaque);
        64 + match self {
            Self::Text(it) | Self::Thinking(it) => it.text.len() + opaque(&it.opaque),
            Self::Image(it) => image(it),
            Self::ToolCall(it) => it.arguments.len() + opaque(&it.opaque),
            Self::ToolResult(it) => it.text.len() + it.images.iter().map(image).sum::<usize>(),
        }
    }

    /// The plain text of a text part.
    #[must_use]
    pub fn as_text(&self) -> Option<&str> {
        match self {
            Self::Text(text) => Some(&text.text),
            _ => None,
        }
    }
}
