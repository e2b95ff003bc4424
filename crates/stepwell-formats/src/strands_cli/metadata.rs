//! `session.json`, made of what is known here.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};
use stepwell::log::Head;
use stepwell::model::{Flow, Usage};
use stepwell::{Event, Seq, Status};

use super::spec::Spec;
use super::state::Outcome;
use crate::json::fields::Fields;
use crate::snapshot::TimeForm;
use crate::strands_sdk::conversation::Live;

/// What a flow may be configured with at run time.
const RUNTIME: [&str; 10] = [
    "provider",
    "model_id",
    "region",
    "host",
    "temperature",
    "top_p",
    "max_tokens",
    "max_parallel",
    "budgets",
    "failure_policy",
];

/// The word for how a run stands. What was stopped can be taken up there as what runs can.
fn status(status: Status) -> &'static str {
    match status {
        Status::Success => "completed",
        Status::Paused => "paused",
        Status::Failed | Status::Abandoned => "failed",
        Status::Running | Status::Interrupted | Status::Partial | Status::Idle => "running",
    }
}

/// What a session came with.
pub(super) struct Before<'a> {
    /// Its file.
    pub(super) session: Fields<'a>,
    /// The last event that was read from it.
    pub(super) told: Seq,
}

/// What changes in a session while it goes on. What it came with counts as well.
pub(super) fn changes(
    head: &Head,
    live: &Live,
    outcome: &Outcome<'_>,
    Before { session: before, told }: &Before<'_>,
) -> Value {
    let mut artifacts: Vec<String> = before.get("artifacts_written").unwrap_or_default();
    let spent = before.object("token_usage").unwrap_or_default();
    let known = |name: &str| spent.get::<u64>(name).unwrap_or(0);
    let mut usage = Usage {
        input: known("total_input_tokens"),
        output: known("total_output_tokens"),
        ..Usage::default()
    };
    for event in live.events.iter().filter(|event| event.seq > *told) {
        match &event.event {
            Event::Artifact(it) if !artifacts.contains(&it.path) => artifacts.push(it.path.clone()),
            Event::Message(message) => usage += message.usage.unwrap_or_default(),
            Event::Compacted(compacted) => usage += compacted.usage.unwrap_or_default(),
            _ => {}
        }
    }
    let mut by_agent: BTreeMap<String, u64> = spent.get("by_agent").unwrap_or_default();
    for node in outcome.nodes {
        if let (Some(agent), Some(usage)) = (outcome.spec.agent(node.key), node.usage) {
            let sum = by_agent.entry(agent.to_owned()).or_default();
            *sum = sum.saturating_add(usage.total());
        }
    }
    json!({
        "metadata": {
            "status": status(head.status),
            "updated_at": TimeForm::Offset.text(head.updated_at),
            "error": if head.status == Status::Failed { head.error.clone() } else { None },
        },
        "token_usage": {
            "total_input_tokens": usage.input,
            "total_output_tokens": usage.output,
            "by_agent": by_agent,
        },
        "artifacts_written": artifacts,
    })
}

/// All of it, for a session that was never there.
pub(super) fn whole(head: &Head, flow: &Flow, id: &str, changes: &Value) -> Value {
    let (spec, _) = Spec::read(&flow.spec);
    let mut runtime: Map<String, Value> = RUNTIME
        .map(|name| (name.to_owned(), spec.field("runtime")[name].clone()))
        .into_iter()
        .collect();
    for (name, own) in [("provider", head.model_provider()), ("model_id", head.model.as_str())] {
        if !own.is_empty() {
            runtime.insert(name.to_owned(), own.into());
        }
    }
    // The system takes variables as texts.
    let text = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    let variables: Map<String, Value> =
        flow.variables.iter().map(|(name, value)| (name.clone(), text(value).into())).collect();
    json!({
        "metadata": {
            "session_id": id,
            "workflow_name": flow.name,
            "spec_hash": flow.hash.to_string(),
            "pattern_type": flow.pattern,
            "status": changes["metadata"]["status"],
            "created_at": TimeForm::Offset.text(head.created_at),
            "updated_at": changes["metadata"]["updated_at"],
            "error": changes["metadata"]["error"],
            "metadata": {},
        },
        "variables": variables,
        "runtime_config": runtime,
        "token_usage": changes["token_usage"],
        "artifacts_written": changes["artifacts_written"],
    })
}
