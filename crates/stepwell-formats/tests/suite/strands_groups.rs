//! Strands SDK's graphs and swarms, and sessions that it keeps as snapshots.

use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use stepwell::model::Role;
use stepwell::{Event, Recorded, SessionId, Status, Stepwell, StopReason};
use stepwell_formats::{Mode, Report, take_in};

use crate::mirror::{found, said, shown, taken, written};
use crate::seeds::lay_out;
use crate::strands_sdk::sdk;
use crate::support::log;

fn put(folder: &Path, name: &str, value: &Value) {
    lay_out(folder, &[(PathBuf::from(name), serde_json::to_vec(value).unwrap())]);
}

fn says(role: &str, text: &str) -> Value {
    json!({"role": role, "content": [{"text": text}], "tracking_id": text})
}

fn tokens(input: u64, output: u64) -> Value {
    json!({"inputTokens": input, "outputTokens": output, "totalTokens": input + output})
}

/// A graph of two nodes, of which the second one stands so.
fn graph(status: &str, second: &Value) -> Value {
    json!({
        "type": "graph", "id": "g", "status": status, "completed_nodes": ["plan"],
        "failed_nodes": [], "interrupted_nodes": [],
        "node_results": {
            "plan": {
                "result": {"type": "agent_result", "message": says("assistant", "rye, then salt"),
                    "stop_reason": "end_turn"},
                "status": "completed", "accumulated_usage": tokens(30, 4), "execution_count": 1,
            },
            "work": second,
        },
        "next_nodes_to_execute": [], "current_task": "bake a loaf",
        "execution_order": ["plan", "work"], "accumulated_usage": tokens(50, 9),
    })
}

fn done() -> Value {
    json!({"result": {"type": "agent_result", "message": says("assistant", "it is baked")},
        "status": "completed", "accumulated_usage": tokens(20, 5)})
}

fn broken() -> Value {
    json!({"result": {"type": "exception", "message": "the oven is cold"}, "status": "failed"})
}

fn lay_graph(folder: &Path, graph: &Value) {
    let at = "2026-03-10T00:00:00.000000+00:00";
    put(
        folder,
        "session.json",
        &json!({"session_id": "s", "session_type": "AGENT", "created_at": at, "updated_at": at}),
    );
    put(folder, "multi_agents/multi_agent_g/multi_agent.json", graph);
}

fn took(well: &Stepwell, folder: &Path) -> (SessionId, Report) {
    let report = take_in(well, Mode::Write, sdk(), folder);
    assert!(report.fault.is_none(), "{:?}", report.fault);
    (report.sessions[0].id.clone(), report)
}

fn nodes(events: &[Recorded]) -> Vec<String> {
    let node = |it: &Recorded| match &it.event {
        Event::Node(node) => {
            let output = node.output.as_ref().map(|it| it["response"].to_string());
            let what = output.or(node.error.clone()).unwrap_or_default();
            Some(format!("{} {:?} {what}", node.key, node.state))
        }
        _ => None,
    };
    events.iter().filter_map(node).collect()
}

#[test]
fn a_graph_stands_as_its_file_says_and_has_its_task() {
    let cases = [
        ("completed", done(), Status::Success, Some(StopReason::LlmDone), None),
        ("failed", broken(), Status::Failed, None, Some("work: the oven is cold")),
        ("executing", json!({"status": "executing"}), Status::Interrupted, None, None),
        ("interrupted", json!({"status": "interrupted"}), Status::Interrupted, None, None),
    ];
    for (word, second, status, reason, error) in cases {
        let folder = tempfile::tempdir().unwrap();
        lay_graph(folder.path(), &graph(word, &second));
        let well = Stepwell::in_memory();
        let (id, report) = took(&well, folder.path());
        assert!(report.warnings.is_empty(), "{report:?}");
        let head = well.info(&id).unwrap().head;
        assert_eq!((head.status, head.stop_reason), (status, reason), "{word}");
        assert_eq!((head.error.as_deref(), head.task.as_str()), (error, "bake a loaf"), "{word}");
        assert_eq!((head.spent.usage.input, head.spent.usage.output), (50, 9), "{word}");
        let (_kept, path) = written(&well, &id, sdk(), "session_s");
        let text =
            std::fs::read_to_string(path.join("multi_agents/multi_agent_g/multi_agent.json"));
        let again: Value = serde_json::from_str(&text.unwrap()).unwrap();
        assert_eq!(again, graph(word, &second));
    }
}

#[test]
fn the_nodes_of_a_graph_have_answers_or_say_what_went_wrong() {
    let folder = tempfile::tempdir().unwrap();
    lay_graph(folder.path(), &graph("failed", &broken()));
    let well = Stepwell::in_memory();
    let (id, _) = took(&well, folder.path());
    assert_eq!(
        nodes(&log(&well, &id)),
        ["group/g/plan Done \"rye, then salt\"", "group/g/work Failed the oven is cold"]
    );
}

#[test]
fn a_task_in_blocks_is_told_as_text() {
    let folder = tempfile::tempdir().unwrap();
    let mut graph = graph("completed", &done());
    graph["current_task"] = json!([{"text": "bake"}, {"image": {}}, {"text": "two"}]);
    lay_graph(folder.path(), &graph);
    let well = Stepwell::in_memory();
    let (id, _) = took(&well, folder.path());
    assert_eq!(well.info(&id).unwrap().head.task, "bake\ntwo");
}

fn snapshot(scope: &str, at: &str, data: &Value) -> Value {
    json!({"scope": scope, "schema_version": "1.0", "created_at": at, "data": data, "app_data": {}})
}

fn agent(messages: &[Value]) -> Value {
    json!({
        "messages": messages, "state": {"scales": [7, null]},
        "conversation_manager_state": {"__name__": "SlidingWindowConversationManager",
            "removed_message_count": 4, "model_call_count": 0},
        "interrupt_state": {"interrupts": {}, "context": {}, "activated": false},
        "system_prompt": [{"text": "be brief"}], "model_state": {},
    })
}

const SNAPSHOTS: &str = "session/crumb/scopes/agent/worker/snapshots";

fn lay_snapshots(folder: &Path, messages: &[Value]) {
    let early = agent(&messages[..2]);
    put(
        folder,
        &format!("{SNAPSHOTS}/immutable_history/snapshot_01a1.json"),
        &snapshot("agent", "2026-03-10T00:00:05.25Z", &early),
    );
    put(
        folder,
        &format!("{SNAPSHOTS}/snapshot_latest.json"),
        &snapshot("agent", "2026-03-10T00:00:09Z", &agent(messages)),
    );
}

#[test]
fn a_session_that_is_kept_as_snapshots_is_read_with_its_checkpoints() {
    let folder = tempfile::tempdir().unwrap();
    let messages = [
        says("user", "weigh it"),
        says("assistant", "nine"),
        says("user", "again"),
        says("assistant", "ten"),
    ];
    lay_snapshots(folder.path(), &messages);
    let found = found(folder.path());
    assert_eq!(found.len(), 1, "{found:?}");
    assert!(found[0].path.ends_with("session/crumb"), "{found:?}");
    let well = Stepwell::in_memory();
    let (id, report) = took(&well, &found[0].path);
    assert!(report.warnings.is_empty(), "{report:?}");
    let head = well.info(&id).unwrap().head;
    assert_eq!((id.as_str(), head.task.as_str()), ("crumb", "weigh it"));
    assert_eq!((head.status, head.agent.as_str()), (Status::Success, "worker"));
    let events = log(&well, &id);
    let told: Vec<String> = events
        .iter()
        .filter_map(|it| match &it.event {
            Event::Message(said) => Some(format!("{} {}", it.at, said.text())),
            Event::Checkpoint(taken) => Some(format!("{} {}", it.at, taken.name)),
            _ => None,
        })
        .collect();
    assert_eq!(
        told,
        [
            "2026-03-10T00:00:05.25Z be brief",
            "2026-03-10T00:00:05.25Z weigh it",
            "2026-03-10T00:00:05.25Z nine",
            "2026-03-10T00:00:05.25Z snapshot_01a1",
            "2026-03-10T00:00:09Z again",
            "2026-03-10T00:00:09Z ten",
        ]
    );
    // Nothing of it is out of the window: what was, is not in a snapshot.
    let view = shown(&well, &id);
    let spoken = view.iter().filter(|it| it.role != Role::System).count();
    assert_eq!(spoken, 4);
    // Gone on with there, it grows here.
    let more = [&messages[..], &[says("user", "more"), says("assistant", "eleven")]].concat();
    lay_snapshots(folder.path(), &more);
    let (again, _) = took(&well, &found[0].path);
    assert_eq!(again, id);
    assert_eq!(well.info(&id).unwrap().head.messages, 7);
    // It is written in files, one for each message, and is the same conversation there.
    let (_kept, path) = written(&well, &id, sdk(), "session_crumb");
    let other = Stepwell::in_memory();
    let back = taken(&other, &path);
    let spoken = |well: &Stepwell, id: &SessionId| {
        let all = shown(well, id);
        let all: Vec<_> = all.into_iter().filter(|it| it.role != Role::System).collect();
        said(&all)
    };
    assert_eq!(spoken(&other, &back[0].id), spoken(&well, &id));
    let text = std::fs::read_to_string(path.join("agents/agent_worker/agent.json")).unwrap();
    let kept: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(kept["state"], json!({"scales": [7, null]}));
}

#[test]
fn a_graph_that_is_kept_as_a_snapshot_is_read_like_one_in_a_file() {
    let folder = tempfile::tempdir().unwrap();
    let state = json!({"orchestrator_id": "g", "state": graph("failed", &broken())});
    put(
        folder.path(),
        "session/loaf/scopes/multiAgent/g/snapshots/snapshot_latest.json",
        &snapshot("multiAgent", "2026-03-10T00:00:09Z", &state),
    );
    let well = Stepwell::in_memory();
    let id = taken(&well, folder.path())[0].id.clone();
    let head = well.info(&id).unwrap().head;
    assert_eq!(
        (id.as_str(), head.status, head.task.as_str()),
        ("loaf", Status::Failed, "bake a loaf")
    );
    assert_eq!(head.updated_at.to_string(), "2026-03-10T00:00:09Z");
    assert_eq!(nodes(&log(&well, &id)).len(), 2);
    let (_kept, path) = written(&well, &id, sdk(), "session_loaf");
    assert!(path.join("multi_agents/multi_agent_g/multi_agent.json").is_file());
}

#[test]
fn a_snapshot_of_a_later_form_is_told_of_and_not_guessed() {
    let folder = tempfile::tempdir().unwrap();
    let mut later = snapshot("agent", "2026-03-10T00:00:09Z", &agent(&[says("user", "hi")]));
    later["schema_version"] = json!("2.0");
    put(folder.path(), &format!("{SNAPSHOTS}/snapshot_latest.json"), &later);
    let well = Stepwell::in_memory();
    let path = folder.path().join("session/crumb");
    let report = take_in(&well, Mode::Write, sdk(), &path);
    assert!(report.fault.is_some() && report.sessions.is_empty(), "{report:?}");
    assert!(report.warnings[0].what.contains("version \"2.0\""), "{report:?}");
}
