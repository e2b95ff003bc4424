//! A graph of tasks: `task_results`, in older versions `task_outputs`, and `completed_tasks`.

use std::collections::HashSet;

use serde_json::{Map, Value, json};

use super::{Outcome, Progress, path};
use crate::json::fields::Fields;

/// What only the older form has.
const OLDER: [&str; 3] = ["task_outputs", "pending_tasks", "blocked_tasks"];

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

pub(super) fn write(outcome: &Outcome<'_>, before: &Fields<'_>) -> Value {
    let is_older = OLDER.iter().any(|name| before.has(name)) && !before.has("task_results");
    let mut results = Map::new();
    let mut completed = Vec::new();
    for node in outcome.nodes {
        let Some(id) = node.key.strip_prefix("task/") else { continue };
        completed.push(id);
        let mut record = json!({"response": node.response()});
        if !is_older {
            record["status"] = "success".into();
        }
        match node.asked {
            Some(prompt) => {
                record["type"] = "hitl".into();
                record["prompt"] = prompt.into();
            }
            None if is_older => node.count(&mut record, "tokens"),
            None => {
                record["agent"] = outcome.agent(node.key);
                node.count(&mut record, "tokens_estimated");
            }
        }
        results.insert(id.to_owned(), record);
    }
    if is_older {
        let (pending, blocked) = open_tasks(outcome, before, &completed);
        return json!({"completed_tasks": completed, "pending_tasks": pending,
            "blocked_tasks": blocked, "task_outputs": results});
    }
    let layers = outcome.spec.layers();
    let layer = layers.iter().take_while(|layer| layer.iter().all(|id| completed.contains(id)));
    json!({"task_results": results, "completed_tasks": completed, "current_layer": layer.count()})
}

/// The tasks that are not done, as the older form tells them: those that can begin, and those
/// that wait for others. Tasks that the spec does not name stay where they were.
fn open_tasks(
    outcome: &Outcome<'_>,
    before: &Fields<'_>,
    completed: &[&str],
) -> (Vec<String>, Vec<String>) {
    let known = outcome.spec.tasks();
    let listed = |name: &str| before.get::<Vec<String>>(name).unwrap_or_default();
    let stays = |id: &String| {
        !completed.contains(&id.as_str()) && !known.iter().any(|(task, _)| task == id)
    };
    let mut pending: Vec<String> = listed("pending_tasks").into_iter().filter(stays).collect();
    let mut blocked: Vec<String> = listed("blocked_tasks").into_iter().filter(stays).collect();
    for (id, deps) in known.iter().filter(|(id, _)| !completed.contains(id)) {
        let ready = deps.iter().all(|dep| completed.contains(&dep.as_str()));
        let list = if ready { &mut pending } else { &mut blocked };
        list.push((*id).to_owned());
    }
    (pending, blocked)
}
