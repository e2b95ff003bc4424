//! A planner and its workers: `worker_results`, then `reduce_response` and `writeup_response`.

use serde_json::{Value, json};

use super::super::spec::Spec;
use super::{Outcome, Progress, path};
use crate::json::fields::{Fields, elements};
use crate::json::json_text::value;

pub(super) fn read(state: &Fields<'_>, spec: &Spec, progress: &mut Progress) {
    let results = elements(state.raw("worker_results").unwrap_or("[]")).unwrap_or_default();
    let results: Vec<Fields<'_>> =
        results.into_iter().map(|raw| Fields::parse(raw).unwrap_or_default()).collect();
    let tasks = tasks(state, &results);
    let executed = state.is_true("workers_executed");
    if !tasks.is_empty() || executed {
        let response = Value::from(tasks.clone()).to_string();
        progress.make("plan/1", json!({"response": response, "tasks": tasks}));
    }
    for (n, result) in results.iter().enumerate() {
        if result.text("status").is_some_and(|status| status != "success") {
            continue;
        }
        let at = n.to_string();
        let place = path(&["worker_results", &at], &["response"]);
        progress.add(format!("worker/1/{n}"), result.raw("response"), place);
    }
    // The system divides the work once, however many rounds it may.
    let rounds = spec.config()["orchestrator"]["limits"]["max_rounds"].as_u64();
    if executed && rounds.is_some_and(|rounds| rounds > 1) {
        progress.make("plan/2", json!({"response": "[]", "tasks": []}));
    }
    for name in ["reduce", "writeup"] {
        if state.is_true(&format!("{name}_executed")) {
            let field = format!("{name}_response");
            progress.add(name.to_owned(), state.raw(&field), path(&[&field], &[]));
        }
    }
}

/// What the workers were to do: as it was planned, or else as they say.
fn tasks(state: &Fields<'_>, results: &[Fields<'_>]) -> Vec<Value> {
    let planned = elements(state.raw("orchestrator_subtasks").unwrap_or("[]")).unwrap_or_default();
    let task = |raw: &str| match value(raw)? {
        Value::String(text) => Some(json!({"task": text})),
        it @ Value::Object(_) => Some(it),
        _ => None,
    };
    match planned.is_empty() {
        false => planned.into_iter().filter_map(task).collect(),
        true => {
            results.iter().map(|it| json!({"task": it.text("task").unwrap_or_default()})).collect()
        }
    }
}

pub(super) fn write(outcome: &Outcome<'_>) -> Value {
    let plan = outcome.numbered("plan").into_iter().map(|(_, node)| node);
    let mut plan =
        plan.filter(|node| node.output["tasks"].as_array().is_some_and(|it| !it.is_empty()));
    let Some(plan) = plan.next_back() else {
        return json!({"workers_executed": false, "worker_results": []});
    };
    let round = plan.key.strip_prefix("plan/").unwrap_or("1");
    let tasks = plan.output["tasks"].as_array().cloned().unwrap_or_default();
    let workers = outcome.numbered(&format!("worker/{round}"));
    let results: Vec<Value> = workers
        .iter()
        .map(|(n, node)| {
            let task = tasks.get(*n).map_or(Value::Null, |task| task["task"].clone());
            let mut record =
                json!({"response": node.response(), "status": "success", "task": task});
            node.count(&mut record, "tokens");
            record
        })
        .collect();
    // Half of the workers' results would be taken for all of them.
    let executed = results.len() == tasks.len();
    let mut state = json!({
        "workers_executed": executed,
        "worker_results": if executed { results } else { Vec::new() },
        "reduce_executed": false,
        "writeup_executed": false,
        "orchestrator_subtasks": tasks,
    });
    for name in ["reduce", "writeup"] {
        if let Some(node) = outcome.node(name) {
            state[format!("{name}_executed")] = true.into();
            state[format!("{name}_response")] = node.response().into();
        }
    }
    state
}
