//! What a flow works with besides its agents: tools, secrets, context, and keys of
//! strands-cli that are read and told about.

use std::collections::BTreeMap;
use std::num::{NonZeroU32, NonZeroU64};

use schemars::JsonSchema;
use serde::{Deserialize, Deserializer};
use serde_json::Value;

use super::name::Name;
use crate::template::Template;

/// What is written once a flow succeeded.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Outputs {
    /// Files.
    pub artifacts: Vec<Artifact>,
}

/// A file that is written once a flow succeeded.
#[derive(Clone, Debug, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Artifact {
    /// Its path under the output folder: a template.
    pub path: Template,
    /// Its contents: a template.
    pub from: Template,
}

impl Artifact {
    /// Does it ask for strands-cli's trace? Such a file is not written.
    #[must_use]
    pub fn is_trace(&self) -> bool {
        self.from.source().trim() == "$TRACE"
    }
}

/// Tools that agents can have besides Stepwell's.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Tools {
    /// Have no meaning here: Stepwell runs no Python. Agents go without them.
    pub python: Vec<PythonTool>,
    /// MCP servers. Agents name them by id.
    pub mcp: Vec<McpServer>,
    /// Have no meaning here. Agents go without them.
    pub http_executors: Vec<HttpExecutor>,
}

impl Tools {
    /// Is it the name of a tool, or of all tools of a kind, that only strands-cli has? Agents
    /// go without it.
    #[must_use]
    pub fn is_foreign(&self, name: &str) -> bool {
        self.python.iter().any(|tool| tool.0 == name)
            || self.http_executors.iter().any(|tool| tool.id.as_str() == name)
            || name == "http_executors"
            // An import path.
            || name.contains('.')
    }
}

/// A Python callable: its import path, or `{callable: PATH}`.
#[derive(Clone, Debug, PartialEq, Eq, JsonSchema)]
#[schemars(with = "WrittenPythonTool")]
pub struct PythonTool(pub String);

#[derive(JsonSchema)]
#[schemars(rename = "PythonTool", untagged)]
#[expect(dead_code, reason = "its fields are what the schema is made of")]
enum WrittenPythonTool {
    Path(String),
    Full(FullPythonTool),
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct FullPythonTool {
    callable: String,
}

impl<'de> Deserialize<'de> for PythonTool {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let bare = |callable| FullPythonTool { callable };
        let written = super::either::text_or(deserializer, "an import path or a mapping", bare)?;
        Ok(Self(written.callable))
    }
}

/// An MCP server: one that is started (`command`) or one that is reached (`url`).
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct McpServer {
    /// Its name in this spec.
    pub id: Name,
    /// The program.
    #[serde(default)]
    pub command: Option<String>,
    /// What it is started with.
    #[serde(default)]
    pub args: Vec<String>,
    /// What is added to its environment.
    #[serde(default)]
    pub env: BTreeMap<String, String>,
    /// Where it is reached.
    #[serde(default)]
    pub url: Option<String>,
    /// What is sent with each request.
    #[serde(default)]
    pub headers: BTreeMap<String, String>,
}

/// An HTTP service that an agent of strands-cli could call.
#[derive(Clone, Debug, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[expect(missing_docs, reason = "they are read so that a spec that has them is taken, and no more")]
pub struct HttpExecutor {
    /// Its name in this spec.
    pub id: Name,
    pub base_url: String,
    #[serde(default)]
    pub headers: BTreeMap<String, String>,
    #[serde(default)]
    pub timeout_ms: Option<NonZeroU64>,
    #[serde(default)]
    pub description: Option<String>,
    #[serde(default)]
    pub examples: Vec<Value>,
    #[serde(default)]
    pub common_endpoints: Vec<Value>,
    #[serde(default)]
    pub response_format: Option<String>,
    #[serde(default)]
    pub authentication_info: Option<String>,
}

/// What a flow needs of the environment.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Env {
    /// Secrets. Those of the environment must be set when the flow runs, and are taken out of
    /// everything that is written.
    pub secrets: Vec<Secret>,
    /// Have no meaning here: agents work in the workspace.
    pub mounts: BTreeMap<String, String>,
}

/// A secret that a flow needs.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Secret {
    /// The environment variable.
    pub key: String,
    /// What it is called in messages.
    #[serde(default)]
    pub name: Option<String>,
    /// Where it comes from.
    pub source: SecretSource,
    /// The file, or its name there.
    #[serde(default)]
    pub path: Option<String>,
}

/// Where a secret comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum SecretSource {
    /// The environment.
    Env,
    /// AWS Secrets Manager, which is not supported.
    SecretsManager,
    /// AWS Systems Manager, which is not supported.
    Ssm,
    /// A file, which is not supported.
    File,
}

/// How agents' conversations are kept short.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct ContextPolicy {
    /// When and how they are summarised.
    pub compaction: Option<CompactionPolicy>,
    /// Has no meaning here: notes for the agents.
    pub notes: Option<Notes>,
    /// Tools that every agent gets for looking things up.
    pub retrieval: Option<Retrieval>,
}

/// When and how conversations are summarised.
#[derive(Clone, Debug, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CompactionPolicy {
    /// Whether they are at all.
    #[serde(default = "yes")]
    pub enabled: bool,
    /// At how many tokens.
    #[serde(default)]
    pub when_tokens_over: Option<NonZeroU64>,
    /// Has no meaning here: a summary replaces everything but the newest messages.
    #[serde(default)]
    #[schemars(range(min = 0, max = 1))]
    pub summary_ratio: Option<f64>,
    /// Has no meaning here: what is kept is counted in tokens (`compaction.keep_tokens` of the
    /// configuration).
    #[serde(default)]
    pub preserve_recent_messages: Option<NonZeroU32>,
    /// Has no meaning here: the agent's own model writes the summary.
    #[serde(default)]
    pub summarization_model: Option<String>,
}

fn yes() -> bool {
    true
}

/// Notes for the agents.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[expect(missing_docs, reason = "they are read so that a spec that has them is taken, and no more")]
pub struct Notes {
    pub file: String,
    #[serde(default)]
    pub include_last: Option<NonZeroU32>,
    #[serde(default)]
    pub format: Option<NotesFormat>,
}

/// How notes are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[expect(missing_docs, reason = "they say themselves what they are")]
pub enum NotesFormat {
    Markdown,
    Json,
}

/// Tools that every agent gets for looking things up.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Retrieval {
    /// `grep`, `search`, `head` and `tail` are Stepwell's own tools for reading and searching.
    pub jit_tools: Vec<String>,
    /// Ids of `tools.mcp`.
    pub mcp_servers: Vec<String>,
}

/// Has no meaning here: Stepwell sends nothing to anyone.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
#[expect(missing_docs, reason = "they are read so that a spec that has them is taken, and no more")]
pub struct Telemetry {
    pub otel: Option<Otel>,
    pub redact: Option<TelemetryRedact>,
}

/// Where strands-cli would send what happens.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
#[expect(missing_docs, reason = "they are read so that a spec that has them is taken, and no more")]
pub struct Otel {
    pub endpoint: Option<String>,
    pub service_name: Option<String>,
    pub sample_ratio: Option<f64>,
}

/// What strands-cli would leave out of it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
#[expect(missing_docs, reason = "they are read so that a spec that has them is taken, and no more")]
pub struct TelemetryRedact {
    pub tool_inputs: Option<bool>,
    pub tool_outputs: Option<bool>,
}

/// Has no meaning here: a folder of knowledge for the agents.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[expect(missing_docs, reason = "they are read so that a spec that has them is taken, and no more")]
pub struct Skill {
    pub id: Name,
    pub path: String,
    #[serde(default)]
    pub description: Option<String>,
    #[serde(default)]
    pub preload_metadata: bool,
}

/// What agents may not do.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Security {
    /// What they may not do.
    pub guardrails: Option<Guardrails>,
}

/// What agents may not do.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Guardrails {
    /// Has no meaning here: the network is not guarded.
    pub deny_network: Option<bool>,
    /// Has no meaning here: secrets are taken out always, other data never.
    pub pii_redaction: Option<bool>,
    /// The only tools that any agent may have.
    pub allow_tools: Option<Vec<String>>,
}
