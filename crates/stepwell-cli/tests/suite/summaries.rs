//! Lists are summaries: each session takes a bounded part of them, and says where it came from.

use serde_json::Value;

use crate::flows::{SCRIPT, SPEC, ends, env, run};
use crate::foreign::agents;
use crate::test_env::{TESTS, TestEnv};

/// A text that no list should carry.
fn long(word: &str) -> String {
    format!("{word} ").repeat(20_000)
}

/// A flow whose first node came to a long answer.
fn long_flow() -> TestEnv {
    let answer = long("draft");
    let env = env(SPEC, &SCRIPT.replace("a draft", answer.trim()));
    ends(&run(&env, &[]), 8);
    env
}

#[test]
fn a_list_does_not_carry_what_a_flows_nodes_came_to() {
    let env = long_flow();
    let listed = env.quietly(&["sessions", "--json"]);
    assert!(listed.stdout.len() < 4_000, "{} bytes", listed.stdout.len());
    let flow = &listed.json()[0]["flow"];
    assert_eq!((&flow["name"], &flow["pattern"]), (&"letters".into(), &"chain".into()));
    assert!(flow.get("nodes").is_none() && flow.get("variables").is_none(), "{flow}");
    // One session has all of it.
    let shown = env.quietly(&["show", "@last", "--json"]).json().remove(0);
    assert_eq!(shown["flow"]["nodes"][0]["answer"], long("draft").trim());
}

#[test]
fn a_session_takes_a_bounded_part_of_a_list_whatever_it_remembers() {
    let env = TestEnv::furnished();
    let (note, goal) = (format!("note={}", &long("note")[..60_000]), long("goal"));
    env.quietly(&["meta", TESTS, "a=1", &note, "z=2"]).line();
    env.quietly(&["state", TESTS, "goal", &goal[..60_000]]).line();
    let listed = env.quietly(&["sessions", "--json", "--tag", "ci"]);
    assert!(listed.stdout.len() < 8_000, "{} bytes", listed.stdout.len());
    let session = listed.json().remove(0);
    assert_eq!(session["metadata"], serde_json::json!({"a": "1", "z": "2"}));
    assert_eq!(session["metadata_left_out"], serde_json::json!(["note"]));
    let goal = session["goal"].as_str().unwrap();
    assert!(goal.starts_with("goal goal ") && goal.len() < 2_100, "{goal}");
    let shown = env.quietly(&["show", TESTS, "--json"]).json().remove(0);
    assert!(shown["metadata"]["note"].as_str().unwrap().len() > 50_000);
    assert!(shown["goal"].as_str().unwrap().len() > 50_000);
}

#[test]
fn show_cuts_long_values_for_people_and_says_how_to_see_all() {
    let env = long_flow();
    let note = format!("note={}", &long("note")[..60_000]);
    env.quietly(&["meta", "@last", &note]).line();
    let shown = env.quietly(&["show", "@last"]);
    assert!(shown.stdout.len() < 4_000, "{} bytes", shown.stdout.len());
    assert!(shown.stdout.contains("step/0 done: draft draft"), "{}", shown.stdout);
    let id = env.quietly(&["sessions", "--json"]).json()[0]["id"].as_str().unwrap().to_owned();
    let hint = format!("hint: stepwell show {id} --json has long values whole");
    assert!(shown.stderr.contains(&hint), "{}", shown.stderr);
    // Nothing is said where nothing is cut.
    let short = TestEnv::furnished().quietly(&["show", TESTS]);
    assert!(!short.stderr.contains("whole"), "{}", short.stderr);
}

fn sources(lines: &[Value]) -> Vec<&str> {
    lines.iter().map(|line| line["source"].as_str().unwrap_or("-")).collect()
}

#[test]
fn one_word_filters_lists_searches_and_statistics_by_where_sessions_came_from() {
    let env = agents();
    assert_eq!(env.quietly(&["import", "--yes"]).code, Some(0));
    env.file("quick.yaml", "- text: Done with the oven.\n");
    let ran = env.quietly(&["run", "heat the oven", "--model", "script:quick.yaml"]);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    let all = env.quietly(&["sessions", "--all", "--json"]).json();
    let (claude, codex) = ("claude-code", "codex");
    assert!(sources(&all).contains(&claude) && sources(&all).contains(&codex));
    assert!(sources(&all).contains(&"-"), "{all:?}");
    let of = |args: &[&str]| env.quietly(&[args, &["--source", claude, "--json"]].concat()).json();
    let listed = of(&["sessions", "--all"]);
    assert!(!listed.is_empty() && sources(&listed).iter().all(|it| *it == claude), "{listed:?}");
    let hits = of(&["search", "the"]);
    assert!(!hits.is_empty() && sources(&hits).iter().all(|it| *it == claude), "{hits:?}");
    let counted = of(&["stats"]).remove(0);
    let whole = env.quietly(&["stats", "--json"]).json().remove(0);
    assert!(counted["sessions"].as_u64() < whole["sessions"].as_u64());
    let groups: Vec<&str> = whole["by_source"]
        .as_array()
        .unwrap()
        .iter()
        .map(|it| it["name"].as_str().unwrap())
        .collect();
    assert!(groups.contains(&claude) && groups.contains(&"-"), "{groups:?}");
    // People see it as a column, where there is something to see.
    let table = env.quietly(&["sessions", "--all"]).stdout;
    assert!(table.lines().next().unwrap().contains("SOURCE"), "{table}");
    assert!(env.quietly(&["search", "the"]).stdout.contains("  codex"), "a hit says it");
    let own = TestEnv::furnished().quietly(&["sessions"]).stdout;
    assert!(!own.contains("SOURCE"), "{own}");
    // The word from before is gone.
    assert_eq!(env.quietly(&["sessions", "--system", claude]).code, Some(2));
}

#[test]
fn a_list_can_be_of_those_that_can_be_resumed_now() {
    let mut env = TestEnv::new();
    let id =
        |env: &TestEnv| env.quietly(&["agent", "create", "--agent", "a", "--purpose", "p"]).line();
    let (waiting, busy) = (id(&env), id(&env));
    env.quietly(&["agent", "update", &waiting, "--phase", "approval"]).line();
    env.quietly(&["agent", "update", &busy, "--phase", "executing"]).line();
    let ready = |env: &TestEnv| {
        let listed = env.quietly(&["sessions", "--ready", "--json"]).json();
        listed.iter().map(|it| it["id"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(ready(&env), std::slice::from_ref(&waiting));
    // An hour later it has been silent for too long.
    env.set("STEPWELL_NOW", "2026-03-09T13:00:00Z");
    assert!(ready(&env).is_empty());
}

#[test]
fn a_checkpoint_says_in_which_phase_it_was_made_and_a_resumed_agent_what_was_said_last() {
    let env = TestEnv::new();
    let id = env.quietly(&["agent", "create", "--agent", "a", "--purpose", "p"]).line();
    env.quietly(&["agent", "update", &id, "--phase", "planning"]).line();
    env.quietly(&["checkpoint", &id, "before-asking"]).line();
    env.quietly(&["agent", "say", &id, "--role", "user", "plan the migration"]).line();
    env.quietly(&["agent", "update", &id, "--phase", "approval"]).line();
    let made = env.quietly(&["checkpoint", &id, "--json"]).json();
    let phases: Vec<_> = made.iter().map(|it| (&it["name"], &it["phase"])).collect();
    let at = |name: &'static str, phase: &'static str| (Value::from(name), Value::from(phase));
    let expected = [
        at("phase-planning", "planning"),
        at("before-asking", "planning"),
        at("phase-approval", "approval"),
    ];
    assert_eq!(phases, expected.iter().map(|(name, phase)| (name, phase)).collect::<Vec<_>>());
    let mut env = env;
    let asked = format!(r#"{{"agent_id": "{id}"}}"#);
    let answer = env.feed(&["hook", "pre-delegate"], &asked).json().remove(0);
    assert_eq!(answer["resume_metadata"]["turns"][0]["text"], "plan the migration", "{answer}");
}
