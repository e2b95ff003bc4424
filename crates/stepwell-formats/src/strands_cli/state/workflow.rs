//! A graph of tasks: `task_results`, in older versions `task_outputs`, and `completed_tasks`.

use std::collections::HashSet;

use serde_json::{Map, Value, json};

use super::{Outcome, Progress, path};
use crate::fields::Fields;

pub(super) fn read(state: &Fields<'_>, progress: &mut Progress) {
    for name in ["task_results", "task_outputs"] {
        let results = state.object(name).unwrap_or_default();
        for (id, raw) in results.each() {
            let Ok(result) = Fields::parse(raw) else { continue };
            // Only the newer form says how it went.
            if result.text("status").is_some_and(|status| status != "success") {
                continue;
            }
            let place = path(&[name, id], &["response"]);
            let Some(done) = progress.add(format!("task/{id}"), result.raw("response"), place)
            else {
                continue;
            };
            done.agent = result.text("agent").map(String::from);
            if result.text("type").as_deref() == Some("hitl") {
                done.asked = Some(result.text("prompt").unwrap_or_default().into_owned());
                done.output.insert("who".to_owned(), super::super::SYSTEM.into());
            }
        }
    }
    let done: HashSet<String> = progress.done.iter().map(|done| done.key.clone()).collect();
    for id in state.get::<Vec<String>>("completed_tasks").unwrap_or_default() {
        if !done.contains(&format!("task/{id}")) {
            progress.doubts.push(format!("the task {id} is done, and its result is not recorded"));
        }
    }
}

pub(super) fn write(outcome: &Outcome<'_>) -> Value {
    let tasks =
        outcome.nodes.iter().filter_map(|node| Some((node.key.strip_prefix("task/")?, node)));
    let mut results = Map::new();
    let mut completed = Vec::new();
    for (id, node) in tasks {
        completed.push(id);
        results.insert(id.to_owned(), match node.asked {
            Some(prompt) => json!({
                "response": node.response(), "status": "success", "type": "hitl", "prompt": prompt,
            }),
            None => {
                let mut record = json!({"response": node.response(), "status": "success"});
                record["agent"] = outcome.agent(node.key);
                node.count(&mut record, "tokens_estimated");
                record
            }
        });
    }
    let layers = outcome.spec.layers();
    let layer = layers.iter().take_while(|layer| layer.iter().all(|id| completed.contains(id)));
    json!({"task_results": results, "completed_tasks": completed, "current_layer": layer.count()})
}
