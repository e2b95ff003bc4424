//! Commands: their results, and that none of their processes stay behind.

use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use serde_json::json;
use stepwell::model::Outcome;
use stepwell_agent::tool::{Done, Supervisor, ToolEnv};
use tempfile::TempDir;
use tokio::time::{sleep, timeout};

use crate::tools::{place, tool};

pub(crate) const SUPERVISOR: &str = env!("CARGO_BIN_EXE_stepwell-test-supervisor");

/// Longer than any step of these tests takes on a slow machine.
pub(crate) const PATIENCE: Duration = Duration::from_secs(30);

/// The same workspace with and without a supervisor.
fn places() -> (TempDir, [ToolEnv; 2]) {
    let folder = tempfile::tempdir().unwrap();
    let plain = place(folder.path());
    let (program, arguments) = (SUPERVISOR.into(), vec!["supervise".to_owned()]);
    let supervisor = Some(Supervisor { program, arguments });
    let supervised = ToolEnv { supervisor, ..plain.clone() };
    (folder, [plain, supervised])
}

async fn run(place: &ToolEnv, command: &str) -> Done {
    tool("run_command").run(&json!({ "command": command }), place).await
}

/// Waits until a condition holds.
pub(crate) async fn until(what: &str, mut holds: impl FnMut() -> bool) {
    let wait = async {
        while !holds() {
            sleep(Duration::from_millis(10)).await;
        }
    };
    timeout(PATIENCE, wait).await.unwrap_or_else(|_| panic!("it never happened: {what}"));
}

/// The numbers in a file, once there are this many.
pub(crate) async fn numbers(path: &Path, count: usize) -> Vec<u32> {
    let read = || {
        let text = fs::read_to_string(path).unwrap_or_default();
        text.lines().filter_map(|line| line.parse().ok()).collect::<Vec<u32>>()
    };
    until("process numbers are written", || read().len() == count).await;
    read()
}

/// The state of a process, if it exists. A zombie is distinguished.
fn state(process: u32) -> Option<String> {
    let ps = Command::new("ps").args(["-o", "stat=", "-p", &process.to_string()]).output().unwrap();
    let state = String::from_utf8(ps.stdout).unwrap().trim().to_owned();
    (!state.is_empty()).then_some(state)
}

/// Is the process gone, or at least dead? Its adoptive parent reaps it, not this test.
pub(crate) fn is_dead(process: u32) -> bool {
    state(process).is_none_or(|state| state.starts_with('Z'))
}

/// Writes the pids of the shell and of a background process.
const FAMILY: &str = "echo $$ > pids; sleep 300 & echo $! >> pids; ";

#[tokio::test]
async fn output_keeps_its_order_and_the_exit_code_is_told() {
    let (_keep, places) = places();
    for place in &places {
        let done = run(place, "echo one; echo two >&2; echo three; exit 3").await;
        assert_eq!(done.text, "one\ntwo\nthree\n[exit code 3]");
        assert_eq!(done.outcome, Outcome::Failed);
        let done = run(place, "printf x").await;
        assert_eq!((done.text.as_str(), done.outcome), ("x\n[exit code 0]", Outcome::Done));
        assert_eq!(run(place, "true").await.text, "[exit code 0]");
        assert_eq!(run(place, "kill -9 $$").await.text, "[exit code 137]");
        assert!(run(place, "no-such-program").await.text.ends_with("[exit code 127]"));
    }
}

#[tokio::test]
async fn a_command_runs_in_the_workspace_without_input() {
    let (_keep, places) = places();
    for place in &places {
        let done = run(place, "pwd; cat; echo \"it's -- \\\"quoted\\\"\"").await;
        let root = place.root.display();
        assert_eq!(done.text, format!("{root}\nit's -- \"quoted\"\n[exit code 0]"));
    }
}

#[tokio::test]
async fn long_output_keeps_its_beginning_and_its_end() {
    let (_keep, places) = places();
    for mut place in places {
        place.output_limit = 200;
        let done = run(&place, "seq 1 100000").await;
        assert!(done.text.starts_with("1\n2\n3\n"), "{}", done.text);
        assert!(done.text.ends_with("99999\n100000\n[exit code 0]"), "{}", done.text);
        assert!(done.text.contains(" bytes left out]"), "{}", done.text);
        assert!(done.text.len() < 300, "{}", done.text);
    }
}

#[tokio::test]
async fn a_timeout_ends_the_command_with_its_grandchildren() {
    let (_keep, places) = places();
    for place in &places {
        let command = format!("{FAMILY} echo started; wait");
        let arguments = json!({ "command": command, "timeout_seconds": 1 });
        let done = tool("run_command").run(&arguments, place).await;
        assert_eq!(done.outcome, Outcome::TimedOut);
        assert!(done.text.starts_with("started\n"), "{}", done.text);
        assert!(
            done.text.ends_with("[ended after 1 s: the command took too long]"),
            "{}",
            done.text
        );
        for process in numbers(&place.root.join("pids"), 2).await {
            until("the process is gone", || is_dead(process)).await;
        }
        fs::remove_file(place.root.join("pids")).unwrap();
    }
}

#[tokio::test]
async fn a_command_that_ignores_sigterm_is_killed() {
    let (_keep, places) = places();
    for mut place in places {
        place.command_timeout = Duration::from_millis(300);
        let command = "trap '' TERM; echo $$ > pids; while :; do sleep 0.05; done";
        let arguments = json!({ "command": command, "timeout_seconds": 60 });
        let done = tool("run_command").run(&arguments, &place).await;
        assert_eq!(done.outcome, Outcome::TimedOut);
        let process = numbers(&place.root.join("pids"), 1).await[0];
        until("the process is gone", || is_dead(process)).await;
        fs::remove_file(place.root.join("pids")).unwrap();
    }
}

#[tokio::test]
async fn a_command_that_is_ended_may_tidy_up() {
    let (_keep, places) = places();
    for mut place in places {
        place.command_timeout = Duration::from_millis(300);
        let done = run(&place, "trap 'echo tidied; exit' TERM; while :; do sleep 0.02; done").await;
        assert!(done.text.contains("tidied\n"), "{}", done.text);
    }
}

#[tokio::test]
async fn dropping_a_run_ends_the_command_with_its_grandchildren() {
    let (_keep, places) = places();
    for place in &places {
        let command = format!("{FAMILY} wait");
        let pids = place.root.join("pids");
        let processes = tokio::select! {
            done = run(place, &command) => panic!("{done:?}"),
            processes = numbers(&pids, 2) => processes,
        };
        for process in processes {
            until("the process is gone", || is_dead(process)).await;
        }
        fs::remove_file(pids).unwrap();
    }
}

#[tokio::test]
async fn what_a_command_leaves_in_the_background_ends_with_it() {
    let (_keep, places) = places();
    for place in &places {
        let done = run(place, FAMILY).await;
        assert_eq!(done.text, "[exit code 0]");
        for process in numbers(&place.root.join("pids"), 2).await {
            until("the process is gone", || is_dead(process)).await;
        }
        fs::remove_file(place.root.join("pids")).unwrap();
    }
}

#[tokio::test]
async fn a_command_ends_when_stepwell_is_killed() {
    let (_keep, [place, _]) = places();
    let command = format!("{FAMILY} wait");
    let root = place.root.to_str().unwrap();
    let mut stepwell = Command::new(SUPERVISOR).args(["run", root, &command]).spawn().unwrap();
    let processes = numbers(&place.root.join("pids"), 2).await;
    assert!(processes.iter().all(|process| !is_dead(*process)));
    stepwell.kill().unwrap();
    stepwell.wait().unwrap();
    for process in processes {
        until("the process is gone", || is_dead(process)).await;
    }
}

#[tokio::test]
async fn a_supervisor_that_is_killed_is_reported() {
    let (_keep, [_, place]) = places();
    let done = run(&place, "kill -9 $PPID; sleep 1").await;
    assert_eq!(done.outcome, Outcome::Unknown, "{}", done.text);
    assert!(done.text.contains("may still be running"), "{}", done.text);
}

#[tokio::test]
async fn no_dead_process_is_left_unreaped() {
    let (_keep, places) = places();
    for place in &places {
        run(place, "exit 1").await;
        let command = format!("{FAMILY} wait");
        let pids = place.root.join("pids");
        tokio::select! {
            done = run(place, &command) => panic!("{done:?}"),
            _ = numbers(&pids, 2) => {}
        }
        fs::remove_file(pids).unwrap();
    }
    // Other tests in this process may briefly have a zombie child.
    let own = std::process::id().to_string();
    until("no child of ours is a zombie", || {
        let ps = Command::new("ps").args(["-A", "-o", "ppid=,stat="]).output().unwrap();
        let processes = String::from_utf8(ps.stdout).unwrap();
        !processes.lines().any(|line| {
            let mut words = line.split_whitespace();
            words.next() == Some(own.as_str()) && words.next().is_some_and(|s| s.starts_with('Z'))
        })
    })
    .await;
}

#[tokio::test]
async fn a_command_without_a_terminal_cannot_ask() {
    let (_keep, [_, place]) = places();
    let done = run(&place, "read -r answer < /dev/tty && echo answered").await;
    assert_eq!(done.outcome, Outcome::Failed, "{}", done.text);
}

#[tokio::test]
async fn wrong_arguments_run_nothing() {
    let (_keep, places) = places();
    for arguments in [
        json!({}),
        json!({ "command": " " }),
        json!({ "command": "a\0b" }),
        json!({ "command": "true", "timeout_seconds": 0 }),
        json!({ "command": "true", "cwd": "/" }),
    ] {
        assert!(tool("run_command").plan(&arguments, &places[0]).is_err(), "{arguments}");
        let done = tool("run_command").run(&arguments, &places[0]).await;
        assert_eq!(done.outcome, Outcome::Failed);
    }
}

#[tokio::test]
async fn a_program_that_is_missing_is_reported() {
    let (keep, [mut plain, mut supervised]) = places();
    let program = keep.path().join("none");
    supervised.supervisor = Some(Supervisor { program, arguments: Vec::new() });
    plain.root = keep.path().join("gone");
    for place in [plain, supervised] {
        let done = run(&place, "true").await;
        assert_eq!(done.outcome, Outcome::Failed);
        assert!(done.text.contains("could not be started"), "{}", done.text);
    }
}

#[test]
fn keys_are_not_passed_on() {
    let (_keep, [place, _]) = places();
    let root = place.root.to_str().unwrap();
    let mut stepwell = Command::new(SUPERVISOR);
    stepwell.args(["run", root, "env > env"]);
    stepwell.env("TEST_API_KEY", "1").env("STEPWELL_TEST", "2").env("OTHER_TEST", "3");
    assert!(stepwell.status().unwrap().success());
    let passed = fs::read_to_string(place.root.join("env")).unwrap();
    assert!(passed.contains("OTHER_TEST=3\n"), "{passed}");
    assert!(!passed.contains("TEST_API_KEY") && !passed.contains("STEPWELL_TEST"), "{passed}");
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn what_left_the_process_group_ends_with_the_command_too() {
    let (folder, [_, supervised]) = places();
    let script = "(setsid sh -c 'echo $$ >> pids; setsid sleep 300 & echo $! >> pids; wait' &); \
                  while [ $(cat pids 2>/dev/null | wc -l) -lt 2 ]; do :; done";
    let done = run(&supervised, script).await;
    assert_eq!(done.text, "[exit code 0]");
    let pids = numbers(&folder.path().join("pids"), 2).await;
    assert!(pids.iter().all(|pid| is_dead(*pid)), "{pids:?}");
    // The same after a time limit.
    fs::remove_file(folder.path().join("pids")).unwrap();
    let place = ToolEnv { command_timeout: Duration::from_secs(1), ..supervised };
    let done = run(&place, &format!("{script}; sleep 300")).await;
    assert_eq!(done.outcome, Outcome::TimedOut);
    let pids = numbers(&folder.path().join("pids"), 2).await;
    until("all are gone", || pids.iter().all(|pid| is_dead(*pid))).await;
}
