//! A piece of a flow's work: an agent that is asked, or a human.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;

use super::name::Name;
use crate::template::Template;

/// A step: an agent is asked, or (`type: hitl`) a human.
#[derive(Clone, Debug, PartialEq, Deserialize, JsonSchema)]
#[serde(rename = "by type")]
#[schemars(rename = "Step", untagged)]
pub enum Step {
    /// An agent is asked.
    #[serde(rename = "agent")]
    Agent(AgentStep),
    /// A human is asked, and the run waits.
    #[serde(rename = "hitl")]
    Hitl(#[schemars(with = "HitlStep")] Gate),
}

impl Step {
    /// The agent that is asked.
    #[must_use]
    pub fn agent(&self) -> Option<&AgentStep> {
        match self {
            Self::Agent(step) => Some(step),
            Self::Hitl(_) => None,
        }
    }

    /// The question for a human.
    #[must_use]
    pub fn gate(&self) -> Option<&Gate> {
        match self {
            Self::Agent(_) => None,
            Self::Hitl(gate) => Some(gate),
        }
    }
}

/// An agent is asked.
#[derive(Clone, Debug, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct AgentStep {
    /// A key of `agents`.
    pub agent: Name,
    /// What it is asked: a template. Absent, what the pattern says of steps without it.
    #[serde(default)]
    pub input: Option<Template>,
    /// Variables for this step alone, before those of the flow.
    #[serde(default)]
    pub vars: BTreeMap<String, Value>,
    /// The tools that it has for this step, in place of its own.
    #[serde(default)]
    pub tool_overrides: Option<Vec<String>>,
}

/// A question for a human.
#[derive(Clone, Debug, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Gate {
    /// The question: a template.
    pub prompt: Template,
    /// What it is about: a template.
    #[serde(default)]
    pub context_display: Option<Template>,
    /// The answer if none comes in time, or an empty one.
    #[serde(default)]
    pub default: Option<String>,
    /// How long an answer is waited for; 0 or absent, for ever.
    #[serde(default)]
    pub timeout_seconds: Option<u64>,
    /// What an answer must look like.
    #[serde(default)]
    pub validation: Option<Validation>,
}

/// What an answer must look like.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Validation {
    /// A regular expression that the whole answer fits.
    #[serde(default)]
    pub pattern: Option<AnswerPattern>,
}

/// A regular expression that a whole answer fits.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(try_from = "String")]
#[schemars(with = "String")]
pub struct AnswerPattern(String);

impl AnswerPattern {
    /// The expression as it was written.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Does an answer fit it?
    #[must_use]
    pub fn fits(&self, answer: &str) -> bool {
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
                Err(format!("this is no regular expression: {why}"))
            }
        }
    }
}

/// A question for a human, where only one can stand.
#[derive(Clone, Debug, PartialEq, Deserialize, JsonSchema)]
#[serde(try_from = "Step")]
#[schemars(with = "HitlStep")]
pub struct Review(pub Gate);

impl TryFrom<Step> for Review {
    type Error = &'static str;

    fn try_from(step: Step) -> Result<Self, Self::Error> {
        match step {
            Step::Hitl(gate) => Ok(Self(gate)),
            Step::Agent(_) => Err("a review is a question for a human: expected `type: hitl`"),
        }
    }
}

/// What tells a question for a human.
#[derive(JsonSchema)]
#[serde(rename_all = "snake_case")]
#[expect(dead_code, reason = "it is what the schema is made of")]
pub(super) enum HitlTag {
    Hitl,
}

/// A question for a human.
#[derive(JsonSchema)]
#[schemars(rename = "HumanStep", deny_unknown_fields)]
#[expect(dead_code, reason = "its fields are what the schema is made of")]
pub(super) struct HitlStep {
    r#type: HitlTag,
    #[schemars(flatten)]
    gate: Gate,
}
