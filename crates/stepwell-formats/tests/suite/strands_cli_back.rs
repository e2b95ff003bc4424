//! Flows on their way to strands-cli: begun here, gone on with here, and refused.

use serde_json::{Value, json};
use stepwell::model::{Flow, GateAnswered, Node, NodeState, SpecHash, StatusChanged};
use stepwell::{Created, Event, Message, SessionId, Status, Stepwell, StopReason};
use stepwell_formats::{Became, Destination, Existing, write_to};

use crate::mirror::{assert_returns, told, written};
use crate::seeds::files;
use crate::strands_cli::{cli, fixture, keys, lay, name_of, taken_one};
use crate::strands_loader::load;

/// A flow that was begun here.
fn native(well: &Stepwell, name: &str, pattern: &str, spec: &str) -> stepwell::Session {
    let id: SessionId = name.parse().unwrap();
    let mut created = Created::new(id, "w");
    created.flow = Some(Flow {
        name: "w".to_owned(),
        pattern: pattern.to_owned(),
        spec: spec.to_owned(),
        hash: SpecHash::of(spec.as_bytes()),
        variables: [("loaf".to_owned(), json!("rye")), ("n".to_owned(), json!(3))].into(),
    });
    well.create(created).unwrap()
}

fn node(key: &str, output: Value) -> Node {
    Node {
        key: key.to_owned(),
        state: NodeState::Done,
        output: Some(output),
        usage: None,
        error: None,
    }
}

fn spec(name: &str) -> String {
    std::fs::read_to_string(fixture(name).join("spec_snapshot.yaml")).unwrap()
}

/// A pattern, the fixture whose spec it has, what is done, and what the system takes as done.
type Case = (&'static str, &'static str, Vec<(&'static str, Value)>, &'static [&'static str]);

#[test]
fn a_flow_of_every_pattern_that_was_begun_here_is_taken_there() {
    let says = |text: &str| json!({"response": text});
    let cases: [Case; 7] = [
        (
            "chain",
            "chain-finished",
            vec![("step/0", says("a")), ("step/1", says("b"))],
            &["0: a", "1: b"],
        ),
        (
            "workflow",
            "workflow-broken",
            vec![("task/dough", says("a")), ("task/rolls", says("b"))],
            &["dough", "rolls"],
        ),
        (
            "routing",
            "routing-broken",
            vec![
                ("router/1", json!({"response": "x", "chosen_route": "order"})),
                ("route/order/0", says("b")),
            ],
            &["route order", "0: b"],
        ),
        (
            "parallel",
            "parallel-broken",
            vec![
                ("branch/flour/0", says("a")),
                ("branch/butter/0", says("d")),
                ("branch/flour/1", says("b")),
                ("reduce", says("all")),
            ],
            &["flour", "butter", "all"],
        ),
        (
            "evaluator_optimizer",
            "drafts-broken",
            vec![
                ("produce", says("a")),
                ("evaluate/1", json!({"response": "{}", "score": 30, "issues": [], "fixes": []})),
                ("revise/1", says("b")),
            ],
            &["a 30", "b"],
        ),
        (
            "orchestrator_workers",
            "orchestrator-broken",
            vec![
                ("plan/1", json!({"response": "[]", "tasks": [{"task": "t"}]})),
                ("worker/1/0", says("w")),
                ("reduce", says("all")),
            ],
            &["w", "all"],
        ),
        (
            "graph",
            "graph-asking",
            vec![
                ("node/probe/1", says("a")),
                ("node/ask/1", json!({"response": "burn", "who": "me"})),
            ],
            &["probe", "ask"],
        ),
    ];
    for (n, (pattern, from, nodes, expected)) in cases.into_iter().enumerate() {
        let well = Stepwell::in_memory();
        let name = format!("20260223-143022-a1b2c{n}");
        let session = native(&well, &name, pattern, &spec(from));

        for (key, output) in &nodes {
            session.append(node(key, output.clone())).unwrap();
        }
        session
            .append(StatusChanged {
                status: Status::Failed,
                reason: Some(StopReason::LlmError),
                error: Some("boom".to_owned()),
            })
            .unwrap();
        drop(session);
        let (_kept, path) =
            written(&well, &name.parse().unwrap(), cli(), &format!("session_{name}"));
        let loaded = load(&path).unwrap();
        assert_eq!((loaded.id.as_str(), loaded.status.as_str()), (name.as_str(), "failed"));
        assert_eq!(loaded.done(), expected, "{pattern}: {}", loaded.state);
        assert_eq!(loaded.session["variables"], json!({"loaf": "rye", "n": "3"}));
        assert_eq!(loaded.session["metadata"]["error"], "boom");
        if pattern == "graph" {
            assert_eq!(loaded.state["node_results"]["probe"]["agent"], "y", "and not true");
        }
        // What is done there is done here again.
        let there = Stepwell::in_memory();
        let (id, report) = taken_one(&there, &path);
        assert!(report.warnings.is_empty(), "{pattern}: {report:?}");
        let mut wanted: Vec<String> = nodes.iter().map(|(key, _)| (*key).to_owned()).collect();
        let mut found = keys(&there, &id);
        wanted.sort();
        found.sort();
        assert_eq!(found, wanted, "{pattern}");
        assert_returns(cli(), &path, &format!("session_{name}"));
    }
}

#[test]
fn what_was_done_here_is_laid_over_what_came_from_there() {
    let well = Stepwell::in_memory();
    let folder = fixture("chain-asking");
    let (id, _) = taken_one(&well, &folder);
    let session = well.lock(&id).unwrap();
    let answer = GateAnswered::new("step/1".to_owned(), "paint it".to_owned(), "me".to_owned());
    session.append(answer).unwrap();
    session.append(node("step/1", json!({"response": "paint it", "who": "me"}))).unwrap();
    let started = Node { state: NodeState::Started, output: None, ..node("step/2", Value::Null) };
    session.append(started).unwrap();
    session.append(Message::user("go ahead").in_lane("painter".parse().unwrap())).unwrap();
    session.append(Message::assistant("the end").in_lane("painter".parse().unwrap())).unwrap();
    session.append(node("step/2", json!({"response": "the end"}))).unwrap();
    session.append(StatusChanged { status: Status::Success, reason: None, error: None }).unwrap();
    drop(session);
    let (_kept, path) = written(&well, &id, cli(), &name_of(&folder));
    let loaded = load(&path).unwrap();
    assert_eq!(loaded.status, "completed");
    assert_eq!(loaded.done(), ["0: Warm since four\n", "1: paint it", "2: the end"]);
    assert_eq!(loaded.state.get("hitl_state"), None);
    assert_eq!(loaded.state["step_history"][1]["type"], "hitl");
    assert_eq!(
        loaded.state["step_history"][0]["tokens_estimated"], 19,
        "what it used there counts"
    );
    assert_eq!(loaded.session["token_usage"]["total_input_tokens"], 12);
    assert_eq!(
        loaded.session["runtime_config"]["host"], "http://127.0.0.1:21777",
        "what was there stays"
    );
    let messages =
        files(&path).into_iter().filter(|(name, _)| name.to_string_lossy().contains("/messages/"));
    assert_eq!(messages.count(), 4, "two came from there, and two were said here");
}

#[test]
fn what_is_no_flow_is_refused() {
    let well = Stepwell::in_memory();
    let name: SessionId = "20260223-143022-a1b2c3".parse().unwrap();
    drop(well.create(Created::new(name.clone(), "t")).unwrap());
    let folder = tempfile::tempdir().unwrap();
    let refused = write_to(
        &Destination::new(&folder.path().join("session_x"), Existing::Keep),
        cli().writer().unwrap(),
        &well,
        &name,
    );
    assert!(refused.unwrap_err().to_string().contains("runs no flow"));
    assert!(files(folder.path()).is_empty());
}

#[test]
fn a_session_that_went_on_there_is_gone_on_with_here() {
    let folder = tempfile::tempdir().unwrap();
    let step = |n: u32| json!({"index": n, "agent": "a", "response": format!("r{n}"), "tokens_estimated": 1});
    lay(
        folder.path(),
        "chain",
        "running",
        "name: w\n",
        Some(&json!({"current_step": 1, "step_history": [step(0)]})),
    );
    let well = Stepwell::in_memory();
    let (id, _) = taken_one(&well, folder.path());
    lay(
        folder.path(),
        "chain",
        "completed",
        "name: w\n",
        Some(&json!({"current_step": 2, "step_history": [step(0), step(1)]})),
    );
    let (again, report) = taken_one(&well, folder.path());
    assert_eq!((&again, report.sessions[0].became), (&id, Became::Updated));
    assert_eq!(keys(&well, &id), ["step/0", "step/1"]);
    assert_eq!(well.info(&id).unwrap().head.status, Status::Success);
    assert!(
        !told(&well, &id).iter().any(|it| matches!(it, Event::Rewound(_))),
        "it was only added to"
    );
}

#[test]
fn a_workflow_in_the_older_form_that_was_finished_here_goes_back_in_that_form() {
    let spec = "name: w\npattern: {type: workflow, config: {tasks: [{id: t1, agent: a}, \
        {id: t2, agent: a}, {id: t3, agent: a, deps: [t1, t2]}, {id: t4, agent: a, deps: [t3]}, \
        {id: t5, agent: a, deps: [t4]}]}}\n";
    let state = json!({
        "completed_tasks": ["t1"], "pending_tasks": ["t2"], "blocked_tasks": ["t3", "t4", "t5"],
        "task_outputs": {"t1": {"response": "one", "tokens": 1000}},
    });
    let folder = tempfile::tempdir().unwrap();
    lay(folder.path(), "workflow", "running", spec, Some(&state));
    let well = Stepwell::in_memory();
    let (id, _) = taken_one(&well, folder.path());
    let says = |text: &str| json!({"response": text});
    let session = well.resume(&id).unwrap();
    let usage = stepwell::model::Usage { input: 5, output: 2, ..Default::default() };
    for (key, text) in [("task/t2", "two"), ("task/t3", "three")] {
        session.append(Node { usage: Some(usage), ..node(key, says(text)) }).unwrap();
    }
    let (_kept, path) = written(&well, &id, cli(), "session_s");
    let read = |path: &std::path::Path| -> Value {
        let text = std::fs::read_to_string(path.join("pattern_state.json")).unwrap();
        serde_json::from_str(&text).unwrap()
    };
    assert_eq!(
        read(&path),
        json!({
            "completed_tasks": ["t1", "t2", "t3"], "pending_tasks": ["t4"], "blocked_tasks": ["t5"],
            "task_outputs": {
                "t1": {"response": "one", "tokens": 1000},
                "t2": {"response": "two", "tokens": 7},
                "t3": {"response": "three", "tokens": 7},
            },
        })
    );
    for key in ["task/t4", "task/t5"] {
        session.append(node(key, says("done"))).unwrap();
    }
    let (_kept, path) = written(&well, &id, cli(), "session_s");
    let finished = read(&path);
    assert_eq!(finished["pending_tasks"], json!([]));
    assert_eq!(finished["blocked_tasks"], json!([]));
    assert_eq!(finished["task_outputs"]["t5"]["response"], "done");
    let again = Stepwell::in_memory();
    let (id, _) = taken_one(&again, &path);
    assert_eq!(keys(&again, &id), ["task/t1", "task/t2", "task/t3", "task/t4", "task/t5"]);
}
