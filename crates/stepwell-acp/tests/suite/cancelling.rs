//! What is cancelled ends, and nothing else does; what takes long keeps nobody waiting.

use std::io::pipe;
use std::sync::mpsc;
use std::time::Duration;

use serde_json::{Value, json};
use stepwell::StopReason;
use stepwell_acp::{Setup, serve};
use stepwell_runtime::Runtime;
use stepwell_strict::{Say, Stop};

use crate::client::{Client, TestEnv};
use crate::stage::Stage;

/// The longest that a healthy server may take on a slow machine.
const LONG: Duration = Duration::from_secs(60);

#[test]
fn a_prompt_behind_a_cancel_begins_the_next_turn() {
    let stage = Stage::new();
    let (mut client, session, first) = stage.halfway("one two three four");
    stage.strict.push(Say::text("Second."));
    client.notify("session/cancel", &json!({"sessionId": session}));
    let second = client.prompt(&session, "and now this");
    assert_eq!(client.answered(first).unwrap()["stopReason"], "cancelled");
    assert_eq!(client.answered(second).unwrap()["stopReason"], "end_turn");
    assert!(stage.heard().contains("and now this"));
    stage.strict.go_on();
}

#[test]
fn a_session_that_was_cancelled_waits_when_it_is_opened_again() {
    let stage = Stage::new();
    let (mut client, session, prompt) = stage.halfway("one two three four");
    client.notify("session/cancel", &json!({"sessionId": session}));
    assert_eq!(client.answered(prompt).unwrap()["stopReason"], "cancelled");
    client.leave();
    stage.strict.go_on();
    let head = || {
        let well = stage.env.runtime().workspace().open_if_present().unwrap().unwrap();
        well.info(&session.parse().unwrap()).unwrap().head
    };
    let before = head();
    assert_eq!(before.stop_reason, Some(StopReason::UserInterrupt));
    for opens in ["session/load", "session/resume"] {
        let mut client = stage.env.greeted(&json!({}));
        let old = json!({"sessionId": session, "cwd": stage.env.root(), "mcpServers": []});
        client.ask(opens, &old).unwrap();
        // What is asked next is answered after all that opening does.
        client.ask("session/list", &json!({"cwd": stage.env.root()})).unwrap();
        client.leave();
        assert_eq!(head(), before, "{opens}");
        assert_eq!(stage.strict.asked().len(), 1, "{opens} asked a model");
    }
    // Words have it go on.
    stage.strict.push(Say::text("Five."));
    let mut client = stage.env.greeted(&json!({}));
    let old = json!({"sessionId": session, "cwd": stage.env.root(), "mcpServers": []});
    client.ask("session/load", &old).unwrap();
    let prompt = client.prompt(&session, "go on");
    assert_eq!(client.answered(prompt).unwrap()["stopReason"], "end_turn");
    assert_eq!(stage.strict.asked().len(), 2);
}

#[test]
fn a_refusal_is_shown_and_ends_the_turn_as_one() {
    let stage = Stage::new();
    stage.strict.push(Say::text("I would rather not.").stopping(Stop::Filtered));
    let mut client = stage.env.greeted(&json!({}));
    let session = client.new_session(&stage.env);
    let prompt = client.prompt(&session, "do it");
    assert_eq!(client.answered(prompt).unwrap()["stopReason"], "refusal");
    assert!(client.said("agent_message_chunk").starts_with("I would rather not."));
}

#[test]
fn a_request_that_is_cancelled_leaves_the_turn_of_another_alone() {
    let stage = Stage::new();
    let (mut client, session, first) = stage.halfway("one two three four");
    let second = client.prompt(&session, "never mind");
    client.notify("$/cancel_request", &json!({"requestId": second}));
    assert_eq!(client.answered(second), Err(-32800));
    stage.strict.push(Say::text("If it was heard."));
    stage.strict.go_on();
    assert_eq!(client.answered(first).unwrap()["stopReason"], "end_turn");
    assert!(client.said("agent_message_chunk").starts_with("one two three four"));
}

/// A client whose session has enough to be made shorter.
fn long_session(stage: &Stage) -> (Client, String) {
    let settings = stage.env.root().join("stepwell.toml");
    let model = std::fs::read_to_string(&settings).unwrap();
    std::fs::write(settings, format!("{model}[compaction]\nkeep_tokens = 100\n")).unwrap();
    let mut client = stage.env.greeted(&json!({}));
    let session = client.new_session(&stage.env);
    for says in ["one", "two", "three"] {
        stage.strict.push(Say::text("word ".repeat(400)));
        client.says(&session, &format!("{says} {}", "more ".repeat(400)));
    }
    (client, session)
}

#[test]
fn a_compaction_keeps_nobody_waiting_and_can_be_cancelled() {
    let stage = Stage::new();
    let (mut client, session) = long_session(&stage);
    let before = stage.strict.asked().len();
    for (n, withdrawn) in [(1, false), (2, true)] {
        stage.pauses("## Goal: words and words and words");
        let compact = client.prompt(&session, "/compact");
        stage.asked(before + n);
        // Others are served meanwhile, and another prompt comes behind it.
        let behind = client.prompt(&session, "/status");
        client.ask("session/list", &json!({"cwd": stage.env.root()})).unwrap();
        let answers = |it: &Value| it.get("method").is_none();
        assert!(!client.heard.iter().any(answers), "{:?}", client.heard);
        if withdrawn {
            client.notify("$/cancel_request", &json!({"requestId": compact}));
            assert_eq!(client.answered(compact), Err(-32800));
            assert_eq!(client.answered(behind).unwrap()["stopReason"], "end_turn");
        } else {
            client.notify("session/cancel", &json!({"sessionId": session}));
            assert_eq!(client.answered(compact).unwrap()["stopReason"], "cancelled");
            assert_eq!(client.answered(behind).unwrap()["stopReason"], "cancelled");
        }
        stage.strict.go_on();
    }
}

#[test]
fn a_session_that_is_closed_while_it_is_compacted_answers_both() {
    let stage = Stage::new();
    let (mut client, session) = long_session(&stage);
    let before = stage.strict.asked().len();
    stage.pauses("## Goal: words and words and words");
    let compact = client.prompt(&session, "/compact");
    stage.asked(before + 1);
    client.ask("session/close", &json!({"sessionId": session})).unwrap();
    assert_eq!(client.answered(compact).unwrap()["stopReason"], "cancelled");
    stage.strict.go_on();
}

#[test]
fn what_two_clients_say_at_once_is_heard() {
    let env = TestEnv::new(&"- {text: Heard.}\n".repeat(40));
    let mut clients = [env.greeted(&json!({})), env.greeted(&json!({}))];
    let session = clients[0].new_session(&env);
    clients[0].says(&session, "begin");
    let load = json!({"sessionId": session, "cwd": env.root(), "mcpServers": []});
    clients[1].ask("session/load", &load).unwrap();
    for round in 0..6 {
        let mut prompts = Vec::new();
        for (n, client) in clients.iter_mut().enumerate() {
            prompts.push(client.prompt(&session, &format!("round {round} of client {n}.")));
        }
        for (client, prompt) in clients.iter_mut().zip(prompts) {
            assert_eq!(client.answered(prompt).unwrap()["stopReason"], "end_turn");
        }
    }
    let well = env.runtime().workspace().open_if_present().unwrap().unwrap();
    let events =
        well.store().events(&session.parse().unwrap(), stepwell::store::Span::ALL).unwrap();
    let log = format!("{:?}", events.events);
    for round in 0..6 {
        for n in 0..2 {
            let words = format!("round {round} of client {n}.");
            assert!(log.contains(&words), "{words}");
        }
    }
}

#[test]
fn a_client_that_reads_nothing_and_goes_does_not_keep_the_server() {
    let env = TestEnv::new("[]");
    let (input, to) = pipe().unwrap();
    let (from, output) = pipe().unwrap();
    let runtime: Runtime = env.runtime();
    let (host, wanted) = (runtime.workspace().host.clone(), stepwell_workspace::Wanted::default());
    let setup = Setup { host, wanted, supervisor: None, unstable: true, version: "0".to_owned() };
    let (over, ended) = mpsc::channel();
    std::thread::spawn(move || {
        let mut tokio = tokio::runtime::Builder::new_multi_thread();
        let tokio = tokio.worker_threads(2).enable_all().build().unwrap();
        tokio.block_on(serve(setup, input, output, std::future::pending())).unwrap();
        over.send(()).unwrap();
        tokio.shutdown_background();
    });
    // More answers than a pipe holds.
    let mut to = to;
    let line =
        format!("{{\"jsonrpc\":\"2.0\",\"id\":\"{}\",\"method\":\"x\"}}\n", "i".repeat(4_000));
    for _ in 0..100 {
        std::io::Write::write_all(&mut to, line.as_bytes()).unwrap();
    }
    drop(to);
    ended.recv_timeout(LONG).unwrap();
    drop(from);
}
