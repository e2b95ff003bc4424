//! The building blocks of patterns: steps of agents and people, their prompts, and their names.

use serde_json::Value;
use stepwell::Lane;
use stepwell::model::{NodeId, NodeKey};

use crate::answer::OutputSchema;
use crate::ask::Ask;
use crate::flow::Flow;
use crate::gate::Question;
use crate::halt::Halt;
use crate::node::Work;
use crate::spec::{AgentStep, Name, Step};
use crate::template::{Scope, Template};

/// The result of a completed pattern.
#[derive(Debug)]
pub(crate) struct Completed {
    /// The values that templates of artifacts see.
    pub(crate) scope: Scope,
    /// The last answer.
    pub(crate) last: Value,
}

/// How often an agent is asked again if its answer does not match its schema.
pub(super) const SCHEMA_RETRIES: u32 = 2;

/// Where a step runs.
pub(super) struct At<'a> {
    pub(super) key: &'a NodeKey,
    pub(super) lane: Lane,
    pub(super) scope: &'a Scope,
}

/// The prompt of an agent whose step has no `input`.
#[derive(Clone, Copy)]
pub(super) enum Fallback<'a> {
    Text(&'a str),
    /// The last response, or the agent's system prompt if there is none yet.
    LastResponse,
}

/// Runs a step: an agent's, or a person's.
pub(super) async fn run_step(
    flow: &Flow<'_>,
    step: &Step,
    at: At<'_>,
    fallback: Fallback<'_>,
) -> Result<Value, Halt> {
    match step {
        Step::Hitl(gate) => flow.node(at.key, Work::Gate(Question { gate, scope: at.scope })).await,
        Step::Agent(step) => run_agent_step(flow, step, at, fallback).await,
    }
}

async fn run_agent_step(
    flow: &Flow<'_>,
    step: &AgentStep,
    at: At<'_>,
    fallback: Fallback<'_>,
) -> Result<Value, Halt> {
    let agent = step.agent.as_str();
    let schema = output_schema(flow, at.key, agent)?;
    let retries = if schema.is_given() { SCHEMA_RETRIES } else { 0 };
    let prompt = || {
        let mut scope = at.scope.clone();
        for (name, value) in &step.vars {
            scope.set(name, value);
        }
        Prompt { agent, input: step.input.as_ref(), scope: &scope, fallback }.render(flow)
    };
    let ask = Ask {
        lane: at.lane,
        agent,
        tools: step.tool_overrides.as_deref(),
        prompt: &prompt,
        read: &|text| schema.read(text),
        retries,
    };
    flow.node(at.key, Work::Ask(ask)).await
}

/// The schema that an agent's answers must match.
pub(super) fn output_schema(
    flow: &Flow<'_>,
    key: &NodeKey,
    agent: &str,
) -> Result<OutputSchema, Halt> {
    let schema = flow.spec.agents.get(agent).and_then(|agent| agent.output_schema.as_ref());
    OutputSchema::new(schema).map_err(|why| flow.fail(key, Some(agent), &why, None))
}

/// A prompt that is not rendered yet.
pub(super) struct Prompt<'a> {
    pub(super) agent: &'a str,
    pub(super) input: Option<&'a Template>,
    pub(super) scope: &'a Scope,
    pub(super) fallback: Fallback<'a>,
}

impl Prompt<'_> {
    pub(super) fn render(&self, flow: &Flow<'_>) -> Result<String, String> {
        let scope = self.scope;
        if let Some(input) = self.input {
            return input.render(scope).map_err(|error| format!("input: {error}"));
        }
        if let Fallback::Text(text) = self.fallback {
            return Ok(text.to_owned());
        }
        if scope.has("last_response") {
            let last = Template::parse("{{ last_response }}").and_then(|it| it.render(scope));
            return last.map_err(|error| error.to_string());
        }
        let Some(agent) = flow.spec.agents.get(self.agent) else { return Ok(String::new()) };
        agent.prompt.template.render(scope).map_err(|error| format!("prompt: {error}"))
    }
}

/// A name of the spec as part of a node's key.
pub(super) fn node_id(name: &Name) -> NodeId {
    name.as_str().parse().expect("a spec's name is shorter than a node id and has no slash")
}

/// The lane with this name.
pub(crate) fn lane(name: &str) -> Lane {
    name.parse().expect("joined names of a spec make a short and valid lane")
}

/// The `response` of a node's output.
pub(super) fn response(output: &Value) -> Value {
    output.get("response").cloned().unwrap_or_default()
}

/// Sets a name that strands-cli has, unless the flow has a variable of that name.
pub(super) fn set_unless_variable(
    flow: &Flow<'_>,
    scope: &mut Scope,
    name: &str,
    value: impl serde::Serialize,
) {
    if !flow.variables.has(name) {
        scope.set(name, value);
    }
}

/// An index as part of a node's key.
pub(super) fn key_index(n: usize) -> u32 {
    u32::try_from(n).unwrap_or(u32::MAX)
}
