//! A step: a prompt for an agent, or a question for a person.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;

use super::name::Name;
use crate::template::Template;

/// A step: a prompt for an agent, or (`type: hitl`) a question for a person.
#[derive(Clone, Debug, PartialEq, Deserialize, JsonSchema)]
#[serde(rename = "by type")]
#[schemars(rename = "Step", untagged)]
pub enum Step {
    /// A prompt for an agent.
    #[serde(rename = "agent")]
    Agent(AgentStep),
    /// A question for a person. The flow waits for the answer.
    #[serde(rename = "hitl")]
    Hitl(#[schemars(with = "HitlStep")] Gate),
}

impl Step {
    /// The step, if it is an agent's.
    #[must_use]
    pub fn agent(&self) -> Option<&AgentStep> {
        match self {
            Self::Agent(step) => Some(step),
            Self::Hitl(_) => None,
        }
    }

    /// The question, if it is for a person.
    #[must_use]
    pub fn gate(&self) -> Option<&Gate> {
        match self {
            Self::Agent(_) => None,
            Self::Hitl(gate) => Some(gate),
        }
    }
}

/// A prompt for an agent.
#[derive(Clone, Debug, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct AgentStep {
    /// A key of `agents`.
    pub agent: Name,
    /// A template for its prompt. The default depends on the pattern.
    #[serde(default)]
    pub input: Option<Template>,
    /// Variables for this step only. They override those of the flow.
    #[serde(default)]
    pub vars: BTreeMap<String, Value>,
    /// Tools for this step. They replace the agent's own.
    #[serde(default)]
    pub tool_overrides: Option<Vec<String>>,
}

/// A question for a person.
#[derive(Clone, Debug, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Gate {
    /// A template for the question.
    pub prompt: Template,
    /// A template for what to show with the question.
    #[serde(default)]
    pub context_display: Option<Template>,
    /// The answer after a timeout, or if the person gives an empty one.
    #[serde(default)]
    pub default: Option<String>,
    /// How long to wait for an answer. Without it, or with 0: forever.
    #[serde(default)]
    pub timeout_seconds: Option<u64>,
    /// What a valid answer looks like.
    #[serde(default)]
    pub validation: Option<Validation>,
}

/// What a valid answer looks like.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Validation {
    /// A regular expression that the whole answer must match.
    #[serde(default)]
    pub pattern: Option<AnswerPattern>,
}

/// A regular expression that a whole answer must match.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(try_from = "String")]
#[schemars(with = "String")]
pub struct AnswerPattern(String);

impl AnswerPattern {
    /// The original expression.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Whether it matches the whole answer.
    #[must_use]
    pub fn matches(&self, answer: &str) -> bool {
        compiled(&self.0).is_ok_and(|pattern| pattern.is_match(answer))
    }
}

fn compiled(pattern: &str) -> Result<regex::Regex, regex::Error> {
    regex::RegexBuilder::new(&format!("^(?:{pattern})$")).size_limit(1 << 18).build()
}

impl TryFrom<String> for AnswerPattern {
    type Error = String;

    fn try_from(pattern: String) -> Result<Self, String> {
        match compiled(&pattern) {
            Ok(_) => Ok(Self(pattern)),
            Err(error) => {
                let why = error.to_string();
                let why = why.lines().last().unwrap_or_default().trim_start_matches("error: ");
                Err(format!("invalid regular expression: {why}"))
            }
        }
    }
}

/// A question for a person, where an agent's step is not allowed.
#[derive(Clone, Debug, PartialEq, Deserialize, JsonSchema)]
#[serde(try_from = "Step")]
#[schemars(with = "HitlStep")]
pub struct Review(pub Gate);

impl TryFrom<Step> for Review {
    type Error = &'static str;

    fn try_from(step: Step) -> Result<Self, Self::Error> {
        match step {
            Step::Hitl(gate) => Ok(Self(gate)),
            Step::Agent(_) => Err("a review is a question for a person: expected `type: hitl`"),
        }
    }
}

/// The `type` of a question for a person.
#[derive(JsonSchema)]
#[serde(rename_all = "snake_case")]
#[expect(dead_code, reason = "the schema is generated from it")]
pub(super) enum HitlTag {
    Hitl,
}

/// A question for a person.
#[derive(JsonSchema)]
#[schemars(rename = "HumanStep", deny_unknown_fields)]
#[expect(dead_code, reason = "the schema is generated from its fields")]
pub(super) struct HitlStep {
    r#type: HitlTag,
    #[schemars(flatten)]
    gate: Gate,
}
