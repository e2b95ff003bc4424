//! `stepwell serve`: a real server, and runs that are started, answered and moved back through it.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Child, Stdio};
use std::time::Duration;

use serde_json::{Value, json};

use crate::teams::member;
use crate::test_env::TestEnv;

/// Two steps: a file, and a command that needs leave.
const SCRIPT: &str = "
- {text: one, calls: [{tool: write_file, arguments: {path: made.txt, content: 'one'}}]}
- {text: two, calls: [{tool: run_command, arguments: {command: 'echo x >> ran.txt'}}]}
- {text: done}
- {text: done again}
";

/// A server, which ends with the test.
pub(crate) struct Server {
    child: Child,
    pub(crate) port: u16,
    pub(crate) token: String,
}

impl Drop for Server {
    fn drop(&mut self) {
        // It may be gone already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn env() -> TestEnv {
    let env = TestEnv::new();
    env.file("script.yaml", SCRIPT);
    let script = format!("script:{}", env.work().join("script.yaml").display());
    let ran = env.quietly(&["config", "set", "model.name", &script]);
    assert_eq!(ran.code, Some(0), "{}{}", ran.stdout, ran.stderr);
    env
}

impl Server {
    pub(crate) fn start(env: &TestEnv, flags: &[&str]) -> Self {
        let mut args = vec!["serve", "--port", "0"];
        args.extend(flags);
        let mut command = env.command(&args);
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
        let mut link = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut link).unwrap();
        let port = link.split([':', '/']).find_map(|part| part.parse().ok());
        let port = port.expect("the link has a port");
        let token = env.quietly(&["serve", "--print-token"]).stdout.trim().to_owned();
        Self { child, port, token }
    }

    fn send(&self, method: &str, path: &str, body: &Value) -> (u16, Value) {
        self.send_as(&self.token, method, path, body)
    }

    /// The same with somebody's token.
    fn send_as(&self, token: &str, method: &str, path: &str, body: &Value) -> (u16, Value) {
        let body = if method == "GET" { String::new() } else { body.to_string() };
        let mut stream = TcpStream::connect(("127.0.0.1", self.port)).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(120))).unwrap();
        let (port, length) = (self.port, body.len());
        let request = format!(
            "{method} /api/v1{path} HTTP/1.1\r\nHost: localhost:{port}\r\nAuthorization: Bearer {token}\r\n\
             X-Stepwell: 1\r\nContent-Type: application/json\r\nContent-Length: {length}\r\n\
             Connection: close\r\n\r\n{body}"
        );
        stream.write_all(request.as_bytes()).unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        let (head, body) = answer.split_once("\r\n\r\n").unwrap();
        let status = head.split(' ').nth(1).unwrap().parse().unwrap();
        (status, serde_json::from_str(body).unwrap_or(Value::Null))
    }

    fn get(&self, path: &str) -> Value {
        let (status, answer) = self.send("GET", path, &Value::Null);
        assert_eq!(status, 200, "{path}: {answer:#}");
        answer
    }

    fn post(&self, path: &str, body: &Value) -> Value {
        let (status, answer) = self.send("POST", path, body);
        assert!((200..300).contains(&status), "{path}: {status} {answer:#}");
        answer
    }

    /// Waits until a question is open, and gives its name.
    fn gate(&self, id: &str) -> String {
        loop {
            let gates = self.get("/gates");
            let mut items = gates["items"].as_array().unwrap().iter();
            if let Some(gate) = items.find(|it| it["session_id"] == id) {
                return gate["id"].as_str().unwrap().to_owned();
            }
            std::thread::yield_now();
        }
    }

    /// Waits until a session stands so.
    fn wait(&self, id: &str, status: &str) {
        loop {
            let session = self.get(&format!("/sessions/{id}"));
            if session["status"] == status {
                return;
            }
            assert_ne!(session["status"], "failed", "{session:#}");
            std::thread::yield_now();
        }
    }
}

#[test]
fn a_run_that_is_started_there_outlives_the_server_and_is_answered_through_the_next() {
    let env = env();
    let server = Server::start(&env, &[]);
    let id = "20260101-000000-abcdef";
    // Asked for twice, it is started once.
    for _ in 0..2 {
        let started = server.post("/sessions", &json!({"task": "make it", "id": id}));
        assert_eq!(started["id"], id);
    }
    let gate = server.gate(id);
    drop(server);
    // Nobody serves, and the run still waits.
    assert!(env.quietly(&["gates"]).stdout.contains(id));
    let server = Server::start(&env, &[]);
    // The file, then the command.
    for gate in [gate, "call_2_1".to_owned()] {
        assert_eq!(server.gate(id), gate);
        let path = format!("/sessions/{id}/gates/{gate}");
        assert_eq!(server.post(&path, &json!({"choice": "once"}))["goes_on"], true);
    }
    server.wait(id, "success");
    assert_eq!(env.read("ran.txt"), "x\n");
    let (status, second) =
        server.send("POST", &format!("/sessions/{id}/gates/call_1_1"), &json!({"choice": "deny"}));
    assert_eq!(status, 409, "{second:#}");
}

#[test]
fn a_session_is_moved_back_and_forth_and_resumed_by_processes_of_their_own() {
    let env = env();
    let ran = env.quietly(&["run", "make it", "--mode", "yolo"]);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    let server = Server::start(&env, &[]);
    let id = server.get("/sessions")["items"][0]["id"].as_str().unwrap().to_owned();
    let path = format!("/sessions/{id}");
    let dry = server.post(&format!("{path}/rewind"), &json!({"to": "2", "dry_run": true}));
    assert_eq!(dry["done"], false, "{dry:#}");
    assert!(env.work().join("made.txt").exists(), "nothing was moved yet");
    let moved = server.post(&format!("{path}/rewind"), &json!({"to": "2"}));
    assert_eq!(moved["done"], true, "{moved:#}");
    assert!(!env.work().join("made.txt").exists());
    let back = server.post(&format!("{path}/rewind/undo"), &json!({}));
    assert_eq!(back["done"], true, "{back:#}");
    assert_eq!(env.read("made.txt"), "one");
    let (status, refused) =
        server.send("POST", &format!("{path}/rewind"), &json!({"to": "nowhere"}));
    assert!((400..500).contains(&status), "{status} {refused:#}");
    let resumed = server.post(&format!("{path}/resume"), &json!({"say": "again"}));
    assert_eq!(resumed["id"], id.as_str());
    server.wait(&id, "success");
}

#[test]
fn what_cannot_be_started_is_said_with_what_would_help() {
    let env = env();
    let server = Server::start(&env, &[]);
    let wrong = json!({"task": "x", "agent": "nobody"});
    let (status, answer) = server.send("POST", "/sessions", &wrong);
    assert_eq!(status, 422, "{answer:#}");
    assert!(answer["title"].as_str().unwrap().contains("nobody"), "{answer:#}");
    let yolo = json!({"task": "x", "mode": "yolo"});
    assert_eq!(server.send("POST", "/sessions", &yolo).0, 403);
    let loose = Server::start(&env, &["--allow-yolo"]);
    let started = loose.post("/sessions", &yolo);
    loose.wait(started["id"].as_str().unwrap(), "success");
}

#[test]
fn no_request_names_a_file_of_the_server_as_its_model() {
    let env = env();
    let server = Server::start(&env, &[]);
    for model in ["script:script.yaml", " script:/etc/passwd", "\tscript:script.yaml"] {
        let (status, answer) =
            server.send("POST", "/sessions", &json!({"task": "x", "model": model}));
        assert_eq!(status, 403, "{model:?}: {answer:#}");
    }
    // A script that is none is not shown whole.
    env.file("long.yaml", &format!("\"{}\"", "x".repeat(5000)));
    let long = format!("script:{}", env.work().join("long.yaml").display());
    let ran = env.quietly(&["run", "x", "--model", &long]);
    assert!(ran.code != Some(0) && ran.stderr.len() < 1000, "{}", ran.stderr);
}

#[test]
fn without_leave_no_run_of_a_server_asks_nobody() {
    let env = env();
    let begun = env.quietly(&["run", "make it", "--mode", "yolo", "--max-steps", "1", "--json"]);
    let yolo = begun.json()[0]["session_id"].as_str().unwrap().to_owned();
    let ran = env.quietly(&["config", "set", "--user", "agent.mode", "yolo"]);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    let server = Server::start(&env, &[]);
    // As the configuration says, and as the session was begun.
    let started = server.post("/sessions", &json!({"task": "make it"}));
    assert_eq!(server.gate(started["id"].as_str().unwrap()), "call_1_1");
    server.post(&format!("/sessions/{yolo}/resume"), &json!({}));
    assert_eq!(server.gate(&yolo), "call_2_1");
    assert!(!env.work().join("ran.txt").exists());
    for id in [started["id"].as_str().unwrap(), &yolo] {
        server.post(&format!("/sessions/{id}/stop"), &json!({}));
    }
}

#[test]
fn who_did_what_through_the_server_is_in_the_log() {
    let env = env();
    let ran = env.quietly(&["run", "make it", "--mode", "yolo", "--json"]);
    let id = ran.json()[0]["session_id"].as_str().unwrap().to_owned();
    let token = "A".repeat(43);
    env.file("tokens", &format!("bob operator {token}\n"));
    let tokens = env.work().join("tokens");
    std::fs::set_permissions(&tokens, std::os::unix::fs::PermissionsExt::from_mode(0o600)).unwrap();
    let server = Server::start(&env, &["--tokens", &tokens.display().to_string()]);
    let path = format!("/sessions/{id}");
    let mut seen = env.quietly(&["log", &id, "--json"]).json().len();
    for (method, route, body) in [
        ("PATCH", "", json!({"label": "bobs"})),
        ("POST", "/checkpoint", json!({"name": "here"})),
        ("POST", "/rewind", json!({"to": "-1"})),
        ("POST", "/rewind/undo", json!({})),
        ("POST", "/rewind/redo", json!({})),
        ("DELETE", "", json!({})),
        ("POST", "/restore", json!({})),
        ("POST", "/resume", json!({"say": "once more"})),
    ] {
        let (status, answer) = server.send_as(&token, method, &format!("{path}{route}"), &body);
        assert!((200..300).contains(&status), "{route}: {status} {answer:#}");
        // Whatever it is, what it wrote says who it was.
        let log = env.quietly(&["log", &id, "--json"]).json();
        let new = &log[std::mem::replace(&mut seen, log.len())..];
        assert!(
            new.iter().any(|it| it.to_string().contains("web: bob")),
            "{method} {route}: {new:?}"
        );
    }
    server.wait(&id, "success");
    let log = env.quietly(&["log", &id, "--json"]).json();
    let of = |kind: &str| log.iter().filter(|it| it["kind"] == kind).collect::<Vec<_>>();
    let body = |event: &Value| event.to_string();
    assert!(of("edited").iter().any(|it| body(it).contains("web: bob")), "{:?}", of("edited"));
    let checkpoints = of("checkpoint");
    let by_bob = checkpoints.iter().filter(|it| body(it).contains("web: bob")).count();
    assert!(by_bob >= 2, "his own, and the one before the rewind: {checkpoints:?}");
    let trashed: Vec<_> =
        of("edited").iter().filter_map(|it| it["body"]["trashed"].as_bool()).collect();
    assert_eq!(trashed, [true, false]);
    let settings = of("settings");
    assert!(body(settings.last().unwrap()).contains("web: bob"), "{settings:?}");
    let said = of("said");
    assert!(body(said.last().unwrap()).contains("web: bob"), "{said:?}");
    // What he said was taken in once.
    let heard = of("message").iter().filter(|it| body(it).contains("once more")).count();
    assert_eq!(heard, 1);
}

#[test]
fn a_teams_server_starts_runs_only_in_the_workspace_that_it_is_given() {
    let mut env = env();
    env.set("STEPWELL_STORE", &member(&TestEnv::unique("web"), "ann"));
    let server = Server::start(&env, &[]);
    assert_eq!(server.get("/server")["may_start"], false);
    let (status, answer) = server.send("POST", "/sessions", &json!({"task": "make it"}));
    assert_eq!(status, 403, "{answer:#}");
    drop(server);
    std::fs::create_dir(env.path("given")).unwrap();
    let given = env.path("given").canonicalize().unwrap().display().to_string();
    let server = Server::start(&env, &["--workspace", &given]);
    let script = format!("script:{}", env.work().join("script.yaml").display());
    let ran = env.quietly(&["config", "set", "--user", "model.name", &script]);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    let started = server.post("/sessions", &json!({"task": "make it"}));
    let id = started["id"].as_str().unwrap();
    assert_eq!(server.gate(id), "call_1_1");
    assert_eq!(server.get(&format!("/sessions/{id}"))["workspace"], given.as_str());
    server.post(&format!("/sessions/{id}/stop"), &json!({}));
}

#[test]
fn while_a_teams_store_is_away_requests_are_told_so_soon() {
    let mut env = env();
    let database = stepwell_cluster::Server::start(stepwell_cluster::Disk::Lazy);
    // A run would wait for a day: a request that waited as long would not end.
    env.set("STEPWELL_STORE", &format!("{}?patience=86400", database.url()));
    let server = Server::start(&env, &[]);
    assert_eq!(server.send("GET", "/sessions", &Value::Null).0, 200);
    database.kill();
    for path in ["/sessions", "/gates", "/stats"] {
        let (status, answer) = server.send("GET", path, &Value::Null);
        assert_eq!((status, &answer["kind"]), (503, &json!("io")), "{path}: {answer:#}");
        assert!(answer["hint"].as_str().unwrap().contains("repeat the request"), "{answer:#}");
    }
    // What needs no store is there: the page says what is wrong.
    assert_eq!(server.send("GET", "/healthz", &Value::Null).0, 204);
    assert_eq!(server.send("GET", "/server", &Value::Null).0, 200);
    database.run_on();
    assert_eq!(server.send("GET", "/sessions", &Value::Null).0, 200);
}

#[test]
fn an_address_that_others_reach_needs_protection() {
    let env = env();
    let ran = env.quietly(&["serve", "--port", "0", "--listen", "0.0.0.0"]);
    assert_eq!(ran.code, Some(1), "{}", ran.stderr);
    assert!(ran.stderr.contains("TLS"), "{}", ran.stderr);
    let old = env.quietly(&["serve", "--print-token"]).stdout;
    let new = env.quietly(&["serve", "--print-token", "--new-token"]).stdout;
    assert_ne!(old, new);
    assert_eq!(env.quietly(&["serve", "--print-token"]).stdout, new);
}

#[test]
fn a_new_token_counts_at_once_and_no_name_is_there_twice() {
    let env = env();
    let server = Server::start(&env, &[]);
    assert_eq!(server.send("GET", "/stores", &Value::Null).0, 200);
    let renewed = env.quietly(&["serve", "--new-token", "--print-token"]).stdout;
    assert_eq!(server.send("GET", "/stores", &Value::Null).0, 401);
    assert_eq!(server.send_as(renewed.trim(), "GET", "/stores", &Value::Null).0, 200);
    let tokens = format!("ann operator {}\nann viewer {}\n", "A".repeat(43), "B".repeat(42) + "A");
    env.file("tokens", &tokens);
    let path = env.work().join("tokens");
    std::fs::set_permissions(&path, std::os::unix::fs::PermissionsExt::from_mode(0o600)).unwrap();
    let refused = env.quietly(&["serve", "--port", "0", "--tokens", "tokens"]);
    assert_eq!(refused.code, Some(1));
    assert!(refused.stderr.contains("two tokens have the name ann"), "{}", refused.stderr);
}

#[test]
fn a_proxy_without_tls_is_no_protection() {
    let env = env();
    let refused = env.quietly(&["serve", "--port", "0", "--behind", "http://team.example"]);
    assert_eq!(refused.code, Some(2), "{}", refused.stderr);
    assert!(refused.stderr.contains("https://"), "{}", refused.stderr);
}
