//! Writing: only what the user allowed, only an agent's own sessions, never an answer to a
//! question.

use rmcp::model::ErrorCode;
use rmcp::service::ServiceError;
use serde_json::json;
use stepwell::Status;
use stepwell::model::Phase;
use stepwell_mcp::{Access, Options};
use stepwell_workspace::ownership;

use crate::test_env::{SECRET, TestEnv, look};

fn allowing(allow: &[Access]) -> Options {
    Options { allow: allow.to_vec(), ..Options::default() }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_not_allowed_is_not_listed_and_refused_by_name() {
    let env = TestEnv::new();
    let id = env.login();
    let client = env.client(allowing(&[Access::Manage])).await;
    let names: Vec<String> =
        client.0.list_all_tools().await.unwrap().iter().map(|it| it.name.to_string()).collect();
    assert_eq!(names[9..], ["label", "tag", "fork"]);
    let refused = client.call("begin_session", json!({"task": "t", "agent": "a"})).await;
    let Err(ServiceError::McpError(error)) = refused else { panic!("{refused:?}") };
    assert_eq!(error.code, ErrorCode::INVALID_PARAMS);
    assert!(error.message.contains("--allow record"), "{}", error.message);
    let reader = env.client(Options::default()).await;
    for tool in ["label", "tag", "fork", "record_step", "finish_session"] {
        assert!(reader.call(tool, json!({"session": id})).await.is_err(), "{tool}");
    }
    assert_eq!(look(&env, id.as_str()).label, None);
}

#[tokio::test(flavor = "multi_thread")]
async fn no_tool_answers_a_gate_whatever_is_allowed() {
    let env = TestEnv::new();
    let id = env.waiting();
    let client = env.client(allowing(&[Access::Record, Access::Manage])).await;
    let tools = client.0.list_all_tools().await.unwrap();
    let writing: Vec<&str> = tools[9..].iter().map(|it| &*it.name).collect();
    let expected = [
        "begin_session",
        "record_step",
        "set_state",
        "add_task",
        "checkpoint",
        "finish_session",
        "label",
        "tag",
        "fork",
    ];
    assert_eq!(writing, expected);
    let step = json!({"session": id, "messages": [{"role": "user", "text": "yes"}]});
    let refused = client.refusal("record_step", step).await;
    assert!(refused.contains("run by Stepwell"), "{refused}");
    assert_eq!(look(&env, id.as_str()).open_gates, 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_agent_that_nobody_records_becomes_durable() {
    let env = TestEnv::new();
    let client = env.client(allowing(&[Access::Record])).await;
    let begun =
        client.answer("begin_session", json!({"task": "port the parser", "agent": "helper"})).await;
    let id = begun["id"].as_str().unwrap().to_owned();
    let step = json!({"session": id, "model": "m-1", "input_tokens": 10, "output_tokens": 2, "messages": [
        {"role": "user", "text": format!("use {SECRET}")},
        {"role": "assistant", "text": "I look.", "calls": [{"id": "c1", "tool": "grep", "arguments": {"q": "parse"}}]},
        {"role": "tool", "results": [{"call_id": "c1", "text": "parser.rs"}]},
    ]});
    let stepped = client.answer("record_step", step).await;
    assert_eq!(stepped["steps"], 1);
    let state = json!({"session": id, "phase": "executing", "goal": "ship", "metadata": {"pr": 7}});
    assert_eq!(client.answer("set_state", state).await["phase"], "executing");
    let task =
        client.answer("add_task", json!({"session": id, "description": "write tests"})).await;
    assert_eq!((&task["id"], &task["status"]), (&json!("1"), &json!("pending")));
    client.answer("checkpoint", json!({"session": id, "name": "half way"})).await;
    let named = client.answer("read_session", json!({"session": id, "at": "half way"})).await;
    assert_eq!(named["turns"].as_array().unwrap().len(), 3);
    let done = json!({"session": id, "outcome": "completed", "summary": "ported"});
    assert_eq!(client.answer("finish_session", done.clone()).await["phase"], "completed");
    client.answer("finish_session", done).await;
    let other = client.refusal("finish_session", json!({"session": id, "outcome": "failed"})).await;
    assert!(other.contains("already ended, as completed"), "{other}");
    let late = json!({"session": id, "messages": [{"role": "user", "text": "more"}]});
    assert!(client.refusal("record_step", late).await.contains("final"));
    let head = look(&env, &id);
    assert_eq!(
        (head.status, head.phase, head.messages),
        (Status::Success, Some(Phase::Completed), 3)
    );
    assert_eq!((head.goal.as_deref(), head.spent.usage.input), (Some("ship"), 10));
    let store = std::fs::read(env.root().join(".stepwell/stepwell.db")).unwrap();
    assert!(!String::from_utf8_lossy(&store).contains(SECRET));
}

#[tokio::test(flavor = "multi_thread")]
async fn labels_tags_and_forks_are_managed_and_a_fork_is_not_the_users_own() {
    let env = TestEnv::new();
    let (id, other) = (env.login(), env.waiting());
    ownership::mark(&env.workspace, &id);
    let client = env.client(allowing(&[Access::Manage])).await;
    client.answer("label", json!({"session": id, "label": "auth"})).await;
    let taken = client.refusal("label", json!({"session": other, "label": "auth"})).await;
    assert!(taken.contains("already"), "{taken}");
    let tags =
        client.answer("tag", json!({"session": "auth", "add": ["a", "b"], "remove": ["b"]})).await;
    assert_eq!(tags["tags"], json!(["a"]));
    let forked = client.answer("fork", json!({"session": "auth", "at": 3, "label": "again"})).await;
    assert_eq!((&forked["parent"], &forked["at"]), (&json!(id), &json!(3)));
    let fork: stepwell::SessionId = forked["id"].as_str().unwrap().parse().unwrap();
    assert!(!ownership::is_own(&env.workspace, &fork));
    assert_eq!(look(&env, fork.as_str()).status, Status::Interrupted);
    let cleared = client.answer("label", json!({"session": id})).await;
    assert_eq!(cleared["label"], json!(null));
}

#[tokio::test(flavor = "multi_thread")]
async fn what_the_user_allowed_does_not_count_in_a_fork_that_an_agent_made() {
    use stepwell::model::{Mode, Permission, Settings};
    let env = TestEnv::new();
    let id = env.login();
    ownership::mark(&env.workspace, &id);
    let (allowed, parent) = {
        let well = env.well();
        let session = well.lock(&id).unwrap();
        let who = well.who().clone();
        let mode = Settings { mode: Some(Mode::Yolo), who: who.clone(), ..Settings::default() };
        session.append(mode).unwrap();
        let always = Permission { rule: "write_file".to_owned(), allow: true, who: Some(who) };
        (session.append(always).unwrap(), well.weigh(&id).unwrap())
    };
    assert_eq!(parent.mode(Mode::ConfirmSensitive), Mode::Yolo);
    assert!(!parent.ignored.contains(&allowed));
    let client = env.client(allowing(&[Access::Manage])).await;
    let forked = client.answer("fork", json!({"session": id})).await;
    let fork: stepwell::SessionId = forked["id"].as_str().unwrap().parse().unwrap();
    let weighed = env.well().weigh(&fork).unwrap();
    assert_eq!(weighed.mode(Mode::ConfirmSensitive), Mode::ConfirmSensitive);
    assert!(weighed.ignored.contains(&allowed), "{weighed:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_state_is_recorded_wholly_or_not_at_all() {
    let env = TestEnv::new();
    let client = env.client(allowing(&[Access::Record])).await;
    let begun = client.answer("begin_session", json!({"task": "port it", "agent": "porter"})).await;
    let id = begun["id"].as_str().unwrap().to_owned();
    let before = look(&env, &id);
    let long = "x".repeat(70_000);
    let input = json!({"session": id, "phase": "executing", "goal": long});
    let refused = client.refusal("set_state", input).await;
    assert!(refused.contains("a goal has at most"), "{refused}");
    let after = look(&env, &id);
    assert_eq!((after.seq, after.phase), (before.seq, before.phase));
}
