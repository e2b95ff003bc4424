//! Questions to people, and rewinds: only what waits where a session stands is asked.

use crate::flow_questions::refuses_dry_answers;
use crate::running::{one, run};
use crate::subagents::{children, dispatching, repository};
use crate::test_env::TestEnv;

/// Two calls that a person is asked about, one after the other.
const TWO: &str = "answers:
  - {text: First., calls: [{tool: run_command, arguments: {command: 'echo one >> log.txt'}}]}
  - {text: Second., calls: [{tool: run_command, arguments: {command: 'echo two >> log.txt'}}]}
  - {text: Both are done.}
";

/// An environment with a session that waits with the first of two questions.
fn asked() -> (TestEnv, String, String) {
    let env = TestEnv::new();
    env.file("script.yaml", TWO);
    let asked = one(&env, &run(&[]), 8);
    let id = asked["session_id"].as_str().unwrap().to_owned();
    let pause = first_pause(&env, &id);
    (env, id, pause)
}

/// Where a session first stopped for an answer.
fn first_pause(env: &TestEnv, id: &str) -> String {
    let log = env.quietly(&["log", id, "--kind", "status"]).json();
    let pause = log.iter().find(|it| it["body"]["status"] == "paused").unwrap();
    pause["seq"].to_string()
}

fn rewind(env: &TestEnv, typed: &[&str]) {
    let ran = env.quietly(&[&["rewind"], typed].concat());
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
}

/// The questions that `gates` lists, and how the session stands.
fn waits(env: &TestEnv, id: &str) -> (Vec<String>, String) {
    let gates = env.quietly(&["gates", id, "--json"]).json();
    let prompts = gates.iter().map(|it| it["prompt"].as_str().unwrap().to_owned()).collect();
    let status = env.quietly(&["show", id, "--json"]).json()[0]["status"].clone();
    (prompts, status.as_str().unwrap().to_owned())
}

#[test]
fn a_yes_is_for_the_question_that_a_rewind_led_back_to() {
    let (env, id, pause) = asked();
    one(&env, &["resume", &id, "--approve"], 8);
    rewind(&env, &[&id, "--to", &pause]);
    let (prompts, status) = waits(&env, &id);
    assert!(prompts.len() == 1 && prompts[0].contains("echo one"), "{prompts:?}");
    assert_eq!(status, "paused");
    one(&env, &["resume", &id, "--approve"], 8);
    assert_eq!(env.read("log.txt"), "one\n");
    one(&env, &["resume", &id, "--approve"], 0);
    assert_eq!(env.read("log.txt"), "one\ntwo\n");
}

#[test]
fn a_dry_run_of_an_agent_answers_nothing() {
    let (env, id, _) = asked();
    refuses_dry_answers(&env, &["--approve"]);
    refuses_dry_answers(&env, &["--deny"]);
    one(&env, &["resume", &id, "--approve"], 8);
    assert_eq!(env.read("log.txt"), "one\n");
}

#[test]
fn a_session_that_was_done_asks_again_what_it_is_rewound_to() {
    let (env, id, pause) = asked();
    one(&env, &["resume", &id, "--approve"], 8);
    one(&env, &["resume", &id, "--approve"], 0);
    rewind(&env, &[&id, "--to", &pause]);
    let again = env.quietly(&["resume", &id]);
    assert_eq!(again.code, Some(8), "{}", again.stderr);
    assert!(again.stderr.contains("It wants to: ") && again.stderr.contains("echo one"));
    assert!(!again.stderr.contains("echo two"), "{}", again.stderr);
    one(&env, &["resume", &id, "--approve"], 8);
    one(&env, &["resume", &id, "--approve"], 0);
}

#[test]
fn a_session_waits_only_where_a_question_does() {
    let (env, id, pause) = asked();
    rewind(&env, &[&id]);
    assert_eq!(waits(&env, &id), (vec![], "interrupted".to_owned()));
    let refused = env.quietly(&["resume", &id, "--approve"]);
    assert_eq!(refused.code, Some(1), "{}", refused.stderr);
    assert_eq!(waits(&env, &id).1, "interrupted");
    rewind(&env, &[&id, "--undo"]);
    let (prompts, status) = waits(&env, &id);
    assert_eq!((prompts.len(), status.as_str()), (1, "paused"));
    // Between an answer and the run that it lets go on, nothing waits.
    one(&env, &["resume", &id, "--approve"], 8);
    let answered = env.quietly(&["log", &id, "--kind", "gate_answered"]).json();
    rewind(&env, &[&id, "--to", &answered[0]["seq"].to_string()]);
    assert_eq!(waits(&env, &id), (vec![], "interrupted".to_owned()));
    rewind(&env, &[&id, "--to", &pause]);
    assert_eq!(waits(&env, &id).1, "paused");
}

#[test]
fn gates_name_only_flags_that_the_session_takes() {
    let (env, _, _) = asked();
    let listed = env.quietly(&["gates"]);
    assert!(listed.stderr.contains("--approve"), "{}", listed.stderr);
    assert!(!listed.stderr.contains("--gate"), "{}", listed.stderr);
}

#[test]
fn a_subagent_that_was_rewound_asks_its_parent_anew() {
    let order = "{task: do both, agent: slow, workspace: worktree}";
    let env = repository(&dispatching(order));
    env.file("slow.yaml", TWO);
    let asked = one(&env, &run(&[]), 8);
    let id = asked["session_id"].as_str().unwrap().to_owned();
    one(&env, &["resume", &id, "--approve"], 8);
    let child = children(&env)[0]["id"].as_str().unwrap().to_owned();
    let pause = first_pause(&env, &child);
    one(&env, &["resume", &id, "--approve"], 8);
    rewind(&env, &[&child, "--to", &pause]);
    // What this allows is no longer asked; what is, was allowed before it was rewound.
    let again = env.quietly(&["resume", &id, "--approve"]);
    assert_eq!(again.code, Some(8), "{}", again.stderr);
    assert!(again.stderr.contains("echo one"), "{}", again.stderr);
    let log = format!(".stepwell/worktrees/{child}/log.txt");
    assert!(!env.work().join(&log).exists());
    let (prompts, _) = waits(&env, &id);
    assert!(prompts.len() == 1 && prompts[0].contains("echo one"), "{prompts:?}");
    one(&env, &["resume", &id, "--approve"], 8);
    assert_eq!(env.read(&log), "one\n");
    // Nor does a question that was rewound wait on.
    rewind(&env, &[&child, "--to", &pause]);
    one(&env, &["resume", &id], 8);
    let (prompts, _) = waits(&env, &id);
    assert!(prompts.len() == 1 && prompts[0].contains("echo one"), "{prompts:?}");
    one(&env, &["resume", &id, "--approve"], 8);
    one(&env, &["resume", &id, "--approve"], 0);
    assert_eq!(env.read(&log), "one\ntwo\n");
}
