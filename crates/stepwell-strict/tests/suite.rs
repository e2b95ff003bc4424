//! The strict provider rejects and accepts the right requests.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

use serde_json::{Value, json};
use stepwell_strict::{Reply, Rules, Say, Strict, Tokens};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

#[derive(Clone, Copy)]
enum Vendor {
    OpenAi,
    Responses,
    Anthropic,
}

/// Posts a body, and returns the status and the response.
async fn post(strict: &Strict, vendor: Vendor, body: &Value) -> (u16, String) {
    let host = strict.base_url().replace("http://", "").replace("/v1", "");
    let mut socket = TcpStream::connect(&host).await.unwrap();
    let key = strict.key();
    let (path, headers) = match vendor {
        Vendor::OpenAi => ("chat/completions", format!("Authorization: Bearer {key}\r\n")),
        Vendor::Responses => ("responses", format!("Authorization: Bearer {key}\r\n")),
        Vendor::Anthropic => {
            ("messages", format!("x-api-key: {key}\r\nanthropic-version: 2023-06-01\r\n"))
        }
    };
    let body = body.to_string();
    let head = format!(
        "POST /v1/{path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n{headers}Content-Length: {}\r\n\r\n",
        body.len()
    );
    socket.write_all(format!("{head}{body}").as_bytes()).await.unwrap();
    let mut answer = String::new();
    socket.read_to_string(&mut answer).await.unwrap();
    let status = answer[9..12].parse().unwrap();
    (status, joined(&answer))
}

/// A chunked body without its framing.
fn joined(answer: &str) -> String {
    let Some((head, mut rest)) = answer.split_once("\r\n\r\n") else { return answer.to_owned() };
    if !head.contains("chunked") {
        return answer.to_owned();
    }
    let mut whole = format!("{head}\r\n\r\n");
    while let Some((size, body)) = rest.split_once("\r\n") {
        let size = usize::from_str_radix(size, 16).unwrap();
        whole.push_str(&body[..size]);
        rest = &body[size + 2..];
    }
    whole
}

async fn rejects(vendor: Vendor, messages: Value, words: &str) {
    let strict = Strict::start(Rules::default()).await.unwrap();
    let body = json!({"model": "m", "max_tokens": 9, "messages": messages});
    let (status, said) = post(&strict, vendor, &body).await;
    assert_eq!(status, 400, "taken: {messages}");
    assert!(said.contains(words), "{messages}\nwas rejected with {said}");
    assert_eq!(strict.rejected(), 1);
}

async fn takes(vendor: Vendor, messages: Value) {
    let strict = Strict::start(Rules::default()).await.unwrap();
    strict.push(Say::text("fine"));
    let body = json!({"model": "m", "max_tokens": 9, "messages": messages});
    let (status, said) = post(&strict, vendor, &body).await;
    assert_eq!(status, 200, "{messages}\nwas rejected with {said}");
    assert_eq!(strict.rejected(), 0);
}

fn user() -> Value {
    json!({"role": "user", "content": "hi"})
}

#[tokio::test]
async fn openai_rejects_what_it_rejects() {
    let call = |id: &str| {
        json!({"role": "assistant", "tool_calls": [
            {"id": id, "type": "function", "function": {"name": "f", "arguments": "{}"}}
        ]})
    };
    let result = |id: &str| json!({"role": "tool", "tool_call_id": id, "content": "x"});
    let o = Vendor::OpenAi;
    takes(o, json!([user(), user(), call("a"), result("a"), user()])).await;
    takes(o, json!([{"role": "system", "content": "s"}, user(), call("a"), result("a")])).await;
    for (messages, words) in [
        (json!([]), "empty array"),
        (json!([user(), call("a")]), "did not have response messages: a"),
        (json!([user(), call("a"), user(), result("a")]), "did not have response messages: a"),
        (json!([user(), result("a")]), "must be a response to a preceeding message"),
        (json!([user(), result("a"), call("a")]), "must be a response to a preceeding message"),
        (json!([user(), call("a"), result("b")]), "not found in 'tool_calls'"),
        (json!([user(), call("a"), result("a"), result("a")]), "Duplicate value"),
        (json!([user(), call("a"), result("a"), call("a"), result("a")]), "Duplicate value"),
        (json!([user(), call(&"a".repeat(41))]), "string too long"),
        (json!([{"role": "robot", "content": "x"}]), "Supported values are: 'system'"),
        (json!([{"role": "user", "content": ""}]), "non-empty content"),
        (json!([{"role": "user", "content": []}]), "non-empty content"),
        (json!([{"role": "user"}]), "got null"),
        (json!([user(), {"role": "assistant"}]), "got null"),
        (json!([user(), {"role": "assistant", "content": "x", "tool_calls": []}]), "empty array"),
    ] {
        rejects(o, messages, words).await;
    }
}

#[tokio::test]
async fn anthropic_rejects_what_it_rejects() {
    let call = |id: &str| {
        json!({"role": "assistant", "content": [
            {"type": "tool_use", "id": id, "name": "f", "input": {}}
        ]})
    };
    let result = |id: &str| json!({"type": "tool_result", "tool_use_id": id, "content": "x"});
    let results = |blocks: Value| json!({"role": "user", "content": blocks});
    let answered = results(json!([result("a")]));
    let two = json!({"role": "assistant", "content": [
        {"type": "tool_use", "id": "a", "name": "f", "input": {}},
        {"type": "tool_use", "id": "b", "name": "f", "input": {}},
    ]});
    let text = json!({"type": "text", "text": "so"});
    let thought = json!({"role": "assistant", "content": [
        {"type": "thinking", "thinking": "hm", "signature": "forged"}, text
    ]});
    let malformed = json!({"role": "assistant", "content": [
        {"type": "tool_use", "id": "a", "name": "f", "input": "{"}
    ]});
    let a = Vendor::Anthropic;
    takes(a, json!([user(), user(), call("a"), results(json!([result("a"), text]))])).await;
    for (messages, words) in [
        (json!([]), "at least one message"),
        (
            json!([{"role": "assistant", "content": "x"}]),
            "first message must use the \\\"user\\\" role",
        ),
        (json!([user(), call("a")]), "without `tool_result` blocks immediately after: a"),
        (json!([user(), call("a"), user(), answered]), "immediately after: a"),
        (json!([user(), call("a"), results(json!([text, result("a")]))]), "immediately after: a"),
        (json!([user(), two, answered, results(json!([result("b")]))]), "immediately after: b"),
        (json!([user(), answered]), "unexpected `tool_use_id`"),
        (json!([answered, call("a")]), "unexpected `tool_use_id`"),
        (json!([user(), call("a"), results(json!([result("a"), result("a")]))]), "single result"),
        (json!([user(), call("a"), answered, call("a"), answered]), "ids must be unique"),
        (json!([user(), call("a#1")]), "should match pattern"),
        (json!([user(), malformed]), "valid dictionary"),
        (json!([user(), thought]), "Invalid `signature`"),
        (json!([{"role": "tool", "content": "x"}]), "'user' or 'assistant'"),
        (json!([{"role": "system", "content": "x"}]), "Unexpected role"),
        (json!([{"role": "user", "content": ""}]), "non-empty content"),
        (json!([{"role": "user", "content": [{"type": "text", "text": ""}]}]), "must be non-empty"),
        (json!([{"role": "user", "content": [{"type": "text", "text": " "}]}]), "non-whitespace"),
    ] {
        rejects(a, messages, words).await;
    }
    let strict = Strict::start(Rules::default()).await.unwrap();
    let (status, said) = post(&strict, a, &json!({"model": "m", "messages": [user()]})).await;
    assert_eq!(status, 400);
    assert!(said.contains("max_tokens: Field required"), "{said}");
}

#[tokio::test]
async fn openai_rejects_in_responses_what_it_rejects() {
    let call =
        |id: &str| json!({"type": "function_call", "call_id": id, "name": "f", "arguments": "{}"});
    let output = |id: &str| json!({"type": "function_call_output", "call_id": id, "output": "x"});
    let said = |role: &str, kind: &str| json!({"type": "message", "role": role, "content": [{"type": kind, "text": "x"}]});
    let image =
        |url: &str| json!({"role": "user", "content": [{"type": "input_image", "image_url": url}]});
    let strict = Strict::start(Rules::default()).await.unwrap();
    strict.answer_with(|_| Say::text("fine").into());
    for (input, words) in [
        (json!([user(), call("a"), user(), output("a")]), ""),
        (json!([user(), said("assistant", "output_text"), said("developer", "input_text")]), ""),
        (json!([image("data:image/png;base64,AA==")]), ""),
        (json!([]), "Missing required parameter: 'input'"),
        (json!([user(), call("a")]), "No tool output found for function call a"),
        (json!([user(), output("a")]), "No tool call found for function call output"),
        (json!([user(), call("a"), output("a"), output("a")]), "Invalid 'input[3].output'"),
        (json!([user(), call("a"), call("a"), output("a")]), "Invalid 'input[2].call_id'"),
        (json!([said("robot", "input_text")]), "Supported values are: 'assistant'"),
        (json!([said("assistant", "input_text")]), "Invalid value: 'input_text'"),
        (json!([image("data:image/png;base64,data:image/png;base64,AA==")]), "input_image"),
        (json!([{"role": "user", "content": []}]), "non-empty content"),
    ] {
        let body = json!({"model": "m", "input": input});
        let (status, said) = post(&strict, Vendor::Responses, &body).await;
        let expected = if words.is_empty() { 200 } else { 400 };
        assert!(status == expected && said.contains(words), "{input}\nwas answered with {said}");
    }
}

#[tokio::test]
async fn an_answer_comes_whole_or_in_a_stream() {
    let strict = Strict::start(Rules::default()).await.unwrap();
    let tokens = Tokens { input: 10, cached: 4, cache_written: 0, output: 3, reasoning: 1 };
    strict.answer_with(move |_| {
        let say = Say::default().thinking("hm", "sig").saying("Hello");
        say.calling("a", "f", &["{\"x\":", "1}"]).using(tokens).into()
    });
    for vendor in [Vendor::OpenAi, Vendor::Responses, Vendor::Anthropic] {
        let mut body = json!({"model": "m", "max_tokens": 9, "messages": [user()]});
        body["input"] = json!([user()]);
        let (status, whole) = post(&strict, vendor, &body).await;
        assert_eq!(status, 200);
        body["stream"] = json!(true);
        let (_, streamed) = post(&strict, vendor, &body).await;
        let (sign, end) = match vendor {
            Vendor::OpenAi => (r#""arguments":"{\"x\":1}""#, "data: [DONE]"),
            Vendor::Responses => (r#""arguments":"{\"x\":1}""#, "event: response.completed"),
            Vendor::Anthropic => (r#""input":{"x":1}"#, "event: message_stop"),
        };
        assert!(whole.contains(sign) && whole.contains("Hello"), "{whole}");
        // Responses end with a repetition of everything that was streamed.
        let at_once = streamed.contains(sign) && !matches!(vendor, Vendor::Responses);
        assert!(streamed.contains("text/event-stream") && !at_once, "{streamed}");
        assert!(streamed.contains(end), "{streamed}");
    }
    assert_eq!(strict.asked().len(), 6);
}

#[tokio::test]
async fn errors_carry_their_status_and_their_wait() {
    let strict = Strict::start(Rules::default()).await.unwrap();
    strict.push(Reply::error(429, "slow").retry_after("3"));
    let body = json!({"model": "m", "messages": [user()]});
    let (status, said) = post(&strict, Vendor::OpenAi, &body).await;
    assert_eq!(status, 429);
    assert!(said.contains("retry-after: 3") && said.contains("rate_limit_error"), "{said}");
    assert_eq!(strict.rejected(), 0, "an answer of the test is no rejection");
}
