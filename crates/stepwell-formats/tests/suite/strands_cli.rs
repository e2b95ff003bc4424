//! strands-cli's sessions, and what bites in them.

use std::path::{Path, PathBuf};

use proptest::prelude::*;
use serde_json::{Value, json};
use stepwell::{
    Digest, Event, Gate, Message, Node, NodeState, Recorded, SessionId, Status, Stepwell,
};
use stepwell_formats::{Became, Existing, Format, Mode, Report, take_in, write_to};

use crate::mirror::{assert_returns, became, taken, written};
use crate::seeds::{files, fixtures, lay_out};
use crate::strands_loader::load;
use crate::strands_sdk::unknown;
use crate::support::log;

pub(crate) fn cli() -> Format {
    "strands-cli".parse().unwrap()
}

/// The one session in a folder of the fixtures.
pub(crate) fn fixture(name: &str) -> PathBuf {
    let folder = fixtures(cli()).unwrap().join(name);
    let mut found = std::fs::read_dir(folder).unwrap();
    found.next().unwrap().unwrap().path()
}

const FIXTURES: [&str; 9] = [
    "chain-finished",
    "chain-broken",
    "chain-asking",
    "drafts-broken",
    "graph-asking",
    "orchestrator-broken",
    "parallel-broken",
    "routing-broken",
    "workflow-broken",
];

pub(crate) fn name_of(path: &Path) -> String {
    path.file_name().unwrap().to_str().unwrap().to_owned()
}

pub(crate) fn taken_one(well: &Stepwell, folder: &Path) -> (SessionId, Report) {
    let report = take_in(well, Mode::Write, cli(), folder);
    assert!(report.fault.is_none(), "{:?}", report.fault);
    (report.sessions[0].id.clone(), report)
}

fn warned(report: &Report, what: &str) -> bool {
    report.warnings.iter().any(|warning| warning.what.contains(what))
}

/// The nodes that are done, with what they came to.
fn done(well: &Stepwell, id: &SessionId) -> Vec<(String, Value)> {
    let node = |it: Recorded| match it.event {
        Event::Node(Node { key, state: NodeState::Done, output, .. }) => {
            Some((key, output.unwrap()))
        }
        _ => None,
    };
    log(well, id).into_iter().filter_map(node).collect()
}

pub(crate) fn keys(well: &Stepwell, id: &SessionId) -> Vec<String> {
    done(well, id).into_iter().map(|(key, _)| key).collect()
}

/// The questions that wait.
fn open(well: &Stepwell, id: &SessionId) -> Vec<Gate> {
    let mut open: Vec<Gate> = Vec::new();
    for it in log(well, id) {
        match it.event {
            Event::Gate(gate) => open.push(gate),
            Event::GateAnswered(answer) => open.retain(|gate| gate.id != answer.id),
            _ => {}
        }
    }
    open
}

/// Lays out a session with a state of a pattern.
pub(crate) fn lay(folder: &Path, pattern: &str, status: &str, spec: &str, state: Option<&Value>) {
    let hash = Digest::of(spec.as_bytes()).to_string();
    let session = json!({
        "metadata": {
            "session_id": "s", "workflow_name": "w", "spec_hash": hash.rsplit(':').next(),
            "pattern_type": pattern, "status": status, "created_at": "2026-03-10T04:30:00.125040+00:00",
            "updated_at": "2026-03-10T04:30:07+00:00", "error": null, "metadata": {"note": "é"},
        },
        "variables": {"loaf": "rye"}, "runtime_config": {"provider": "ollama", "model_id": "crumb-3b"},
        "token_usage": {"total_input_tokens": 1, "total_output_tokens": 2, "by_agent": {"a": 3}},
        "artifacts_written": ["x.md"], "newer": [1.50, 12345678901234567890_u64],
    });
    let mut all = vec![
        (PathBuf::from("session.json"), serde_json::to_vec(&session).unwrap()),
        (PathBuf::from("spec_snapshot.yaml"), spec.as_bytes().to_vec()),
    ];
    all.extend(
        state
            .map(|state| (PathBuf::from("pattern_state.json"), serde_json::to_vec(state).unwrap())),
    );
    lay_out(folder, &all);
}

/// A session of its own in a new store.
fn told_of(
    pattern: &str,
    status: &str,
    spec: &str,
    state: &Value,
) -> (Stepwell, SessionId, Report) {
    let folder = tempfile::tempdir().unwrap();
    lay(folder.path(), pattern, status, spec, Some(state));
    let well = Stepwell::in_memory();
    let (id, report) = taken_one(&well, folder.path());
    assert_returns(cli(), folder.path(), "session_s");
    let (_kept, path) = written(&well, &id, cli(), "session_s");
    let json = |folder: &Path| -> Value {
        serde_json::from_slice(&std::fs::read(folder.join("pattern_state.json")).unwrap()).unwrap()
    };
    assert_eq!(json(&path), *state, "the state returns");
    (well, id, report)
}

#[test]
fn the_fixtures_come_in_once_with_what_is_done() {
    let expected: [(&str, Status, &[&str]); 9] = [
        ("chain-finished", Status::Success, &["step/0", "step/1"]),
        ("chain-broken", Status::Failed, &["step/0", "step/1"]),
        ("chain-asking", Status::Paused, &["step/0"]),
        ("drafts-broken", Status::Failed, &["produce", "evaluate/1", "revise/1", "evaluate/2"]),
        ("graph-asking", Status::Paused, &["node/probe/1"]),
        ("orchestrator-broken", Status::Failed, &["plan/1", "worker/1/0", "worker/1/1", "reduce"]),
        (
            "parallel-broken",
            Status::Failed,
            &["branch/flour/0", "branch/flour/1", "branch/butter/0"],
        ),
        ("routing-broken", Status::Failed, &["router/1", "route/refund/0"]),
        ("workflow-broken", Status::Failed, &["task/dough"]),
    ];
    let well = Stepwell::in_memory();
    let all = taken(&well, &fixtures(cli()).unwrap());
    assert_eq!(became(&all, Became::Imported), 9, "{all:?}");
    for (name, status, nodes) in expected {
        let folder = fixture(name);
        let id: SessionId = name_of(&folder).strip_prefix("session_").unwrap().parse().unwrap();
        assert_eq!(keys(&well, &id), nodes, "{name}");
        let head = well.info(&id).unwrap().head;
        assert_eq!(head.status, status, "{name}");
        assert_eq!(head.source.unwrap().system, "strands-cli");
        let spec = std::fs::read_to_string(folder.join("spec_snapshot.yaml")).unwrap();
        let Event::Created(created) = &log(&well, &id)[0].event else { panic!("{name}") };
        let flow = created.flow.as_ref().unwrap();
        assert_eq!((flow.hash, &flow.spec), (Digest::of(spec.as_bytes()), &spec), "{name}");
    }
    let again = taken(&well, &fixtures(cli()).unwrap());
    assert_eq!(became(&again, Became::Unchanged), 9, "{again:?}");
}

#[test]
fn the_fixtures_return_byte_for_byte() {
    for name in FIXTURES {
        let folder = fixture(name);
        let well = Stepwell::in_memory();
        let (id, report) = taken_one(&well, &folder);
        assert!(report.warnings.is_empty(), "{name}: {report:?}");
        let (_kept, path) = written(&well, &id, cli(), &name_of(&folder));
        let (was, is) = (files(&folder), files(&path));
        for ((one, was), (other, is)) in was.iter().zip(&is) {
            assert_eq!(one, other);
            assert_eq!(
                String::from_utf8_lossy(was),
                String::from_utf8_lossy(is),
                "{name}: {}",
                one.display()
            );
        }
        assert_eq!(was.len(), is.len());
        assert_returns(cli(), &folder, &name_of(&folder));
        load(&path).unwrap();
    }
}

#[test]
fn outputs_are_what_templates_and_patterns_here_read() {
    let output = |from: &str, key: &str| {
        let well = Stepwell::in_memory();
        let (id, _) = taken_one(&well, &fixture(from));
        done(&well, &id).into_iter().find(|(it, _)| it == key).unwrap().1
    };
    assert_eq!(output("chain-finished", "step/0"), json!({"response": "Rye, and pain brié\n"}));
    assert_eq!(
        output("routing-broken", "router/1"),
        json!({"response": "{\"route\": \"refund\"}\n", "chosen_route": "refund"})
    );
    let plan = output("orchestrator-broken", "plan/1");
    assert_eq!(plan["tasks"], json!([{"task": "bake the tiers"}, {"task": "pipe the roses"}]));
    let evaluation = output("drafts-broken", "evaluate/2");
    assert_eq!((&evaluation["score"], &evaluation["issues"]), (&json!(72), &json!(["limps"])));
    assert!(evaluation["response"].is_string());
    assert_eq!(
        output("drafts-broken", "revise/1")["response"],
        "Sugar and spice, a candle or twice\n"
    );
}

#[test]
fn what_an_agent_was_asked_last_is_in_its_lane_and_asked_no_more() {
    for (name, key, lane, asked) in [
        ("chain-broken", "step/2", "clerk", "A table of Spelt and walnuts\n"),
        ("routing-broken", "route/refund/1", "refund/helper", "Confirm: Slip 88 is open\n"),
    ] {
        let well = Stepwell::in_memory();
        let (id, _) = taken_one(&well, &fixture(name));
        let events = log(&well, &id);
        let at = |state: NodeState| {
            events.iter().position(|it| matches!(&it.event, Event::Node(node) if node.key == key && node.state == state)).unwrap()
        };
        let (started, failed) = (at(NodeState::Started), at(NodeState::Failed));
        let said: Vec<&Message> = events[started..failed]
            .iter()
            .filter_map(|it| match &it.event {
                Event::Message(said) => Some(said),
                _ => None,
            })
            .collect();
        assert_eq!(said.len(), 1, "{name}");
        assert_eq!((said[0].lane.as_str(), said[0].text().as_str()), (lane, asked));
    }
}

#[test]
fn a_question_that_waits_is_a_gate_under_its_nodes_key() {
    let well = Stepwell::in_memory();
    let (id, _) = taken_one(&well, &fixture("chain-asking"));
    let gates = open(&well, &id);
    assert_eq!(gates.len(), 1);
    assert_eq!(gates[0].id, "step/1");
    assert_eq!(gates[0].prompt, "Paint this?\n\nSlogan: Warm since four");
    assert_eq!(gates[0].default.as_deref(), Some("paint it"));
    assert_eq!(gates[0].deadline.unwrap().to_string(), "2026-03-09T13:17:12.250417Z");
    let (id, _) = taken_one(&well, &fixture("graph-asking"));
    assert_eq!(open(&well, &id)[0].id, "node/ask/1");
}

#[test]
fn hitl_state_is_found_in_every_place() {
    let hitl = |more: Value| {
        let mut it = json!({"active": true, "prompt": "ok?", "context_display": "", "default_response": null, "timeout_at": null, "user_response": null});
        it.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        it
    };
    let step = |n: u32| json!({"index": n, "agent": "a", "response": format!("r{n}"), "tokens_estimated": 1});
    let routed = json!({"chosen_route": "x", "response": "{}"});
    let cases = [
        (
            "chain",
            json!({"current_step": 1, "step_history": [step(0)], "hitl_state": hitl(json!({"step_index": 1}))}),
            "step/1",
        ),
        (
            "workflow",
            json!({"task_results": {}, "completed_tasks": [], "hitl_state": hitl(json!({"task_id": "t", "layer_index": 0}))}),
            "task/t",
        ),
        (
            "routing",
            json!({"router_executed": true, "chosen_route": "x", "router_decision": routed, "hitl_state": hitl(json!({"router_review": true}))}),
            "review/1",
        ),
        (
            "routing",
            json!({"router_executed": true, "chosen_route": "x", "router_decision": routed, "route_state": {"current_step": 1, "step_history": [step(0)], "hitl_state": hitl(json!({"step_index": 1}))}}),
            "route/x/1",
        ),
        (
            "routing",
            json!({"router_executed": true, "chosen_route": "x", "router_decision": routed, "route_state": {"current_step": 0, "step_history": []}, "hitl_state": hitl(json!({"step_index": 0}))}),
            "route/x/0",
        ),
        (
            "parallel",
            json!({"branch_results": {"b": {"response": "r0", "status": "waiting", "step_history": [step(0)]}}, "hitl_state": hitl(json!({"branch_id": "b", "step_index": 1, "step_type": "branch"}))}),
            "branch/b/1",
        ),
        (
            "parallel",
            json!({"branch_results": {"b": {"status": "waiting", "step_history": [step(0)], "hitl_state": hitl(json!({}))}}}),
            "branch/b/1",
        ),
        (
            "parallel",
            json!({"branch_results": {"b": {"response": "r0", "status": "success", "step_history": [step(0)]}}, "reduce_executed": false, "hitl_state": hitl(json!({"step_type": "reduce"}))}),
            "reduce",
        ),
        (
            "evaluator_optimizer",
            json!({"current_draft": "d", "iteration_history": [{"iteration": 1, "score": 1, "draft": "d"}], "hitl_state": hitl(json!({"iteration_index": 1}))}),
            "review/1",
        ),
        (
            "orchestrator_workers",
            json!({"workers_executed": false, "worker_results": [], "orchestrator_subtasks": [{"task": "t"}], "hitl_state": hitl(json!({"phase": "decomposition", "worker_count": 1}))}),
            "review/1",
        ),
        (
            "orchestrator_workers",
            json!({"workers_executed": true, "worker_results": [{"response": "w", "status": "success", "task": "t"}], "hitl_state": hitl(json!({"phase": "reduce"}))}),
            "review/0",
        ),
        (
            "graph",
            json!({"current_node": "g", "node_results": {"g": {"response": null, "type": "hitl", "status": "waiting_for_user", "iteration": 1}}, "execution_path": [], "hitl_state": hitl(json!({"node_id": "g"}))}),
            "node/g/1",
        ),
    ];
    for (pattern, state, key) in cases {
        let (well, id, _) = told_of(pattern, "paused", "name: w\n", &state);
        let gates: Vec<String> = open(&well, &id).into_iter().map(|gate| gate.id).collect();
        assert_eq!(gates, [key], "{pattern}: {state}");
        assert_eq!(well.info(&id).unwrap().head.status, Status::Paused, "{pattern}");
        // Answered there already, and not gone on with.
        let mut answered = state.clone();
        let place = ["/hitl_state", "/route_state/hitl_state", "/branch_results/b/hitl_state"];
        let hitl = place.into_iter().find(|at| answered.pointer(at).is_some()).unwrap();
        answered.pointer_mut(hitl).unwrap()["user_response"] = json!("yes");
        let (well, id, _) = told_of(pattern, "running", "name: w\n", &answered);
        assert!(open(&well, &id).is_empty(), "{pattern}");
        let said = done(&well, &id).into_iter().find(|(it, _)| it == key).unwrap().1;
        assert_eq!(said, json!({"response": "yes", "who": "strands-cli"}));
    }
}

#[test]
fn mixed_generations_count_what_any_of_them_did() {
    // The record of a step is there, and the count of steps was not written any more.
    let step = json!({"index": 0, "agent": "a", "response": "r", "tokens_estimated": 1});
    let (well, id, report) = told_of(
        "chain",
        "running",
        "name: w\n",
        &json!({"current_step": 0, "step_history": [step]}),
    );
    assert_eq!(keys(&well, &id), ["step/0"]);
    assert!(report.warnings.is_empty());
    assert_eq!(well.info(&id).unwrap().head.status, Status::Interrupted);
    // The count is there, and the record was not written any more.
    let (well, id, report) = told_of(
        "chain",
        "running",
        "name: w\n",
        &json!({"current_step": 2, "step_history": [step]}),
    );
    assert_eq!(keys(&well, &id), ["step/0"]);
    assert!(warned(&report, "2 steps are done, and 1 are recorded"), "{report:?}");
    let state = json!({"task_results": {"a": {"response": "r", "status": "success"}}, "completed_tasks": ["b"]});
    let (well, id, report) = told_of("workflow", "running", "name: w\n", &state);
    assert_eq!(keys(&well, &id), ["task/a"]);
    assert!(warned(&report, "the task b is done, and its result is not recorded"), "{report:?}");
    // Paused by one file, and no question in the other.
    let (well, id, report) = told_of(
        "chain",
        "paused",
        "name: w\n",
        &json!({"current_step": 1, "step_history": [step]}),
    );
    assert_eq!(well.info(&id).unwrap().head.status, Status::Interrupted);
    assert!(warned(&report, "it is paused, and no question waits"), "{report:?}");
}

#[test]
fn an_answer_that_only_the_conversation_has_is_not_asked_for_again() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("session_s");
    let state = json!({"current_step": 0, "step_history": []});
    lay(&path, "chain", "running", "name: w\n", Some(&state));
    for (n, role, text) in [(0, "user", "do"), (1, "assistant", "done")] {
        let file = json!({"message": {"role": role, "content": [{"text": text}]}, "message_id": n, "created_at": format!("2026-03-10T04:30:0{n}Z")});
        let name =
            format!("agents/session_s_worker/agents/agent_default/messages/message_{n}.json");
        lay_out(&path, &[(name.into(), serde_json::to_vec(&file).unwrap())]);
    }
    let well = Stepwell::in_memory();
    let (id, _) = taken_one(&well, &path);
    let last: Vec<String> = log(&well, &id)
        .iter()
        .filter_map(|it| match &it.event {
            Event::Node(node) => Some(format!("{} {:?}", node.key, node.state)),
            Event::Message(said) => Some(format!("{} {}", said.lane, said.text())),
            _ => None,
        })
        .collect();
    assert_eq!(last, ["step/0 Started", "worker do", "worker done"]);
}

#[test]
fn a_missing_pattern_state_means_that_nothing_is_done() {
    let folder = tempfile::tempdir().unwrap();
    lay(folder.path(), "chain", "running", "name: w\n", None);
    let well = Stepwell::in_memory();
    let (id, report) = taken_one(&well, folder.path());
    assert!(keys(&well, &id).is_empty());
    assert_eq!(report.warnings.len(), 1, "{report:?}");
    assert!(report.warnings[0].place.ends_with("pattern_state.json"));
    let (_kept, path) = written(&well, &id, cli(), "session_s");
    assert_eq!(load(&path).unwrap().done(), Vec::<String>::new());
}

#[test]
fn tokens_that_no_conversation_tells_of_are_counted_once() {
    for name in FIXTURES {
        let well = Stepwell::in_memory();
        let path = fixture(name);
        let (id, _) = taken_one(&well, &path);
        let text = std::fs::read_to_string(path.join("session.json")).unwrap();
        let said: Value = serde_json::from_str(&text).unwrap();
        let sum = |well: &Stepwell| {
            let usage = well.info(&id).unwrap().head.spent.usage;
            json!([usage.input, usage.output])
        };
        let wanted = json!([
            said["token_usage"]["total_input_tokens"],
            said["token_usage"]["total_output_tokens"]
        ]);
        assert_eq!(sum(&well), wanted, "{name}");
        // Whatever is written is the same sum again, here and there.
        let (_kept, out) = written(&well, &id, cli(), &name_of(&path));
        let (_, report) = taken_one(&well, &out);
        assert_eq!(sum(&well), wanted, "{name}: {report:?}");
    }
}

#[test]
fn a_sum_of_tokens_that_grew_counts_as_it_is_now() {
    let folder = tempfile::tempdir().unwrap();
    let state = json!({"task_results": {}, "completed_tasks": []});
    let well = Stepwell::in_memory();
    for tokens in [30, 70] {
        lay(folder.path(), "workflow", "running", "name: w\n", Some(&state));
        let path = folder.path().join("session.json");
        let mut session: Value =
            serde_json::from_str(&std::fs::read_to_string(&path).unwrap()).unwrap();
        session["token_usage"] =
            json!({"total_input_tokens": tokens, "total_output_tokens": 3, "by_agent": {}});
        std::fs::write(&path, session.to_string()).unwrap();
        let (id, _) = taken_one(&well, folder.path());
        let spent = well.info(&id).unwrap().head.spent;
        assert_eq!((spent.usage.input, spent.usage.output), (tokens, 3));
        assert_eq!((spent.calls, spent.unpriced), (0, 1));
    }
}

#[test]
fn the_keys_of_older_documents_are_read_as_well() {
    let state = json!({
        "completed_tasks": ["t1", "t2"], "pending_tasks": ["t3"], "blocked_tasks": ["t4"],
        "task_outputs": {"t1": {"response": "one", "tokens": 1000}, "t2": {"response": "two", "tokens": 1200}},
    });
    let (well, id, report) = told_of("workflow", "running", "name: w\n", &state);
    assert_eq!(keys(&well, &id), ["task/t1", "task/t2"]);
    assert!(report.warnings.is_empty(), "{report:?}");
    // A branch whose steps are not recorded.
    let spec = "pattern: {type: parallel, config: {branches: [{id: b, steps: [{agent: a}, {agent: a}]}]}}\n";
    let state = json!({"completed_branches": ["b"], "branch_results": {"b": {"response": "r", "status": "success"}}});
    let (well, id, report) = told_of("parallel", "running", spec, &state);
    assert_eq!(keys(&well, &id), ["branch/b/0", "branch/b/1"]);
    assert!(warned(&report, "what branch/b/0 came to is not recorded"), "{report:?}");
    // Drafts of which the beginning is recorded.
    let state = json!({"current_draft": "long two", "iteration_history": [
        {"iteration": 1, "score": 1, "issues": [], "fixes": [], "draft_preview": "long o"},
        {"iteration": 2, "score": 2, "issues": [], "fixes": [], "draft_preview": "long t"},
    ]});
    let (well, id, report) = told_of("evaluator_optimizer", "failed", "name: w\n", &state);
    assert_eq!(keys(&well, &id), ["produce", "evaluate/1", "revise/1", "evaluate/2"]);
    assert_eq!(done(&well, &id)[2].1["response"], "long two");
    assert!(warned(&report, "of draft 1 only the beginning is recorded"), "{report:?}");
}

#[test]
fn a_draft_that_waits_for_its_evaluation_is_done() {
    let state = json!({"current_draft": "two", "pending_revision": false, "accepted": false, "iteration_history": [{"iteration": 1, "score": 1, "draft": "one", "evaluation": {"score": 1}}]});
    let (well, id, _) = told_of("evaluator_optimizer", "failed", "name: w\n", &state);
    assert_eq!(keys(&well, &id), ["produce", "evaluate/1", "revise/1"]);
    let (well, id, _) = told_of(
        "evaluator_optimizer",
        "failed",
        "name: w\n",
        &json!({"current_draft": "one", "iteration_history": []}),
    );
    assert_eq!(keys(&well, &id), ["produce"]);
}

#[test]
fn agents_are_read_in_both_layouts() {
    let step = json!({"index": 0, "agent": "a", "response": "hello\n", "tokens_estimated": 1});
    let state = json!({"current_step": 1, "step_history": [step]});
    for base in ["agents/session_s_a/agents/agent_default", "agents/a"] {
        let folder = tempfile::tempdir().unwrap();
        lay(folder.path(), "chain", "running", "name: w\n", Some(&state));
        let put = |name: String, value: Value| {
            lay_out(folder.path(), &[(name.into(), serde_json::to_vec(&value).unwrap())]);
        };
        put(
            format!("{base}/agent.json"),
            json!({"agent_id": "default", "state": {}, "conversation_manager_state": {"__name__": "N", "removed_message_count": 1}}),
        );
        for (n, role, text) in [(0, "user", "hi"), (1, "assistant", "hello")] {
            put(
                format!("{base}/messages/message_{n}.json"),
                json!({"message": {"role": role, "content": [{"text": text}]}, "message_id": n}),
            );
        }
        let well = Stepwell::in_memory();
        let (id, _) = taken_one(&well, folder.path());
        let lanes: Vec<String> = log(&well, &id)
            .iter()
            .filter_map(|it| match &it.event {
                Event::Message(said) => Some(format!("{}: {}", said.lane, said.text())),
                _ => None,
            })
            .collect();
        assert_eq!(lanes, ["a: hi", "a: hello"], "{base}");
        assert!(
            log(&well, &id)
                .iter()
                .any(|it| matches!(&it.event, Event::Compacted(it) if it.lane.as_str() == "a"))
        );
        let (_kept, path) = written(&well, &id, cli(), "session_s");
        let names =
            |folder: &Path| files(folder).into_iter().map(|(name, _)| name).collect::<Vec<_>>();
        assert_eq!(names(&path), names(folder.path()));
        assert_returns(cli(), folder.path(), "session_s");
    }
}

#[test]
fn a_spec_that_was_changed_is_named() {
    let folder = tempfile::tempdir().unwrap();
    lay(
        folder.path(),
        "chain",
        "running",
        "name: w\n",
        Some(&json!({"current_step": 0, "step_history": []})),
    );
    std::fs::write(folder.path().join("spec_snapshot.yaml"), "name: other\n").unwrap();
    let well = Stepwell::in_memory();
    let (id, report) = taken_one(&well, folder.path());
    assert!(warned(&report, "it is another spec than the session was begun with"), "{report:?}");
    assert_returns(cli(), folder.path(), "session_s");
    let (_kept, path) = written(&well, &id, cli(), "session_s");
    assert_eq!(std::fs::read_to_string(path.join("spec_snapshot.yaml")).unwrap(), "name: other\n");
}

#[test]
fn a_loop_of_a_graph_is_told_as_far_as_its_results_are_recorded() {
    let result = |text: &str, n: u32| json!({"response": text, "agent": "a", "status": "success", "iteration": n});
    // Each visit led to the same node: the last result stands for the earlier ones.
    let state = json!({
        "current_node": "a", "execution_path": ["a", "b", "a", "b"], "total_steps": 4,
        "node_results": {"a": result("ra", 2), "b": result("rb", 2)}, "iteration_counts": {"a": 2, "b": 2},
    });
    let (well, id, report) = told_of("graph", "failed", "name: w\n", &state);
    assert_eq!(keys(&well, &id), ["node/a/1", "node/b/1", "node/a/2", "node/b/2"]);
    assert!(report.warnings.is_empty(), "{report:?}");
    // What a led to differs: what it came to before it led on is not recorded.
    let state = json!({
        "current_node": "c", "execution_path": ["a", "b", "a", "b", "a"], "total_steps": 5,
        "node_results": {"a": result("ra", 3), "b": result("rb", 2)},
    });
    let (well, id, report) = told_of("graph", "failed", "name: w\n", &state);
    assert_eq!(keys(&well, &id), [] as [&str; 0]);
    assert!(warned(&report, "the node a was gone to more than once"), "{report:?}");
}

#[test]
fn a_session_without_a_spec_is_kept() {
    let folder = tempfile::tempdir().unwrap();
    let step = json!({"index": 0, "agent": "a", "response": "r", "tokens_estimated": 1});
    lay(
        folder.path(),
        "chain",
        "failed",
        "x",
        Some(&json!({"current_step": 1, "step_history": [step]})),
    );
    std::fs::remove_file(folder.path().join("spec_snapshot.yaml")).unwrap();
    let well = Stepwell::in_memory();
    let (id, report) = taken_one(&well, folder.path());
    assert_eq!(report.warnings.len(), 1, "{report:?}");
    assert_eq!(keys(&well, &id), ["step/0"]);
    assert_returns(cli(), folder.path(), "session_s");
    // One that is no text.
    let folder = tempfile::tempdir().unwrap();
    lay(
        folder.path(),
        "chain",
        "failed",
        "x",
        Some(&json!({"current_step": 0, "step_history": []})),
    );
    std::fs::write(folder.path().join("spec_snapshot.yaml"), b"name: \xff\n").unwrap();
    let well = Stepwell::in_memory();
    let (id, _) = taken_one(&well, folder.path());
    let (_kept, path) = written(&well, &id, cli(), "session_s");
    assert_eq!(std::fs::read(path.join("spec_snapshot.yaml")).unwrap(), b"name: \xff\n");
}

#[test]
fn hostile_sessions_stay_in_their_place() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("session_evil");
    let deep = format!("{}{}", "[".repeat(10_000), "]".repeat(10_000));
    lay(&path, "workflow", "running", "name: w\n", None);
    let put = |name: &str, text: &str| std::fs::write(path.join(name), text).unwrap();
    put(
        "session.json",
        &format!(
            r#"{{"metadata":{{"session_id":"../../../evil","session_id":"../../evil","spec_hash":"x","pattern_type":"workflow","deep":{deep}}},"variables":{{"v":{deep}}}}}"#
        ),
    );
    put(
        "pattern_state.json",
        &format!(
            r#"{{"task_results":{{"../../x":{{"response":"r","status":"success"}},"ok":{{"response":{deep},"status":"success"}},"a":{{"response":"1"}},"a":{{"response":"2"}}}},"deep":{deep}}}"#
        ),
    );
    std::os::unix::fs::symlink("/etc", path.join("agents")).unwrap();
    let well = Stepwell::in_memory();
    let (id, report) = taken_one(&well, &path);
    assert!(!id.as_str().contains('/'), "{id}");
    assert_eq!(done(&well, &id), [("task/a".to_owned(), json!({"response": "2"}))]);
    assert!(warned(&report, "names no node, and is kept only"), "{report:?}");
    let out = tempfile::tempdir().unwrap();
    let target = out.path().join("a/b/c/session_evil");
    std::fs::create_dir_all(target.parent().unwrap()).unwrap();
    write_to(&target, Existing::Keep, cli().writer().unwrap(), (&well, &id)).unwrap();
    let all = files(out.path());
    assert!(all.iter().all(|(name, _)| name.starts_with("a/b/c/session_evil")), "{all:?}");
    assert!(all.iter().any(|(_, bytes)| bytes.len() > 40_000), "what is deep is kept");
    // Bytes that are no text, an object that is none, and nothing at all.
    for bytes in [&b"{\"a\": \xff}"[..], b"[]", b"", b"{"] {
        std::fs::write(path.join("pattern_state.json"), bytes).unwrap();
        let (_, report) = taken_one(&Stepwell::in_memory(), &path);
        assert!(!report.warnings.is_empty());
    }
    std::fs::write(path.join("session.json"), b"{").unwrap();
    let report = take_in(&Stepwell::in_memory(), Mode::Write, cli(), &path);
    assert!(report.fault.unwrap().to_string().contains("session.json cannot be read"));
}

#[test]
fn a_state_of_very_many_keys_is_read_in_bounds() {
    let tasks: Vec<String> = (0..60_000)
        .map(|n| format!("\"t{n}\":{{\"response\":\"r\",\"status\":\"success\"}}"))
        .collect();
    let names: Vec<String> = (0..60_000).map(|n| format!("\"u{n}\"")).collect();
    let folder = tempfile::tempdir().unwrap();
    lay(folder.path(), "workflow", "running", "name: w\n", None);
    let state = format!(
        "{{\"task_results\":{{{}}},\"completed_tasks\":[{}]}}",
        tasks.join(","),
        names.join(",")
    );
    std::fs::write(folder.path().join("pattern_state.json"), state).unwrap();
    let well = Stepwell::in_memory();
    let report = take_in(&well, Mode::Look, cli(), folder.path());
    assert!(report.fault.is_none() && report.more_warnings > 50_000);
}

/// An object with more fields than are known.
fn with_more(base: Value, more: Vec<(String, Value)>) -> Value {
    let mut all = base;
    for (name, value) in more {
        all.as_object_mut().unwrap().entry(format!("x_{name}")).or_insert(value);
    }
    all
}

fn more() -> impl Strategy<Value = Vec<(String, Value)>> + Clone {
    proptest::collection::vec(("[a-z]{1,5}", unknown()), 0..3)
}

fn words() -> impl Strategy<Value = Value> + Clone {
    prop_oneof![
        8 => "\\PC{0,20}".prop_map(Value::from),
        1 => Just(json!("é\n\u{0}\u{7f}😀")),
        1 => Just(Value::Null),
        1 => unknown(),
    ]
}

fn steps() -> impl Strategy<Value = Value> + Clone {
    let step = (words(), more()).prop_map(|(text, more)| (text, more));
    proptest::collection::vec(step, 0..4).prop_map(|steps| {
        let step = |(n, (text, more)): (usize, (Value, Vec<(String, Value)>))| {
            with_more(
                json!({"index": n, "agent": "a", "response": text, "tokens_estimated": n}),
                more,
            )
        };
        Value::from(steps.into_iter().enumerate().map(step).collect::<Vec<_>>())
    })
}

/// Results by name.
fn results(of: impl Strategy<Value = Value> + Clone) -> impl Strategy<Value = Value> + Clone {
    proptest::collection::btree_map("[a-z]{1,4}", of, 0..3).prop_map(|it| json!(it))
}

/// A state of any pattern.
fn state() -> impl Strategy<Value = (&'static str, Value)> {
    let result = (words(), prop::sample::select(vec!["success", "failed", "not_executed"]), more())
        .prop_map(|(text, status, more)| {
            with_more(json!({"response": text, "status": status, "agent": "a"}), more)
        });
    let chain =
        steps().prop_map(|steps| ("chain", json!({"current_step": 1, "step_history": steps})));
    let workflow = results(result.clone()).prop_map(|tasks| {
        ("workflow", json!({"task_results": tasks, "completed_tasks": ["q"], "current_layer": 0}))
    });
    let routing = (words(), steps()).prop_map(|(text, steps)| ("routing", json!({
        "router_executed": true, "chosen_route": "r", "router_decision": {"chosen_route": "r", "response": text},
        "route_state": {"current_step": 0, "step_history": steps},
    })));
    let branch = (words(), steps(), more()).prop_map(|(text, steps, more)| {
        with_more(json!({"response": text, "status": "success", "step_history": steps}), more)
    });
    let parallel = (results(branch), words(), any::<bool>()).prop_map(|(branches, text, reduced)| ("parallel", json!({
        "completed_branches": [], "branch_results": branches, "reduce_executed": reduced, "final_response": text,
    })));
    let round = (words(), unknown(), more()).prop_map(|(draft, evaluation, more)| with_more(json!({"iteration": 2, "score": 5, "issues": [], "draft": draft, "evaluation": evaluation}), more));
    let evaluator =
        (proptest::collection::vec(round, 0..3), words()).prop_map(|(rounds, draft)| {
            (
                "evaluator_optimizer",
                json!({"current_draft": draft, "iteration_history": rounds, "accepted": false}),
            )
        });
    let orchestrator = (proptest::collection::vec(result.clone(), 0..3), words(), any::<bool>()).prop_map(|(workers, text, flag)| ("orchestrator_workers", json!({
        "workers_executed": flag, "worker_results": workers, "reduce_executed": flag, "reduce_response": text, "writeup_executed": false,
    })));
    let graph = (results(result), proptest::collection::vec("[a-z]", 0..5)).prop_map(|(nodes, path)| ("graph", json!({"current_node": "a", "node_results": nodes, "execution_path": path, "iteration_counts": {}})));
    let any = prop_oneof![chain, workflow, routing, parallel, evaluator, orchestrator, graph];
    (any, more()).prop_map(|((pattern, state), more)| (pattern, with_more(state, more)))
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 96, ..ProptestConfig::default() })]

    #[test]
    fn every_session_returns_with_all_that_is_not_understood(
        (pattern, state) in state(),
        status in prop::sample::select(vec!["running", "paused", "completed", "failed", "odd"]),
    ) {
        told_of(pattern, status, "name: w\n", &state);
    }
}
