//! `stepwell acp` under clients that others wrote: the protocol's Python SDK, and acpx.
//!
//! `./install-witnesses` installs them and a Node that runs acpx; `./check` runs them.

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use serde_json::{Value, json};

use crate::elsewhere::fixtures;
use crate::test_env::TestEnv;

const STEPWELL: &str = env!("CARGO_BIN_EXE_stepwell");

/// A real program that somebody installed and named in a variable. `./check` always has; a test
/// that is run without says that it did nothing.
#[expect(clippy::disallowed_methods, reason = "whoever runs the tests says where it is")]
#[expect(clippy::print_stderr, reason = "a test that does nothing says so")]
pub(crate) fn program(variable: &str) -> Option<PathBuf> {
    let found = std::env::var_os(variable).map(PathBuf::from);
    let needed = ["CI", "STEPWELL_CHECK"].iter().any(|it| std::env::var_os(it).is_some());
    let hint = "eval \"$(./install-witnesses)\" installs it and sets the variable";
    assert!(found.is_some() || !needed, "{variable} names no program; {hint}");
    if found.is_none() {
        eprintln!("skipped: {variable} names no program; {hint}");
    }
    found
}

/// A program with nothing in its environment but a home and a path.
pub(crate) fn bare(program: &Path, env: &TestEnv) -> Command {
    let mut command = Command::new(program);
    command.current_dir(env.work()).env_clear().env("HOME", env.path("home"));
    command.env("PATH", "/usr/local/bin:/usr/bin:/bin");
    command
}

/// Has the Python SDK do what `tests/acp/client.py` says under a name.
fn sdk(scenario: &str, more: Option<&Path>) {
    let Some(python) = program("STEPWELL_WITNESS_ACP_PYTHON") else { return };
    let env = TestEnv::new();
    std::fs::create_dir_all(env.work()).unwrap();
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/acp/client.py");
    let mut command = bare(&python, &env);
    command.arg(script).arg(STEPWELL).arg(env.work()).arg(scenario).args(more);
    let ran = command.output().unwrap();
    let told = String::from_utf8_lossy(&ran.stderr);
    assert!(ran.status.success(), "{scenario}: {}\n{told}", String::from_utf8_lossy(&ran.stdout));
}

#[test]
fn a_session_is_talked_to_loaded_resumed_listed_closed_and_deleted() {
    sdk("talk", None);
}

#[test]
fn a_tool_shows_its_diff_and_runs_only_if_it_is_allowed() {
    sdk("permission", None);
}

#[test]
fn a_turn_is_cancelled_in_the_middle_and_goes_on_later() {
    sdk("cancel", None);
}

#[test]
fn two_clients_on_one_session_see_the_same_and_either_may_answer() {
    sdk("two", None);
}

#[test]
fn a_client_that_dies_at_a_permission_leaves_a_gate_for_the_command_line() {
    sdk("killed", None);
}

#[test]
fn a_clients_servers_and_folders_are_used_and_never_recorded() {
    sdk("brought", None);
}

#[test]
fn a_session_of_another_agent_goes_on_in_an_editor() {
    let session =
        "claude/projects/-home-mila-crumb-shop/7be2d940-15c3-4f6a-a1d8-90c4e3b7f512.jsonl";
    sdk("imported", Some(&fixtures().join(session)));
}

/// Runs acpx, and reads the messages that it says it exchanged.
fn acpx(env: &TestEnv, arguments: &[&str]) -> Option<Vec<Value>> {
    let (node, script) = (program("STEPWELL_WITNESS_NODE")?, program("STEPWELL_WITNESS_ACPX")?);
    let mut command = bare(&node, env);
    command.arg(script).arg("--agent").arg(format!("{STEPWELL} acp")).arg("--cwd");
    let ran = command.arg(env.work()).args(["--format", "json"]).args(arguments).output().unwrap();
    let (out, err) = (String::from_utf8_lossy(&ran.stdout), String::from_utf8_lossy(&ran.stderr));
    // It also fails where a permission was denied, as it was told to.
    assert!(out.contains("stopReason"), "{arguments:?}: {}\n{out}\n{err}", ran.status);
    Some(out.lines().filter_map(|line| serde_json::from_str(line).ok()).collect())
}

#[test]
fn acpx_allows_and_denies() {
    let env = TestEnv::new();
    let script = "- text: I write it.\n  calls:\n    - {tool: write_file, arguments: {path: made.txt, content: hello}}\n\
                  - {text: Written.}\n";
    env.file("script.yaml", script);
    env.file(
        "stepwell.toml",
        &format!("[model]\nname = \"script:{}\"\n", env.work().join("script.yaml").display()),
    );
    let stop = |messages: &[Value]| {
        let ends = messages.iter().filter_map(|it| it["result"]["stopReason"].as_str());
        { ends }.next_back().map(str::to_owned)
    };
    let Some(denied) = acpx(&env, &["--deny-all", "exec", "write it"]) else { return };
    assert_eq!(stop(&denied).as_deref(), Some("end_turn"), "{denied:?}");
    assert!(!env.path("work/made.txt").exists());
    let allowed = acpx(&env, &["--approve-all", "exec", "write it"]).unwrap();
    assert_eq!(stop(&allowed).as_deref(), Some("end_turn"), "{allowed:?}");
    assert_eq!(env.read("made.txt"), "hello");
    let updates = allowed.iter().map(|it| &it["params"]["update"]);
    let diffs = updates.filter_map(|it| it["content"].as_array()).flatten();
    let diff = diffs.rev().find(|it| it["type"] == "diff").cloned().unwrap();
    assert_eq!((&diff["oldText"], &diff["newText"]), (&Value::Null, &json!("hello")));
}

#[test]
fn stdout_is_protocol_only_and_the_end_of_stdin_ends_it() {
    let mut env = TestEnv::new();
    let hello = r#"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":7}}"#;
    let ran = env.feed(&["acp"], &format!("{hello}\nnonsense\n"));
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    let lines: Vec<Value> =
        ran.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(lines[0]["result"]["protocolVersion"], 1);
    assert_eq!(lines[1]["error"]["code"], -32700);
    assert_eq!(lines.len(), 2);
}

#[test]
fn the_end_of_stdin_ends_a_server_whose_answers_nobody_reads() {
    let hello = r#"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"c","version":"1"}}}"#;
    let list = r#"{"jsonrpc":"2.0","id":1,"method":"tools/list"}"#;
    for (server, asked) in [
        ("acp", format!("{hello}\n").repeat(400)),
        ("mcp", {
            let begun = r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#;
            format!("{hello}\n{begun}\n{}", format!("{list}\n").repeat(20))
        }),
    ] {
        let env = TestEnv::new();
        std::fs::create_dir_all(env.work()).unwrap();
        let mut command = env.command(&[server]);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut child = command.spawn().unwrap();
        child.stdin.take().unwrap().write_all(asked.as_bytes()).unwrap();
        // What it wrote is never read, and the pipe is full.
        let (over, ended) = mpsc::channel();
        let pid = rustix::process::Pid::from_child(&child);
        let kept = child.stdout.take();
        let waiter = thread::spawn(move || over.send(child.wait().unwrap()));
        let status = ended.recv_timeout(Duration::from_secs(60));
        if status.is_err() {
            rustix::process::kill_process(pid, rustix::process::Signal::KILL).unwrap();
        }
        waiter.join().unwrap().ok();
        drop(kept);
        assert_eq!(status.map(|it| it.code()), Ok(Some(0)), "{server}");
    }
}
