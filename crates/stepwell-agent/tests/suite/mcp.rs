//! Tools of MCP servers over stdio and HTTP, working and broken.

use std::collections::BTreeMap;
use std::fs;
use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use stepwell::model::{Effect, Outcome};
use stepwell_agent::mcp::{Address, Program, Reach, Server, Servers, Starting};
use stepwell_agent::provider::remote::Key;
use stepwell_agent::tool::{Done, Supervisor, Tool, ToolEnv};
use tempfile::TempDir;
use tokio::time::timeout;

use crate::command::{PATIENCE, SUPERVISOR, is_dead, numbers, until};
use crate::tools::place;

const SERVER: &str = env!("CARGO_BIN_EXE_stepwell-test-mcp");

fn workspace() -> (TempDir, ToolEnv) {
    let folder = tempfile::tempdir().unwrap();
    let (program, arguments) = (SUPERVISOR.into(), vec!["supervise".to_owned()]);
    let supervisor = Some(Supervisor { program, arguments });
    let place = ToolEnv { supervisor, ..place(folder.path()) };
    (folder, place)
}

fn program(folder: &Path, program: &str, arguments: &[&str]) -> Server {
    let program = Program {
        program: program.to_owned(),
        arguments: arguments.iter().map(|&word| word.to_owned()).collect(),
        variables: BTreeMap::new(),
        folder: folder.to_owned(),
    };
    let (name, start) = ("test".parse().unwrap(), PATIENCE);
    Server { name, reach: Reach::Program(program), start, timeout: None }
}

fn stdio(folder: &Path, words: &[&str]) -> Server {
    program(folder, SERVER, &[&["stdio"], words].concat())
}

/// An HTTP server that ends with the test.
struct Behind {
    child: Child,
    server: Server,
}

impl Drop for Behind {
    fn drop(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }
}

fn http(words: &[&str], key: Option<&str>) -> Behind {
    let mut command = Command::new(SERVER);
    let mut child = command.arg("http").args(words).stdout(Stdio::piped()).spawn().unwrap();
    let mut port = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut port).unwrap();
    let address = Address {
        url: format!("http://127.0.0.1:{}/mcp", port.trim()),
        headers: [("X-Extra".to_owned(), "more".to_owned())].into(),
        key: key.map(Key::new),
    };
    let (name, reach) = ("test".parse().unwrap(), Reach::Address(address));
    Behind { child, server: Server { name, reach, start: PATIENCE, timeout: None } }
}

async fn open(server: &Server, place: &ToolEnv) -> Servers {
    let servers = Servers::connect(std::slice::from_ref(server), place, &Starting::default()).await;
    assert!(servers.absent.is_empty(), "{:?}", servers.absent);
    servers
}

/// Why a server cannot be used.
async fn refused(server: Server, place: &ToolEnv) -> String {
    let mut servers = Servers::connect(&[server], place, &Starting::default()).await;
    assert!(servers.tools.is_empty());
    servers.absent.remove("test").unwrap()
}

fn tool(servers: &Servers, own: &str) -> Arc<dyn Tool> {
    let name = format!("test__{own}");
    let found = servers.tools.iter().find(|tool| tool.spec().name == name);
    Arc::clone(found.unwrap_or_else(|| panic!("no {name}")))
}

async fn call(servers: &Servers, place: &ToolEnv, own: &str, arguments: Value) -> Done {
    let called = tool(servers, own);
    timeout(PATIENCE, called.run(&arguments, place)).await.expect("a call does not hang")
}

#[tokio::test]
async fn only_the_servers_that_are_not_ready_yet_are_awaited() {
    let (folder, place) = workspace();
    let gate = folder.path().join("gate");
    assert!(Command::new("mkfifo").arg(&gate).status().unwrap().success());
    let mut quick = stdio(folder.path(), &[]);
    quick.name = "quick".parse().unwrap();
    let script = format!("cat {} >&2; exec {SERVER} stdio", gate.display());
    let mut slow = program(folder.path(), "sh", &["-c", &script]);
    slow.name = "slow".parse().unwrap();

    let (servers, starting) = ([quick, slow], Starting::default());
    let connecting = Servers::connect(&servers, &place, &starting);
    tokio::pin!(connecting);
    // The quick server becomes ready while the slow one waits at the gate.
    while starting.names() != ["slow"] {
        let turn = tokio::time::sleep(Duration::from_millis(10));
        tokio::select! {
            _ = &mut connecting => panic!("the slow server did not wait"),
            () = turn => {}
        }
    }
    tokio::task::spawn_blocking(move || fs::write(gate, "")).await.unwrap().unwrap();
    let connected = timeout(PATIENCE, connecting).await.expect("both servers start");
    assert!(connected.absent.is_empty(), "{:?}", connected.absent);
    assert!(starting.names().is_empty());
}

/// What holds for every server, however it is reached.
async fn behaves(server: &Server, place: &ToolEnv) {
    let servers = open(server, place).await;
    assert_eq!(tool(&servers, "echo").effect(), Effect::Pure);
    assert_eq!(tool(&servers, "append").effect(), Effect::Unsafe);
    assert_eq!(tool(&servers, "echo").spec().description, "Says it again.");
    let done = call(&servers, place, "echo", json!({"text": "hello\nworld"})).await;
    assert_eq!((done.outcome, done.text.as_str()), (Outcome::Done, "hello\nworld"));
    let done = call(&servers, place, "fail", json!({})).await;
    assert_eq!((done.outcome, done.text.as_str()), (Outcome::Failed, "no luck"));
    let done = call(&servers, place, "refuse", json!({})).await;
    let text = "the MCP server refused: such arguments are not for me";
    assert_eq!((done.outcome, done.text.as_str()), (Outcome::Failed, text));
    let done = call(&servers, place, "picture", json!({})).await;
    assert_eq!(done.text, "[image: image/png, 5 bytes, not shown]");
    let done = call(&servers, place, "long", json!({})).await;
    assert!(done.text.starts_with("first\n") && done.text.ends_with("last"));
    assert!(done.text.len() < place.output_limit + 100, "{}", done.text.len());
    let done = call(&servers, place, "odd", json!({})).await;
    assert_eq!(done.outcome, Outcome::Unknown);
    assert!(done.text.contains("not a tool result"), "{}", done.text);
    servers.close().await;
    let done = call(&servers, place, "echo", json!({"text": "x"})).await;
    assert_eq!(done.outcome, Outcome::Failed);
    assert!(done.text.contains("cannot be reached"), "{}", done.text);
}

#[tokio::test(flavor = "multi_thread")]
async fn tools_of_a_program_are_tools_like_others() {
    let (folder, place) = workspace();
    behaves(&stdio(folder.path(), &[]), &place).await;
    behaves(&stdio(folder.path(), &["loud"]), &place).await;
    behaves(&stdio(folder.path(), &[]), &ToolEnv { supervisor: None, ..place.clone() }).await;
    let servers = open(&stdio(folder.path(), &[]), &place).await;
    let named = servers.tools.iter().find(|tool| tool.spec().name.starts_with("test__two_words"));
    let done = named.unwrap().run(&json!({}), &place).await;
    assert_eq!(done.text, "two words it is");
}

#[tokio::test(flavor = "multi_thread")]
async fn tools_behind_http_are_tools_like_others() {
    let (_folder, place) = workspace();
    behaves(&http(&[], None).server, &place).await;
    behaves(&http(&["events"], None).server, &place).await;
    behaves(&http(&["key"], Some("k3y-for-tests")).server, &place).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_without_a_handshake_is_understood() {
    let (folder, place) = workspace();
    let servers = open(&stdio(folder.path(), &["modern"]), &place).await;
    let done = call(&servers, &place, "echo", json!({"text": "hello"})).await;
    assert_eq!(done.text, "hello");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_program_gets_no_keys_but_those_that_are_named() {
    let (folder, place) = workspace();
    let mut server = stdio(folder.path(), &[]);
    // A parent process sets it for this test, whose own process must not change its environment.
    let Reach::Program(program) = &mut server.reach else { unreachable!() };
    program.program = "env".to_owned();
    program.arguments.splice(0..0, [SERVER.to_owned()]);
    program.variables = [("NAMED_API_KEY".to_owned(), "given".to_owned())].into();
    let withheld = ["HOME".to_owned()].into();
    let place = ToolEnv { withheld, ..place };
    let servers = open(&server, &place).await;
    for (name, value) in [("NAMED_API_KEY", "given"), ("HOME", "unset"), ("STEPWELL_X", "unset")] {
        let done = call(&servers, &place, "env", json!({"name": name})).await;
        assert_eq!(done.text, value, "{name}");
    }
    let here = call(&servers, &place, "env", json!({})).await.text;
    assert_eq!(here, folder.path().canonicalize().unwrap().display().to_string());
    assert_ne!(call(&servers, &place, "env", json!({"name": "PATH"})).await.text, "unset");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_cannot_be_used_says_why() {
    let (folder, place) = workspace();
    for place in [place.clone(), ToolEnv { supervisor: None, ..place }] {
        let short = |words: &[&str]| Server {
            start: Duration::from_millis(700),
            ..stdio(folder.path(), words)
        };
        let why = refused(program(folder.path(), "no-such-program", &[]), &place).await;
        assert!(why.contains("could not be started: No such file"), "{why}");
        let why = refused(stdio(folder.path(), &["dies"]), &place).await;
        let expected = "it ended with exit code 7; its last words: I cannot live without a license";
        assert_eq!(why, expected);
        assert_eq!(refused(short(&["mute"]), &place).await, "it was not ready within 0.7 s");
        let why = refused(short(&["nonsense"]), &place).await;
        assert!(
            why.contains("it wrote a line that is not a message: Welcome to the server!"),
            "{why}"
        );
        assert_eq!(refused(short(&["deaf"]), &place).await, "it was not ready within 0.7 s");
        let why = refused(stdio(folder.path(), &["refuses"]), &place).await;
        assert_eq!(why, "it rejects the handshake: not today");
        let why = refused(program(folder.path(), "true", &[]), &place).await;
        assert_eq!(why, "it ended with exit code 0");
        let flood = program(folder.path(), "yes", &["{}"]);
        let flood = Server { start: Duration::from_millis(700), ..flood };
        let why = refused(flood, &place).await;
        assert!(!why.is_empty() && why.len() < 500, "{why}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_address_that_cannot_be_used_says_why_and_tells_no_key() {
    let (_folder, place) = workspace();
    let why = refused(http(&["key"], Some("wr0ng-key")).server.clone(), &place).await;
    assert_eq!(why, "it rejects the key (HTTP 401 Unauthorized)");
    let why = refused(http(&["moved"], Some("k3y")).server.clone(), &place).await;
    assert!(why.contains("307") && why.contains("not followed"), "{why}");
    let why = refused(http(&["broken"], None).server.clone(), &place).await;
    assert_eq!(why, "it failed (HTTP 500 Internal Server Error)");
    let gone = http(&[], Some("k3y-for-tests")).server.clone();
    let why = refused(gone, &place).await;
    assert!(why.starts_with("it cannot be reached: ") && !why.contains("k3y"), "{why}");
}

#[tokio::test(flavor = "multi_thread")]
async fn lists_are_bounded() {
    let (folder, place) = workspace();
    let servers = open(&stdio(folder.path(), &["many=3000"]), &place).await;
    assert_eq!(servers.tools.len(), 3012);
    assert!(servers.notices.is_empty());
    let servers = open(&stdio(folder.path(), &["many=9000"]), &place).await;
    assert_eq!(servers.tools.len(), 5000);
    let left = ["MCP server test: left out: all after its first 5000 tools"];
    assert_eq!(servers.notices, left);
    let servers = open(&stdio(folder.path(), &["endless"]), &place).await;
    assert_eq!(servers.tools.len(), 12);
    assert!(!servers.notices.is_empty());
    let servers = open(&stdio(folder.path(), &["twice", "large"]), &place).await;
    assert_eq!((servers.tools.len(), servers.notices.len()), (12, 5));
    assert!(servers.notices[0].contains("lists echo twice"), "{:?}", servers.notices);
    assert!(servers.notices[4].contains("6 more"), "{:?}", servers.notices);
    // A tool without a schema does not affect the others, and can be called.
    let servers = open(&stdio(folder.path(), &["schemaless"]), &place).await;
    assert_eq!((servers.tools.len(), servers.notices.len()), (13, 0));
    assert_eq!(call(&servers, &place, "echo", json!({"text": "hi"})).await.text, "hi");
    let servers = open(&stdio(folder.path(), &["toolless"]), &place).await;
    assert!(servers.tools.is_empty() && servers.notices.is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_dies_in_a_call_leaves_its_outcome_unknown() {
    let (folder, place) = workspace();
    let servers = open(&stdio(folder.path(), &[]), &place).await;
    let file = folder.path().join("died");
    let done = call(&servers, &place, "die", json!({"file": file})).await;
    assert_eq!(done.outcome, Outcome::Unknown);
    let told = "its outcome is unknown: it ended with exit code 3; its last words: I fall";
    assert!(done.text.ends_with(told), "{}", done.text);
    // It is not restarted, and later calls say so.
    fs::remove_file(&file).unwrap();
    for own in ["die", "echo"] {
        let done = call(&servers, &place, own, json!({"file": file})).await;
        assert_eq!(done.outcome, Outcome::Failed);
        assert!(
            done.text.contains("cannot be reached: it ended with exit code 3"),
            "{}",
            done.text
        );
    }
    assert!(!file.exists());
    servers.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_message_that_is_too_long_ends_the_connection_and_says_so() {
    let (folder, place) = workspace();
    let servers = open(&stdio(folder.path(), &[]), &place).await;
    let done = call(&servers, &place, "huge", json!({})).await;
    assert_eq!(done.outcome, Outcome::Unknown);
    assert!(done.text.contains("a line of more than 8 MiB"), "{}", done.text);
    for words in [&[][..], &["events"]] {
        let behind = http(words, None);
        let servers = open(&behind.server, &place).await;
        let done = call(&servers, &place, "huge", json!({})).await;
        assert_eq!(done.outcome, Outcome::Unknown, "{done:?}");
        // Each HTTP call has its own connection.
        let done = call(&servers, &place, "echo", json!({"text": "still here"})).await;
        assert_eq!(done.text, "still here");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_an_address_fails_at_is_told_apart() {
    let (_folder, place) = workspace();
    let behind = http(&["falters"], None);
    let servers = open(&behind.server, &place).await;
    // The request was sent, and the connection broke.
    let done = call(&servers, &place, "fail", json!({})).await;
    assert_eq!(done.outcome, Outcome::Unknown);
    assert!(done.text.contains("HTTP 502"), "{}", done.text);
    // The server cannot be reached at all.
    drop(behind);
    let done = call(&servers, &place, "fail", json!({})).await;
    assert_eq!(done.outcome, Outcome::Failed);
    assert!(done.text.contains("cannot be reached"), "{}", done.text);
    servers.close().await;
}

/// A call that never ends, with its start and cancel files.
fn waiting(folder: &Path) -> (Value, PathBuf, PathBuf) {
    let (begun, cancelled) = (folder.join("begun"), folder.join("cancelled"));
    let _ = fs::remove_file(&begun);
    let _ = fs::remove_file(&cancelled);
    (json!({"begun": begun, "cancelled": cancelled}), begun, cancelled)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_call_that_nobody_waits_for_is_cancelled() {
    let (folder, place) = workspace();
    let (stdio, behind) = (stdio(folder.path(), &[]), http(&[], None));
    for server in [&stdio, &behind.server] {
        let servers = open(server, &place).await;
        let (arguments, begun, cancelled) = waiting(folder.path());
        let called = tool(&servers, "wait");
        let begins = until("the call begins", || begun.exists());
        tokio::select! {
            done = called.run(&arguments, &place) => panic!("it ended: {done:?}"),
            () = begins => {}
        }
        // The run ends at once, and the server still receives the cancellation.
        timeout(PATIENCE, servers.close()).await.unwrap();
        until("the call is cancelled", || cancelled.exists()).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_call_that_takes_too_long_is_cancelled() {
    let (folder, place) = workspace();
    let (arguments, _, cancelled) = waiting(folder.path());
    let server = Server { timeout: Some(Duration::from_secs(1)), ..stdio(folder.path(), &[]) };
    let servers = open(&server, &place).await;
    let done = call(&servers, &place, "wait", arguments).await;
    assert_eq!(done.outcome, Outcome::TimedOut);
    assert_eq!(done.text, "cancelled after 1 s: the call took too long");
    until("the call is cancelled", || cancelled.exists()).await;
    // The server still works.
    let done = call(&servers, &place, "echo", json!({"text": "still here"})).await;
    assert_eq!(done.text, "still here");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_program_ends_with_the_run_however_stubborn() {
    let (folder, place) = workspace();
    let pids = folder.path().join("pids");
    let words = ["stdio", "stubborn"].join(" ");
    for (place, reads) in [(place.clone(), true), (ToolEnv { supervisor: None, ..place }, false)] {
        let _ = fs::remove_file(&pids);
        let line = format!("sleep 300 & echo $! > pids; echo $$ >> pids; exec {SERVER} {words}");
        let servers = open(&program(folder.path(), "sh", &["-c", &line]), &place).await;
        let processes = numbers(&pids, 2).await;
        if reads {
            timeout(PATIENCE, servers.close()).await.unwrap();
        } else {
            drop(servers);
        }
        until("the server and its child end", || processes.iter().all(|it| is_dead(*it))).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_program_that_reads_no_more_ends_with_the_run() {
    let (folder, place) = workspace();
    for place in [place.clone(), ToolEnv { supervisor: None, ..place }] {
        let line = format!("echo $$ > pids; exec {SERVER} stdio stalls");
        let server = program(folder.path(), "sh", &["-c", &line]);
        let servers =
            open(&Server { timeout: Some(Duration::from_secs(1)), ..server }, &place).await;
        let process = numbers(&folder.path().join("pids"), 1).await[0];
        // More than all the pipes together can buffer.
        let long = json!({"text": "x".repeat(1 << 20)});
        for _ in 0..2 {
            let done = call(&servers, &place, "echo", long.clone()).await;
            assert_eq!(done.outcome, Outcome::TimedOut);
        }
        timeout(PATIENCE, servers.close()).await.unwrap();
        until("the server ends", || is_dead(process)).await;
        fs::remove_file(folder.path().join("pids")).unwrap();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn arguments_that_are_no_object_are_not_sent() {
    let (folder, place) = workspace();
    let servers = open(&stdio(folder.path(), &[]), &place).await;
    let echo = tool(&servers, "echo");
    assert!(echo.plan(&json!({}), &place).is_ok() && echo.plan(&json!([1]), &place).is_err());
    let preview = echo.preview(&json!({"text": "a\u{202e}\nb"}));
    assert_eq!(preview, "call test__echo {\"text\":\"a\\u{202e}\\nb\"}");
}
