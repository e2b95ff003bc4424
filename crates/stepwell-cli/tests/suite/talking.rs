//! Talking to a run from other processes: answers, words, stops, runs in the background.

use std::io::{BufRead as _, BufReader};
use std::process::Stdio;

use stepwell::store::Span;
use stepwell::store::query::Query;
use stepwell::work::Gates;
use stepwell::{Event, SessionId, Status};

use crate::flows;
use crate::test_env::{STEPWELL, TestEnv};

/// An agent that wants to run a command, which needs leave.
const ASKS: &str = "
- {text: I make it., calls: [{tool: run_command, arguments: {command: 'echo x >> made.txt'}}]}
- {text: Made.}
";

fn env() -> TestEnv {
    let env = TestEnv::new();
    env.file("asks.yaml", ASKS);
    env
}

/// How often the command ran.
fn ran(env: &TestEnv) -> usize {
    let made = std::fs::read_to_string(env.work().join("made.txt")).unwrap_or_default();
    made.lines().count()
}

/// Runs a command that must work; the answer is what it prints.
fn done(env: &TestEnv, args: &[&str]) -> String {
    let ran = env.quietly(args);
    assert_eq!(ran.code, Some(0), "{args:?}: {}{}", ran.stdout, ran.stderr);
    ran.stdout.trim().to_owned()
}

/// Waits until a question is open, and gives its session and its name.
pub(crate) fn open_gate(env: &TestEnv) -> (SessionId, String) {
    env.wait_for(".stepwell/stepwell.db");
    let well = env.well();
    loop {
        for info in well.list(&Query::default()).unwrap().sessions {
            let id = info.head.id;
            let gates = Gates::of(&**well.store(), &id).unwrap();
            if let Some(asked) = gates.open().next() {
                return (id, asked.gate.id.clone());
            }
        }
        std::thread::yield_now();
    }
}

#[test]
fn a_run_in_the_background_is_answered_spoken_to_and_goes_on() {
    let env = env();
    let args = ["--json", "run", "make it", "--detach", "--model", "script:asks.yaml"];
    let started: serde_json::Value = serde_json::from_str(&done(&env, &args)).unwrap();
    let id = started["session_id"].as_str().unwrap().to_owned();
    let (session, gate) = open_gate(&env);
    assert_eq!(session.as_str(), id);
    let hears = done(&env, &["say", &id, "be quick", "--now"]);
    assert_eq!(hears, format!("{id} hears it once its question is answered"));
    // Whoever follows it without a terminal is told what it waits for, and what to type.
    let mut follow = env.command(&["attach", &id]);
    let follow = follow.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
    let mut follow = follow.spawn().unwrap();
    let (tell, told) = std::sync::mpsc::channel();
    let stderr = BufReader::new(follow.stderr.take().unwrap());
    std::thread::spawn(move || {
        stderr.lines().map_while(Result::ok).try_for_each(|line| tell.send(line))
    });
    let mut lines = String::new();
    while !lines.contains("gates answer") {
        match told.recv_timeout(std::time::Duration::from_secs(20)) {
            Ok(line) => lines.push_str(&line),
            Err(_) => break,
        }
    }
    let answered = done(&env, &["--json", "gates", "answer", &gate, "yes"]);
    assert!(follow.wait().unwrap().success());
    assert!(lines.contains(&format!("gates answer {id}/{gate} yes")), "{lines}");
    assert!(!lines.contains("Ctrl+D"), "{lines}");
    assert!(answered.contains(r#""goes_on":true"#), "{answered}");
    // It is followed until it ends.
    done(&env, &["attach", &id]);
    let well = env.well();
    let head = well.info(&session).unwrap().head;
    assert_eq!((head.status, ran(&env)), (Status::Success, 1));
    let events = well.store().events(&session, Span::ALL).unwrap().events;
    let heard = |event: &Event| match event {
        Event::Message(message) => message.said.is_some() && message.text() == "be quick",
        _ => false,
    };
    assert!(events.iter().any(|event| heard(&event.event)));
    // What it printed is in its log, a moment after it ended.
    let log = env.work().join(format!(".stepwell/runs/{id}.log"));
    assert_eq!(started["log"].as_str(), log.to_str());
    while !std::fs::read_to_string(&log).unwrap().contains("Made.") {
        std::thread::yield_now();
    }
    // Whoever comes later is told.
    let late = env.quietly(&["gates", "answer", &gate, "no"]);
    assert_eq!(late.code, Some(6), "{}", late.stderr);
    assert!(late.stderr.contains("answered by"), "{}", late.stderr);
    // Nobody runs it any more: there is nothing to follow.
    let hint = format!("stepwell show {id} shows it");
    assert!(late.stderr.contains(&hint), "{}", late.stderr);
    let unknown = env.quietly(&["gates", "answer", "no-such-gate", "no"]);
    assert_eq!(unknown.code, Some(3), "{}", unknown.stderr);
}

#[test]
fn of_two_answers_at_once_one_counts_and_the_other_is_told_whose_it_was() {
    let env = env();
    let paused = env.quietly(&["run", "make it", "--model", "script:asks.yaml"]);
    assert_eq!(paused.code, Some(8), "{}", paused.stderr);
    let (id, gate) = open_gate(&env);
    let answering = |answer: &str| {
        let mut command = env.command(&["gates", "answer", &gate, answer]);
        command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
    };
    let both = ["yes", "no"].map(answering).map(|child| child.wait_with_output().unwrap());
    let mut codes = both.each_ref().map(|output| output.status.code().unwrap());
    let loser = both.iter().find(|output| output.status.code() == Some(6)).unwrap();
    let told = String::from_utf8_lossy(&loser.stderr).into_owned();
    assert!(told.contains("was answered by") && told.contains(" at 20"), "{told}");
    let allowed = both[0].status.success();
    codes.sort_unstable();
    assert_eq!(codes, [0, 6]);
    env.quietly(&["resume", id.as_str()]);
    assert_eq!(ran(&env), usize::from(allowed));
}

#[test]
fn a_late_answer_goes_to_no_other_projects_question() {
    let env = env();
    let run = ["run", "make it", "--model", "script:asks.yaml"];
    let other = env.work().with_file_name("other");
    std::fs::create_dir(&other).unwrap();
    std::fs::copy(env.work().join("asks.yaml"), other.join("asks.yaml")).unwrap();
    assert_eq!(env.quietly(&run).code, Some(8));
    let there = env.command(&run).current_dir(&other).output().unwrap();
    assert_eq!(there.status.code(), Some(8));
    let (_, gate) = open_gate(&env);
    done(&env, &["gates", "answer", &gate, "no"]);
    let late = env.quietly(&["gates", "answer", &gate, "yes"]);
    assert_eq!(late.code, Some(6), "{}{}", late.stdout, late.stderr);
    assert!(late.stderr.contains("was answered by"), "{}", late.stderr);
    // From elsewhere it is answered by its session's name too.
    let listed = env.command(&["--json", "gates"]).current_dir(&other).output().unwrap();
    let listed: serde_json::Value = serde_json::from_slice(&listed.stdout).unwrap();
    assert!(listed["seq"].is_u64() && listed["agent"].is_string(), "{listed}");
    let id = listed["session_id"].as_str().unwrap();
    let named = format!("{}/{gate}", id.rsplit('-').next().unwrap());
    let seen = |seq: u64| {
        let seq = seq.to_string();
        env.quietly(&["gates", "answer", &named, "no", "--seen", &seq])
    };
    let old = seen(1);
    assert_eq!(old.code, Some(1), "{}{}", old.stdout, old.stderr);
    let taken = seen(listed["seq"].as_u64().unwrap());
    assert_eq!(taken.code, Some(0), "{}", taken.stderr);
}

#[test]
fn of_two_who_resume_with_an_answer_the_slower_is_told_who_was_first() {
    let env = env();
    let paused = env.quietly(&["run", "make it", "--model", "script:asks.yaml"]);
    assert_eq!(paused.code, Some(8), "{}", paused.stderr);
    let resuming = |flag: &str| {
        let mut command = env.command(&["resume", "@last", flag]);
        command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
    };
    let both = ["--approve", "--deny"].map(resuming).map(|it| it.wait_with_output().unwrap());
    let lost = both.iter().filter(|output| output.status.code() == Some(6)).count();
    assert_eq!(lost, 1, "{both:?}");
    for output in both.iter().filter(|output| output.status.code() == Some(6)) {
        let told = String::from_utf8_lossy(&output.stderr);
        assert!(told.contains("was answered by") && told.contains(" at 20"), "{told}");
    }
}

#[test]
fn the_inbox_is_watched_as_questions_open_and_close() {
    let env = env();
    done(&env, &["init"]);
    let mut watch = env.command(&["--json", "gates", "--watch"]);
    let mut watch = watch.stdout(Stdio::piped()).stderr(Stdio::inherit()).spawn().unwrap();
    let mut lines = BufReader::new(watch.stdout.take().unwrap()).lines();
    let mut next = || -> serde_json::Value {
        let line = lines.next().expect("a change").unwrap();
        crate::answers::check(&["--json", "gates", "--watch"], &line);
        serde_json::from_str(&line).unwrap()
    };
    let paused = env.quietly(&["run", "make it", "--model", "script:asks.yaml"]);
    assert_eq!(paused.code, Some(8), "{}", paused.stderr);
    let opened = next();
    assert_eq!((&opened["change"], &opened["store"]), (&"opened".into(), &().into()), "{opened}");
    let gate = opened["id"].as_str().unwrap();
    done(&env, &["gates", "answer", gate, "no"]);
    let closed = next();
    assert_eq!((&closed["change"], &closed["answer"]), (&"closed".into(), &"no".into()));
    assert_eq!(closed["session_id"], opened["session_id"]);
    assert!(closed["who"].is_string() && closed["answered_at"].is_string(), "{closed}");
    watch.kill().unwrap();
    watch.wait().unwrap();
}

#[test]
fn a_session_that_stopped_goes_on_in_the_background() {
    let env = env();
    let paused = env.quietly(&["run", "make it", "--model", "script:asks.yaml"]);
    assert_eq!(paused.code, Some(8), "{}", paused.stderr);
    let id = done(&env, &["resume", "@last", "--detach"]);
    let (session, gate) = open_gate(&env);
    assert_eq!(session.as_str(), id);
    done(&env, &["gates", "answer", &gate, "yes"]);
    done(&env, &["attach", &id]);
    let head = env.well().info(&session).unwrap().head;
    assert_eq!((head.status, ran(&env)), (Status::Success, 1));
    // What is done is not begun again.
    let again = env.quietly(&["resume", &id, "--detach", "--model", "script:none.yaml"]);
    assert_eq!(again.code, Some(3), "{}", again.stderr);
    assert!(again.stderr.contains("none.yaml"), "{}", again.stderr);
}

#[test]
fn a_session_goes_on_in_the_background_with_its_answer() {
    let env = env();
    let paused = env.quietly(&["run", "make it", "--model", "script:asks.yaml"]);
    assert_eq!(paused.code, Some(8), "{}", paused.stderr);
    let id = done(&env, &["resume", "@last", "--approve", "--detach"]);
    done(&env, &["attach", &id]);
    let head = env.well().info(&id.parse().unwrap()).unwrap().head;
    assert_eq!((head.status, ran(&env)), (Status::Success, 1));
}

#[test]
fn a_run_in_the_background_that_cannot_begin_says_so_at_once() {
    let env = env();
    let failed = env.quietly(&["run", "make it", "--detach", "--model", "script:none.yaml"]);
    assert_eq!((failed.code, failed.stdout.as_str()), (Some(3), ""));
    assert!(failed.stderr.contains("none.yaml"), "{}", failed.stderr);
}

#[test]
fn a_run_that_waits_is_stopped_from_another_terminal() {
    let env = env();
    let mut command = env.command(&["run", "make it", "--wait", "--model", "script:asks.yaml"]);
    let mut child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    let (id, _) = open_gate(&env);
    done(&env, &["stop", id.as_str(), "--reason", "lunch"]);
    assert_eq!(child.wait().unwrap().code(), Some(130));
    let head = env.well().info(&id).unwrap().head;
    assert_eq!((head.status, ran(&env)), (Status::Interrupted, 0));
}

#[test]
fn an_answer_reaches_an_agent_that_waits_elsewhere() {
    let env = env();
    let mut command = env.command(&["run", "make it", "--wait", "--model", "script:asks.yaml"]);
    let mut child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    let (id, _) = open_gate(&env);
    done(&env, &["resume", id.as_str(), "--approve"]);
    assert_eq!(child.wait().unwrap().code(), Some(0));
    assert_eq!(ran(&env), 1);
}

#[test]
fn attaching_to_a_session_that_waits_and_does_not_run_says_what_it_asks() {
    let env = env();
    let paused = env.quietly(&["run", "make it", "--model", "script:asks.yaml"]);
    assert_eq!(paused.code, Some(8), "{}", paused.stderr);
    let (id, gate) = open_gate(&env);
    let attached = env.quietly(&["attach", id.as_str()]);
    assert_eq!(attached.code, Some(0), "{}", attached.stderr);
    let said = attached.stderr;
    assert!(said.contains(&format!("{id} waits: ")), "{said}");
    assert!(said.contains(&format!("stepwell gates answer {id}/{gate} yes, or no")), "{said}");
}

#[test]
fn an_agent_cannot_answer_or_speak_for_its_user() {
    let mut env = env();
    env.set("STEPWELL_IN_RUN", "1");
    let config = ["config", "set", "--user", "talk.from", "store"];
    for args in [
        &["gates", "answer", "g", "yes"][..],
        &["say", "@last", "yes"],
        &["state", "@last", "goal", "another"],
        &config,
    ] {
        let refused = env.quietly(args);
        assert_eq!(refused.code, Some(1), "{}", refused.stderr);
        assert!(refused.stderr.contains("is for people"), "{}", refused.stderr);
    }
    // A variable can be unset; whose child a command is cannot.
    let inner = format!("env -u STEPWELL_IN_RUN {STEPWELL} say @last yes 2> refused.txt");
    let script = format!(
        "- {{calls: [{{tool: run_command, arguments: {{command: '{inner}'}}}}]}}\n- {{text: Done.}}\n"
    );
    let env = self::env();
    env.file("cheats.yaml", &script);
    done(&env, &["run", "cheat", "--mode", "yolo", "--model", "script:cheats.yaml"]);
    assert!(env.read("refused.txt").contains("is for people"), "{}", env.read("refused.txt"));
}

#[test]
fn a_run_that_is_killed_while_it_asks_comes_to_the_same_question_once() {
    for (answer, times) in [("yes", 1), ("no", 0)] {
        for answered_before_resume in [true, false] {
            let env = env();
            let args = ["run", "make it", "--wait", "--model", "script:asks.yaml"];
            let mut command = env.command(&args);
            let mut child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
            let (id, gate) = open_gate(&env);
            child.kill().unwrap();
            child.wait().unwrap();
            if answered_before_resume {
                done(&env, &["gates", "answer", &gate, answer]);
                env.quietly(&["resume", id.as_str()]);
            } else {
                let flag = if times == 1 { "--approve" } else { "--deny" };
                env.quietly(&["resume", id.as_str(), flag]);
            }
            let well = env.well();
            let events = well.store().events(&id, Span::ALL).unwrap().events;
            let gates = events.iter().filter(|it| matches!(it.event, Event::Gate(_))).count();
            assert_eq!((ran(&env), gates), (times, 1), "{answer} {answered_before_resume}");
        }
    }
}

#[test]
fn a_flow_in_the_background_is_answered_and_goes_on_and_one_that_stopped_goes_on_there() {
    let env = flows::env(flows::SPEC, flows::SCRIPT);
    let spec = ["flow", "run", "flow.yaml", "--model", "script:script.yaml"];
    let start = |more: &[&str]| {
        let args = [&["--json"], &spec[..], &["--detach", "--output", "out"], more].concat();
        let started: serde_json::Value = serde_json::from_str(&done(&env, &args)).unwrap();
        started["session_id"].as_str().unwrap().to_owned()
    };
    let answered = |id: &str| {
        let (session, gate) = open_gate(&env);
        assert_eq!(session.as_str(), id);
        let gate = format!("{id}/{gate}");
        let answered = done(&env, &["--json", "gates", "answer", &gate, "very good"]);
        assert!(answered.contains(r#""goes_on":true"#), "{answered}");
        done(&env, &["attach", id]);
        assert_eq!(env.well().info(&session).unwrap().head.status, Status::Success);
    };
    answered(&start(&["--var", "topic=wells"]));
    assert_eq!(env.read("out/letter.md"), "the letter");
    // One of the same spec and variables that waits is gone on with.
    let paused = env.quietly(&[&spec[..], &["--var", "topic=steps"]].concat());
    assert_eq!(paused.code, Some(8), "{}", paused.stderr);
    let waits = env.well().find("@last").unwrap().to_string();
    let again = start(&["--var", "topic=steps", "--auto-resume", "--force"]);
    assert_eq!(again, waits);
    answered(&again);
    // What is wrong is told at once.
    let wrong = env.quietly(&[&spec[..], &["--detach"]].concat());
    assert!(wrong.code != Some(0) && wrong.stdout.is_empty(), "{}", wrong.stdout);
    assert!(wrong.stderr.contains("topic"), "{}", wrong.stderr);
}
