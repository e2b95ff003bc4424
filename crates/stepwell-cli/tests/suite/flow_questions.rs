//! Questions of flows: on a terminal, elsewhere, in time and too late.

use std::process::Stdio;

use crate::desk::{Desk, NOW};
use crate::flows::{SCRIPT, SPEC, desk, ends, resume, run, show};
use crate::terminal::watched;

#[test]
fn of_answers_at_once_one_counts_and_the_flow_is_run_once() {
    let desk = desk(SPEC, SCRIPT);
    let real = |args: &[&str]| {
        let mut command = desk.command(args);
        command.env_remove("STEPWELL_NOW").stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    };
    for round in 0..6 {
        let topic = format!("topic={round}");
        let begin = ["flow", "run", "flow.yaml", "--model", "script:script.yaml", "--var", &topic];
        assert_eq!(real(&begin).output().unwrap().status.code(), Some(8));
        let id = desk.well().find("@last").unwrap().to_string();
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
        let log = desk.quietly(&["log", &id, "--json"]).json();
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
    let desk = desk(SPEC, SCRIPT);
    ends(&run(&desk, &[]), 8);
    refuses_dry_answers(&desk, &["--respond", "very good"]);
    refuses_dry_answers(&desk, &["--approve"]);
    refuses_dry_answers(&desk, &["--deny", "--reason", "no"]);
    ends(&resume(&desk, &["--dry-run"]), 0);
    ends(&resume(&desk, &["--respond", "very good"]), 0);
}

/// An answer to a dry run is refused as wrong usage, and nothing is recorded.
pub(crate) fn refuses_dry_answers(desk: &Desk, answer: &[&str]) {
    let before = desk.quietly(&["log", "@last"]).stdout;
    let ran = resume(desk, &[answer, &["--dry-run"]].concat());
    ends(&ran, 2);
    assert!(ran.stderr.contains("a dry run answers nothing"), "{}", ran.stderr);
    assert!(ran.stderr.contains("hint: without --dry-run"), "{}", ran.stderr);
    assert_eq!(desk.quietly(&["log", "@last"]).stdout, before);
}

#[test]
fn a_gate_keeps_its_time_its_default_and_no_empty_answer() {
    let timed = SPEC.replace(
        "prompt: 'Is it good?',",
        "prompt: 'Is it good?', timeout_seconds: 60, default: 'yes',",
    );
    let mut waiting = desk(&timed, SCRIPT);
    ends(&run(&waiting, &[]), 8);
    ends(&resume(&waiting, &[]), 8);
    waiting.set("STEPWELL_NOW", "2026-03-09T12:02:00Z");
    let late = resume(&waiting, &["--respond", "no"]);
    ends(&late, 2);
    assert!(late.stderr.contains("too late"), "{}", late.stderr);
    ends(&resume(&waiting, &[]), 0);
    let log = waiting.quietly(&["log", "@last"]).stdout;
    assert!(log.contains(r#""answer":"yes","who":"nobody (its time was up)""#), "{log}");
    let empty = desk(SPEC, SCRIPT);
    ends(&run(&empty, &[]), 8);
    let ran = resume(&empty, &["--respond", " "]);
    ends(&ran, 2);
    assert!(ran.stderr.contains("the answer is empty"), "{}", ran.stderr);
    let with_default = desk(&timed, SCRIPT);
    ends(&run(&with_default, &[]), 8);
    ends(&resume(&with_default, &["--respond", ""]), 0);
    let log = with_default.quietly(&["log", "@last"]).stdout;
    assert!(log.contains(r#""answer":"yes","who":"#) && log.contains("@"), "{log}");
    assert!(NOW.starts_with("2026-03-09T12:00"));
}

#[test]
fn on_a_terminal_the_question_is_asked_right_there() {
    let desk = desk(SPEC, SCRIPT);
    let args =
        ["flow", "run", "flow.yaml", "--model", "script:script.yaml", "--var", "topic=wells"];
    let mut answer = Some("fine\n");
    let command = desk.command(&args);
    let (seen, code) = watched(command, &desk, 80, |seen, _| match seen.ends_with("later): ") {
        true => answer.take().unwrap_or_default().to_owned(),
        false => String::new(),
    });
    assert_eq!(code, Some(0), "{seen}");
    let log = desk.quietly(&["log", "@last"]).stdout;
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
    let desk = desk(&timed, SCRIPT);
    let args =
        ["flow", "run", "flow.yaml", "--model", "script:script.yaml", "--var", "topic=wells"];
    let mut command = desk.command(&args);
    command.env_remove("STEPWELL_NOW");
    // Nobody types anything.
    let (seen, code) = watched(command, &desk, 80, |_, _| String::new());
    assert_eq!(code, Some(0), "{seen}");
    assert!(seen.contains("Your answer [yes]") && seen.contains("the letter"), "{seen}");
    assert!(seen.contains("its time was up"), "{seen}");
}

#[test]
fn on_a_terminal_a_question_ends_when_it_is_answered_elsewhere() {
    let desk = desk(SPEC, SCRIPT);
    let args =
        ["flow", "run", "flow.yaml", "--model", "script:script.yaml", "--var", "topic=wells"];
    let mut asked = false;
    let (seen, code) = watched(desk.command(&args), &desk, 80, |seen, _| {
        if seen.ends_with("later): ") && !std::mem::replace(&mut asked, true) {
            ends(&resume(&desk, &["--respond", "from elsewhere"]), 0);
        }
        String::new()
    });
    assert_eq!(code, Some(0), "{seen}");
    assert!(seen.contains("the letter"), "{seen}");
    let log = desk.quietly(&["log", "@last"]).stdout;
    assert!(log.contains("Final: from elsewhere"), "{log}");
}

#[test]
fn a_tools_question_takes_a_yes_or_a_no_and_nothing_else() {
    let spec = SPEC.replace("about {{ topic }}.'}", "about {{ topic }}.', tools: [write_file]}");
    let write = "{calls: [{tool: write_file, arguments: {path: a.txt, content: x}}]}";
    let script = format!("lanes: {{writer: [{write}, {{text: a draft}}, {{text: the letter}}]}}");
    let desk = desk(&spec, &script);
    ends(&run(&desk, &[]), 8);
    let listed = desk.quietly(&["gates"]);
    assert!(listed.stderr.contains("--approve"), "{}", listed.stderr);
    assert!(!listed.stderr.contains("--respond"), "{}", listed.stderr);
    for nonsense in ["foo", "", "yes, but", "not yet"] {
        let ran = resume(&desk, &["--respond", nonsense]);
        ends(&ran, 2);
        assert!(ran.stderr.contains("--approve"), "{}", ran.stderr);
    }
    assert!(!desk.work().join("a.txt").exists());
    ends(&resume(&desk, &["--respond", "Approve"]), 8);
    assert_eq!(desk.read("a.txt"), "x");
    let listed = desk.quietly(&["gates"]);
    assert!(listed.stderr.contains("--respond"), "{}", listed.stderr);
    assert!(!listed.stderr.contains("--approve"), "{}", listed.stderr);
}

#[test]
fn a_default_that_counts_is_not_said_to_be_yours() {
    let timed = SPEC.replace(
        "prompt: 'Is it good?',",
        "prompt: 'Is it good?', timeout_seconds: 60, default: 'yes',",
    );
    let mut desk = desk(&timed, SCRIPT);
    ends(&run(&desk, &[]), 8);
    desk.set("STEPWELL_NOW", "2026-03-09T12:02:00Z");
    let late = resume(&desk, &["--respond", "no"]);
    assert!(late.stderr.contains("continues with the default"), "{}", late.stderr);
    let ran = resume(&desk, &[]);
    ends(&ran, 0);
    assert!(ran.stderr.contains("step/1 done (its time was up: the default)"), "{}", ran.stderr);
}

#[test]
fn a_question_whose_time_is_up_can_still_be_answered_and_the_hint_says_so() {
    let timed =
        SPEC.replace("prompt: 'Is it good?',", "prompt: 'Is it good?', timeout_seconds: 60,");
    let mut desk = desk(&timed, SCRIPT);
    ends(&run(&desk, &[]), 8);
    desk.set("STEPWELL_NOW", "2026-03-09T12:02:00Z");
    let late = resume(&desk, &[]);
    ends(&late, 1);
    assert!(
        late.stderr.contains("@last --respond") || late.stderr.contains("--respond \""),
        "{}",
        late.stderr
    );
    ends(&resume(&desk, &["--respond", "yes"]), 0);
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

fn slow_to_start(script: &str) -> Desk {
    let mut desk = Desk::new();
    desk.set("PATH", "/usr/local/bin:/usr/bin:/bin");
    std::fs::write(desk.path("server.sh"), crate::mcp::SERVER).unwrap();
    let (server, folder) = (desk.path("server.sh"), desk.path(""));
    let spec = SLOW_TO_START.replace("SERVER", &server.display().to_string());
    desk.file("flow.yaml", &spec.replace("FOLDER", &folder.display().to_string()));
    desk.file("script.yaml", script);
    desk
}

fn begun(desk: &Desk, args: &[&str]) -> std::process::Child {
    let mut command = desk.command(args);
    command.env_remove("STEPWELL_NOW").stdout(Stdio::piped()).stderr(Stdio::piped());
    command.spawn().unwrap()
}

#[test]
fn an_answer_to_a_flow_that_runs_starts_no_servers_and_is_gone_on_with() {
    let desk = slow_to_start("lanes: {work/a: [{delay_ms: 1500, text: worked}]}");
    let first = begun(&desk, &["flow", "run", "flow.yaml", "--model", "script:script.yaml"]);
    while !desk.quietly(&["log", "@last"]).stdout.contains(r#""prompt":"Go?""#) {}
    let second = begun(&desk, &["resume", "@last", "--respond", "yes"]);
    let [first, second] = [first, second].map(|child| child.wait_with_output().unwrap());
    let said = [&first, &second].map(|it| String::from_utf8_lossy(&it.stderr).into_owned());
    assert_eq!(show(&desk)["status"], "success", "{said:?}");
    assert_eq!((first.status.code(), second.status.code()), (Some(0), Some(0)), "{said:?}");
    assert!(said[1].contains("goes on there"), "{said:?}");
}

#[test]
fn an_answer_beside_one_that_is_refused_is_gone_on_with_by_whoever_gave_it() {
    let desk = slow_to_start("lanes: {work/a: [{text: worked}]}");
    let begin = ["flow", "run", "flow.yaml", "--model", "script:script.yaml"];
    assert_eq!(begun(&desk, &begin).wait().unwrap().code(), Some(8));
    // It is refused before a server is started or the session taken.
    let first = begun(&desk, &["resume", "@last", "--respond", "bad"]);
    let second = begun(&desk, &["resume", "@last", "--respond", "yes"]);
    let [first, second] = [first, second].map(|child| child.wait_with_output().unwrap());
    let said = [&first, &second].map(|it| String::from_utf8_lossy(&it.stderr).into_owned());
    assert_eq!(first.status.code(), Some(2), "{said:?}");
    assert_eq!(second.status.code(), Some(0), "{said:?}");
    assert_eq!(show(&desk)["status"], "success", "{said:?}");
}
