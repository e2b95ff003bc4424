//! Branches beside each other: `branch_results`, and what brings them together.

use std::collections::HashSet;

use serde_json::{Map, Value, json};

use super::super::spec::Spec;
use super::{Outcome, Progress, path};
use crate::json::fields::Fields;

pub(super) fn read(state: &Fields<'_>, spec: &Spec, progress: &mut Progress) {
    let results = state.object("branch_results").unwrap_or_default();
    for (id, raw) in results.each() {
        let Ok(result) = Fields::parse(raw) else { continue };
        read_branch(id, &result, spec, progress);
    }
    let id = |key: &str| key.strip_prefix("branch/")?.split('/').next().map(str::to_owned);
    let known: HashSet<String> = progress.done.iter().filter_map(|done| id(&done.key)).collect();
    for id in state.get::<Vec<String>>("completed_branches").unwrap_or_default() {
        if !known.contains(&id) {
            progress
                .doubts
                .push(format!("the branch {id} is done, and its steps are not recorded"));
        }
    }
    if state.is_true("reduce_executed") {
        let place = path(&["final_response"], &[]);
        progress.add("reduce".to_owned(), state.raw("final_response"), place);
    }
}

fn read_branch(id: &str, result: &Fields<'_>, spec: &Spec, progress: &mut Progress) {
    let key = |n: u64| format!("branch/{id}/{n}");
    let base = ["branch_results", id, "step_history"];
    let next = progress.add_steps(result.raw("step_history"), &base, key);
    let place = path(&["branch_results", id], &["response"]);
    if next > 0 {
        progress.repeats(&key(next - 1), result.raw("response"), place);
        return;
    }
    // Older versions keep a branch's last answer alone.
    if result.text("status").is_some_and(|status| status != "success") || !result.has("response") {
        return;
    }
    let last = spec.branch_steps(id).unwrap_or(1).max(1) as u64 - 1;
    for n in 0..last.min(1_000) {
        progress.make(key(n), json!({"response": ""}));
        progress.doubts.push(format!("what {} came to is not recorded", key(n)));
    }
    progress.add(key(last), result.raw("response"), place);
}

pub(super) fn write(outcome: &Outcome<'_>) -> Value {
    let (mut results, mut completed) = (Map::new(), Vec::new());
    let (mut ids, mut known): (Vec<&str>, HashSet<&str>) = (Vec::new(), HashSet::new());
    for node in outcome.nodes {
        let id = node.key.strip_prefix("branch/").and_then(|rest| rest.split('/').next());
        if let Some(id) = id.filter(|id| known.insert(*id)) {
            ids.push(id);
        }
    }
    for id in ids {
        let steps = outcome.steps(&format!("branch/{id}"));
        // One that is not done is done anew there.
        if outcome.spec.branch_steps(id).is_some_and(|all| steps.len() < all) {
            continue;
        }
        let last = steps.last().map(|step| step["response"].clone()).unwrap_or_default();
        let mut counts = steps.iter().map(|step| step["tokens_estimated"].as_u64());
        let tokens = counts.try_fold(0, |sum: u64, count| Some(sum.saturating_add(count?)));
        let mut record = json!({"response": last, "status": "success", "step_history": steps});
        if let Some(tokens) = tokens {
            record["tokens_estimated"] = tokens.into();
        }
        completed.push(id);
        results.insert(id.to_owned(), record);
    }
    let reduce = outcome.node("reduce");
    let mut state = json!({
        "completed_branches": completed,
        "branch_results": results,
        "reduce_executed": reduce.is_some(),
    });
    if let Some(reduce) = reduce {
        state["final_response"] = reduce.response().into();
    }
    state
}
