//! agent create, update, get, should-resume, finalize, list, cleanup.

use insta::assert_snapshot;

use crate::test_env::{AUTH, TestEnv};

fn begin(env: &mut TestEnv, id: &str) {
    let purpose = "approval_workflow";
    env.run(&[
        "agent",
        "create",
        "--agent",
        "terraform-architect",
        "--purpose",
        purpose,
        "--id",
        id,
    ]);
}

#[test]
fn an_agent_lives_from_create_to_finalize() {
    let mut env = TestEnv::new();
    begin(&mut env, "agent-1");
    env.say("agent should-resume agent-1");
    env.say("agent update agent-1 --phase planning --meta task_id=T001 --meta tags:=[1]");
    env.say("agent should-resume agent-1");
    env.say("agent update agent-1 --phase approval --meta more=yes --json");
    env.say("agent should-resume agent-1 --json");
    env.say("agent get agent-1");
    env.say("agent update agent-1 --phase executing");
    env.say("agent should-resume agent-1");
    env.run(&["agent", "finalize", "agent-1", "completed", "--summary", "applied"]);
    env.say("agent finalize agent-1 completed");
    env.say("agent finalize agent-1 failed");
    env.say("agent update agent-1 --phase planning");
    env.say("agent should-resume agent-1");
    env.say("agent get agent-1");
    assert_snapshot!(env.transcript());
}

#[test]
fn what_an_agent_cannot_do_changes_nothing() {
    let mut env = TestEnv::new();
    begin(&mut env, "agent-1");
    let before = env.quietly(&["log", "agent-1"]).stdout;
    env.say("agent update agent-1 --phase flying --meta x=1");
    env.say("agent update agent-1 --phase idle");
    env.say("agent update agent-1 --ready --not-ready");
    env.say("agent update agent-1 --meta novalue");
    env.say("agent update agent-1 --meta x:=nonsense");
    env.say("agent finalize agent-1 executing");
    env.say("agent create --agent a");
    begin(&mut env, "agent-1");
    begin(&mut env, "../agent");
    env.say("agent get nobody");
    env.say("agent update nobody --phase planning");
    env.say("agent finalize nobody failed");
    env.say("agent should-resume nobody");
    env.say("agent should-resume nobody --json");
    assert_eq!(env.quietly(&["log", "agent-1"]).stdout, before);
    // A final phase is final, whatever else the update says.
    env.quietly(&["agent", "finalize", "agent-1", "failed"]).line();
    let before = env.quietly(&["log", "agent-1"]).stdout;
    env.say("agent update agent-1 --meta x=1 --phase executing");
    assert_eq!(env.quietly(&["log", "agent-1"]).stdout, before);
    assert_snapshot!(env.transcript());
}

#[test]
fn each_of_the_five_checks_has_its_own_word() {
    let mut env = TestEnv::new();
    begin(&mut env, "agent-1");
    env.quietly(&["agent", "update", "agent-1", "--phase", "approval"]).line();
    env.say("agent should-resume agent-1");
    env.quietly(&["agent", "update", "agent-1", "--not-ready"]).line();
    env.say("agent should-resume agent-1");
    env.quietly(&["agent", "update", "agent-1", "--ready"]).line();
    env.quietly(&["agent", "update", "agent-1", "--error", "one"]).line();
    env.quietly(&["agent", "update", "agent-1", "--error", "two"]).line();
    env.say("agent should-resume agent-1");
    env.quietly(&["agent", "update", "agent-1", "--error", "three"]).line();
    env.say("agent should-resume agent-1");
    env.say("agent should-resume agent-1 --config agent.max_errors=4");
    env.say(
        "agent should-resume agent-1 --config agent.max_errors=4 --config agent.resume_timeout=0s",
    );
    env.quietly(&["agent", "update", "agent-1", "--phase", "validating", "--ready"]).line();
    env.say("agent should-resume agent-1 --config agent.max_errors=4");
    assert_snapshot!(env.transcript());
}

#[test]
fn a_time_from_the_future_is_not_fresh() {
    let env = TestEnv::new();
    let well = env.well();
    let created = stepwell::Created::new("ahead".parse().unwrap(), "p")
        .with_phases(stepwell::model::PhaseSet::Lifecycle)
        .driven_externally();
    let at = Some(well.now().plus(std::time::Duration::from_secs(3600)));
    let create = stepwell::store::Create { created, event_id: None, at, claim: None };
    well.store().write(stepwell::store::Write::Create(create)).unwrap();
    env.quietly(&["agent", "update", "ahead", "--phase", "approval"]).line();
    let answer = env.quietly(&["agent", "should-resume", "ahead"]);
    assert_eq!((answer.stdout.as_str(), answer.code), ("false in_the_future\n", Some(1)));
}

#[test]
fn agents_are_listed_and_cleaned_up_apart_from_other_sessions() {
    let mut env = TestEnv::furnished();
    env.say("agent list");
    begin(&mut env, "agent-1");
    env.say("agent create --agent other --purpose look --id agent-2");
    env.quietly(&["agent", "finalize", "agent-2", "abandoned"]).line();
    env.say("agent list");
    env.say("agent list --active-only");
    env.say("agent list --agent other --json");
    env.say("agent cleanup --hours 24");
    env.say("agent cleanup --hours 0 --dry-run");
    env.say("agent cleanup --hours 0 --config agent.resume_timeout=0s");
    env.say("agent cleanup --hours -1");
    env.say("sessions");
    // A run of Stepwell's own is not an agent's to update.
    env.run(&["agent", "update", AUTH, "--phase", "planning"]);
    let size = regex::Regex::new(r"\d+ B").unwrap();
    assert_snapshot!(size.replace_all(&env.transcript(), "[SIZE]"));
}

#[test]
fn turns_of_an_agent_are_told_with_their_tools_all_or_none() {
    let mut env = TestEnv::new();
    begin(&mut env, "agent-1");
    let calls = r#"{"content":[{"type":"text","text":"I look."},{"type":"tool_use","id":"c1","name":"read","input":{"path":"a"}}]}"#;
    let answers =
        r#"{"role":"user","content":[{"type":"tool_result","tool_use_id":"c1","content":"rye"}]}"#;
    let say = ["agent", "say", "agent-1", "--role", "assistant"];
    let wrong =
        format!("{calls}\n{answers}\n{{\"role\":\"user\",\"text\":[{{\"type\":\"video\"}}]}}\n");
    let before = env.quietly(&["log", "agent-1"]).stdout;
    let refused = env.feed(&say, &wrong);
    assert_eq!(refused.code, Some(2), "{}", refused.stderr);
    assert!(
        refused.stderr.contains("line 3 of stdin is not a turn: unknown block \"video\""),
        "{}",
        refused.stderr
    );
    assert_eq!(env.quietly(&["log", "agent-1"]).stdout, before);
    let told = env.feed(&say, &format!("{calls}\n{answers}\n"));
    assert_eq!(told.code, Some(0), "{}", told.stderr);
    let messages = env.quietly(&["log", "agent-1", "--kind", "message", "--json"]).json();
    let call = &messages[0]["body"]["parts"][1]["tool_call"];
    assert_eq!((&call["name"], &call["arguments"]), (&"read".into(), &r#"{"path":"a"}"#.into()));
    let result = &messages[1]["body"]["parts"][0]["tool_result"];
    assert_eq!((&result["call_id"], &result["text"]), (&"c1".into(), &"rye".into()));
    let turns = env.quietly(&["agent", "turns", "agent-1"]).stdout;
    assert!(turns.contains("[read {\"path\":\"a\"}]") && turns.contains("rye"), "{turns}");
}

#[test]
fn updates_that_come_at_once_wait_for_each_other() {
    let mut env = TestEnv::new();
    begin(&mut env, "agent-1");
    let mut children: Vec<_> = (0..8)
        .map(|n| {
            let meta = format!("k{n}={n}");
            let args = ["agent", "update", "agent-1", "--phase", "planning", "--meta", &meta];
            env.command(&args).stdout(std::process::Stdio::null()).spawn().unwrap()
        })
        .collect();
    assert!(children.iter_mut().all(|child| child.wait().unwrap().success()));
    let agent = &env.quietly(&["agent", "get", "agent-1"]).json()[0];
    assert_eq!(agent["metadata"].as_object().unwrap().len(), 8);
    assert_eq!(agent["history"].as_array().unwrap().len(), 1);
}

#[test]
fn nothing_that_is_typed_or_told_stores_a_secret_and_the_user_is_told_so() {
    let env = TestEnv::new();
    let secret = format!("ghp_{}", "aB3dE5gH7jK9mN1p".repeat(3));
    let made = env.quietly(&["agent", "create", "--agent", "a", "--purpose", &secret]);
    assert_eq!(made.code, Some(0), "{}", made.stderr);
    assert!(made.stderr.contains("was not stored"), "{}", made.stderr);
    let id = made.line();
    let meta = format!("note={secret}");
    for args in [
        &["agent", "update", &id, "--error", &secret][..],
        &["agent", "update", &id, "--meta", &meta],
        &["label", &id, &secret],
        &["tag", &id, &secret],
        &["checkpoint", &id, &secret],
    ] {
        let ran = env.quietly(args);
        assert_eq!(ran.code, Some(0), "{args:?}: {}", ran.stderr);
        assert!(ran.stderr.contains("was not stored"), "{args:?}: {}", ran.stderr);
    }
    let log = env.quietly(&["log", &id]).stdout;
    assert!(!log.contains(&secret) && log.contains("[redacted:github-token]"), "{log}");
    for entry in std::fs::read_dir(env.work().join(".stepwell")).unwrap().flatten() {
        let bytes = std::fs::read(entry.path()).unwrap_or_default();
        let found = bytes.windows(secret.len()).any(|window| window == secret.as_bytes());
        assert!(!found, "{:?}", entry.path());
    }
}
