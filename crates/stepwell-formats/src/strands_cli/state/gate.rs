//! A question that waits: `hitl_state`, wherever a pattern keeps it.

use serde_json::{Value, json};
use stepwell::model::{Gate, Time};

use super::{Outcome, Progress};
use crate::json::fields::Fields;
use crate::snapshot::TimeForm;
use crate::strands_sdk::agent::moment;

/// A question that was asked last.
#[derive(Clone, Debug, PartialEq)]
pub(in super::super) struct Pending {
    /// The node that it is.
    pub(in super::super) key: String,
    /// What was asked, with what was shown beside it.
    pub(in super::super) prompt: String,
    /// The answer if nobody gives one.
    pub(in super::super) default: Option<String>,
    /// Until when one is waited for.
    pub(in super::super) deadline: Option<Time>,
    /// The answer, if one was given.
    pub(in super::super) answer: Option<String>,
}

/// How many questions of one session are looked at.
const MAX_GATES: usize = 100;

/// Finds the questions in a state and in its parts.
pub(super) fn read(pattern: &str, state: &Fields<'_>, progress: &mut Progress) {
    let mut found: Vec<(Fields<'_>, Option<String>)> = Vec::new();
    found.extend(state.object("hitl_state").map(|it| (it, None)));
    let route = state.object("route_state").unwrap_or_default();
    found.extend(route.object("hitl_state").map(|it| (it, None)));
    let branches = state.object("branch_results").unwrap_or_default();
    for (id, raw) in branches.each() {
        let branch = Fields::parse(raw).unwrap_or_default();
        found.extend(branch.object("hitl_state").map(|it| (it, Some(id.to_owned()))));
    }
    for (hitl, branch) in found.into_iter().take(MAX_GATES) {
        let answer = hitl.text("user_response").map(String::from);
        if !hitl.is_true("active") && answer.is_none() {
            continue;
        }
        let Some(key) = (Asked { pattern, hitl: &hitl, branch, state }).key(progress) else {
            progress.doubts.push("a question waits, and it is not said where".to_owned());
            continue;
        };
        if progress.done.iter().any(|done| done.key == key) {
            continue;
        }
        let prompt = hitl.text("prompt").unwrap_or_default();
        let context = hitl.text("context_display").unwrap_or_default();
        let prompt = match context.trim() {
            "" => prompt.trim_end().to_owned(),
            _ => format!("{}\n\n{}", prompt.trim_end(), context.trim_end()),
        };
        let default = hitl.text("default_response").map(String::from);
        let deadline = moment(&hitl, "timeout_at");
        progress.gates.push(Pending { key, prompt, default, deadline, answer });
    }
}

/// A question, and what it was found in.
struct Asked<'a> {
    pattern: &'a str,
    hitl: &'a Fields<'a>,
    branch: Option<String>,
    state: &'a Fields<'a>,
}

impl Asked<'_> {
    /// The node that the question is.
    fn key(self, progress: &Progress) -> Option<String> {
        let Self { pattern, hitl, branch, state } = self;
        let step = hitl.get::<u32>("step_index");
        let named = |name: &str| hitl.text(name).filter(|it| !it.is_empty()).map(String::from);
        match pattern {
            "chain" => step.map(|n| format!("step/{n}")).or_else(|| progress.next.clone()),
            "workflow" => named("task_id").map(|id| format!("task/{id}")),
            "routing" if hitl.is_true("router_review") => Some("review/1".to_owned()),
            "routing" => {
                let next = progress.next.clone()?;
                let (route, _) = next.rsplit_once('/')?;
                Some(step.map_or_else(|| next.clone(), |n| format!("{route}/{n}")))
            }
            "parallel" if named("step_type").as_deref() == Some("reduce") => {
                Some("reduce".to_owned())
            }
            "parallel" => {
                let id = named("branch_id").or(branch)?;
                let prefix = format!("branch/{id}/");
                let done = progress.done.iter().filter(|it| it.key.starts_with(&prefix)).count();
                Some(format!("{prefix}{}", step.map_or(done as u64, u64::from)))
            }
            "evaluator_optimizer" => {
                let evaluated = progress.done.iter().filter(|it| it.key.starts_with("evaluate/"));
                Some(format!("review/{}", evaluated.count().max(1)))
            }
            "orchestrator_workers" => {
                let phase = named("phase").or_else(|| named("step_type")).unwrap_or_default();
                let after = phase.contains("reduce") || state.is_true("workers_executed");
                Some(if after { "review/0" } else { "review/1" }.to_owned())
            }
            "graph" => {
                let id =
                    named("node_id").or_else(|| state.text("current_node").map(String::from))?;
                let gone =
                    progress.done.iter().filter(|it| it.key.starts_with(&format!("node/{id}/")));
                Some(format!("node/{id}/{}", gone.count() + 1))
            }
            _ => None,
        }
    }
}

/// A question that waits, as the system keeps it.
pub(in super::super) fn hitl_state(gate: &Gate, outcome: &Outcome<'_>) -> Value {
    let mut state = json!({
        "active": true, "step_index": null, "task_id": null, "layer_index": null,
        "branch_id": null, "step_type": null, "node_id": null, "iteration_index": null,
        "phase": null, "worker_count": null, "router_review": null,
        "prompt": gate.prompt, "context_display": "", "default_response": gate.default,
        "timeout_at": gate.deadline.map(|at| TimeForm::Offset.text(at)),
        "user_response": null,
    });
    let number = |n: &str| n.parse::<u64>().map_or(Value::Null, Value::from);
    let parts: Vec<&str> = gate.id.split('/').collect();
    match parts.as_slice() {
        ["step", n] | ["route", _, n] => state["step_index"] = number(n),
        ["task", id] => {
            state["task_id"] = (*id).into();
            let layer = outcome.spec.layers().iter().position(|layer| layer.contains(id));
            state["layer_index"] = layer.map_or(Value::Null, Value::from);
        }
        ["branch", id, n] => {
            state["branch_id"] = (*id).into();
            state["step_index"] = number(n);
            state["step_type"] = "branch".into();
        }
        ["reduce"] => state["step_type"] = "reduce".into(),
        ["node", id, _] => state["node_id"] = (*id).into(),
        ["review", n] => match outcome.spec.pattern() {
            Some("routing") => state["router_review"] = true.into(),
            Some("evaluator_optimizer") => state["iteration_index"] = number(n),
            _ => {
                state["phase"] = if *n == "0" { "reduce" } else { "decomposition" }.into();
                let workers = outcome.nodes.iter().filter(|node| node.key.starts_with("worker/"));
                state["worker_count"] = workers.count().into();
            }
        },
        _ => {}
    }
    state
}
