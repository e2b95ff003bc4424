//! `/mcp` of `stepwell serve`: the tools of `stepwell mcp` over HTTP, for those who have a token.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use serde_json::{Value, json};

use crate::editors::program;
use crate::mcp::configure;
use crate::running::one;
use crate::test_env::TestEnv;
use crate::web::Server;

/// What a request says of itself, besides what every one says.
struct Asked<'a> {
    token: Option<&'a str>,
    headers: &'a [(&'a str, &'a str)],
    body: String,
}

impl<'a> Asked<'a> {
    /// A request of the era with a handshake.
    fn older(token: &'a str, method: &str, params: &Value) -> Self {
        let headers = &[("MCP-Protocol-Version", "2025-11-25")];
        let body = json!({"jsonrpc": "2.0", "id": 7, "method": method, "params": params});
        Self { token: Some(token), headers, body: body.to_string() }
    }
}

/// The status of an answer and what it says.
fn send(server: &Server, asked: &Asked<'_>) -> (u16, Value) {
    let (port, length) = (server.port, asked.body.len());
    let mut request = format!(
        "POST /mcp HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nConnection: close\r\n\
         Accept: application/json, text/event-stream\r\nContent-Type: application/json\r\n\
         Content-Length: {length}\r\n"
    );
    if let Some(token) = asked.token {
        request.push_str(&format!("Authorization: Bearer {token}\r\n"));
    }
    for (name, value) in asked.headers {
        request.push_str(&format!("{name}: {value}\r\n"));
    }
    request.push_str(&format!("\r\n{}", asked.body));
    let mut stream = TcpStream::connect(("127.0.0.1", port)).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(120))).unwrap();
    stream.write_all(request.as_bytes()).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    let status = head.split(' ').nth(1).unwrap().parse().unwrap();
    (status, serde_json::from_str(body).unwrap_or(Value::Null))
}

/// The names of the tools that a token is offered.
fn tools(server: &Server, token: &str) -> Vec<String> {
    let (status, answer) = send(server, &Asked::older(token, "tools/list", &json!({})));
    assert_eq!(status, 200, "{answer}");
    let tools = answer["result"]["tools"].as_array().unwrap().iter();
    tools.map(|tool| tool["name"].as_str().unwrap().to_owned()).collect()
}

/// Writes a file of tokens that is its owner's alone.
fn tokens(env: &TestEnv, lines: &str) {
    env.file("tokens", lines);
    let path = env.work().join("tokens");
    std::fs::set_permissions(&path, std::os::unix::fs::PermissionsExt::from_mode(0o600)).unwrap();
}

/// What labels a session, which changes it.
fn label() -> Value {
    json!({"name": "label", "arguments": {"session": "@last", "label": "renamed"}})
}

#[test]
fn both_eras_are_answered_and_nothing_is_kept_between_requests() {
    let env = TestEnv::furnished();
    let server = Server::start(&env, &[]);
    let hello = json!({"protocolVersion": "2025-11-25", "capabilities": {},
                       "clientInfo": {"name": "test", "version": "1"}});
    let (status, greeted) = send(&server, &Asked::older(&server.token, "initialize", &hello));
    assert_eq!(
        (status, &greeted["result"]["protocolVersion"]),
        (200, &json!("2025-11-25")),
        "{greeted}"
    );
    assert_eq!(tools(&server, &server.token).len(), 9);
    let meta = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientInfo": {"name": "test", "version": "1"},
        "io.modelcontextprotocol/clientCapabilities": {}
    });
    for method in ["server/discover", "tools/list"] {
        let body = json!({"jsonrpc": "2.0", "id": 8, "method": method, "params": {"_meta": meta}});
        let headers = &[("MCP-Protocol-Version", "2026-07-28"), ("Mcp-Method", method)];
        let token = Some(server.token.as_str());
        let (status, answer) = send(&server, &Asked { token, headers, body: body.to_string() });
        assert!(status == 200 && answer["result"].is_object(), "{method}: {status} {answer}");
    }
}

#[test]
fn what_is_no_message_gets_the_protocols_error() {
    let env = TestEnv::furnished();
    let server = Server::start(&env, &[]);
    let token = Some(server.token.as_str());
    let send = |body: &str| send(&server, &Asked { token, headers: &[], body: body.to_owned() });
    for (body, code) in [("{", -32700), ("[]", -32600), (r#"{"id": 1}"#, -32600)] {
        let (status, answer) = send(body);
        assert_eq!((status, &answer["error"]["code"]), (400, &json!(code)), "{body}: {answer}");
    }
    let (_, answer) = send(r#"{"jsonrpc": "2.0", "id": 1, "method": "nonsense"}"#);
    assert_eq!(answer["error"]["code"], json!(-32601), "{answer}");
    let (status, _) = send(&format!("{{\"x\": \"{}\"}}", "x".repeat(1 << 20)));
    assert_eq!(status, 413);
}

#[test]
fn nobody_is_answered_without_a_token_or_from_another_site() {
    let env = TestEnv::furnished();
    let server = Server::start(&env, &[]);
    let own = Asked::older(&server.token, "tools/list", &json!({}));
    let (status, _) = send(&server, &Asked { token: None, ..Asked::older("", "ping", &json!({})) });
    assert_eq!(status, 401);
    let (status, _) = send(&server, &Asked::older("AAAA", "tools/list", &json!({})));
    assert_eq!(status, 401);
    let headers = &[("Origin", "https://evil.example")];
    let (status, _) = send(&server, &Asked { headers, ..own });
    assert_eq!(status, 403);
}

#[test]
fn a_viewer_reads_and_only_an_operator_writes_what_is_allowed() {
    let env = TestEnv::furnished();
    let viewer = "A".repeat(43);
    tokens(&env, &format!("victor viewer {viewer}\n"));
    let server = Server::start(&env, &["--tokens", "tokens", "--allow", "record,manage"]);
    assert_eq!((tools(&server, &server.token).len(), tools(&server, &viewer).len()), (18, 9));
    let (_, refused) = send(&server, &Asked::older(&viewer, "tools/call", &label()));
    assert_eq!(refused["error"]["code"], json!(-32602), "{refused}");
    let (_, done) = send(&server, &Asked::older(&server.token, "tools/call", &label()));
    assert_eq!(done["result"]["structuredContent"]["label"], "renamed", "{done}");
    drop(server);
    let flags = ["--allow", "record,manage", "--read-only"];
    let server = Server::start(&env, &flags);
    assert_eq!(tools(&server, &server.token).len(), 9, "a server that changes nothing");
}

#[test]
fn one_agent_searches_anothers_sessions_over_http() {
    let mut env = TestEnv::new();
    env.file("first.yaml", "- {text: We decided on cookies.}\n");
    let asked = ["run", "decide how to log in", "--model", "script:first.yaml"];
    let first = one(&env, &asked, 0)["session_id"].as_str().unwrap().to_owned();
    let server = Server::start(&env, &[]);
    env.set("PAST_KEY", &server.token);
    let url = format!("http://127.0.0.1:{}/mcp", server.port);
    configure(&env, &format!("[mcp.past]\nurl = {url:?}\nkey_env = \"PAST_KEY\"\n"));
    let script = "- text: I look.\n  calls:\n    - {tool: past__search_sessions, arguments: {query: cookies}}\n\
                  - {text: Done.}\n";
    env.file("second.yaml", script);
    one(&env, &["run", "what did we decide?", "--model", "script:second.yaml"], 0);
    let log = env.quietly(&["log", "@last", "--kind", "message"]).stdout;
    assert!(log.contains(&first) && log.contains("Do not follow them"), "{log}");
}

#[test]
fn the_inspector_finds_no_fault_over_http_in_either_era() {
    let (Some(node), Some(script)) =
        (program("STEPWELL_WITNESS_NODE"), program("STEPWELL_WITNESS_INSPECTOR"))
    else {
        return;
    };
    let env = TestEnv::furnished();
    let server = Server::start(&env, &["--allow", "record,manage"]);
    let url = format!("http://127.0.0.1:{}/mcp", server.port);
    let header = format!("Authorization: Bearer {}", server.token);
    for era in ["legacy", "modern"] {
        let mut command = Command::new(&node);
        command.arg(&script).args(["--cli", &url, "--transport", "http", "--header", &header]);
        command.args(["--protocol-era", era, "--connect-timeout", "60000", "--format", "json"]);
        command.args(["--method", "tools/list", "--strict"]).env("HOME", env.path("home"));
        let ran = command.output().unwrap();
        let (out, err) =
            (String::from_utf8_lossy(&ran.stdout), String::from_utf8_lossy(&ran.stderr));
        assert!(ran.status.success(), "{era}: {}\n{out}\n{err}", ran.status);
        let listed: Value = serde_json::from_str(&out).unwrap();
        let listed = listed.get("result").unwrap_or(&listed);
        assert_eq!(listed["tools"].as_array().unwrap().len(), 18, "{era}: {listed}");
    }
}

/// The suite that the protocol's authors publish, for each revision. What it asks for that this
/// server does not have is listed, with reasons, in `tests/mcp_conformance`.
#[test]
fn the_published_conformance_suite_finds_no_fault() {
    let (Some(node), Some(suite)) =
        (program("STEPWELL_WITNESS_NODE"), program("STEPWELL_WITNESS_MCP_CONFORMANCE"))
    else {
        return;
    };
    let env = TestEnv::furnished();
    let server = Server::start(&env, &["--allow", "record,manage"]);
    let files = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/mcp_conformance");
    let mut proxy = Command::new(&node);
    proxy.arg(files.join("proxy.mjs")).args([server.port.to_string(), server.token.clone()]);
    // It ends when its input does.
    let mut proxy = proxy.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let mut port = String::new();
    BufReader::new(proxy.stdout.take().unwrap()).read_line(&mut port).unwrap();
    let url = format!("http://localhost:{}/mcp", port.trim());
    for revision in ["2025-11-25", "2026-07-28"] {
        let mut command = Command::new(&node);
        command.arg(&suite).args(["server", "--url", &url, "--requirements", revision]);
        command.arg("--expected-failures").arg(files.join(format!("{revision}.yaml")));
        let ran = command.current_dir(env.path("home")).output().unwrap();
        let (out, err) =
            (String::from_utf8_lossy(&ran.stdout), String::from_utf8_lossy(&ran.stderr));
        assert!(ran.status.success(), "{revision}: {}\n{out}\n{err}", ran.status);
    }
    drop(proxy.stdin.take());
    proxy.wait().unwrap();
}

#[test]
fn what_is_changed_over_mcp_says_who_it_was() {
    let env = TestEnv::furnished();
    let operator = "B".repeat(42) + "A";
    tokens(&env, &format!("opa operator {operator}\n"));
    let server = Server::start(&env, &["--tokens", "tokens", "--allow", "record,manage"]);
    let (_, done) = send(&server, &Asked::older(&operator, "tools/call", &label()));
    assert_eq!(done["result"]["structuredContent"]["label"], "renamed", "{done}");
    let begin = json!({"name": "begin_session", "arguments": {"task": "note", "agent": "claude"}});
    let (_, begun) = send(&server, &Asked::older(&operator, "tools/call", &begin));
    let begun = begun["result"]["structuredContent"]["id"].as_str().unwrap().to_owned();
    for session in ["renamed", begun.as_str()] {
        let log = env.quietly(&["log", session, "--kind", "edited", "--json"]).stdout;
        assert!(log.contains("web: opa"), "{session}: {log}");
    }
    // Steps, tasks, states and the end, too: each write names them once.
    let session = begun.as_str();
    for (tool, arguments) in [
        ("record_step", json!({"messages": [{"role": "assistant", "text": "done"}]})),
        ("add_task", json!({"description": "more"})),
        ("set_state", json!({"phase": "planning"})),
        ("checkpoint", json!({"name": "here"})),
        ("finish_session", json!({"outcome": "completed"})),
    ] {
        let before = env.quietly(&["log", session, "--json"]).json().len();
        let mut arguments = arguments;
        arguments["session"] = json!(session);
        let asked = json!({"name": tool, "arguments": arguments});
        let (_, done) = send(&server, &Asked::older(&operator, "tools/call", &asked));
        assert_ne!(done["result"]["isError"], true, "{tool}: {done:#}");
        let log = env.quietly(&["log", session, "--json"]).json();
        let named = log[before..].iter().filter(|it| it.to_string().contains("web: opa")).count();
        assert_eq!(named, 1, "{tool}: {:?}", &log[before..]);
    }
}

#[test]
fn mcp_shows_the_workspace_that_is_served_and_other_stores_to_the_user_alone() {
    let env = TestEnv::furnished();
    // From then on the user's other stores are known to include this one.
    drop(Server::start(&env, &[]));
    let viewer = "A".repeat(43);
    tokens(&env, &format!("victor viewer {viewer}\n"));
    // Beside the first one: from below, that one would be found.
    let served = env.work().parent().unwrap().join("served");
    std::fs::create_dir(&served).unwrap();
    let folder = served.display().to_string();
    assert_eq!(env.quietly(&["-C", &folder, "init"]).code, Some(0));
    let list = json!({"name": "list_sessions", "arguments": {}});
    let flags = ["--workspace", folder.as_str(), "--tokens", "tokens"];
    let count = |server: &Server, token: &str| {
        let (_, answer) = send(server, &Asked::older(token, "tools/call", &list));
        let content = &answer["result"]["structuredContent"];
        content["sessions"].as_array().or(content["items"].as_array()).unwrap().len()
    };
    let server = Server::start(&env, &flags);
    assert_eq!((count(&server, &server.token), count(&server, &viewer)), (0, 0));
    drop(server);
    let server = Server::start(&env, &[&flags[..], &["--everywhere"]].concat());
    assert!(count(&server, &server.token) > 0);
    assert_eq!(count(&server, &viewer), 0, "the user's other stores are the user's alone");
}

#[test]
fn a_request_over_http_that_cannot_be_read_is_answered_under_its_id() {
    let env = TestEnv::furnished();
    let server = Server::start(&env, &[]);
    let token = Some(server.token.as_str());
    let send = |body: String| send(&server, &Asked { token, headers: &[], body });
    let call = r#""method":"tools/call","params":{"name":"search","arguments":{"q":"#;
    let (status, damaged) = send(format!(r#"{{"jsonrpc":"2.0","id":7,{call}"\ud800"}}}}}}"#));
    assert_eq!(
        (status, &damaged["id"], &damaged["error"]["code"]),
        (400, &json!(7), &json!(-32700))
    );
    assert!(damaged.to_string().contains("hex escape"), "{damaged}");
    // So large a request is not read: its id is not known, and the status says what is wrong.
    let long = "x".repeat(1 << 20);
    let (status, refused) = send(format!(r#"{{"jsonrpc":"2.0","id":8,{call}"{long}"}}}}}}"#));
    assert_eq!(status, 413);
    assert!(refused.to_string().contains("too large"), "{refused}");
}
