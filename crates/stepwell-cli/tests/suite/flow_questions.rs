//! Questions of flows: on a terminal, elsewhere, in time and too late.

use std::process::Stdio;

use crate::flows::{SCRIPT, SPEC, ends, env, resume, run, show};
use crate::terminal::watched;
use crate::test_env::{NOW, TestEnv};

#[test]
fn of_answers_at_once_one_counts_and_the_flow_is_run_once() {
    let env = env(SPEC, SCRIPT);
    let real = |args: &[&str]| {
        let mut command = env.command(args);
        command.env_remove("STEPWELL_NOW").stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    };
    for round in 0..6 {
        let topic = format!("topic={round}");
        let begin = ["flow", "run", "flow.yaml", "--model", "script:script.yaml", "--var", &topic];
        assert_eq!(real(&begin).output().unwrap().status.code(), Some(8));
        let id = env.well().find("@last").unwrap().to_string();
        let answer = |text: &str| real(&["resume", &id, "--force", "--respond", text]).spawn();
        let racing = ["one", "two", "three"].map(|text| answer(text).unwrap());
        let ended = racing.map(|child| child.wait_with_output().unwrap());
        let said = ended.each_ref().map(|it| String::from_utf8_lossy(&it.stderr).into_owned());
        // One is done, or brought to whoever does it; the others are told whose was first, and when.
        let mut codes = ended.each_ref().map(|it| it.status.code());
        codes.sort_unstable();
        assert_eq!(codes, [Some(0), Some(6), Some(6)], "round {round}: {said:?}");
        for (_, said) in ended.iter().zip(&said).filter(|(it, _)| it.status.code() == Some(6)) {
            let told = said.contains("was answered by ") && said.contains(" at 20");
            assert!(told, "round {round}: {said}");
        }
        let log = env.quietly(&["log", &id, "--json"]).json();
        let count = |kind: &str| log.iter().filter(|event| event["kind"] == kind).count();
        assert_eq!(count("gate_answered"), 1, "round {round}: {said:?}");
        let last = &log[log.len() - 1];
        assert_eq!(last["body"]["status"], "success", "round {round}: {said:?}");
        let answers = log.iter().filter(|event| event["body"]["role"] == "assistant").count();
        assert_eq!(answers, 2, "round {round}: {said:?}");
    }
}

#[test]
fn a_dry_run_answers_nothing_and_says_so() {
    let env = env(SPEC, SCRIPT);
    ends(&run(&env, &[]), 8);
    refuses_dry_answers(&env, &["--respond", "very good"]);
    refuses_dry_answers(&env, &["--approve"]);
    refuses_dry_answers(&env, &["--deny", "--reason", "no"]);
    ends(&resume(&env, &["--dry-run"]), 0);
    ends(&resume(&env, &["--respond", "very good"]), 0);
}

/// An answer to a dry run is refused as wrong usage, and nothing is recorded.
pub(crate) fn refuses_dry_answers(env: &TestEnv, answer: &[&str]) {
    let before = env.quietly(&["log", "@last"]).stdout;
    let ran = resume(env, &[answer, &["--dry-run"]].concat());
    ends(&ran, 2);
    assert!(ran.stderr.contains("a dry run answers nothing"), "{}", ran.stderr);
    assert!(ran.stderr.contains("--respond"), "{}", ran.stderr);
    assert_eq!(env.quietly(&["log", "@last"]).stdout, before);
}

#[test]
fn a_gate_keeps_its_time_its_default_and_no_empty_answer() {
    let timed = SPEC.replace(
        "prompt: 'Is it good?',",
        "prompt: 'Is it good?', timeout_seconds: 60, default: 'yes',",
    );
    let mut waiting = env(&timed, SCRIPT);
    ends(&run(&waiting, &[]), 8);
    ends(&resume(&waiting, &[]), 8);
    waiting.set("STEPWELL_NOW", "2026-03-09T12:02:00Z");
    let late = resume(&waiting, &["--respond", "no"]);
    ends(&late, 2);
    assert!(late.stderr.contains("too late"), "{}", late.stderr);
    ends(&resume(&waiting, &[]), 0);
    let log = waiting.quietly(&["log", "@last"]).stdout;
    assert!(log.contains(r#""answer":"yes","who":"nobody (its time was up)""#), "{log}");
    let empty = env(SPEC, SCRIPT);
    ends(&run(&empty, &[]), 8);
    let ran = resume(&empty, &["--respond", " "]);
    ends(&ran, 2);
    assert!(ran.stderr.contains("the answer is empty"), "{}", ran.stderr);
    let with_default = env(&timed, SCRIPT);
    ends(&run(&with_default, &[]), 8);
    ends(&resume(&with_default, &["--respond", ""]), 0);
    let log = with_default.quietly(&["log", "@last"]).stdout;
    assert!(log.contains(r#""answer":"yes","who":"#) && log.contains("@"), "{log}");
    assert!(NOW.starts_with("2026-03-09T12:00"));
}

#[test]
fn on_a_terminal_the_question_is_asked_right_there() {
    let env = env(SPEC, SCRIPT);
    let args =
        ["flow", "run", "flow.yaml", "--model", "script:script.yaml", "--var", "topic=wells"];
    let mut answer = Some("fine\n");
    let command = env.command(&args);
    let (seen, code) = watched(command, &env, 80, |seen, _| match seen.ends_with("later): ") {
        true => answer.take().unwrap_or_default().to_owned(),
        false => String::new(),
    });
    assert_eq!(code, Some(0), "{seen}");
    let log = env.quietly(&["log", "@last"]).stdout;
    assert!(log.contains(r#""answer":"fine","who":"#) && log.contains("@"), "{log}");
    assert!(seen.contains("Is it good?") && seen.contains("a draft"), "{seen}");
    assert!(seen.contains("1 running"), "the live view shows what is worked on: {seen}");
    assert!(seen.contains("the letter"), "{seen}");
}

#[test]
fn on_a_terminal_a_question_ends_when_its_time_is_up() {
    let timed = SPEC.replace(
        "prompt: 'Is it good?',",
        "prompt: 'Is it good?', timeout_seconds: 1, default: 'yes',",
    );
    let env = env(&timed, SCRIPT);
    let args =
        ["flow", "run", "flow.yaml", "--model", "script:script.yaml", "--var", "topic=wells"];
    let mut command = env.command(&args);
    command.env_remove("STEPWELL_NOW");
    // Nobody types anything.
    let (seen, code) = watched(command, &env, 80, |_, _| String::new());
    assert_eq!(code, Some(0), "{seen}");
    assert!(seen.contains("Your answer [yes]") && seen.contains("the letter"), "{seen}");
    assert!(seen.contains("its time was up"), "{seen}");
}

#[test]
fn on_a_terminal_a_question_ends_when_it_is_answered_elsewhere() {
    let env = env(SPEC, SCRIPT);
    let args =
        ["flow", "run", "flow.yaml", "--model", "script:script.yaml", "--var", "topic=wells"];
    let mut asked = false;
    let (seen, code) = watched(env.command(&args), &env, 80, |seen, _| {
        if seen.ends_with("later): ") && !std::mem::replace(&mut asked, true) {
            ends(&resume(&env, &["--respond", "from elsewhere"]), 0);
        }
        String::new()
    });
    assert_eq!(code, Some(0), "{seen}");
    assert!(seen.contains("the letter"), "{seen}");
    let log = env.quietly(&["log", "@last"]).stdout;
    assert!(log.contains("Final: from elsewhere"), "{log}");
}

#[test]
fn a_tools_question_takes_a_yes_or_a_no_and_nothing_else() {
    let spec = SPEC.replace("about {{ topic }}.'}", "about {{ topic }}.', tools: [write_file]}");
    let write = "{calls: [{tool: write_file, arguments: {path: a.txt, content: x}}]}";
    let script = format!("lanes: {{writer: [{write}, {{text: a draft}}, {{text: the letter}}]}}");
    let env = env(&spec, &script);
    ends(&run(&env, &[]), 8);
    let listed = env.quietly(&["gates"]);
    assert!(listed.stderr.contains("--approve"), "{}", listed.stderr);
    assert!(!listed.stderr.contains("--respond"), "{}", listed.stderr);
    for nonsense in ["foo", "", "yes, but", "not yet"] {
        let ran = resume(&env, &["--respond", nonsense]);
        ends(&ran, 2);
        assert!(ran.stderr.contains("--approve"), "{}", ran.stderr);
    }
    assert!(!env.work().join("a.txt").exists());
    ends(&resume(&env, &["--respond", "Approve"]), 8);
    assert_eq!(env.read("a.txt"), "x");
    let listed = env.quietly(&["gates"]);
    assert!(listed.stderr.contains("--respond"), "{}", listed.stderr);
    assert!(!listed.stderr.contains("--approve"), "{}", listed.stderr);
}

#[test]
fn a_default_that_counts_is_not_said_to_be_yours() {
    let timed = SPEC.replace(
        "prompt: 'Is it good?',",
        "prompt: 'Is it good?', timeout_seconds: 60, default: 'yes',",
    );
    let mut env = env(&timed, SCRIPT);
    ends(&run(&env, &[]), 8);
    env.set("STEPWELL_NOW", "2026-03-09T12:02:00Z");
    let late = resume(&env, &["--respond", "no"]);
    assert!(late.stderr.contains("continues it"), "{}", late.stderr);
    let ran = resume(&env, &[]);
    ends(&ran, 0);
    assert!(ran.stderr.contains("step/1 done (its time was up: the default)"), "{}", ran.stderr);
}

#[test]
fn a_question_whose_time_is_up_can_still_be_answered_and_the_hint_says_so() {
    let timed =
        SPEC.replace("prompt: 'Is it good?',", "prompt: 'Is it good?', timeout_seconds: 60,");
    let mut env = env(&timed, SCRIPT);
    ends(&run(&env, &[]), 8);
    env.set("STEPWELL_NOW", "2026-03-09T12:02:00Z");
    let late = resume(&env, &[]);
    ends(&late, 1);
    assert!(
        late.stderr.contains("@last --respond") || late.stderr.contains("--respond \""),
        "{}",
        late.stderr
    );
    ends(&resume(&env, &["--respond", "yes"]), 0);
}

/// A question in one branch, a slow answer in the other, and a server that takes its time.
const SLOW_TO_START: &str = "
version: 0
name: branches
agents:
  a: {prompt: You are a., tools: [far]}
tools: {mcp: [{id: far, command: sh, args: [-c, 'sleep 2; exec sh SERVER FOLDER']}]}
pattern:
  type: parallel
  config:
    branches:
      - id: ask
        steps: [{type: hitl, prompt: 'Go?', validation: {pattern: 'yes|no'}}]
      - id: work
        steps: [{agent: a, input: work}]
";

fn slow_to_start(script: &str) -> TestEnv {
    let mut env = TestEnv::new();
    env.set("PATH", "/usr/local/bin:/usr/bin:/bin");
    std::fs::write(env.path("server.sh"), crate::mcp::SERVER).unwrap();
    let (server, folder) = (env.path("server.sh"), env.path(""));
    let spec = SLOW_TO_START.replace("SERVER", &server.display().to_string());
    env.file("flow.yaml", &spec.replace("FOLDER", &folder.display().to_string()));
    env.file("script.yaml", script);
    env
}

fn begun(env: &TestEnv, args: &[&str]) -> std::process::Child {
    let mut command = env.command(args);
    command.env_remove("STEPWELL_NOW").stdout(Stdio::piped()).stderr(Stdio::piped());
    command.spawn().unwrap()
}

#[test]
fn an_answer_to_a_flow_that_runs_starts_no_servers_and_is_gone_on_with() {
    let env = slow_to_start("lanes: {work/a: [{delay_ms: 1500, text: worked}]}");
    let first = begun(&env, &["flow", "run", "flow.yaml", "--model", "script:script.yaml"]);
    while !env.quietly(&["log", "@last"]).stdout.contains(r#""prompt":"Go?""#) {}
    let second = begun(&env, &["resume", "@last", "--respond", "yes"]);
    let [first, second] = [first, second].map(|child| child.wait_with_output().unwrap());
    let said = [&first, &second].map(|it| String::from_utf8_lossy(&it.stderr).into_owned());
    assert_eq!(show(&env)["status"], "success", "{said:?}");
    assert_eq!((first.status.code(), second.status.code()), (Some(0), Some(0)), "{said:?}");
    assert!(said[1].contains("goes on there"), "{said:?}");
}

#[test]
fn an_answer_beside_one_that_is_refused_is_gone_on_with_by_whoever_gave_it() {
    let env = slow_to_start("lanes: {work/a: [{text: worked}]}");
    let begin = ["flow", "run", "flow.yaml", "--model", "script:script.yaml"];
    assert_eq!(begun(&env, &begin).wait().unwrap().code(), Some(8));
    // It is refused before a server is started or the session taken.
    let first = begun(&env, &["resume", "@last", "--respond", "bad"]);
    let second = begun(&env, &["resume", "@last", "--respond", "yes"]);
    let [first, second] = [first, second].map(|child| child.wait_with_output().unwrap());
    let said = [&first, &second].map(|it| String::from_utf8_lossy(&it.stderr).into_owned());
    assert_eq!(first.status.code(), Some(2), "{said:?}");
    assert_eq!(second.status.code(), Some(0), "{said:?}");
    assert_eq!(show(&env)["status"], "success", "{said:?}");
}
