//! Flows: the validation of a spec, and the plan of its nodes.

use schemars::JsonSchema;
use serde::Serialize;
use stepwell::SessionId;

/// Whether a spec is valid.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct FlowCheck {
    /// The spec's file.
    pub file: String,
    /// Can it run?
    pub valid: bool,
    /// The flow's name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// The name of its pattern.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pattern: Option<String>,
    /// Its errors.
    pub problems: Vec<FlowProblem>,
    /// Parts without an effect.
    pub warnings: Vec<FlowProblem>,
}

/// An error or warning about a place in a spec.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct FlowProblem {
    /// The line, from 1.
    pub line: Option<u64>,
    /// The column, from 1.
    pub column: Option<u64>,
    /// The place, such as `agents.writer.tools[0]`.
    pub path: String,
    /// The message.
    pub message: String,
    /// A suggestion.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hint: Option<String>,
}

/// What a flow would do: its nodes and the edges between them.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct Plan {
    /// The flow's name.
    pub name: String,
    /// Its description.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// The name of its pattern.
    pub pattern: String,
    /// The model that its agents use, if the spec names one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// How many agents may run at once.
    pub max_parallel: u32,
    /// How many calls to agents it makes.
    pub asks: AskCount,
    /// Its variables.
    pub variables: Vec<PlanVariable>,
    /// Its nodes, in the order of the spec.
    pub nodes: Vec<PlanNode>,
    /// The edges between them.
    pub edges: Vec<PlanEdge>,
    /// The files that it writes when it succeeds.
    pub artifacts: Vec<String>,
    /// Its budgets, in words.
    pub limits: Vec<String>,
}

/// How many calls to agents a flow makes, without retries after unusable answers.
#[derive(Clone, Copy, Debug, Serialize, JsonSchema)]
pub struct AskCount {
    /// The minimum.
    pub least: u64,
    /// The maximum; null, if it is not known.
    pub most: Option<u64>,
}

/// A variable of a flow.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct PlanVariable {
    /// Its name.
    pub name: String,
    /// Its type.
    #[serde(rename = "type")]
    pub kind: String,
    /// Must the user set it?
    pub required: bool,
    /// Its value if the user does not set it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub default: Option<serde_json::Value>,
    /// Its value, in a plan whose variables are set.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub value: Option<serde_json::Value>,
    /// Its description.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// The allowed values; absent, if all values of its type are allowed.
    #[serde(rename = "enum", skip_serializing_if = "Option::is_none")]
    pub one_of: Option<Vec<serde_json::Value>>,
}

/// A node: a prompt for an agent, or a question for a person.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct PlanNode {
    /// Its key in the session's log; `*` is a number.
    pub key: String,
    /// The agent; null, if a person answers.
    pub agent: Option<String>,
    /// The template of the prompt or question.
    pub asks: String,
    /// How often it runs, if not exactly once.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub repeats: Option<String>,
}

/// An edge from one node to the next.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct PlanEdge {
    /// The key of the earlier node.
    pub from: String,
    /// The key of the later node.
    pub to: String,
    /// The condition; absent, the edge is always followed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub when: Option<String>,
}

/// The next nodes of a flow.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct UpcomingNodes {
    /// The flow's session.
    pub session_id: SessionId,
    /// The nodes that would run next; empty, if all are done.
    pub next: Vec<Upcoming>,
}

/// A node that a flow would run next.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct Upcoming {
    /// Its key in the session's log.
    pub key: String,
    /// The agent; null, if a person answers.
    pub agent: Option<String>,
    /// The prompt or the question; null, if it cannot be rendered yet.
    pub asks: Option<String>,
}
