//! Sessions of strands-cli that are incomplete, changed, hostile, or of any form at all.

use proptest::prelude::*;
use serde_json::{Value, json};
use stepwell::{Event, Status, Stepwell};
use stepwell_formats::{Destination, Existing, Mode, take_in, write_to};

use crate::mirror::{assert_returns, written};
use crate::seeds::{files, lay_out};
use crate::strands_cli::{cli, done, keys, lay, taken_one, told_of, warned};
use crate::strands_sdk::unknown;
use crate::support::log;

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
    assert!(warned(&report, "steps that are done: 2; steps that are recorded: 1"), "{report:?}");
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
    // It goes back as it came.
    let (_kept, path) = written(&well, &id, cli(), "session_s");
    assert!(path.join("session.json").exists() && !path.join("pattern_state.json").exists());
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
    write_to(&Destination::new(&target, Existing::Keep), cli().writer().unwrap(), &well, &id)
        .unwrap();
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
