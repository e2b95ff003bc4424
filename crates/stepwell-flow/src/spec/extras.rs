//! The rest of a spec: outputs, tools, secrets, context, and keys of strands-cli that are
//! accepted with a warning.

use std::collections::BTreeMap;
use std::num::{NonZeroU32, NonZeroU64};

use schemars::JsonSchema;
use serde::{Deserialize, Deserializer};
use serde_json::Value;

use super::name::Name;
use crate::template::Template;

/// What a flow writes when it succeeds.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Outputs {
    /// The files.
    pub artifacts: Vec<Artifact>,
}

/// A file that is written when the flow succeeds.
#[derive(Clone, Debug, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Artifact {
    /// A template for its path, relative to the output folder.
    pub path: Template,
    /// A template for its content.
    pub from: Template,
}

impl Artifact {
    /// Whether it is strands-cli's trace. Such a file is not written.
    #[must_use]
    pub fn is_trace(&self) -> bool {
        self.from.source().trim() == "$TRACE"
    }
}

/// Tools for agents, in addition to the built-in ones.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Tools {
    /// Ignored: Stepwell does not run Python. Agents work without these tools.
    pub python: Vec<PythonTool>,
    /// MCP servers. Agents refer to them by id.
    pub mcp: Vec<McpServer>,
    /// Ignored. Agents work without these tools.
    pub http_executors: Vec<HttpExecutor>,
}

impl Tools {
    /// Whether only strands-cli has a tool, or a group of tools, of this name. Agents work
    /// without it.
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
#[expect(dead_code, reason = "the schema is generated from its fields")]
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

/// An MCP server: a program (`command`) or a remote server (`url`).
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct McpServer {
    /// Its id in this spec.
    pub id: Name,
    /// The program to start.
    #[serde(default)]
    pub command: Option<String>,
    /// The program's arguments.
    #[serde(default)]
    pub args: Vec<String>,
    /// Variables added to the program's environment.
    #[serde(default)]
    pub env: BTreeMap<String, String>,
    /// The URL of a remote server.
    #[serde(default)]
    pub url: Option<String>,
    /// HTTP headers sent with each request.
    #[serde(default)]
    pub headers: BTreeMap<String, String>,
}

/// An HTTP service that agents of strands-cli can call. Ignored.
#[derive(Clone, Debug, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[expect(missing_docs, reason = "read only so that a spec with these keys is accepted")]
pub struct HttpExecutor {
    /// Its id in this spec.
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

/// What a flow needs from the environment.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Env {
    /// Secrets. Those from the environment must be set when the flow runs. They are removed from
    /// everything that is written.
    pub secrets: Vec<Secret>,
    /// Ignored: agents work in the workspace.
    pub mounts: BTreeMap<String, String>,
}

/// A secret that a flow needs.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Secret {
    /// The environment variable.
    pub key: String,
    /// Its name in messages.
    #[serde(default)]
    pub name: Option<String>,
    /// Where it comes from.
    pub source: SecretSource,
    /// The file, or the secret's name at its source.
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

/// How the context of agents is managed.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct ContextPolicy {
    /// When and how conversations are summarised.
    pub compaction: Option<CompactionPolicy>,
    /// Ignored: notes for the agents.
    pub notes: Option<Notes>,
    /// Tools for searching and reading that every agent gets.
    pub retrieval: Option<Retrieval>,
}

/// When and how conversations are summarised.
#[derive(Clone, Debug, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CompactionPolicy {
    /// Whether conversations are summarised.
    #[serde(default = "yes")]
    pub enabled: bool,
    /// The number of tokens at which a conversation is summarised.
    #[serde(default)]
    pub when_tokens_over: Option<NonZeroU64>,
    /// Ignored: a summary replaces everything but the newest messages.
    #[serde(default)]
    #[schemars(range(min = 0, max = 1))]
    pub summary_ratio: Option<f64>,
    /// Ignored: what to keep is set in tokens (`compaction.keep_tokens` in the configuration).
    #[serde(default)]
    pub preserve_recent_messages: Option<NonZeroU32>,
    /// Ignored: the agent's own model writes the summary.
    #[serde(default)]
    pub summarization_model: Option<String>,
}

fn yes() -> bool {
    true
}

/// Notes for the agents. Ignored.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[expect(missing_docs, reason = "read only so that a spec with these keys is accepted")]
pub struct Notes {
    pub file: String,
    #[serde(default)]
    pub include_last: Option<NonZeroU32>,
    #[serde(default)]
    pub format: Option<NotesFormat>,
}

/// The format of notes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[expect(missing_docs, reason = "the names say it all")]
pub enum NotesFormat {
    Markdown,
    Json,
}

/// Tools for searching and reading that every agent gets.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Retrieval {
    /// `grep`, `search`, `head` and `tail` stand for Stepwell's tools for reading and searching.
    pub jit_tools: Vec<String>,
    /// Ids of `tools.mcp`.
    pub mcp_servers: Vec<String>,
}

/// Ignored: Stepwell sends no telemetry.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
#[expect(missing_docs, reason = "read only so that a spec with these keys is accepted")]
pub struct Telemetry {
    pub otel: Option<Otel>,
    pub redact: Option<TelemetryRedact>,
}

/// Where strands-cli sends telemetry. Ignored.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
#[expect(missing_docs, reason = "read only so that a spec with these keys is accepted")]
pub struct Otel {
    pub endpoint: Option<String>,
    pub service_name: Option<String>,
    pub sample_ratio: Option<f64>,
}

/// What strands-cli leaves out of its telemetry. Ignored.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
#[expect(missing_docs, reason = "read only so that a spec with these keys is accepted")]
pub struct TelemetryRedact {
    pub tool_inputs: Option<bool>,
    pub tool_outputs: Option<bool>,
}

/// Ignored: a folder with knowledge for the agents.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[expect(missing_docs, reason = "read only so that a spec with these keys is accepted")]
pub struct Skill {
    pub id: Name,
    pub path: String,
    #[serde(default)]
    pub description: Option<String>,
    #[serde(default)]
    pub preload_metadata: bool,
}

/// Restrictions for agents.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Security {
    /// What agents may not do.
    pub guardrails: Option<Guardrails>,
}

/// What agents may not do.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Guardrails {
    /// Ignored: Stepwell does not restrict the network.
    pub deny_network: Option<bool>,
    /// Ignored: secrets are always removed, other data never.
    pub pii_redaction: Option<bool>,
    /// The only tools that agents may have.
    pub allow_tools: Option<Vec<String>>,
}
