//! Questions to people, their answers, and the rules made of those.

use serde::{Deserialize, Serialize};

use super::id::SessionId;
use super::position::Seq;
use super::talk::{Answer, Grant, Who};
use super::time::Time;
use super::tools::Effect;

/// A question to a person, for which the run pauses.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Gate {
    /// Its name within the session.
    pub id: String,
    /// The question.
    pub prompt: String,
    /// The answer at the deadline if no one has answered.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub default: Option<String>,
    /// When the question expires.
    #[serde(
        default,
        skip_serializing_if = "Option::is_none",
        serialize_with = "super::time::to_micros"
    )]
    #[cfg_attr(feature = "schema", schemars(with = "Option<Time>"))]
    pub deadline: Option<Time>,
    /// The tool call that needs approval. If absent, the gate asks for free text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub call: Option<Box<AskedCall>>,
    /// The subagent's session that asks. If absent, the session itself asks.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub asker: Option<SessionId>,
}

impl Gate {
    /// A question that asks for free text.
    pub fn new(id: impl Into<String>, prompt: impl Into<String>) -> Self {
        Self { id: id.into(), prompt: prompt.into(), ..Self::default() }
    }
}

/// A tool call that waits for approval: what a person must know to decide.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct AskedCall {
    /// The tool.
    pub tool: String,
    /// What it may do.
    pub effect: Effect,
    /// The call's arguments, with secrets redacted.
    pub arguments: String,
    /// The changes it would make, line by line, if they can be computed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub detail: Option<String>,
    /// The answers that are offered.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub choices: Vec<Choice>,
    /// Did the arguments hold a secret? A secret is not stored, so only the session's runner can
    /// execute the call, and only an answer under its lease can allow it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub holds_secret: bool,
}

/// An answer to a call that waits for approval.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Choice {
    /// Allow this call.
    Once,
    /// Allow this call and every later one of the tool in this session.
    Always,
    /// Deny this call.
    Deny,
    /// Deny this call and every later one of the tool in this session.
    Never,
}

impl Choice {
    /// Every choice.
    pub const ALL: [Self; 4] = [Self::Once, Self::Always, Self::Deny, Self::Never];

    /// Does the choice make a rule for later calls?
    #[must_use]
    const fn is_remembered(self) -> bool {
        matches!(self, Self::Always | Self::Never)
    }

    /// The choice as an answer. Only a denial can have a reason.
    #[must_use]
    pub fn answer(self, reason: Option<String>) -> Option<Answer> {
        match (self, reason) {
            (Self::Once, None) => Some(Answer::ALLOW_ONCE),
            (Self::Always, None) => Some(Answer::Allow { scope: Grant::Always }),
            (Self::Deny, reason) => Some(Answer::Deny { reason, never: false }),
            (Self::Never, reason) => Some(Answer::Deny { reason, never: true }),
            (Self::Once | Self::Always, Some(_)) => None,
        }
    }

    /// The label of the choice for a call of `tool`, the same in all front ends. A choice that
    /// makes a rule names its scope: every call of the tool, or those that match a pattern.
    #[must_use]
    pub fn label(self, tool: &str, pattern: Option<&str>) -> String {
        let verb = match self {
            Self::Once => "Allow once",
            Self::Always => "Always allow",
            Self::Deny => "Deny",
            Self::Never => "Never allow",
        };
        match (self.is_remembered(), pattern) {
            (false, _) => verb.to_owned(),
            (true, None) => format!("{verb} any call of {tool} in this session"),
            (true, Some(pattern)) => {
                format!("{verb} calls of {tool} like {pattern} in this session")
            }
        }
    }
}

impl AskedCall {
    /// The choices that the call offers: all of them, unless it lists some.
    #[must_use]
    pub fn offered(&self) -> &[Choice] {
        match self.choices.is_empty() {
            true => &Choice::ALL,
            false => &self.choices,
        }
    }
}

/// A gate was answered. Each gate takes one answer, which may come from anyone.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct GateAnswered {
    /// The gate's id.
    pub id: String,
    /// The answer.
    pub answer: Answer,
    /// Who gave it.
    pub who: Who,
    /// The last event that the person saw before answering. If a rewind has removed it since, the
    /// answer is refused: it may mean something else now.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seen: Option<Seq>,
}

impl GateAnswered {
    /// An answer to a gate.
    pub fn new(id: impl Into<String>, answer: impl Into<Answer>, who: impl Into<Who>) -> Self {
        Self { id: id.into(), answer: answer.into(), who: who.into(), seen: None }
    }

    /// The same answer, from a person who saw the log up to `seen`.
    #[must_use]
    pub fn having_seen(mut self, seen: Seq) -> Self {
        self.seen = Some(seen);
        self
    }
}

/// A rule: an answer that is remembered for this session.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Permission {
    /// What it covers, such as a tool or a command's first word.
    pub rule: String,
    /// Are its calls allowed, or denied?
    pub allow: bool,
    /// Who made the rule. Absent in events from before this was recorded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub who: Option<Who>,
}

impl Permission {
    /// A rule without an author.
    pub fn new(rule: impl Into<String>, allow: bool) -> Self {
        Self { rule: rule.into(), allow, who: None }
    }
}
