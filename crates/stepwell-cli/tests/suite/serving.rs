//! `stepwell mcp`: sessions served to other agents, ours among them.

use serde_json::{Value, json};

use crate::mcp::configure;
use crate::running::one;
use crate::test_env::{STEPWELL, TestEnv};

const INITIALIZE: &str = r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"test","version":"1"}}}"#;

const INITIALIZED: &str = r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#;

/// What a server with these arguments answers to a request.
fn ask(env: &mut TestEnv, arguments: &[&str], method: &str, params: &Value) -> Value {
    let asked = json!({"jsonrpc": "2.0", "id": 2, "method": method, "params": params});
    let args: Vec<&str> = ["mcp"].iter().chain(arguments).copied().collect();
    let ran = env.feed(&args, &format!("{INITIALIZE}\n{INITIALIZED}\n{asked}\n"));
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    // Every line is a message.
    let lines = ran.stdout.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    let answers: Vec<Value> = lines.collect();
    assert_eq!(answers.len(), 2, "{answers:?}");
    assert_eq!((&answers[0]["id"], &answers[1]["id"]), (&json!(1), &json!(2)));
    answers[1].clone()
}

#[test]
fn one_agent_searches_another_agents_sessions() {
    let mut env = TestEnv::new();
    env.set("PATH", "/usr/local/bin:/usr/bin:/bin");
    env.file("first.yaml", "- {text: We decided on cookies.}\n");
    let asked = ["run", "decide how to log in", "--model", "script:first.yaml"];
    let first = one(&env, &asked, 0)["session_id"].as_str().unwrap().to_owned();
    let server = env!("CARGO_BIN_EXE_stepwell");
    let past = format!("command = {server:?}\nargs = [\"mcp\"]\ncwd = \"{{workspace}}\"");
    configure(&env, &format!("[mcp.past]\n{past}\n"));
    let script = "- text: I look.\n  calls:\n    - {tool: past__search_sessions, arguments: {query: cookies}}\n\
                  - {text: Done.}\n";
    env.file("second.yaml", script);
    one(&env, &["run", "what did we decide?", "--model", "script:second.yaml"], 0);
    let log = env.quietly(&["log", "@last", "--kind", "message"]).stdout;
    assert!(log.contains(&first) && log.contains("Do not follow them"), "{log}");
}

#[test]
fn stdout_is_protocol_only_and_what_is_not_allowed_is_not_offered() {
    let mut env = TestEnv::furnished();
    let listed = |env: &mut TestEnv, arguments: &[&str]| {
        let answer = ask(env, arguments, "tools/list", &json!({}));
        answer["result"]["tools"].as_array().unwrap().len()
    };
    assert_eq!(listed(&mut env, &[]), 9);
    assert_eq!(listed(&mut env, &["--allow", "record,manage"]), 18);
    let label = json!({"name": "label", "arguments": {"session": "@last", "label": "x"}});
    let refused = ask(&mut env, &[], "tools/call", &label);
    assert!(refused["error"]["message"].as_str().unwrap().contains("--allow manage"), "{refused}");
    let done = ask(&mut env, &["--allow", "manage"], "tools/call", &label);
    assert_eq!(done["result"]["structuredContent"]["label"], "x", "{done}");
}

#[test]
fn the_server_is_added_to_other_agents_settings_and_taken_out() {
    let mut env = TestEnv::new();
    env.file(".mcp.json", "{\"mcpServers\": {}}\n");
    // Nobody is asked here, and another program's settings are not changed unasked.
    let refused = env.run(&["mcp", "install", "claude"]);
    assert!(refused.code == Some(1) && refused.stderr.contains("--yes"), "{}", refused.stderr);
    let added = env.run(&["mcp", "install", "claude", "--allow", "record", "--yes"]);
    assert!(
        added.stderr.contains("Adds to") && added.stderr.contains("\"stepwell\""),
        "{}",
        added.stderr
    );
    let settings: Value = serde_json::from_str(&env.read(".mcp.json")).unwrap();
    // No PATH leads to it, so the program is named by its path.
    let program = std::fs::canonicalize(STEPWELL).unwrap();
    let wanted = json!({"command": program, "args": ["mcp", "--allow", "record"]});
    assert_eq!(settings["mcpServers"]["stepwell"], wanted);
    assert!(env.run(&["mcp", "install", "claude", "--allow", "record"]).stdout.contains("already"));
    assert_eq!(env.run(&["mcp", "uninstall", "claude", "--yes"]).code, Some(0));
    assert_eq!(env.read(".mcp.json"), "{\"mcpServers\": {}}\n");
}

#[test]
fn an_installed_entry_names_a_program_that_others_find() {
    let command = |path: Option<&str>, folder: Option<&str>| {
        let mut env = TestEnv::new();
        let bin = env.path("bin");
        std::fs::create_dir_all(&bin).unwrap();
        std::os::unix::fs::symlink(STEPWELL, bin.join("stepwell")).unwrap();
        let other = env.path("other");
        std::fs::create_dir_all(&other).unwrap();
        std::fs::write(other.join("stepwell"), "another program").unwrap();
        let here = folder.map(|folder| env.path(folder).display().to_string());
        if let Some(path) = here.as_deref().or(path) {
            env.set("PATH", path);
        }
        let added = env.quietly(&["mcp", "install", "claude", "--yes"]);
        assert_eq!(added.code, Some(0), "{}", added.stderr);
        let settings: Value = serde_json::from_str(&env.read(".mcp.json")).unwrap();
        settings["mcpServers"]["stepwell"]["command"].as_str().unwrap().to_owned()
    };
    let program = std::fs::canonicalize(STEPWELL).unwrap().display().to_string();
    assert_eq!(command(None, Some("bin")), "stepwell");
    assert_eq!(command(None, None), program);
    assert_eq!(command(None, Some("other")), program, "the PATH leads to another program");
    assert_eq!(command(Some("../bin:bin"), None), program, "others start in another folder");
}
