//! Routing: the router's decision, and the steps of the route that it chose.

use serde_json::{Value, json};

use super::{Outcome, Progress, path};
use crate::json::fields::{Fields, quoted};

pub(super) fn read(state: &Fields<'_>, progress: &mut Progress) {
    let decision = state.object("router_decision").unwrap_or_default();
    let chosen = state.text("chosen_route").or_else(|| decision.text("chosen_route"));
    let Some(chosen) = chosen.map(String::from) else { return };
    let answer = decision.raw("response").filter(|raw| *raw != "null");
    match answer {
        Some(answer) => {
            let place = path(&["router_decision"], &["response"]);
            if let Some(done) = progress.add("router/1".to_owned(), Some(answer), place) {
                done.output.insert("chosen_route".to_owned(), chosen.clone().into());
            }
        }
        // Older versions keep no more than the choice.
        None => {
            let response = format!("{{\"route\": {}}}", quoted(&chosen));
            progress.make("router/1", json!({"response": response, "chosen_route": chosen}));
        }
    }
    let route = state.object("route_state").unwrap_or_default();
    let base = ["route_state", "step_history"];
    let key = |n| format!("route/{chosen}/{n}");
    let next = progress.add_steps(route.raw("step_history"), &base, key);
    progress.next = Some(key(next));
}

pub(super) fn write(outcome: &Outcome<'_>) -> Value {
    let Some(router) = outcome.node("router/1") else {
        return json!({"router_executed": false, "chosen_route": null});
    };
    // A person may have chosen another one.
    let gone =
        outcome.nodes.iter().find_map(|node| node.key.strip_prefix("route/")?.split('/').next());
    let chosen = gone.or_else(|| router.output["chosen_route"].as_str()).unwrap_or_default();
    let steps = outcome.steps(&format!("route/{chosen}"));
    json!({
        "router_executed": true,
        "chosen_route": chosen,
        "router_decision": {"chosen_route": chosen, "response": router.response()},
        "route_state": {"current_step": steps.len(), "step_history": steps},
    })
}
