//! MCP servers that agents use.

use schemars::JsonSchema;
use serde::Serialize;

/// An MCP server that agents can use.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct McpServer {
    /// Its name, which its tools' names begin with.
    pub name: String,
    /// How it is spoken to.
    pub transport: McpTransport,
    /// What is started, or the address that is asked, without secrets.
    pub reach: String,
    /// The file that names it.
    pub source: String,
    /// Is it used without a further word? One of the user's own configuration is. One of a flow's
    /// spec is started only by flows that the user begins.
    pub trusted: bool,
    /// How it stands.
    pub state: McpState,
    /// Why it cannot be used; null, if nothing is known to be in the way.
    pub problem: Option<String>,
    /// Its tools, as far as agents get them. Empty, if it was not asked for them.
    pub tools: Vec<McpTool>,
}

/// How an MCP server is spoken to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum McpTransport {
    /// It is a program that is started.
    Stdio,
    /// It answers at an address.
    Http,
}

impl McpTransport {
    /// Its word.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Stdio => "stdio",
            Self::Http => "http",
        }
    }
}

/// How an MCP server stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum McpState {
    /// Nobody asked it.
    Unasked,
    /// It answered, and named its tools.
    Ready,
    /// It cannot be used.
    Absent,
}

impl McpState {
    /// Its word.
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
    /// What agents call it.
    pub name: String,
    /// What it is for, as its server says.
    pub description: String,
    /// Does its server say that it only reads? Such a tool runs unasked.
    pub read_only: bool,
}
