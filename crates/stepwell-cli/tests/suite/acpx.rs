//! `stepwell acp` under acpx, a client that others wrote: sessions that outlive its processes,
//! cancelling, and its death.
//!
//! It has no way to delete a session, and resumes where it could load: the protocol's Python SDK
//! does both (`editors.rs`).

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

use serde_json::Value;
use stepwell::store::Span;
use stepwell::{Event, Status};

use crate::editors::{bare, program};
use crate::seat::Seat;
use crate::talking::open_gate;
use crate::test_env::{STEPWELL, TestEnv};

/// acpx, an agent that notes what it is sent, and a workspace.
struct Acpx {
    env: TestEnv,
    node: PathBuf,
    script: PathBuf,
}

impl Acpx {
    /// None, if acpx is not installed.
    fn new(answers: &str) -> Option<Self> {
        let (node, script) = (program("STEPWELL_WITNESS_NODE")?, program("STEPWELL_WITNESS_ACPX")?);
        let env = TestEnv::new();
        env.file("script.yaml", answers);
        let model = env.work().join("script.yaml");
        env.file("stepwell.toml", &format!("[model]\nname = \"script:{}\"\n", model.display()));
        let (agent, sent) = (env.path("agent"), env.path("sent.jsonl"));
        let lines = format!("#!/bin/sh\ntee -a {} | {STEPWELL} acp\n", sent.display());
        fs::write(&agent, lines).unwrap();
        fs::set_permissions(&agent, fs::Permissions::from_mode(0o755)).unwrap();
        Some(Self { env, node, script })
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = bare(&self.node, &self.env);
        command.arg(&self.script).arg("--agent").arg(self.env.path("agent"));
        command.arg("--cwd").arg(self.env.work()).args(arguments);
        command
    }

    /// Starts it in the background.
    fn spawn(&self, arguments: &[&str]) -> Child {
        let mut command = self.command(&[&["--format", "json"], arguments].concat());
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command.spawn().unwrap()
    }

    /// Runs it, and reads what it prints.
    fn run(&self, arguments: &[&str]) -> Vec<Value> {
        printed(self.spawn(arguments), arguments)
    }

    /// The methods that the agent was sent, in their order.
    fn sent(&self) -> Vec<String> {
        let lines = fs::read_to_string(self.env.path("sent.jsonl")).unwrap_or_default();
        let messages = lines.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
        messages.filter_map(|it| it["method"].as_str().map(str::to_owned)).collect()
    }

    /// How often the agent was sent a method.
    fn times(&self, method: &str) -> usize {
        self.sent().iter().filter(|it| *it == method).count()
    }

    fn status(&self, session: &str) -> Status {
        self.env.well().info(&session.parse().unwrap()).unwrap().head.status
    }
}

fn printed(child: Child, arguments: &[&str]) -> Vec<Value> {
    let ran = child.wait_with_output().unwrap();
    let (out, err) = (String::from_utf8_lossy(&ran.stdout), String::from_utf8_lossy(&ran.stderr));
    assert!(ran.status.success(), "{arguments:?}: {}\n{out}\n{err}", ran.status);
    out.lines().filter_map(|line| serde_json::from_str(line).ok()).collect()
}

/// What the agent said, as acpx prints it.
fn said(messages: &[Value]) -> String {
    let updates = messages.iter().map(|it| &it["params"]["update"]);
    let said = updates.filter(|it| it["sessionUpdate"] == "agent_message_chunk");
    said.filter_map(|it| it["content"]["text"].as_str()).collect()
}

/// How the last turn ended.
fn stop(messages: &[Value]) -> Option<&str> {
    messages.iter().rev().find_map(|it| it["result"]["stopReason"].as_str())
}

/// The session of a workspace that has one.
fn only_session(env: &TestEnv) -> String {
    let all = env.well().list(&stepwell::store::query::Query::default()).unwrap().sessions;
    assert_eq!(all.len(), 1);
    all[0].head.id.to_string()
}

#[test]
fn acpx_lists_resumes_and_closes_a_session() {
    let answers = "- {text: Hello there.}\n- {text: And again.}\n";
    let Some(acpx) = Acpx::new(answers) else { return };
    let first = acpx.run(&["exec", "hi"]);
    assert_eq!((said(&first).as_str(), stop(&first)), ("Hello there.", Some("end_turn")));
    let session = only_session(&acpx.env);
    let work = fs::canonicalize(acpx.env.work()).unwrap();
    let listed = acpx.run(&["sessions", "list", "--filter-cwd", work.to_str().unwrap()]);
    let of_agent = &listed[0]["sessions"];
    assert_eq!(
        (&of_agent[0]["sessionId"], &of_agent[0]["title"]),
        (&session.clone().into(), &"hi".into()),
        "{listed:?}"
    );
    // Another process of acpx's goes on with it, and is told nothing again.
    acpx.run(&["sessions", "new", "--name", "again", "--resume-session", &session]);
    let second = acpx.run(&["prompt", "--session", "again", "more"]);
    assert_eq!((said(&second).as_str(), stop(&second)), ("And again.", Some("end_turn")));
    assert!(acpx.times("session/resume") >= 1, "{:?}", acpx.sent());
    acpx.run(&["sessions", "close", "again"]);
    assert_eq!(acpx.times("session/close"), 1, "{:?}", acpx.sent());
    // A session that is closed is kept.
    assert_eq!(acpx.status(&session), Status::Success);
    assert_eq!(only_session(&acpx.env), session);
}

#[test]
fn acpx_cancels_a_turn_in_the_middle_of_a_command() {
    let command = "echo x > started.txt; exec sleep 600";
    let call = format!("{{tool: run_command, arguments: {{command: '{command}'}}}}");
    let answers = format!("- {{text: I wait., calls: [{call}]}}\n- {{text: Gone on.}}\n");
    let Some(acpx) = Acpx::new(&answers) else { return };
    acpx.run(&["sessions", "new", "--name", "long"]);
    let prompt = ["--approve-all", "prompt", "--session", "long", "wait"];
    let turn = acpx.spawn(&prompt);
    acpx.env.wait_for("started.txt");
    let cancelled = acpx.run(&["cancel", "--session", "long"]);
    assert_eq!(cancelled[0]["cancelled"], true, "{cancelled:?}");
    let turn = turn.wait_with_output().unwrap();
    let out = String::from_utf8_lossy(&turn.stdout);
    assert!(out.contains(r#""stopReason":"cancelled""#), "{out}");
    let session = only_session(&acpx.env);
    assert_eq!((acpx.times("session/cancel"), acpx.status(&session)), (1, Status::Interrupted));
    // The next words go on in the same session.
    let next = acpx.run(&["--approve-all", "prompt", "--session", "long", "go on"]);
    assert_eq!((said(&next).as_str(), stop(&next)), ("Gone on.", Some("end_turn")));
    assert_eq!(only_session(&acpx.env), session);
    acpx.run(&["sessions", "close", "long"]);
}

#[test]
fn acpx_that_is_killed_at_a_permission_leaves_a_gate_for_the_command_line() {
    let call = "{tool: run_command, arguments: {command: 'echo x >> made.txt'}}";
    let answers = format!("- {{text: I make it., calls: [{call}]}}\n- {{text: Made.}}\n");
    let Some(acpx) = Acpx::new(&answers) else { return };
    // It asks only on a terminal.
    let mut seat = Seat::sit(acpx.command(&["exec", "make it"]));
    let (session, gate) = open_gate(&acpx.env);
    seat.until("(y/N)");
    seat.kill();
    // Whoever answers waits until the agent has let go of the session.
    while acpx.status(session.as_str()) != Status::Paused {
        std::thread::yield_now();
    }
    assert_eq!(open_gate(&acpx.env).1, gate, "an answer was made up");
    let answered = acpx.env.quietly(&["gates", "answer", &gate, "yes"]);
    assert_eq!(answered.code, Some(0), "{}", answered.stderr);
    for _ in 0..2 {
        let resumed = acpx.env.quietly(&["resume", session.as_str()]);
        assert_eq!(resumed.code, Some(0), "{}", resumed.stderr);
    }
    assert_eq!(acpx.env.read("made.txt"), "x\n", "it ran once");
    let well = acpx.env.well();
    let events = well.store().events(&session, Span::ALL).unwrap().events;
    let gates = events.iter().filter(|it| matches!(it.event, Event::Gate(_))).count();
    assert_eq!((gates, well.info(&session).unwrap().head.status), (1, Status::Success));
}

#[test]
fn acpx_finds_the_agent_that_was_installed_for_it() {
    let Some(acpx) = Acpx::new("- {text: Found.}\n") else { return };
    let installed = acpx.env.quietly(&["acp", "install", "acpx", "--yes"]);
    assert_eq!(installed.code, Some(0), "{}", installed.stderr);
    let folder = PathBuf::from(STEPWELL);
    let path = format!("{}:/usr/bin:/bin", folder.parent().unwrap().display());
    let arguments = ["--format", "json", "stepwell", "exec", "hi"];
    let mut command = bare(&acpx.node, &acpx.env);
    command.arg(&acpx.script).args(arguments).env("PATH", path).stdin(Stdio::null());
    let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    assert_eq!(said(&printed(child, &arguments)), "Found.");
}
