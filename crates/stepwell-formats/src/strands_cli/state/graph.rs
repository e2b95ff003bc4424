//! Nodes and edges: the last result of each node, and the path that was gone.

use std::collections::HashMap;

use serde_json::{Map, Value, json};

use super::{Outcome, Progress, path};
use crate::json::fields::Fields;

pub(super) fn read(state: &Fields<'_>, progress: &mut Progress) {
    let results = state.object("node_results").unwrap_or_default();
    let results: HashMap<&str, Fields<'_>> =
        results.each().filter_map(|(id, raw)| Some((id, Fields::parse(raw).ok()?))).collect();
    let gone: Vec<String> = state.get("execution_path").unwrap_or_default();
    let gone = if gone.is_empty() { once_each(state, &results) } else { gone };
    let last = last_visits(&gone);
    let current = state.text("current_node");
    // Where a visit led.
    let led = |n: usize| match gone.get(n + 1) {
        Some(next) => Some(next.as_str()),
        None => current.as_deref().filter(|current| *current != gone[n]),
    };
    let mut visits: HashMap<&str, u32> = HashMap::new();
    for (n, id) in gone.iter().enumerate() {
        let visit = visits.entry(id).or_default();
        *visit += 1;
        let Some(result) = results.get(id.as_str()).filter(|result| is_done(result)) else {
            progress
                .doubts
                .push(format!("the node {id} was gone to, and its result is not recorded"));
            return;
        };
        // A visit may have come to what the last one did if it led to the same node; else the
        // choice that it made would be made differently when it is walked again.
        let is_last = last.get(id.as_str()) == Some(&n);
        if !is_last && led(n) != last.get(id.as_str()).and_then(|last| led(*last)) {
            progress.doubts.push(format!(
                "the node {id} was gone to more than once and led to different ones, and only its \
                 last result is recorded; it is done again from there"
            ));
            return;
        }
        let key = format!("node/{id}/{visit}");
        let place = path(&["node_results", id], &["response"]);
        let Some(done) = progress.add(key, result.raw("response"), place) else { return };
        // Its one result is taken out once.
        if !is_last {
            done.places.clear();
        }
        done.agent = result.text("agent").map(String::from);
        if result.text("type").as_deref() == Some("hitl") {
            done.asked = Some(result.text("prompt").unwrap_or_default().into_owned());
            done.output.insert("who".to_owned(), super::super::SYSTEM.into());
        }
    }
}

fn is_done(result: &Fields<'_>) -> bool {
    let status = result.text("status");
    result.has("response")
        && status.is_none_or(|status| status == "success" || status == "completed")
}

/// Where no path is recorded, the nodes that are done are taken as they stand in the file.
fn once_each(state: &Fields<'_>, results: &HashMap<&str, Fields<'_>>) -> Vec<String> {
    let all = state.object("node_results").unwrap_or_default();
    let done = all.each().filter(|(id, _)| results.get(id).is_some_and(is_done));
    done.map(|(id, _)| id.to_owned()).collect()
}

/// Of each node, its last visit.
fn last_visits(gone: &[String]) -> HashMap<&str, usize> {
    gone.iter().enumerate().map(|(n, id)| (id.as_str(), n)).collect()
}

pub(super) fn write(outcome: &Outcome<'_>) -> Value {
    let visit = |key: &'_ str| {
        let (id, n) = key.strip_prefix("node/")?.split_once('/')?;
        Some((id.to_owned(), n.parse::<u64>().ok()?))
    };
    let (mut results, mut counts, mut gone) = (Map::new(), Map::new(), Vec::new());
    for (id, node) in outcome.spec.config()["nodes"].as_object().into_iter().flatten() {
        let mut entry = json!({"response": null, "status": "not_executed", "iteration": 0});
        match node["agent"].as_str() {
            Some(agent) => entry["agent"] = agent.into(),
            None => entry["type"] = "hitl".into(),
        }
        results.insert(id.clone(), entry);
    }
    for node in outcome.nodes {
        let Some((id, n)) = visit(node.key) else { continue };
        let mut entry = json!({"response": node.response(), "status": "success", "iteration": n});
        match node.asked {
            Some(prompt) => {
                entry["type"] = "hitl".into();
                entry["prompt"] = prompt.into();
            }
            None => entry["agent"] = outcome.agent(node.key),
        }
        results.insert(id.clone(), entry);
        counts.insert(id.clone(), n.into());
        gone.push(id);
    }
    let current = outcome.current.and_then(visit).map(|(id, _)| id);
    let current = current.or_else(|| next(outcome, gone.last()?)).or_else(|| gone.last().cloned());
    json!({
        "current_node": current,
        "node_results": results,
        "iteration_counts": counts,
        "total_steps": gone.len(),
        "execution_path": gone,
    })
}

/// Where it goes from a node, if that depends on nothing.
fn next(outcome: &Outcome<'_>, from: &str) -> Option<String> {
    let edges = outcome.spec.config()["edges"].as_array()?;
    let edge = edges.iter().find(|edge| edge["from"].as_str() == Some(from))?;
    let to = edge["to"].as_str().or_else(|| edge["to"][0].as_str())?;
    Some(to.to_owned())
}
