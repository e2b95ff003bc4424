//! Questions to people, and rewinds: only what waits where a session stands is asked.

use crate::desk::Desk;
use crate::flow_questions::refuses_dry_answers;
use crate::running::{one, run};
use crate::subagents::{children, dispatching, repository};

/// Two calls that a person is asked about, one after the other.
const TWO: &str = "answers:
  - {text: First., calls: [{tool: run_command, arguments: {command: 'echo one >> log.txt'}}]}
  - {text: Second., calls: [{tool: run_command, arguments: {command: 'echo two >> log.txt'}}]}
  - {text: Both are done.}
";

/// A desk with a session that waits with the first of two questions.
fn asked() -> (Desk, String, String) {
    let desk = Desk::new();
    desk.file("script.yaml", TWO);
    let asked = one(&desk, &run(&[]), 8);
    let id = asked["session_id"].as_str().unwrap().to_owned();
    let pause = first_pause(&desk, &id);
    (desk, id, pause)
}

/// Where a session first stopped for an answer.
fn first_pause(desk: &Desk, id: &str) -> String {
    let log = desk.quietly(&["log", id, "--kind", "status"]).json();
    let pause = log.iter().find(|it| it["body"]["status"] == "paused").unwrap();
    pause["seq"].to_string()
}

fn rewind(desk: &Desk, typed: &[&str]) {
    let ran = desk.quietly(&[&["rewind"], typed].concat());
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
}

/// The questions that `gates` lists, and how the session stands.
fn waits(desk: &Desk, id: &str) -> (Vec<String>, String) {
    let gates = desk.quietly(&["gates", id, "--json"]).json();
    let prompts = gates.iter().map(|it| it["prompt"].as_str().unwrap().to_owned()).collect();
    let status = desk.quietly(&["show", id, "--json"]).json()[0]["status"].clone();
    (prompts, status.as_str().unwrap().to_owned())
}

#[test]
fn a_yes_is_for_the_question_that_a_rewind_led_back_to() {
    let (desk, id, pause) = asked();
    one(&desk, &["resume", &id, "--approve"], 8);
    rewind(&desk, &[&id, "--to", &pause]);
    let (prompts, status) = waits(&desk, &id);
    assert!(prompts.len() == 1 && prompts[0].contains("echo one"), "{prompts:?}");
    assert_eq!(status, "paused");
    one(&desk, &["resume", &id, "--approve"], 8);
    assert_eq!(desk.read("log.txt"), "one\n");
    one(&desk, &["resume", &id, "--approve"], 0);
    assert_eq!(desk.read("log.txt"), "one\ntwo\n");
}

#[test]
fn a_dry_run_of_an_agent_answers_nothing() {
    let (desk, id, _) = asked();
    refuses_dry_answers(&desk, &["--approve"]);
    refuses_dry_answers(&desk, &["--deny"]);
    one(&desk, &["resume", &id, "--approve"], 8);
    assert_eq!(desk.read("log.txt"), "one\n");
}

#[test]
fn a_session_that_was_done_asks_again_what_it_is_rewound_to() {
    let (desk, id, pause) = asked();
    one(&desk, &["resume", &id, "--approve"], 8);
    one(&desk, &["resume", &id, "--approve"], 0);
    rewind(&desk, &[&id, "--to", &pause]);
    let again = desk.quietly(&["resume", &id]);
    assert_eq!(again.code, Some(8), "{}", again.stderr);
    assert!(again.stderr.contains("It wants to: ") && again.stderr.contains("echo one"));
    assert!(!again.stderr.contains("echo two"), "{}", again.stderr);
    one(&desk, &["resume", &id, "--approve"], 8);
    one(&desk, &["resume", &id, "--approve"], 0);
}

#[test]
fn a_session_waits_only_where_a_question_does() {
    let (desk, id, pause) = asked();
    rewind(&desk, &[&id]);
    assert_eq!(waits(&desk, &id), (vec![], "interrupted".to_owned()));
    let refused = desk.quietly(&["resume", &id, "--approve"]);
    assert_eq!(refused.code, Some(1), "{}", refused.stderr);
    assert_eq!(waits(&desk, &id).1, "interrupted");
    rewind(&desk, &[&id, "--undo"]);
    let (prompts, status) = waits(&desk, &id);
    assert_eq!((prompts.len(), status.as_str()), (1, "paused"));
    // Between an answer and the run that it lets go on, nothing waits.
    one(&desk, &["resume", &id, "--approve"], 8);
    let answered = desk.quietly(&["log", &id, "--kind", "gate_answered"]).json();
    rewind(&desk, &[&id, "--to", &answered[0]["seq"].to_string()]);
    assert_eq!(waits(&desk, &id), (vec![], "interrupted".to_owned()));
    rewind(&desk, &[&id, "--to", &pause]);
    assert_eq!(waits(&desk, &id).1, "paused");
}

#[test]
fn gates_name_only_flags_that_the_session_takes() {
    let (desk, _, _) = asked();
    let listed = desk.quietly(&["gates"]);
    assert!(listed.stderr.contains("--approve"), "{}", listed.stderr);
    assert!(!listed.stderr.contains("--gate"), "{}", listed.stderr);
}

#[test]
fn a_subagent_that_was_rewound_asks_its_parent_anew() {
    let order = "{task: do both, agent: slow, workspace: worktree}";
    let desk = repository(&dispatching(order));
    desk.file("slow.yaml", TWO);
    let asked = one(&desk, &run(&[]), 8);
    let id = asked["session_id"].as_str().unwrap().to_owned();
    one(&desk, &["resume", &id, "--approve"], 8);
    let child = children(&desk)[0]["id"].as_str().unwrap().to_owned();
    let pause = first_pause(&desk, &child);
    one(&desk, &["resume", &id, "--approve"], 8);
    rewind(&desk, &[&child, "--to", &pause]);
    // What this allows is no longer asked; what is, was allowed before it was rewound.
    let again = desk.quietly(&["resume", &id, "--approve"]);
    assert_eq!(again.code, Some(8), "{}", again.stderr);
    assert!(again.stderr.contains("echo one"), "{}", again.stderr);
    let log = format!(".stepwell/worktrees/{child}/log.txt");
    assert!(!desk.work().join(&log).exists());
    let (prompts, _) = waits(&desk, &id);
    assert!(prompts.len() == 1 && prompts[0].contains("echo one"), "{prompts:?}");
    one(&desk, &["resume", &id, "--approve"], 8);
    assert_eq!(desk.read(&log), "one\n");
    // Nor does a question that was rewound wait on.
    rewind(&desk, &[&child, "--to", &pause]);
    one(&desk, &["resume", &id], 8);
    let (prompts, _) = waits(&desk, &id);
    assert!(prompts.len() == 1 && prompts[0].contains("echo one"), "{prompts:?}");
    one(&desk, &["resume", &id, "--approve"], 8);
    one(&desk, &["resume", &id, "--approve"], 0);
    assert_eq!(desk.read(&log), "one\ntwo\n");
}
