//! MCP servers that agents use.

use schemars::JsonSchema;
use serde::Serialize;

/// An MCP server that agents can use.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct McpServer {
    /// Its name, which prefixes its tools' names.
    pub name: String,
    /// Its transport.
    pub transport: McpTransport,
    /// The program or URL, without secrets.
    pub reach: String,
    /// The file that configures it.
    pub source: String,
    /// May it be used without a confirmation? True for servers in the user's own configuration. A
    /// server in a flow's spec is only used by flows that the user starts.
    pub trusted: bool,
    /// Its state.
    pub state: McpState,
    /// Why it cannot be used; null, if no problem is known.
    pub problem: Option<String>,
    /// The tools that agents can get. Empty, if the server was not asked.
    pub tools: Vec<McpTool>,
}

/// The transport of an MCP server.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum McpTransport {
    /// A program that is started.
    Stdio,
    /// A URL.
    Http,
}

impl McpTransport {
    /// Its name in JSON.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Stdio => "stdio",
            Self::Http => "http",
        }
    }
}

/// The state of an MCP server.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum McpState {
    /// It was not asked.
    Unasked,
    /// It answered and listed its tools.
    Ready,
    /// It cannot be used.
    Absent,
}

impl McpState {
    /// Its name in JSON.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Unasked => "unasked",
            Self::Ready => "ready",
            Self::Absent => "absent",
        }
    }
}

/// A tool of an MCP server.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct McpTool {
    /// Its name for agents.
    pub name: String,
    /// Its server's description.
    pub description: String,
    /// Does its server declare it as read-only? Such a tool needs no approval.
    pub read_only: bool,
}
