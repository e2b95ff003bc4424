//! Two shells at once.

use std::io::{BufRead, BufReader};
use std::process::Stdio;

use stepwell::{Message, Status, StopReason};

use crate::test_env::{AUTH, TestEnv};

#[test]
fn a_log_is_followed_while_another_process_writes() {
    let env = TestEnv::furnished();
    let well = env.well();
    let running = well.resume(&AUTH.parse().unwrap()).unwrap();
    let begun = running.info().unwrap().head.seq.get();
    let mut follower =
        env.command(&["log", "-f", AUTH, "-n", "1"]).stdout(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(follower.stdout.take().unwrap()).lines();
    let mut next =
        || -> serde_json::Value { serde_json::from_str(&lines.next().unwrap().unwrap()).unwrap() };
    assert_eq!(next()["seq"], begun);
    // Each event is there to be read before the next is written.
    for n in 1..=5 {
        running.append(Message::user(format!("line {n}"))).unwrap();
        let line = next();
        assert_eq!(line["seq"], begun + n);
        assert_eq!(line["body"]["parts"][0]["text"]["text"], format!("line {n}"));
    }
    running.finish(Status::Success, Some(StopReason::LlmDone)).unwrap();
    assert_eq!(next()["body"]["status"], "success");
    // It ends with the session.
    assert!(lines.next().is_none());
    assert!(follower.wait().unwrap().success());
}

#[test]
fn two_shells_write_to_one_store_at_once() {
    let env = TestEnv::new();
    env.quietly(&["init"]).line();
    let shell = |name: &'static str| {
        let commands: Vec<_> = (0..20)
            .map(|n| {
                let id = format!("{name}-{n}");
                env.command(&["agent", "create", "--agent", name, "--purpose", "p", "--id", &id])
            })
            .collect();
        std::thread::spawn(move || {
            for mut command in commands {
                assert!(command.stdout(Stdio::null()).status().unwrap().success());
            }
        })
    };
    let shells = [shell("one"), shell("two")];
    shells.into_iter().for_each(|shell| shell.join().unwrap());
    assert_eq!(env.quietly(&["sessions", "--all", "--json"]).json().len(), 40);
    assert_eq!(env.quietly(&["verify"]).code, Some(0));
}

#[test]
fn two_shells_make_one_store() {
    let env = TestEnv::new();
    let mut children: Vec<_> = (0..4)
        .map(|n| {
            let id = format!("agent-{n}");
            let args = ["agent", "create", "--agent", "a", "--purpose", "p", "--id", &id];
            env.command(&args).stdout(Stdio::null()).spawn().unwrap()
        })
        .collect();
    assert!(children.iter_mut().all(|child| child.wait().unwrap().success()));
    assert_eq!(env.quietly(&["sessions", "--json"]).json().len(), 4);
}

#[test]
fn a_log_that_is_followed_ends_when_its_session_is_erased() {
    let env = TestEnv::new();
    let args = ["agent", "create", "--agent", "a", "--purpose", "p", "--id", "agent-1"];
    env.quietly(&args).line();
    let mut command = env.command(&["log", "-f", "agent-1"]);
    let mut follower = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    let mut lines = BufReader::new(follower.stdout.take().unwrap()).lines();
    assert!(lines.next().unwrap().unwrap().contains("created"));
    assert_eq!(env.quietly(&["purge", "agent-1", "--yes"]).code, Some(0));
    assert!(lines.next().is_none());
    assert!(follower.wait().unwrap().success());
}
