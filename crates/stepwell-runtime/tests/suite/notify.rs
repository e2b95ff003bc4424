//! The user's own command: run once for each event, and in nobody's way.

use std::path::Path;

use stepwell::Status;
use stepwell::model::{Answer, Money};
use stepwell_runtime::{ResumeRequest, RunOptions, RunRequest};
use stepwell_workspace::{Host, Notices, Wanted, Workspace};

use crate::test_env::{ASKS, TestEnv, asked};

/// A command that appends what it is told to a file, one line for each event.
fn notes(folder: &Path) -> String {
    let line = "$STEPWELL_EVENT|$STEPWELL_EVENT_SESSION|$STEPWELL_EVENT_GATE|\
                $STEPWELL_EVENT_STATUS|$STEPWELL_EVENT_SPENT|$STEPWELL_EVENT_TEXT";
    let path = folder.join("notes.txt");
    format!("notify.command = '''echo \"{line}\" >> {}'''\n", path.display())
}

/// Waits until the command has written so many lines. It is not waited for by the run.
fn lines(folder: &Path, wanted: usize) -> Vec<String> {
    loop {
        let text = std::fs::read_to_string(folder.join("notes.txt")).unwrap_or_default();
        if text.lines().count() >= wanted && text.ends_with('\n') {
            return text.lines().map(str::to_owned).collect();
        }
        std::thread::yield_now();
    }
}

#[test]
fn the_users_command_runs_once_when_a_question_opens_and_once_when_the_run_ends() {
    let notes_in = tempfile::tempdir().unwrap();
    let env = TestEnv::configured(&notes(notes_in.path()));
    let handle = env.start(ASKS);
    let id = handle.id().clone();
    asked(&mut handle.events());
    // Stopped while it asks; the next run comes to the same question, which is no news.
    handle.interrupt();
    assert_eq!(handle.join().unwrap().status, Status::Interrupted);
    let handle = env.runtime.resume(env.resume(&id)).unwrap();
    let open = asked(&mut handle.events());
    handle.answer(&open.gate.id, Answer::ALLOW_ONCE, "ann@desk").unwrap();
    assert_eq!(handle.join().unwrap().status, Status::Success);
    let mut told = lines(notes_in.path(), 3);
    // Nobody waits for the commands, so that they may overtake each other.
    told.sort();
    assert_eq!(told.len(), 3, "{told:?}");
    assert!(told[0].starts_with(&format!("gate_opened|{id}|{}|||", open.gate.id)), "{told:?}");
    assert!(told[0].contains("echo x >> made.txt"), "{told:?}");
    assert_eq!(told[1], format!("run_ended|{id}||interrupted||make it: interrupted"));
    assert_eq!(told[2], format!("run_ended|{id}||success||make it: success"));
}

#[test]
fn the_call_that_brings_a_budget_to_nine_tenths_is_told_of_once() {
    let notes_in = tempfile::tempdir().unwrap();
    let env = TestEnv::configured(&notes(notes_in.path()));
    let script = "
- {calls: [{tool: list_files, arguments: {}}], cost: '5'}
- {calls: [{tool: list_files, arguments: {}}], cost: '4'}
- {calls: [{tool: list_files, arguments: {}}], cost: '0.5'}
- {text: Done.}
";
    let budget = Money::from_f64(10.0);
    let options = RunOptions { budget, ..env.options(script) };
    let handle = env.runtime.start(RunRequest { options, ..RunRequest::new("make it") }).unwrap();
    let id = handle.id().clone();
    let report = handle.join().unwrap();
    let told = lines(notes_in.path(), 2);
    let low: Vec<&String> = told.iter().filter(|line| line.starts_with("budget_low")).collect();
    assert_eq!(low, [&format!("budget_low|{id}|||9|make it: $9.00 of $10.00 spent")], "{report:?}");
}

#[test]
fn what_a_session_cost_before_is_no_part_of_a_resumes_budget() {
    let notes_in = tempfile::tempdir().unwrap();
    let env = TestEnv::configured(&notes(notes_in.path()));
    let script = "
- {text: First., cost: '5'}
- {calls: [{tool: list_files, arguments: {}}], cost: '0.10'}
- {text: Done., cost: '0.39'}
";
    let request = RunRequest { options: env.options(script), ..RunRequest::new("make it") };
    let handle = env.runtime.start(request).unwrap();
    let id = handle.id().clone();
    handle.join().unwrap();
    let options = RunOptions { budget: Money::from_f64(0.5), ..env.options(script) };
    let more = ResumeRequest { options, say: Some("more".to_owned()), ..env.resume(&id) };
    env.runtime.resume(more).unwrap().join().unwrap();
    let told = lines(notes_in.path(), 3);
    let low: Vec<&String> = told.iter().filter(|line| line.starts_with("budget_low")).collect();
    assert_eq!(low, [&format!("budget_low|{id}|||0.49|make it: $0.49 of $0.50 spent")], "{told:?}");
}

#[test]
fn a_command_that_hangs_or_fails_is_in_nobodys_way() {
    // The first one ends with the test's folder.
    let hangs = "while [ -d \"$STEPWELL_EVENT_WORKSPACE\" ]; do sleep 0.1; done";
    for command in [hangs, "exit 3", "/no/such/program"] {
        let env = TestEnv::configured(&format!("notify.command = '''{command}'''\n"));
        let handle = env.start("- {text: Done.}\n");
        assert_eq!(handle.join().unwrap().status, Status::Success, "{command}");
    }
}

#[test]
fn secrets_are_not_told() {
    let notes_in = tempfile::tempdir().unwrap();
    let env = TestEnv::configured(&notes(notes_in.path()));
    let secret = format!("ghp_{}", "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8");
    let options = env.options("- {text: Done.}\n");
    let request = RunRequest { options, ..RunRequest::new(format!("use {secret}")) };
    env.runtime.start(request).unwrap().join().unwrap();
    let told = lines(notes_in.path(), 1);
    assert!(told[0].starts_with("run_ended|") && !told[0].contains(&secret), "{told:?}");
}

#[test]
fn a_project_cannot_have_a_command_run() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().join("work");
    std::fs::create_dir_all(&root).unwrap();
    std::fs::write(root.join("stepwell.toml"), "notify.command = \"touch ran\"\n").unwrap();
    let host = Host { folder: Some(root.clone()), ..Host::bare() };
    let wanted = Wanted { folder: Some(root), ..Wanted::default() };
    let refused = Workspace::locate(host, wanted, Notices::to_nobody()).unwrap_err();
    assert!(refused.to_string().contains("belong in your own configuration"), "{refused}");
}
