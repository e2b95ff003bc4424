//! Any messages in any order: each request gets one answer, with the error that the specification
//! says, and the end of the input ends it.

use proptest::prelude::*;
use proptest::test_runner::Config;
use serde_json::{Value, json};

use crate::client::TestEnv;

/// The errors that the specification knows.
const KNOWN: [i64; 8] = [-32700, -32600, -32601, -32602, -32603, -32800, -32000, -32002];

/// A line that a client may send: its words, and its id, if it wants an answer.
#[derive(Clone, Debug)]
enum Said {
    /// A request of a method with parameters.
    Request(&'static str, Value),
    /// A notification.
    Told(&'static str, Value),
    /// Something else, and the code of its answer.
    Wrong(&'static str, i64),
    /// An answer to nothing.
    Answer,
}

fn session() -> impl Strategy<Value = Value> {
    prop_oneof![
        Just(json!("SESSION")),
        Just(json!("20260101-000000-abcdef")),
        Just(json!("../x")),
        Just(json!(7)),
    ]
}

fn params(session: &Value, odd: u8) -> Value {
    let prompt = json!([{"type": "text", "text": "hi"}]);
    match odd % 6 {
        0 => json!({"sessionId": session, "cwd": "ROOT", "mcpServers": [], "prompt": prompt}),
        1 => json!({"sessionId": session, "cwd": "relative", "prompt": [{"type": "image"}]}),
        2 => json!({"sessionId": session, "modeId": "yolo", "configId": "mode", "value": "yolo"}),
        3 => {
            json!({"sessionId": session, "modeId": "none", "configId": "none", "value": 3, "cursor": "x"})
        }
        4 => json!([session]),
        _ => Value::Null,
    }
}

const METHODS: [&str; 20] = [
    "initialize",
    "authenticate",
    "logout",
    "session/new",
    "session/load",
    "session/resume",
    "session/list",
    "session/close",
    "session/delete",
    "session/prompt",
    "session/set_mode",
    "session/set_config_option",
    "session/fork",
    "_stepwell/verify",
    "_stepwell/view",
    "_stepwell/diff",
    "_stepwell/search",
    "_other/thing",
    "session/nothing",
    "",
];

fn said() -> impl Strategy<Value = Said> {
    let method = proptest::sample::select(METHODS.to_vec());
    let request = (method, session(), any::<u8>());
    prop_oneof![
        6 => request.prop_map(|(method, session, odd)| Said::Request(method, params(&session, odd))),
        1 => (session(), any::<u8>()).prop_map(|(it, odd)| Said::Told("session/cancel", params(&it, odd))),
        1 => Just(Said::Told("$/cancel_request", json!({"requestId": 3}))),
        1 => Just(Said::Told("nothing/known", Value::Null)),
        1 => Just(Said::Wrong("{\"jsonrpc\":", -32700)),
        1 => Just(Said::Wrong("\u{feff}[1, 2]", -32600)),
        1 => Just(Said::Wrong("{\"jsonrpc\":\"1.0\",\"method\":\"initialize\"}", -32600)),
        1 => Just(Said::Answer),
    ]
}

proptest! {
    #![proptest_config(Config { cases: 24, failure_persistence: None, ..Config::default() })]

    #[test]
    fn every_request_is_answered_once_whatever_comes_in_which_order(
        greets in any::<bool>(),
        all in proptest::collection::vec(said(), 1..24),
    ) {
        let env = TestEnv::new("- {text: Hello.}\n".repeat(50).as_str());
        let mut client = env.client();
        let mut session = "none".to_owned();
        if greets {
            client.ask("initialize", &json!({"protocolVersion": 1})).unwrap();
            session = client.new_session(&env);
        }
        let (mut ids, mut wrong) = (Vec::new(), Vec::new());
        for said in &all {
            let filled = |params: &Value| -> Value {
                let text = params.to_string().replace("SESSION", &session);
                let root = env.root().display().to_string();
                serde_json::from_str(&text.replace("ROOT", &root)).unwrap()
            };
            match said {
                Said::Request(method, params) => ids.push(client.request(method, &filled(params))),
                Said::Told(method, params) => client.notify(method, &filled(params)),
                Said::Wrong(line, code) => {
                    client.send(line);
                    wrong.push(*code);
                }
                Said::Answer => client.send("{\"jsonrpc\":\"2.0\",\"id\":99,\"result\":{}}"),
            }
        }
        let before = std::mem::take(&mut client.heard);
        let messages: Vec<Value> = before.into_iter().chain(client.leave()).collect();
        for id in ids {
            let of = |it: &&Value| it.get("method").is_none() && it["id"] == id;
            let answers: Vec<&Value> = messages.iter().filter(of).collect();
            prop_assert_eq!(answers.len(), 1, "{} of {:?}", id, all);
            if let Some(code) = answers[0].pointer("/error/code") {
                prop_assert!(KNOWN.contains(&code.as_i64().unwrap()), "{}", answers[0]);
            }
        }
        let unnamed = messages.iter().filter(|it| it.get("id") == Some(&Value::Null));
        let codes: Vec<i64> = unnamed.filter_map(|it| it.pointer("/error/code")?.as_i64()).collect();
        prop_assert_eq!(codes, wrong);
    }
}

#[test]
fn an_unknown_version_is_answered_with_ours_and_never_echoed() {
    let env = TestEnv::new("[]");
    for version in [0, 1, 2, 9_999] {
        let mut client = env.client();
        let answer = client.ask("initialize", &json!({"protocolVersion": version})).unwrap();
        assert_eq!(answer["protocolVersion"], 1);
        assert!(client.leave().is_empty());
    }
    let mut client = env.client();
    assert_eq!(client.ask("initialize", &json!({"protocolVersion": "one"})), Err(-32602));
    assert_eq!(client.ask("session/list", &json!({})), Err(-32600), "initialize comes first");
}

#[test]
fn what_the_specification_has_an_error_for_gets_that_one() {
    let env = TestEnv::new("[]");
    let mut client = env.greeted(&json!({}));
    let root = env.root();
    for (method, params, code) in [
        ("session/nothing", json!({}), -32601),
        ("_other/thing", json!({}), -32601),
        ("session/new", json!({"cwd": root}), -32602),
        ("session/new", json!({"cwd": "here", "mcpServers": []}), -32602),
        (
            "session/new",
            json!({"cwd": root, "mcpServers": [{"type": "sse", "name": "a", "url": "b", "headers": []}]}),
            -32602,
        ),
        ("session/load", json!({"sessionId": "gone", "cwd": root, "mcpServers": []}), -32002),
        ("session/resume", json!({"sessionId": "../x", "cwd": root}), -32002),
        (
            "session/prompt",
            json!({"sessionId": "gone", "prompt": [{"type": "text", "text": "a"}]}),
            -32002,
        ),
        ("session/close", json!({"sessionId": "gone"}), -32002),
        ("session/set_mode", json!({"sessionId": "gone", "modeId": "yolo"}), -32002),
        ("session/list", json!({"cursor": "nonsense"}), -32602),
        ("authenticate", json!({"methodId": "x"}), -32602),
    ] {
        assert_eq!(client.ask(method, &params), Err(code), "{method} {params}");
    }
    // Deleting what is not there succeeds, however often.
    for _ in 0..2 {
        assert_eq!(client.ask("session/delete", &json!({"sessionId": "gone"})), Ok(json!({})));
    }
    let session = client.new_session(&env);
    let wrong = json!({"sessionId": session, "modeId": "no such mode"});
    assert_eq!(client.ask("session/set_mode", &wrong), Err(-32602));
}
