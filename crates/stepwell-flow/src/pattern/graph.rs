//! A graph: nodes, and edges that may depend on answers.

use std::collections::BTreeMap;

use serde_json::{Value, json};
use stepwell::model::NodeKey;

use super::sequence::result_entry;
use super::step::{At, Completed, Fallback, lane, node_id, response, run_step};
use crate::flow::Flow;
use crate::halt::Halt;
use crate::spec::{EdgeTarget, Graph, Name, Step};
use crate::template::{Scope, SharedMap};

pub(crate) async fn walk(flow: &Flow<'_>, graph: &Graph) -> Result<Completed, Halt> {
    let (results, mut scope) = (SharedMap::default(), flow.variables.clone());
    for (name, node) in &graph.nodes {
        results.set(name.as_str(), unvisited(node));
    }
    scope.share("nodes", &results);
    let counts = SharedMap::default();
    if !flow.variables.has("iteration_counts") {
        scope.share("iteration_counts", &counts);
    }
    let mut visits: BTreeMap<&Name, u32> = BTreeMap::new();
    let mut steps = 0;
    let mut current = graph.nodes.keys().next();
    let mut last = Value::Null;
    while let Some(name) = current {
        let Some(node) = graph.nodes.get(name) else { break };
        let visit = visits.entry(name).or_default();
        *visit += 1;
        let key = NodeKey::Visit(node_id(name), *visit);
        if *visit > graph.max_iterations.get() {
            let max = graph.max_iterations;
            let what = format!("it would run more than {max} times (max_iterations)");
            return Err(flow.fail(&key, agent(node), &what, None));
        }
        scope.set("iteration", *visit);
        counts.set(name.as_str(), *visit);
        let at = At { key: &key, lane: lane(name.as_str()), scope: &scope };
        let output = run_step(flow, node, at, Fallback::LastResponse).await?;
        steps += 1;
        last = response(&output);
        let mut entry = result_entry(node, &output);
        entry["iteration"] = json!(*visit);
        results.set(name.as_str(), entry);
        scope.set("last_response", &last);
        scope.set("total_steps", steps);
        scope.set("terminal_node", name.as_str());
        if node.gate().is_some() {
            scope.set("hitl_response", &last);
        }
        current = next(flow, graph, Visit { node: name, key: &key }, &scope)?;
    }
    Ok(Completed { scope, last })
}

/// A finished visit of a node.
#[derive(Clone, Copy)]
struct Visit<'a> {
    node: &'a Name,
    key: &'a NodeKey,
}

/// The node that follows a visit; `None` if the graph ends there.
fn next<'a>(
    flow: &Flow<'_>,
    graph: &'a Graph,
    visit: Visit<'_>,
    scope: &Scope,
) -> Result<Option<&'a Name>, Halt> {
    let Visit { node: from, key } = visit;
    for edge in graph.edges.iter().filter(|edge| edge.from == *from) {
        match &edge.target {
            EdgeTarget::To(targets) => return Ok(targets.first()),
            EdgeTarget::Choose(choices) => {
                for choice in choices {
                    let holds = choice.when.holds(scope).map_err(|error| {
                        let what = format!("the edge from {from} to {}: {error}", choice.to);
                        Halt::Failed(flow.failure(key, &what))
                    })?;
                    if holds {
                        return Ok(Some(&choice.to));
                    }
                }
            }
        }
    }
    Ok(None)
}

fn agent(node: &Step) -> Option<&str> {
    node.agent().map(|step| step.agent.as_str())
}

/// A node that has not run yet, as templates see it.
fn unvisited(node: &Step) -> Value {
    let mut entry = json!({ "response": null, "status": "not_executed", "iteration": 0 });
    match agent(node) {
        Some(agent) => entry["agent"] = json!(agent),
        None => entry["type"] = json!("hitl"),
    }
    entry
}
