//! The seven patterns: each walks its part of the spec, and asks for one node after the other.

mod chain;
mod evaluator;
mod graph;
mod orchestrator;
mod parallel;
mod routing;
mod trail;
mod workflow;

use serde_json::Value;
use stepwell::{Lane, NodeId, NodeKey};

use crate::answer::Shape;
use crate::ask::Ask;
use crate::flow::Flow;
use crate::gate::Question;
use crate::halt::Halt;
use crate::node::Work;
use crate::spec::{AgentStep, Name, Pattern, Step};
use crate::template::{Scope, Template};

/// How a pattern came to its end.
#[derive(Debug)]
pub(crate) struct Reached {
    /// What templates of artifacts see.
    pub(crate) scope: Scope,
    /// The last answer.
    pub(crate) last: Value,
}

/// Walks a flow's pattern from its beginning. What is recorded is passed over.
pub(crate) async fn walk(flow: &Flow<'_>) -> Result<Reached, Halt> {
    match &flow.spec.pattern {
        Pattern::Chain(chain) => chain::walk(flow, chain).await,
        Pattern::Workflow(workflow) => workflow::walk(flow, workflow).await,
        Pattern::Routing(routing) => routing::walk(flow, routing).await,
        Pattern::Parallel(parallel) => parallel::walk(flow, parallel).await,
        Pattern::EvaluatorOptimizer(config) => evaluator::walk(flow, config).await,
        Pattern::OrchestratorWorkers(config) => orchestrator::walk(flow, config).await,
        Pattern::Graph(graph) => graph::walk(flow, graph).await,
    }
}

/// How often an agent is asked again whose answer does not fit its schema.
const SHAPE_RETRIES: u32 = 2;

/// Where a step is done.
struct At<'a> {
    key: &'a NodeKey,
    lane: Lane,
    scope: &'a Scope,
}

/// What an agent is asked where its step does not say: what was said last, or else what it
/// is told anyway.
enum Otherwise<'a> {
    Text(&'a str),
    LastResponse,
}

/// Does a step: an agent's, or a person's.
async fn step(
    flow: &Flow<'_>,
    step: &Step,
    at: At<'_>,
    otherwise: Otherwise<'_>,
) -> Result<Value, Halt> {
    match step {
        Step::Hitl(gate) => flow.node(at.key, Work::Gate(Question { gate, scope: at.scope })).await,
        Step::Agent(step) => agent(flow, step, at, otherwise).await,
    }
}

/// Has an agent do a step.
async fn agent(
    flow: &Flow<'_>,
    step: &AgentStep,
    at: At<'_>,
    otherwise: Otherwise<'_>,
) -> Result<Value, Halt> {
    let shape = shape(flow, at.key, step.agent.as_str())?;
    let retries = if shape.is_given() { SHAPE_RETRIES } else { 0 };
    let prompt = || {
        let mut scope = at.scope.clone();
        for (name, value) in &step.vars {
            scope.set(name, value);
        }
        prompt(flow, step.agent.as_str(), step.input.as_ref(), &scope, &otherwise)
    };
    let ask = Ask {
        lane: at.lane,
        agent: step.agent.as_str(),
        tools: step.tool_overrides.as_deref(),
        prompt: &prompt,
        read: &|text| shape.read(text),
        retries,
    };
    flow.node(at.key, Work::Ask(ask)).await
}

/// What an agent's answers must be.
fn shape(flow: &Flow<'_>, key: &NodeKey, agent: &str) -> Result<Shape, Halt> {
    let schema = flow.spec.agents.get(agent).and_then(|agent| agent.output_schema.as_ref());
    Shape::new(schema).map_err(|why| flow.fail(key, Some(agent), &why, None))
}

/// What an agent is asked.
fn prompt(
    flow: &Flow<'_>,
    agent: &str,
    input: Option<&Template>,
    scope: &Scope,
    otherwise: &Otherwise<'_>,
) -> Result<String, String> {
    if let Some(input) = input {
        return input.render(scope).map_err(|error| format!("input: {error}"));
    }
    if let Otherwise::Text(text) = otherwise {
        return Ok((*text).to_owned());
    }
    if scope.has("last_response") {
        let last = Template::parse("{{ last_response }}").and_then(|it| it.render(scope));
        return last.map_err(|error| error.to_string());
    }
    let Some(agent) = flow.spec.agents.get(agent) else { return Ok(String::new()) };
    agent.prompt.template.render(scope).map_err(|error| format!("prompt: {error}"))
}

/// The name of a part of the spec, in a key.
fn id(name: &Name) -> NodeId {
    name.as_str().parse().expect("a name of a spec is shorter than a node's and has no slash")
}

/// A lane of its own.
fn lane(name: &str) -> Lane {
    name.parse().expect("what names of a spec are put together to is short and plain")
}

/// What was answered under a node.
fn response(output: &Value) -> Value {
    output.get("response").cloned().unwrap_or_default()
}

/// Gives a name of strands-cli's a value, unless the flow has a variable of that name.
fn offer(flow: &Flow<'_>, scope: &mut Scope, name: &str, value: impl serde::Serialize) {
    if !flow.variables.has(name) {
        scope.set(name, value);
    }
}

/// A count as part of a key.
fn number(n: usize) -> u32 {
    u32::try_from(n).unwrap_or(u32::MAX)
}
