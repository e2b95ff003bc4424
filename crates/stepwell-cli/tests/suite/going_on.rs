//! What a run tells while it goes on, and what makes it go on.

use std::process::Stdio;

use stepwell::model::{StatusChanged, Task};
use stepwell::store::query::Query;
use stepwell::{Event, Message, Status, StopReason};

use crate::running::{env, one, run};
use crate::terminal::watched;
use crate::test_env::TestEnv;

#[test]
fn a_script_that_fails_in_passing_is_asked_again_and_so_is_its_resume() {
    let script = "
prices: {input: '3', output: '15'}
answers:
  - text: I look at the code.
    calls: [{tool: list_files, arguments: {}}]
    usage: {input: 812, output: 41}
  - {fail: [rate_limited, truncated], delay_ms: 5, text: Done.}
";
    let whole = env(script);
    assert_eq!(one(&whole, &run(&["--mode", "yolo"]), 0)["output"], "Done.");
    let stopped = env(script);
    one(&stopped, &run(&["--mode", "yolo", "--max-steps", "1"]), 5);
    assert_eq!(one(&stopped, &["resume"], 0)["output"], "Done.");
    let tired = env("- {fail: [unavailable], forever: true, text: never}\n");
    assert_eq!(one(&tired, &run(&[]), 1)["stop_reason"], "llm_error");
}

/// A session whose model spoke last, and what was recorded of how it stands.
fn info(events: Vec<Event>) -> TestEnv {
    let env = env("- {text: I begin.}\n- {text: Now it is done.}\n");
    let well = env.well();
    let session = well.create(well.draft("do it")).unwrap();
    let said: [Event; 2] = [Message::user("do it").into(), Message::assistant("I begin.").into()];
    let events = said.into_iter().chain(events).map(Into::into).collect();
    session.append_all(events).unwrap();
    env
}

#[test]
fn a_resume_asks_to_go_on_where_work_was_cut_off() {
    let stopped = |status, reason| Event::from(StatusChanged { status, reason, error: None });
    let open = Task { id: "1".to_owned(), description: "the rest".to_owned(), ..Task::default() };
    for events in [
        vec![stopped(Status::Partial, Some(StopReason::BudgetExceeded))],
        vec![stopped(Status::Interrupted, None)],
        vec![open.into(), stopped(Status::Success, Some(StopReason::LlmDone))],
    ] {
        let env = info(events);
        let ended = one(&env, &["resume", "@last", "--model", "script:script.yaml"], 0);
        assert_eq!(ended["output"], "Now it is done.");
    }
    let env = info(vec![stopped(Status::Success, Some(StopReason::LlmDone))]);
    let ended = one(&env, &["resume", "@last", "--model", "script:script.yaml"], 0);
    assert_eq!(ended["output"], "I begin.");
}

#[test]
fn whoever_stops_a_run_at_once_finds_it_stopped() {
    let env = env("- {delay_ms: 60000, text: Done.}\n");
    env.quietly(&["init"]);
    let well = env.well();
    for _ in 0..5 {
        let mut command = env.command(&run(&[]));
        command.env_remove("STEPWELL_NOW").stdout(Stdio::null()).stderr(Stdio::null());
        let before = well.store().list(&Query::default()).unwrap().sessions.len();
        let mut child = command.spawn().unwrap();
        // As soon as there is a session.
        while well.store().list(&Query::default()).unwrap().sessions.len() == before {
            std::thread::yield_now();
        }
        let pid = rustix::process::Pid::from_child(&child);
        rustix::process::kill_process(pid, rustix::process::Signal::INT).unwrap();
        assert_eq!(child.wait().unwrap().code(), Some(130));
        let head = one(&env, &["show", "@last"], 0);
        assert_eq!(head["stop_reason"], "user_interrupt", "{head}");
    }
}

#[test]
fn a_budget_that_stops_a_run_says_what_the_next_call_may_cost() {
    let script = "
prices: {input: '3', output: '15'}
answers: [{text: hi, usage: {input: 1000, output: 50}}]
";
    let env = env(script);
    let ran = env.quietly(&run(&["--budget", "0.01"]));
    assert_eq!(ran.code, Some(5), "{}", ran.stderr);
    assert!(ran.stderr.contains("the next call may cost $0.1"), "{}", ran.stderr);
    assert!(ran.stderr.contains("--budget USD, with more of it"), "{}", ran.stderr);
}

/// Runs on a terminal, where someone answers each question.
fn answering(env: &TestEnv, answers: &[&str]) -> (String, Option<i32>) {
    let mut answers = answers.iter();
    let mut asked = 0;
    watched(env.command(&run(&[])), env, 200, |seen, _| {
        let questions = seen.matches("Answer: ").count();
        let is_new = questions > asked && seen.ends_with("Answer: ");
        asked = questions;
        let answer = if is_new { answers.next() } else { None };
        answer.map(|answer| format!("{answer}\r")).unwrap_or_default()
    })
}

#[test]
fn always_can_be_as_narrow_as_a_pattern() {
    let call = |line: &str| {
        format!("- {{text: t, calls: [{{tool: run_command, arguments: {{command: '{line}'}}}}]}}\n")
    };
    let script = [call("echo one"), call("echo two >> log.txt"), call("echo three")].concat();
    let mut env = env(&format!("{script}- {{text: Done.}}\n"));
    env.set("NO_COLOR", "1");
    let (seen, code) = answering(&env, &["a cargo*", "a echo*", "n not into files"]);
    assert_eq!(code, Some(0), "{seen}");
    let like = "a echo one*  Always allow calls of run_command like echo one* in this session";
    assert!(seen.contains(like), "{seen}");
    assert!(seen.contains("does not fit this call"), "{seen}");
    // The second is more than an echo; the third is one.
    assert_eq!(seen.matches("Allow run ").count(), 3, "{seen}");
    assert!(seen.contains("not allowed: the user did not allow this: not into files"), "{seen}");
    assert!(!env.work().join("log.txt").exists());
    let rules = env.quietly(&["log", "@last", "--json", "--kind", "permission"]).json();
    assert_eq!(rules[0]["body"]["rule"], "run_command(echo*)");
}

#[test]
fn something_moves_before_the_first_word_and_while_a_command_runs() {
    // The command goes on once its time was seen. The model takes longer than a busy machine may.
    let command = "echo first; echo second; until [ -e seen ]; do sleep 0.01; done";
    let mut env = env(&format!(
        "- {{delay_ms: 5000, text: t, calls: [{{tool: run_command, arguments: {{command: '{command}'}}}}]}}\n\
         - {{text: Done.}}\n"
    ));
    env.set("NO_COLOR", "1");
    let args = run(&["--mode", "yolo"]);
    let running = regex::Regex::new(r"run_command, \d+s\r?\n  first\r?\n  second\r?\n").unwrap();
    let seen = env.work().join("seen");
    let (shown, code) = watched(env.command(&args), &env, 100, |shown, _| {
        if running.is_match(shown) {
            std::fs::write(&seen, "").unwrap();
        }
        String::new()
    });
    assert_eq!(code, Some(0), "{shown}");
    let waiting = regex::Regex::new(r"waiting for the model, \d+s").unwrap();
    assert!(waiting.is_match(&shown), "{shown}");
    // In a pipe, nothing of it.
    let piped = env.quietly(&args);
    assert!(!piped.stderr.contains("waiting") && piped.stdout == "t\nDone.\n", "{}", piped.stdout);
}
