//! hook pre-delegate, subagent-stop, install, uninstall, test.

use insta::assert_snapshot;
use serde_json::{Value, json};

use crate::test_env::TestEnv;

const BEFORE: &[&str] = &["hook", "pre-delegate"];
const AFTER: &[&str] = &["hook", "subagent-stop"];

fn waiting(env: &mut TestEnv, id: &str) {
    let args = ["agent", "create", "--agent", "architect", "--purpose", "p", "--id", id];
    env.quietly(&args).line();
    let args = ["agent", "update", id, "--phase", "approval", "--meta", "task_id=T1"];
    env.quietly(&args).line();
}

fn claude(event: &str, conversation: &str) -> Value {
    json!({
        "session_id": conversation, "transcript_path": "/nowhere.jsonl", "cwd": "/",
        "hook_event_name": event, "tool_name": "Task",
        "tool_input": { "subagent_type": "reviewer", "description": "review it", "prompt": "…" },
    })
}

#[test]
fn a_delegation_learns_whether_there_is_something_to_take_up() {
    let mut env = TestEnv::new();
    env.feed(BEFORE, r#"{"agent_name":"architect"}"#);
    waiting(&mut env, "agent-1");
    env.feed(BEFORE, r#"{"agent_name":"architect"}"#);
    env.feed(BEFORE, r#"{"agent_name":"architect","agent_id":"agent-1","extra":[1]}"#);
    env.feed(BEFORE, r#"{"agent_name":"architect","task_id":"T1"}"#);
    env.feed(BEFORE, r#"{"agent_name":"architect","task_id":"T2"}"#);
    env.feed(BEFORE, r#"{"agent_name":"other","task_id":"T1"}"#);
    env.feed(BEFORE, r#"{"agent_id":"agent-2"}"#);
    env.feed(BEFORE, r#"{"agent_id":"../../etc"}"#);
    env.quietly(&["agent", "update", "agent-1", "--phase", "executing"]).line();
    env.feed(BEFORE, r#"{"agent_id":"agent-1"}"#);
    assert_snapshot!(env.transcript());
}

#[test]
fn what_is_no_object_is_invalid_json() {
    let mut env = TestEnv::new();
    for input in ["", "{", "[]", "null", "\"x\"", "{} {}", "\u{0}"] {
        for hook in [BEFORE, AFTER] {
            let ran = env.feed(hook, input);
            assert_eq!(ran.code, Some(1));
            let answer = ran.json();
            assert_eq!(answer.len(), 1);
            assert_eq!(answer[0]["reason"], "invalid_json", "{input}");
        }
    }
}

#[test]
fn an_agent_that_stopped_is_ended_exactly_once() {
    let mut env = TestEnv::new();
    env.feed(AFTER, r#"{"agent_id":"agent-1"}"#);
    waiting(&mut env, "agent-1");
    waiting(&mut env, "agent-2");
    waiting(&mut env, "agent-3");
    env.feed(AFTER, r#"{"agent_id":"agent-1","summary":"done it"}"#);
    env.feed(AFTER, r#"{"agent_id":"agent-1","success":false}"#);
    env.feed(AFTER, r#"{"task_info":{"agent_id":"agent-2"},"success":true}"#);
    env.feed(AFTER, r#"{"agent_id":"agent-3","error":"it broke"}"#);
    env.feed(AFTER, r#"{"agent_id":"nobody"}"#);
    env.feed(AFTER, "{}");
    env.say("agent list");
    assert_eq!(env.quietly(&["agent", "get", "agent-1"]).json()[0]["summary"], "done it");
    assert_snapshot!(env.transcript());
}

#[test]
fn claude_codes_own_payloads_are_understood() {
    let mut env = TestEnv::new();
    env.quietly(&["init"]).line();
    let before = claude("PreToolUse", "conversation-1").to_string();
    let answer = env.feed(BEFORE, &before).json().remove(0);
    assert_eq!(answer["reason"], "no_existing_session");
    let id = answer["agent_id"].as_str().unwrap().to_owned();
    let other = env.feed(BEFORE, &claude("PreToolUse", "conversation-2").to_string());
    let other = other.json()[0]["agent_id"].as_str().unwrap().to_owned();
    assert_ne!(id, other);
    let mut after = claude("SubagentStop", "conversation-1");
    after["agent_id"] = json!("a17");
    let after = after.to_string();
    let stopped = env.feed(AFTER, &after).json().remove(0);
    assert_eq!((&stopped["agent_id"], &stopped["reason"]), (&json!(id), &json!("finalized")));
    // The same end, told again, ends nothing else.
    let again = env.feed(AFTER, &after).json().remove(0);
    assert_eq!((&again["agent_id"], &again["reason"]), (&json!(id), &json!("already_finalized")));
    let phase = |id: &str| env.quietly(&["agent", "get", id]).json()[0]["phase"].clone();
    assert_eq!((phase(&id), phase(&other)), (json!("completed"), json!("initializing")));
    env.say("agent list --json");
    assert_snapshot!(env.transcript());
}

#[test]
fn a_delegation_of_claude_codes_that_was_cut_off_is_offered_again() {
    let mut env = TestEnv::new();
    env.quietly(&["init"]).line();
    let before = claude("PreToolUse", "conversation-1").to_string();
    let id = env.feed(BEFORE, &before).json()[0]["agent_id"].as_str().unwrap().to_owned();
    env.quietly(&["agent", "update", &id, "--phase", "planning"]).line();
    let answer = env.feed(BEFORE, &before).json().remove(0);
    assert_eq!(answer["should_resume"], true);
    assert_eq!(answer["agent_id"], json!(id));
    let context = answer["hookSpecificOutput"]["additionalContext"].as_str().unwrap();
    assert!(context.contains(&id) && context.contains("planning"), "{context}");
}

#[test]
fn a_transcript_that_ends_in_an_error_is_a_failure() {
    let mut env = TestEnv::new();
    env.quietly(&["init"]).line();
    let before = claude("PreToolUse", "conversation-1").to_string();
    env.feed(BEFORE, &before);
    let lines =
        "{\"type\":\"assistant\"}\n{\"type\":\"assistant\",\"isApiErrorMessage\":true}\n{\"torn";
    env.file("t.jsonl", lines);
    let mut after = claude("SubagentStop", "conversation-1");
    after["transcript_path"] = json!(env.work().join("t.jsonl"));
    let stopped = env.feed(AFTER, &after.to_string()).json().remove(0);
    assert_eq!(stopped["outcome"], "failed");
}

#[test]
fn no_fault_of_ours_reaches_the_caller() {
    let mut env = TestEnv::new();
    env.quietly(&["init"]).line();
    env.file(".stepwell/stepwell.db", "this is no database");
    env.feed(BEFORE, r#"{"agent_id":"agent-1"}"#);
    env.feed(AFTER, r#"{"agent_id":"agent-1"}"#);
    env.file("stepwell.toml", "nonsense = [");
    env.feed(BEFORE, r#"{"agent_id":"agent-1"}"#);
    env.feed(AFTER, r#"{"agent_id":"agent-1"}"#);
    assert_snapshot!(env.transcript());
    assert!(env.read(".stepwell/hooks.log").contains("pre-delegate error"));
}

#[test]
fn hooks_are_installed_beside_what_is_there() {
    let mut env = TestEnv::new();
    env.say("hook test");
    env.file(".claude/settings.json", "{\n  \"zeta\": 1,\n  \"alpha\": {\"b\":2,\"a\":1}\n}\n");
    env.say("hook install claude");
    env.say("hook install claude --json");
    let installed = env.read(".claude/settings.json");
    env.say("hook test --json");
    env.say("hook uninstall claude");
    env.say("hook uninstall claude --json");
    let left = env.read(".claude/settings.json");
    env.file(".claude/settings.json", "{ // mine\n}");
    env.say("hook install claude");
    assert_eq!(env.read(".claude/settings.json"), "{ // mine\n}");
    env.say("hook install vim");
    assert_snapshot!(format!("{}{installed}{left}", env.transcript()));
}

/// Runs a hook many times at once on the same input. How often each reason was given.
fn at_once(
    env: &TestEnv,
    hook: &[&str],
    inputs: &[String],
) -> std::collections::BTreeMap<String, usize> {
    use std::io::Write;
    use std::process::Stdio;
    let children: Vec<_> = inputs
        .iter()
        .map(|input| {
            let mut command = env.command(hook);
            let pipes = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
            let mut child = pipes.spawn().unwrap();
            child.stdin.take().unwrap().write_all(input.as_bytes()).unwrap();
            child
        })
        .collect();
    let mut reasons = std::collections::BTreeMap::new();
    for child in children {
        let output = child.wait_with_output().unwrap();
        assert!(output.status.success());
        let answer: Value = serde_json::from_slice(&output.stdout).unwrap();
        *reasons.entry(answer["reason"].as_str().unwrap().to_owned()).or_default() += 1;
    }
    reasons
}

#[test]
fn stops_that_come_at_once_end_a_session_once() {
    let mut env = TestEnv::new();
    waiting(&mut env, "agent-1");
    let inputs: Vec<String> = (0..16)
        .map(|n| json!({ "agent_id": "agent-1", "success": n % 2 == 0 }).to_string())
        .collect();
    let reasons = at_once(&env, AFTER, &inputs);
    assert_eq!(reasons, [("already_finalized".into(), 15), ("finalized".into(), 1)].into());
}

#[test]
fn one_subagents_end_told_many_times_at_once_ends_one_delegation() {
    let mut env = TestEnv::new();
    env.quietly(&["init"]).line();
    for _ in 0..4 {
        env.feed(BEFORE, &claude("PreToolUse", "conversation-1").to_string());
    }
    let mut stop = claude("SubagentStop", "conversation-1");
    stop["agent_id"] = json!("same");
    let reasons = at_once(&env, AFTER, &vec![stop.to_string(); 12]);
    assert_eq!(reasons, [("already_finalized".into(), 11), ("finalized".into(), 1)].into());
    // Different subagents' ends each end one of the others.
    let stops: Vec<String> = (0..3)
        .map(|n| {
            stop["agent_id"] = json!(format!("other-{n}"));
            stop.to_string()
        })
        .collect();
    assert_eq!(at_once(&env, AFTER, &stops), [("finalized".into(), 3)].into());
}

#[test]
fn a_hook_waits_for_no_pipe_and_keeps_no_secret() {
    let mut env = TestEnv::new();
    waiting(&mut env, "agent-1");
    let pipe = env.path("pipe");
    assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    let mut stop = claude("SubagentStop", "c");
    stop["agent_id"] = json!("agent-1");
    stop["transcript_path"] = json!(pipe);
    assert_eq!(env.feed(AFTER, &stop.to_string()).json()[0]["outcome"], "completed");
    env.feed(BEFORE, "\"hunter2\"");
    assert!(!env.read(".stepwell/hooks.log").contains("hunter2"));
    let token = format!("ghp_{}", "A1b2C3d4E5f6G7h8I9j0K1l2M3n4O5p6Q7r8");
    env.feed(AFTER, &json!({ "agent_id": token }).to_string());
    assert!(!env.read(".stepwell/hooks.log").contains(&token));
    env.quietly(&["delete", "agent-1"]).line();
    assert_eq!(env.feed(AFTER, r#"{"agent_id":"agent-1"}"#).json()[0]["reason"], "no_session");
}
