//! Which MCP servers agents can use: listed, and asked for their tools only if they are trusted.

use serde_json::{Value, json};

use crate::mcp::{SERVER, configure};
use crate::seat::Seat;
use crate::test_env::TestEnv;

const SECRET: &str = "ghp_a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8";

/// A spec whose server leaves a mark when it is started.
const SPEC: &str = "
version: 0
name: letter
runtime: {provider: ollama, model_id: any}
agents: {writer: {prompt: Write., tools: [theirs]}}
tools: {mcp: [{id: theirs, command: sh, args: [-c, 'echo x > MARK']}]}
pattern: {type: chain, config: {steps: [{agent: writer, input: go}]}}
";

/// A user with two servers, in a workspace with a flow that has one, too.
fn env() -> TestEnv {
    let mut env = TestEnv::new();
    env.set("PATH", "/usr/local/bin:/usr/bin:/bin");
    std::fs::write(env.path("server.sh"), SERVER).unwrap();
    let (server, folder) = (env.path("server.sh"), env.path(""));
    let notes =
        format!("[mcp.notes]\ncommand = \"sh\"\nargs = [{server:?}, {folder:?}, \"{SECRET}\"]\n");
    let docs = "[mcp.docs]\nurl = \"http://localhost:9/mcp\"\nkey_env = \"DOCS_KEY\"\n";
    configure(&env, &format!("{notes}{docs}"));
    env.file("letter.yaml", &SPEC.replace("MARK", env.path("mark").to_str().unwrap()));
    env.file("script.yaml", "- {text: Hello.}\n");
    env
}

fn listed(env: &TestEnv, more: &[&str]) -> Vec<Value> {
    let ran = env.quietly(&[&["--json", "mcp", "list"], more].concat());
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    ran.json()
}

fn of<'a>(servers: &'a [Value], name: &str) -> &'a Value {
    servers.iter().find(|it| it["name"] == name).unwrap()
}

#[test]
fn servers_are_listed_with_where_they_are_named_and_whether_they_are_trusted() {
    let env = env();
    let servers = listed(&env, &[]);
    let config = env.path("home/.config/stepwell/config.toml").display().to_string();
    let told = |name: &str| {
        let it = of(&servers, name);
        json!([it["transport"], it["source"], it["trusted"], it["state"]])
    };
    assert_eq!(told("notes"), json!(["stdio", config, true, "unasked"]));
    assert_eq!(told("docs"), json!(["http", config, true, "absent"]));
    assert_eq!(told("theirs"), json!(["stdio", "letter.yaml", false, "unasked"]));
    assert_eq!(of(&servers, "docs")["problem"], "DOCS_KEY is not set");
    let reach = of(&servers, "notes")["reach"].as_str().unwrap();
    assert!(reach.starts_with("sh ") && !reach.contains(SECRET), "{reach}");
    // As a table, for people.
    let table = env.quietly(&["mcp", "list"]).line();
    assert!(
        table.contains("letter.yaml") && table.contains("docs: DOCS_KEY is not set"),
        "{table}"
    );
    assert!(!env.path("pid").exists(), "listing starts nothing");
}

#[test]
fn a_server_that_is_trusted_is_asked_for_its_tools_and_no_other() {
    let env = env();
    let servers = listed(&env, &["--tools"]);
    let notes = of(&servers, "notes");
    assert_eq!((&notes["state"], &notes["problem"]), (&json!("ready"), &Value::Null));
    let tools = notes["tools"].as_array().unwrap();
    let names: Vec<&Value> = tools.iter().map(|tool| &tool["name"]).collect();
    assert_eq!(names, ["notes__look", "notes__put", "notes__stay", "notes__tell"]);
    assert_eq!((&tools[0]["read_only"], &tools[1]["read_only"]), (&json!(true), &json!(false)));
    assert_eq!(of(&servers, "docs")["state"], "absent");
    assert_eq!(of(&servers, "theirs")["state"], "unasked");
    assert!(!env.path("mark").exists(), "nobody began that flow");
    // An agent that only reads gets only what reads.
    let servers = listed(&env, &["--tools", "--agent", "explore"]);
    let tools = of(&servers, "notes")["tools"].as_array().unwrap();
    assert_eq!((tools.len(), &tools[0]["name"]), (1, &json!("notes__look")));
    let unknown = env.quietly(&["mcp", "list", "--agent", "explor"]);
    assert_eq!(unknown.code, Some(3), "{}", unknown.stderr);
}

#[test]
fn nothing_is_listed_where_nothing_is_named() {
    let ran = TestEnv::new().quietly(&["mcp", "list"]);
    assert_eq!(ran.line(), "No MCP servers are named.");
    assert!(ran.stderr.contains("hint: add [mcp.NAME] to "), "{}", ran.stderr);
}

#[test]
fn the_chat_shows_the_servers_of_its_session_and_their_tools() {
    let env = env();
    let command = env.command(&["chat", "--model", "script:script.yaml"]);
    let mut seat = Seat::sit_before(command, (120, 40));
    seat.until("what is to be done?").press("hi\r").until("Hello.").until("what next?");
    seat.press("/mcp\r").until("notes__look (reads)").until("notes__put (asks)");
    seat.until("docs: DOCS_KEY is not set");
    // The flow is not this session's.
    assert!(!seat.screen().contains("theirs"), "{}", seat.screen());
    seat.press("q").until("what next?");
    seat.leave();
}
