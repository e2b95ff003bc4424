//! The agents of a spec.

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
    /// Its system prompt.
    pub prompt: Prompt,
    /// Its tools: built-in names, `mcp__SERVER__TOOL`, or ids from `tools` of the spec. Without
    /// tools an agent can only answer with text.
    pub tools: Vec<String>,
    /// The provider of its model. Overrides the flow's.
    pub provider: Option<String>,
    /// Its model. Overrides the flow's.
    pub model_id: Option<String>,
    /// A JSON Schema for its answers. If an answer does not match, the agent is asked again.
    pub output_schema: Option<Value>,
    /// Sampling settings. They override the flow's.
    pub inference: Inference,
}

/// An agent's system prompt.
#[derive(Clone, Debug, PartialEq)]
pub struct Prompt {
    /// The template.
    pub template: Template,
    /// The file it was read from, relative to the spec.
    pub file: Option<String>,
}

/// Sampling settings of a model.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Inference {
    /// The sampling temperature, from 0 to 2.
    #[schemars(range(min = 0, max = 2))]
    pub temperature: Option<f64>,
    /// The nucleus sampling threshold, from 0 to 1.
    #[schemars(range(min = 0, max = 1))]
    pub top_p: Option<f64>,
    /// The maximum number of tokens of one answer.
    pub max_tokens: Option<NonZeroU32>,
}

/// An agent: its prompt (`prompt`, or `$ref` with a file), its tools and its model.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "Agent")]
struct WrittenAgent {
    /// Its system prompt: a template, or `{$ref: FILE}`.
    #[serde(default)]
    prompt: Option<WrittenPrompt>,
    /// The file with its prompt, relative to the spec. Replaces `prompt`.
    #[serde(default, rename = "$ref")]
    file: Option<String>,
    /// Its tools: built-in names, `mcp__SERVER__TOOL`, or ids from `tools` of the spec. Without
    /// tools an agent can only answer with text.
    #[serde(default)]
    tools: Vec<String>,
    /// The provider of its model. Overrides the flow's.
    #[serde(default)]
    provider: Option<String>,
    /// Its model. Overrides the flow's.
    #[serde(default)]
    model_id: Option<String>,
    /// A JSON Schema for its answers. If an answer does not match, the agent is asked again.
    #[serde(default)]
    #[schemars(with = "Option<std::collections::BTreeMap<String, Value>>")]
    output_schema: Option<Value>,
    /// Sampling settings. They override the flow's.
    #[serde(default)]
    inference: Inference,
}

impl TryFrom<WrittenAgent> for Agent {
    type Error = &'static str;

    fn try_from(agent: WrittenAgent) -> Result<Self, Self::Error> {
        let prompt = match (agent.prompt, agent.file) {
            (Some(WrittenPrompt(prompt)), None) => prompt,
            (None, Some(file)) => Prompt { template: Template::default(), file: Some(file) },
            (Some(_), Some(_)) => return Err("an agent has either `prompt` or `$ref`, not both"),
            (None, None) => return Err("missing key `prompt`"),
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

/// A prompt: a template, or the file that contains it.
#[derive(JsonSchema)]
#[schemars(rename = "Prompt", untagged)]
#[expect(dead_code, reason = "the schema is generated from its fields")]
enum PromptSchema {
    Text(Template),
    File(PromptFile),
}

/// A file with a prompt.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct PromptFile {
    /// The path, relative to the spec.
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
        super::either::text_or(deserializer, "a string or `{$ref: FILE}`", bare)
            .map(|either| Self(either.0))
    }
}
