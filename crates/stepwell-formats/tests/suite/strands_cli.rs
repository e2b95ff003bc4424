//! strands-cli's sessions, and what bites in them.

use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use stepwell::model::{Gate, Node, NodeState, SpecHash};
use stepwell::{Event, Message, Recorded, SessionId, Status, Stepwell};
use stepwell_formats::{Became, Format, Mode, Report, take_in};

use crate::mirror::{assert_returns, became, taken, written};
use crate::seeds::{files, fixtures, lay_out};
use crate::strands_loader::load;
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

pub(crate) const FIXTURES: [&str; 9] = [
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

pub(crate) fn warned(report: &Report, what: &str) -> bool {
    report.warnings.iter().any(|warning| warning.what.contains(what))
}

/// The nodes that are done, with what they came to.
pub(crate) fn done(well: &Stepwell, id: &SessionId) -> Vec<(String, Value)> {
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
pub(crate) fn open(well: &Stepwell, id: &SessionId) -> Vec<Gate> {
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
    let hash = SpecHash::of(spec.as_bytes()).to_string();
    let session = json!({
        "metadata": {
            "session_id": "s", "workflow_name": "w", "spec_hash": hash,
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
pub(crate) fn told_of(
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
        assert_eq!((flow.hash, &flow.spec), (SpecHash::of(spec.as_bytes()), &spec), "{name}");
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
