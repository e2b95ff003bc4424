//! The MCP Inspector's command line, a third-party client, in both eras of the protocol.
//!
//! `./install-witnesses` installs it and a Node that runs it; `./check` runs it.

use std::path::PathBuf;
use std::process::Command;

use serde_json::{Value, json};

use crate::reading::{READ_TOOLS, arguments};
use crate::test_env::{SECRET, TestEnv};

const SERVER: &str = env!("CARGO_BIN_EXE_stepwell-test-mcp-server");

/// An installed program that a variable names. `./check` always sets it; without it the test says
/// that it was skipped.
#[expect(clippy::disallowed_methods, reason = "whoever runs the tests says where it is")]
#[expect(clippy::print_stderr, reason = "a test that does nothing says so")]
fn program(variable: &str) -> Option<PathBuf> {
    let found = std::env::var_os(variable).map(PathBuf::from);
    let needed = ["CI", "STEPWELL_CHECK"].iter().any(|it| std::env::var_os(it).is_some());
    let hint = "eval \"$(./install-witnesses)\" installs it and sets the variable";
    match &found {
        None if needed => panic!("{variable} names no program; {hint}"),
        None => eprintln!("skipped: {variable} names no program; {hint}"),
        Some(_) => {}
    }
    found
}

struct Inspector<'a> {
    node: PathBuf,
    script: PathBuf,
    env: &'a TestEnv,
    era: &'a str,
}

impl Inspector<'_> {
    /// Sends a request to the server, and parses the Inspector's output.
    fn ask(&self, arguments: &[&str]) -> Value {
        let mut command = Command::new(&self.node);
        let root = self.env.root();
        command.arg(&self.script).args(["--cli", SERVER]).arg(&root).args(["record", "manage"]);
        command.args([
            "--protocol-era",
            self.era,
            "--connect-timeout",
            "60000",
            "--format",
            "json",
        ]);
        let ran = command.args(arguments).env("HOME", &root).output().unwrap();
        let (out, err) =
            (String::from_utf8_lossy(&ran.stdout), String::from_utf8_lossy(&ran.stderr));
        assert!(ran.status.success(), "{} {arguments:?}: {}\n{out}\n{err}", self.era, ran.status);
        serde_json::from_str(&out).unwrap_or_else(|error| panic!("{error}: {out}\n{err}"))
    }
}

fn inspected(era: &str) {
    let (Some(node), Some(script)) =
        (program("STEPWELL_WITNESS_NODE"), program("STEPWELL_WITNESS_INSPECTOR"))
    else {
        return;
    };
    let env = TestEnv::new();
    let (id, waiting) = (env.login(), env.waiting());
    let inspector = Inspector { node, script, env: &env, era };
    let tools = inspector.ask(&["--method", "tools/list", "--strict"]);
    let result = |answer: &Value| answer.get("result").cloned().unwrap_or_else(|| answer.clone());
    assert_eq!(result(&tools)["tools"].as_array().unwrap().len(), 18, "{tools}");
    for tool in READ_TOOLS {
        let asked = arguments(tool, &id, &waiting).to_string();
        let call = ["--method", "tools/call", "--tool-name", tool, "--tool-args-json", &asked];
        // It validates the answer against the tool's schema.
        let answer = result(&inspector.ask(&call));
        assert!(answer["structuredContent"]["notice"].is_string(), "{tool}: {answer}");
        assert_ne!(answer["isError"], true, "{tool}: {answer}");
    }
    let asked = json!({"query": "cookies"}).to_string();
    let call =
        ["--method", "tools/call", "--tool-name", "search_sessions", "--tool-args-json", &asked];
    let found = result(&inspector.ask(&call));
    assert_eq!(found["structuredContent"]["hits"][0]["session"], json!(id), "{found}");
    let asked = json!({"session": id, "form": "events"}).to_string();
    let call =
        ["--method", "tools/call", "--tool-name", "read_session", "--tool-args-json", &asked];
    let read = inspector.ask(&call).to_string();
    assert!(read.contains("[redacted:") && !read.contains(SECRET), "{read}");
    let listed = result(&inspector.ask(&["--method", "resources/list"]));
    let uri = listed["resources"][0]["uri"].as_str().unwrap().to_owned();
    let resource = inspector.ask(&["--method", "resources/read", "--uri", &uri]).to_string();
    assert!(resource.contains("Quoted from recorded"), "{resource}");
    let session = format!("session={id}");
    let prompt =
        ["--method", "prompts/get", "--prompt-name", "continue_from", "--prompt-args", &session];
    let prompt = inspector.ask(&prompt).to_string();
    assert!(prompt.contains("stepwell-records"), "{prompt}");
}

#[test]
fn the_inspector_finds_no_fault_in_the_era_with_a_handshake() {
    inspected("legacy");
}

#[test]
fn the_inspector_finds_no_fault_in_the_era_without_one() {
    inspected("modern");
}
