//! Questions to people, their answers, and what is remembered of them.

use serde::{Deserialize, Serialize};

use super::id::SessionId;
use super::position::Seq;
use super::talk::{Answer, Grant, Who};
use super::time::Time;
use super::tools::Effect;

/// A question for a human that pauses the run.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Gate {
    /// Its name within the session.
    pub id: String,
    /// The question.
    pub prompt: String,
    /// The answer if nobody gives one in time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub default: Option<String>,
    /// Until when it may be answered.
    #[serde(
        default,
        skip_serializing_if = "Option::is_none",
        serialize_with = "super::time::to_micros"
    )]
    #[cfg_attr(feature = "schema", schemars(with = "Option<Time>"))]
    pub deadline: Option<Time>,
    /// The tool call that may not run unasked; absent, the gate asks for words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub call: Option<Box<AskedCall>>,
    /// The subagent's session that asks; absent, the session itself does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub asker: Option<SessionId>,
}

impl Gate {
    /// A question that asks for words.
    pub fn new(id: impl Into<String>, prompt: impl Into<String>) -> Self {
        Self { id: id.into(), prompt: prompt.into(), ..Self::default() }
    }
}

/// A tool call that waits for a person: what they need to know to decide.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct AskedCall {
    /// The tool.
    pub tool: String,
    /// What it may do.
    pub effect: Effect,
    /// The call's arguments, without secrets.
    pub arguments: String,
    /// What it would change, line by line, where that can be told.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub detail: Option<String>,
    /// What may be answered.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub choices: Vec<Choice>,
    /// Did the arguments hold a secret? It is not kept. So only the process that runs the session
    /// can carry the call out, and only an answer under its lease can allow it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub holds_secret: bool,
}

/// What may be answered to a call that waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Choice {
    /// It may run.
    Once,
    /// It may run, and so may every later call of the tool in this session.
    Always,
    /// It may not run.
    Deny,
    /// Neither it nor any later call of the tool in this session may run.
    Never,
}

impl Choice {
    /// Every choice.
    pub const ALL: [Self; 4] = [Self::Once, Self::Always, Self::Deny, Self::Never];

    /// Whether the choice is remembered for later calls.
    #[must_use]
    const fn is_remembered(self) -> bool {
        matches!(self, Self::Always | Self::Never)
    }

    /// The answer that it is. Only a denial has a reason.
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

    /// The words for the choice about a call of `tool`. Each front end shows them. A choice that is
    /// remembered says of what: every call of the tool, or only those like a pattern.
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
    /// What may be answered to the call. A call that names no choices offers all of them.
    #[must_use]
    pub fn offered(&self) -> &[Choice] {
        match self.choices.is_empty() {
            true => &Choice::ALL,
            false => &self.choices,
        }
    }
}

/// A gate was answered. Each gate takes one answer; it may come from anyone.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct GateAnswered {
    /// Which gate.
    pub id: String,
    /// The answer.
    pub answer: Answer,
    /// Who gave it.
    pub who: Who,
    /// The last event that its giver saw: if a rewind took that back since, the answer is
    /// refused, since it might mean something else now.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seen: Option<Seq>,
}

impl GateAnswered {
    /// An answer to a gate.
    pub fn new(id: impl Into<String>, answer: impl Into<Answer>, who: impl Into<Who>) -> Self {
        Self { id: id.into(), answer: answer.into(), who: who.into(), seen: None }
    }

    /// The same answer, given by someone who saw the log up to a seq.
    #[must_use]
    pub fn having_seen(mut self, seen: Seq) -> Self {
        self.seen = Some(seen);
        self
    }
}

/// A choice of the user that is remembered for this session.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Permission {
    /// What it is about, such as a tool or a command's first word.
    pub rule: String,
    /// May it run?
    pub allow: bool,
    /// Who chose that; absent in what was recorded before it was noted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub who: Option<Who>,
}

impl Permission {
    /// A choice that is not said to be anybody's.
    pub fn new(rule: impl Into<String>, allow: bool) -> Self {
        Self { rule: rule.into(), allow, who: None }
    }
}
