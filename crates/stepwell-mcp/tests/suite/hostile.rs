//! Hostile input always gets the error that the specification requires.

use std::io::{BufRead as _, BufReader, Write as _};
use std::os::unix::net::UnixStream;
use std::time::Duration;

use serde_json::{Value, json};
use stepwell_mcp::{Access, Options};

use crate::test_env::{TestEnv, wire};

/// An answer that takes longer counts as missing.
const PATIENCE: Duration = Duration::from_secs(60);

struct Raw {
    write: UnixStream,
    read: BufReader<UnixStream>,
}

impl Raw {
    fn new(stream: UnixStream) -> Self {
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        Self { read: BufReader::new(stream.try_clone().unwrap()), write: stream }
    }

    fn send(&mut self, line: &str) {
        self.write.write_all(line.as_bytes()).unwrap();
        self.write.write_all(b"\n").unwrap();
    }

    fn receive(&mut self) -> Value {
        let mut line = String::new();
        assert!(self.read.read_line(&mut line).unwrap() > 0, "the server left");
        serde_json::from_str(&line).unwrap()
    }

    fn ask(&mut self, message: &Value) -> Value {
        self.send(&message.to_string());
        self.receive()
    }

    fn initialize(&mut self) {
        let params = json!({"protocolVersion": "2025-11-25", "capabilities": {},
            "clientInfo": {"name": "raw", "version": "1"}});
        let asked = json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params});
        let answer = self.ask(&asked);
        assert_eq!(answer["result"]["protocolVersion"], "2025-11-25", "{answer}");
        assert_eq!(answer["result"]["serverInfo"]["name"], "stepwell");
        self.send(r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#);
    }

    /// Calls a tool in the older era.
    fn call(&mut self, id: u64, name: &str, arguments: &Value) -> Value {
        self.ask(&json!({"jsonrpc": "2.0", "id": id, "method": "tools/call",
            "params": {"name": name, "arguments": arguments}}))
    }
}

/// Runs a raw client on its own thread beside the server.
async fn raw(env: &TestEnv, options: Options, talk: impl FnOnce(&mut Raw) + Send + 'static) {
    let (ours, serving) = wire(env.server(options));
    let talked = tokio::task::spawn_blocking(move || talk(&mut Raw::new(ours)));
    talked.await.unwrap();
    // The client is gone, so the server ends.
    serving.await.unwrap().unwrap();
}

fn code(answer: &Value) -> i64 {
    answer["error"]["code"].as_i64().unwrap_or_else(|| panic!("no error: {answer}"))
}

#[tokio::test(flavor = "multi_thread")]
async fn a_request_that_cannot_be_read_is_answered_under_its_id() {
    let env = TestEnv::new();
    raw(&env, Options::default(), |client| {
        client.initialize();
        let call = r#""method":"tools/call","params":{"name":"search","arguments":{"q":"#;
        client.send(&format!(r#"{{"jsonrpc":"2.0","id":7,{call}"\ud800"}}}}}}"#));
        let damaged = client.receive();
        assert_eq!((code(&damaged), &damaged["id"]), (-32700, &json!(7)));
        assert!(damaged.to_string().contains("hex escape"), "{damaged}");
        let long = "x".repeat(stepwell_wire::LONGEST_MESSAGE);
        client.send(&format!(r#"{{"jsonrpc":"2.0",{call}"{long}"}}}},"id":"last"}}"#));
        let long = client.receive();
        assert_eq!((code(&long), &long["id"]), (-32600, &json!("last")));
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_no_message_is_refused_and_the_connection_goes_on() {
    let env = TestEnv::new();
    raw(&env, Options::default(), |client| {
        // Messages before the first request have no meaning.
        client.send(r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#);
        client.send(r#"{"jsonrpc":"2.0","id":9,"result":{}}"#);
        client.send("");
        client.send("{ this is no JSON");
        assert_eq!(code(&client.receive()), -32700);
        client.send("[]");
        assert_eq!(code(&client.receive()), -32600);
        client.send("5");
        assert_eq!(code(&client.receive()), -32600);
        let early = client.ask(&json!({"jsonrpc": "2.0", "id": 1, "method": "tools/list"}));
        assert_eq!((code(&early), &early["id"]), (-32602, &json!(1)));
        client.initialize();
        let wrong = client.ask(&json!({"jsonrpc": "1.0", "id": "a", "method": "tools/list"}));
        assert_eq!((code(&wrong), &wrong["id"]), (-32600, &json!("a")));
        let wrong = client.ask(&json!({"jsonrpc": "2.0", "id": {}, "method": "tools/list"}));
        assert_eq!(code(&wrong), -32600);
        let unknown = client.ask(&json!({"jsonrpc": "2.0", "id": 2, "method": "sessions/erase"}));
        assert_eq!((code(&unknown), &unknown["id"]), (-32601, &json!(2)));
        let unstructured = json!({"jsonrpc": "2.0", "id": 3, "method": "tools/call", "params": 5});
        let wrong = client.ask(&unstructured);
        assert_eq!((code(&wrong), &wrong["id"]), (-32600, &json!(3)));
        client.send(r#"{"jsonrpc":"2.0","id":4,"method":"tools/call","params":[]}"#);
        let wrong = client.receive();
        assert_eq!((code(&wrong), &wrong["id"]), (-32602, &json!(4)), "a list is a structure");
        let wrongs = [json!(null), json!({"name": 5}), json!({"name": "x", "arguments": 7})];
        for (id, params) in wrongs.iter().enumerate() {
            let id = id + 10;
            let asked =
                json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params});
            let wrong = client.ask(&asked);
            assert_eq!((code(&wrong), &wrong["id"]), (-32602, &json!(id)), "{params}");
        }
        for list in ["tools/list", "resources/list", "resources/templates/list", "prompts/list"] {
            let params = json!({"cursor": "nonsense"});
            let asked = json!({"jsonrpc": "2.0", "id": 98, "method": list, "params": params});
            assert_eq!(code(&client.ask(&asked)), -32602, "{list}");
        }
        let listed = client.ask(&json!({"jsonrpc": "2.0", "id": 99, "method": "tools/list"}));
        assert_eq!(listed["result"]["tools"].as_array().unwrap().len(), 9);
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn wrong_calls_get_their_error_and_no_store_is_made() {
    let env = TestEnv::new();
    let id = env.login();
    raw(&env, Options::default(), move |client| {
        client.initialize();
        let unknown = client.call(1, "rm", &json!({}));
        assert_eq!(code(&unknown), -32602);
        let wrongs = [
            ("read_session", json!({})),
            ("read_session", json!({"session": 5})),
            ("read_session", json!({"session": "no-such-session"})),
            ("read_session", json!({"session": ""})),
            ("read_session", json!({"session": "../../etc/passwd"})),
            ("read_session", json!({"session": id, "form": "poem"})),
            ("read_session", json!({"session": id, "at": 9_999})),
            ("read_session", json!({"session": id, "at": "no such checkpoint"})),
            ("read_session", json!({"session": id, "lane": "\u{0}"})),
            ("read_session", json!({"session": id, "surplus": true})),
            ("read_session", json!({"session": id, "limit": -1})),
            ("read_event", json!({"session": id, "seq": 0})),
            ("read_event", json!({"session": id, "seq": u64::MAX})),
            ("file_at", json!({"session": id, "path": "../../etc/passwd"})),
            ("search_sessions", json!({"query": "  "})),
            ("search_sessions", json!({"query": "\"((* OR NEAR"})),
            ("search_sessions", json!({"query": "x".repeat(5 << 20)})),
            ("list_sessions", json!({"cursor": "9.9.9.9"})),
            ("compare_sessions", json!({"session": id, "with": "none"})),
        ];
        for (n, (tool, arguments)) in wrongs.iter().enumerate() {
            let answer = client.call(n as u64 + 10, tool, arguments);
            let is_search = arguments["query"].as_str().is_some_and(|it| it.contains("NEAR"));
            // A search accepts any words.
            assert_eq!(answer["result"]["isError"], json!(!is_search), "{tool} {answer}");
            assert!(answer.to_string().len() < 4_000, "{tool}");
        }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn five_megabytes_are_recorded_or_refused_and_never_hang() {
    let env = TestEnv::new();
    let allow = vec![Access::Record];
    raw(&env, Options { allow, ..Options::default() }, |client| {
        client.initialize();
        let begun = client.call(1, "begin_session", &json!({"task": "t", "agent": "a"}));
        let id = begun["result"]["structuredContent"]["id"].as_str().unwrap().to_owned();
        let long = "word ".repeat(1 << 20);
        let step = json!({"session": id, "messages": [{"role": "user", "text": long}]});
        let stepped = client.call(2, "record_step", &step);
        assert_eq!(stepped["result"]["structuredContent"]["steps"], 1, "{stepped}");
        let name = json!({"session": id, "name": long});
        assert_eq!(client.call(3, "checkpoint", &name)["result"]["isError"], true);
        let task = json!({"session": id, "description": long});
        assert_eq!(client.call(4, "add_task", &task)["result"]["isError"], true);
        // Longer than the limit: rejected before it is buffered.
        client.send(&format!(r#"{{"jsonrpc":"2.0","id":5,"x":"{}"}}"#, "y".repeat(25 << 20)));
        assert_eq!(code(&client.receive()), -32600);
        let after = client.call(6, "read_session", &json!({"session": id}));
        assert_eq!(after["result"]["isError"], false);
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_asked_is_answered_though_the_input_ends() {
    let env = TestEnv::new();
    env.login();
    raw(&env, Options::default(), |client| {
        client.initialize();
        for id in 1..=20 {
            let asked = json!({"jsonrpc": "2.0", "id": id, "method": "tools/call",
                "params": {"name": "search_sessions", "arguments": {"query": "login"}}});
            client.send(&asked.to_string());
        }
        client.write.shutdown(std::net::Shutdown::Write).unwrap();
        let mut answered: Vec<u64> =
            (0..20).map(|_| client.receive()["id"].as_u64().unwrap()).collect();
        answered.sort_unstable();
        assert_eq!(answered, (1..=20).collect::<Vec<u64>>());
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_new_era_needs_no_handshake_and_says_which_versions_there_are() {
    let env = TestEnv::new();
    raw(&env, Options::default(), |client| {
        let meta = |version: &str| {
            json!({
                "io.modelcontextprotocol/protocolVersion": version,
                "io.modelcontextprotocol/clientInfo": {"name": "raw", "version": "1"},
                "io.modelcontextprotocol/clientCapabilities": {},
            })
        };
        let ask = |id: u64, method: &str, version: &str| {
            json!({"jsonrpc": "2.0", "id": id, "method": method, "params": {"_meta": meta(version)}})
        };
        let found = client.ask(&ask(1, "server/discover", "2026-07-28"));
        let versions = found["result"]["supportedVersions"].as_array().unwrap();
        assert!(versions.contains(&json!("2026-07-28")), "{found}");
        assert!(versions.contains(&json!("2025-11-25")), "{found}");
        let unknown = client.ask(&ask(2, "tools/list", "1999-01-01"));
        assert!(unknown["error"]["code"].is_i64(), "{unknown}");
        let listed = client.ask(&ask(3, "tools/list", "2026-07-28"));
        assert_eq!(listed["result"]["tools"].as_array().unwrap().len(), 9, "{listed}");
        assert_eq!(listed["result"]["resultType"], "complete");
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_that_reads_nothing_and_goes_does_not_keep_the_server() {
    let env = TestEnv::new();
    let (mut stream, server) = wire(env.server(Options::default()));
    let asked = [
        json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
            "protocolVersion": "2025-06-18", "capabilities": {},
            "clientInfo": {"name": "deaf", "version": "1"}}}),
        json!({"jsonrpc": "2.0", "method": "notifications/initialized"}),
    ];
    // More answers than a socket buffers.
    let lists = (2..30).map(|id| json!({"jsonrpc": "2.0", "id": id, "method": "tools/list"}));
    for message in asked.into_iter().chain(lists) {
        stream.write_all(format!("{message}\n").as_bytes()).unwrap();
    }
    stream.shutdown(std::net::Shutdown::Write).unwrap();
    tokio::time::timeout(PATIENCE, server).await.unwrap().unwrap().unwrap();
    drop(stream);
}
