//! Nodes, and edges that may depend on what was said.

use std::collections::BTreeMap;

use serde_json::{Value, json};
use stepwell::NodeKey;

use super::trail::described;
use super::{At, Otherwise, Reached, id, lane, response, step};
use crate::flow::Flow;
use crate::halt::Halt;
use crate::spec::{Go, Graph, Name, Step};
use crate::template::{Scope, SharedMap};

pub(super) async fn walk(flow: &Flow<'_>, graph: &Graph) -> Result<Reached, Halt> {
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
    let mut here = graph.nodes.keys().next();
    let mut last = Value::Null;
    while let Some(name) = here {
        let Some(node) = graph.nodes.get(name) else { break };
        let visit = visits.entry(name).or_default();
        *visit += 1;
        let key = NodeKey::Visit(id(name), *visit);
        if *visit > graph.max_iterations.get() {
            let most = graph.max_iterations;
            let what = format!("it was gone to more than {most} times (max_iterations)");
            return Err(flow.fail(&key, agent(node), &what, None));
        }
        scope.set("iteration", *visit);
        counts.set(name.as_str(), *visit);
        let at = At { key: &key, lane: lane(name.as_str()), scope: &scope };
        let output = step(flow, node, at, Otherwise::LastResponse).await?;
        steps += 1;
        last = response(&output);
        let mut entry = described(node, &output);
        entry["iteration"] = json!(*visit);
        results.set(name.as_str(), entry);
        scope.set("last_response", &last);
        scope.set("total_steps", steps);
        scope.set("terminal_node", name.as_str());
        if node.gate().is_some() {
            scope.set("hitl_response", &last);
        }
        here = next(flow, graph, (name, &key), &scope)?;
    }
    Ok(Reached { scope, last })
}

/// Where it goes from a node; nowhere, if that is an end.
fn next<'a>(
    flow: &Flow<'_>,
    graph: &'a Graph,
    (from, key): (&Name, &NodeKey),
    scope: &Scope,
) -> Result<Option<&'a Name>, Halt> {
    for edge in graph.edges.iter().filter(|edge| edge.from == *from) {
        match &edge.go {
            Go::To(targets) => return Ok(targets.first()),
            Go::Choose(choices) => {
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

/// What templates see of a node that was not gone to yet.
fn unvisited(node: &Step) -> Value {
    let mut entry = json!({ "response": null, "status": "not_executed", "iteration": 0 });
    match agent(node) {
        Some(agent) => entry["agent"] = json!(agent),
        None => entry["type"] = json!("hitl"),
    }
    entry
}
