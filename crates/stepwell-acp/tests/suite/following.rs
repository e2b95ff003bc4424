//! Several clients on one session, and one that loads it anew: nobody misses anything.

use serde_json::{Value, json};
use stepwell_strict::Say;

use crate::client::{Client, TestEnv};
use crate::stage::Stage;

const WHOLE: &str = "Half an answer, and the rest of it.";
const HALF: &str = "Half an answer,";

/// A client whose turn is in the middle of its answer, and told half of it.
fn halfway(stage: &Stage) -> (Client, String, i64) {
    let (mut client, session, prompt) = stage.halfway(WHOLE);
    client.until_said(HALF);
    (client, session, prompt)
}

fn load(env: &TestEnv, session: &str) -> Value {
    json!({"sessionId": session, "cwd": env.root(), "mcpServers": []})
}

fn is_asked(message: &Value) -> bool {
    message["method"] == "session/request_permission"
}

#[test]
fn whoever_loads_in_the_middle_of_an_answer_is_told_all_of_it_once() {
    let stage = Stage::new();
    let (mut first, session, prompt) = halfway(&stage);
    let mut second = stage.env.greeted(&json!({}));
    second.ask("session/load", &load(&stage.env, &session)).unwrap();
    stage.strict.go_on();
    assert_eq!(first.answered(prompt).unwrap()["stopReason"], "end_turn");
    // Its own turn comes behind what it followed.
    stage.strict.push(Say::text(" More."));
    let prompt = second.prompt(&session, "go on");
    assert_eq!(second.answered(prompt).unwrap()["stopReason"], "end_turn");
    assert_eq!(second.said("agent_message_chunk"), format!("{WHOLE} More."));
    assert_eq!(second.said("user_message_chunk"), "tell me");
}

#[test]
fn a_client_that_loads_anew_in_its_own_turn_is_told_what_was_said_so_far() {
    let stage = Stage::new();
    let (mut client, session, prompt) = halfway(&stage);
    client.heard.clear();
    client.ask("session/load", &load(&stage.env, &session)).unwrap();
    assert_eq!(client.said("user_message_chunk"), "tell me");
    assert_eq!(client.said("agent_message_chunk"), HALF);
    stage.strict.go_on();
    assert_eq!(client.answered(prompt).unwrap()["stopReason"], "end_turn");
    assert_eq!(client.said("agent_message_chunk"), WHOLE);
    let pieces = client.updates("agent_message_chunk");
    assert!(pieces.iter().all(|it| it["messageId"] == pieces[0]["messageId"]), "{pieces:?}");
}

#[test]
fn a_closed_session_answers_its_prompt_before_the_close_is_answered() {
    let stage = Stage::new();
    let (mut client, session, prompt) = halfway(&stage);
    let close = client.request("session/close", &json!({"sessionId": session}));
    let answers = |it: &Value, id: i64| it.get("method").is_none() && it["id"] == id;
    client.wait(|it| answers(it, close));
    let answered = client.heard.iter().find(|it| answers(it, prompt));
    assert_eq!(answered.unwrap()["result"]["stopReason"], "cancelled");
    // Nothing follows.
    client.heard.clear();
    client.ask("session/list", &json!({"cwd": stage.env.root()})).unwrap();
    assert!(client.heard.is_empty(), "{:?}", client.heard);
}

#[test]
fn a_second_client_follows_every_run_and_is_asked_in_each() {
    let writes = |path: &str| {
        format!(
            "- {{text: I write., calls: [{{tool: write_file, arguments: {{path: {path}, content: x}}}}]}}\n- {{text: Written.}}\n"
        )
    };
    let env = TestEnv::new(&format!("{}{}{}", writes("a"), writes("b"), writes("c")));
    let mut first = env.greeted(&json!({}));
    let session = first.new_session(&env);
    let allow = json!({"outcome": {"outcome": "selected", "optionId": "allow_once"}});
    let prompt = first.prompt(&session, "write one");
    let question = first.wait(is_asked);
    let mut second = env.greeted(&json!({}));
    second.ask("session/load", &load(&env, &session)).unwrap();
    second.wait(is_asked);
    first.answer(&question, &allow);
    assert_eq!(first.answered(prompt).unwrap()["stopReason"], "end_turn");
    // Nobody loads it again: the next runs are followed all the same.
    for (path, says) in [("b", "write two"), ("c", "write three")] {
        let prompt = first.prompt(&session, says);
        let question = second.wait(is_asked);
        assert!(question.to_string().contains(&format!("\"path\":\"{path}\"")), "{question}");
        second.answer(&question, &allow);
        assert_eq!(first.answered(prompt).unwrap()["stopReason"], "end_turn");
        assert!(env.root().join(path).exists());
        assert!(second.said("user_message_chunk").contains(says), "{:?}", second.heard);
    }
    // Its own turn comes behind all that.
    assert!(second.says(&session, "/gates").contains("Nothing waits for you."));
}

#[test]
fn a_question_that_another_client_left_is_told_and_answered_here() {
    let env = TestEnv::new(
        "- {text: I write., calls: [{tool: write_file, arguments: {path: a, content: x}}]}\n\
         - {text: Written.}\n",
    );
    let mut first = env.greeted(&json!({}));
    let session = first.new_session(&env);
    first.prompt(&session, "write one");
    first.wait(is_asked);
    let mut second = env.greeted(&json!({}));
    second.ask("session/load", &load(&env, &session)).unwrap();
    second.wait(is_asked);
    first.leave();
    second.wait(|it| it.to_string().contains("Answer yes, always, no or never"));
    assert!(second.says(&session, "yes").contains("Written."));
    assert!(env.root().join("a").exists());
}

#[test]
fn whoever_follows_is_told_what_the_session_cost_and_how_full_it_is() {
    let script = "prices: {input: '3', output: '15'}\ncontext: 50000\nanswers: [\
        {text: One., usage: {input: 1000, output: 10}}, \
        {text: Two., usage: {input: 2000, output: 20}}, \
        {text: I write., usage: {input: 3000, output: 30}, \
         calls: [{tool: write_file, arguments: {path: a, content: x}}]}, \
        {text: Three., usage: {input: 4000, output: 40}}]\n";
    let env = TestEnv::new(script);
    let mut first = env.greeted(&json!({}));
    let session = first.new_session(&env);
    first.says(&session, "count");
    first.says(&session, "again");
    let mut second = env.greeted(&json!({}));
    second.ask("session/resume", &load(&env, &session)).unwrap();
    let prompt = first.prompt(&session, "write");
    let question = first.wait(is_asked);
    second.wait(is_asked);
    let allow = json!({"outcome": {"outcome": "selected", "optionId": "allow_once"}});
    first.answer(&question, &allow);
    assert_eq!(first.answered(prompt).unwrap()["stopReason"], "end_turn");
    second.wait(|it| it.to_string().contains("Three."));
    second.says(&session, "/status");
    // Each that is told is one that the first client was told: none begins at nothing.
    let known = first.updates("usage_update");
    let told = second.updates("usage_update");
    assert_eq!(told.last(), known.last(), "{told:?}");
    for update in &told {
        assert!(update["used"].as_u64().unwrap() >= 2_020, "{told:?}");
        assert!(update["cost"]["amount"].as_f64().unwrap() >= 0.009_45, "{told:?}");
    }
}
