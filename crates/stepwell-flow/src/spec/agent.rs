//! A flow's agents.

use std::num::NonZeroU32;

use schemars::JsonSchema;
use serde::{Deserialize, Deserializer};
use serde_json::Value;

use crate::template::Template;

/// An agent of a flow.
#[derive(Clone, Debug, PartialEq, Deserialize, JsonSchema)]
#[serde(try_from = "WrittenAgent")]
#[schemars(with = "WrittenAgent")]
pub struct Agent {
    /// What it is told before it is asked anything.
    pub prompt: Prompt,
    /// Its tools: names of Stepwell's, `mcp__SERVER__TOOL`, or ids of the spec's `tools`.
    /// Absent, it has none: an agent of a flow answers with text unless it is given tools.
    pub tools: Vec<String>,
    /// Whose model it uses, in place of the flow's.
    pub provider: Option<String>,
    /// The model that it uses, in place of the flow's.
    pub model_id: Option<String>,
    /// What its answers must be: a JSON Schema. An answer that does not fit is asked for
    /// again.
    pub output_schema: Option<Value>,
    /// How it answers, in place of the flow's way.
    pub inference: Inference,
}

/// What an agent is told before it is asked anything.
#[derive(Clone, Debug, PartialEq)]
pub struct Prompt {
    /// The template.
    pub template: Template,
    /// The file that it was read from, beside the spec.
    pub file: Option<String>,
}

/// How an agent answers.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Inference {
    /// How freely the model chooses its words, from 0 to 2.
    #[schemars(range(min = 0, max = 2))]
    pub temperature: Option<f64>,
    /// Of how much of the likeliest it chooses, from 0 to 1.
    #[schemars(range(min = 0, max = 1))]
    pub top_p: Option<f64>,
    /// The most tokens of one answer.
    pub max_tokens: Option<NonZeroU32>,
}

/// An agent: `prompt`, or `$ref` with the file of its prompt, and what it works with.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "Agent")]
struct WrittenAgent {
    /// What it is told before it is asked anything: a template, or `{$ref: FILE}`.
    #[serde(default)]
    prompt: Option<WrittenPrompt>,
    /// The file of its prompt, beside the spec, in place of `prompt`.
    #[serde(default, rename = "$ref")]
    file: Option<String>,
    /// Its tools: names of Stepwell's, `mcp__SERVER__TOOL`, or ids of the spec's `tools`.
    #[serde(default)]
    tools: Vec<String>,
    /// Whose model it uses, in place of the flow's.
    #[serde(default)]
    provider: Option<String>,
    /// The model that it uses, in place of the flow's.
    #[serde(default)]
    model_id: Option<String>,
    /// What its answers must be: a JSON Schema.
    #[serde(default)]
    #[schemars(with = "Option<std::collections::BTreeMap<String, Value>>")]
    output_schema: Option<Value>,
    /// How it answers, in place of the flow's way.
    #[serde(default)]
    inference: Inference,
}

impl TryFrom<WrittenAgent> for Agent {
    type Error = &'static str;

    fn try_from(agent: WrittenAgent) -> Result<Self, Self::Error> {
        let prompt = match (agent.prompt, agent.file) {
            (Some(WrittenPrompt(prompt)), None) => prompt,
            (None, Some(file)) => Prompt { template: Template::default(), file: Some(file) },
            (Some(_), Some(_)) => return Err("an agent has `prompt` or `$ref`, not both"),
            (None, None) => return Err("the key `prompt` is missing"),
        };
        Ok(Self {
            prompt,
            tools: agent.tools,
            provider: agent.provider,
            model_id: agent.model_id,
            output_schema: agent.output_schema,
            inference: agent.inference,
        })
    }
}

/// A prompt: a template, or the file that holds it.
#[derive(JsonSchema)]
#[schemars(rename = "Prompt", untagged)]
#[expect(dead_code, reason = "its fields are what the schema is made of")]
enum PromptSchema {
    Text(Template),
    File(PromptFile),
}

/// The file of a prompt.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct PromptFile {
    /// A path beside the spec.
    #[serde(rename = "$ref")]
    file: String,
}

#[derive(JsonSchema)]
#[schemars(with = "PromptSchema")]
struct WrittenPrompt(Prompt);

impl<'de> Deserialize<'de> for WrittenPrompt {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        #[serde(from = "PromptFile")]
        struct Either(Prompt);

        impl From<PromptFile> for Either {
            fn from(file: PromptFile) -> Self {
                Self(Prompt { template: Template::default(), file: Some(file.file) })
            }
        }

        let bare = |template| Either(Prompt { template, file: None });
        super::either::text_or(deserializer, "a text or `{$ref: FILE}`", bare)
            .map(|either| Self(either.0))
    }
}
