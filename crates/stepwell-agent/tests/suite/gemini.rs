//! Gemini's protocol, against recorded streams.

use std::time::Duration;

use serde_json::{Value, json};
use stepwell::Message;
use stepwell::model::{Part, Role, ToolResult, Usage};
use stepwell_agent::provider::remote::{Endpoint, Key, Protocol, Remote};
use stepwell_agent::provider::{Answer, CallError, Fault, Provider, Request, Turn};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::TcpListener;
use tokio::sync::mpsc;

/// A request: its first line and its body.
pub(crate) type Asked = (String, Value);

/// Answers one connection after another with these chunks, and reports the requests.
pub(crate) async fn canned(streams: Vec<Vec<Value>>) -> (Remote, mpsc::UnboundedReceiver<Asked>) {
    let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
    let address = listener.local_addr().unwrap();
    let (sender, receiver) = mpsc::unbounded_channel();
    tokio::spawn(async move {
        for stream in streams {
            let (socket, _) = listener.accept().await.unwrap();
            let mut socket = BufReader::new(socket);
            let mut head = String::new();
            while !head.ends_with("\r\n\r\n") {
                socket.read_line(&mut head).await.unwrap();
            }
            let length = head.to_lowercase();
            let length = length.split("content-length: ").nth(1).unwrap();
            let length = length.lines().next().unwrap().parse().unwrap();
            let mut body = vec![0; length];
            socket.read_exact(&mut body).await.unwrap();
            let line = head.lines().next().unwrap().to_owned();
            sender.send((line, serde_json::from_slice(&body).unwrap())).unwrap();
            let events: String = stream.iter().map(|chunk| format!("data: {chunk}\n\n")).collect();
            let head = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close";
            let answer = format!("{head}\r\nContent-Length: {}\r\n\r\n{events}", events.len());
            socket.write_all(answer.as_bytes()).await.unwrap();
        }
    });
    let endpoint = Endpoint {
        provider: "gemini".to_owned(),
        protocol: Protocol::Gemini,
        base_url: Some(format!("http://{address}/v1beta")),
        key: Some(Key::new("key")),
        timeout: Duration::from_secs(20),
        proxy: None,
    };
    (Remote::new(endpoint).unwrap(), receiver)
}

pub(crate) fn chunk(parts: &Value, finish: Option<&str>) -> Value {
    let mut candidate = json!({"content": {"role": "model", "parts": parts}});
    if let Some(finish) = finish {
        candidate["finishReason"] = json!(finish);
    }
    let usage = json!({
        "promptTokenCount": 10, "cachedContentTokenCount": 4,
        "candidatesTokenCount": 5, "thoughtsTokenCount": 7, "totalTokenCount": 22,
    });
    json!({"candidates": [candidate], "usageMetadata": usage, "responseId": "resp-1"})
}

pub(crate) async fn ask(provider: &Remote, messages: &[Message]) -> Result<Answer, CallError> {
    let model = "gemini-x-high";
    let (system, turn) = ("Be terse.", Turn::default());
    let request = Request { model, system, messages, tools: &[], max_output: 99, turn };
    provider.answer(request, &mut |_| {}).await
}

#[tokio::test]
async fn calls_and_their_signatures_go_out_and_come_back() {
    let call = |args: Value| json!({"name": "read_file", "args": args});
    let first = vec![
        chunk(&json!([{"text": "Let me see.", "thoughtSignature": "sigT"}]), None),
        chunk(
            &json!([{"functionCall": call(json!({"path": "a"})), "thoughtSignature": "sigA"}]),
            None,
        ),
        chunk(&json!([{"functionCall": call(json!({}))}]), Some("STOP")),
    ];
    let second = vec![chunk(&json!([{"text": "Done."}]), Some("STOP"))];
    let (provider, mut asked) = canned(vec![first, second]).await;
    let user = Message::user("Read them.");
    let answer = ask(&provider, std::slice::from_ref(&user)).await.unwrap();
    assert_eq!(
        answer.usage,
        Some(Usage { input: 10, output: 12, cached: 4, reasoning: 7, cache_written: 0 })
    );
    let call = answer.message.call.as_ref().unwrap();
    assert_eq!(call.response_id.as_deref(), Some("resp-1"));
    assert_eq!(call.finish_reason.as_deref(), Some("STOP"));
    let calls: Vec<_> = answer.message.calls().cloned().collect();
    assert_eq!(calls[0].arguments, r#"{"path":"a"}"#);
    assert_eq!(calls[1].arguments, "{}");
    assert_ne!(calls[0].id, calls[1].id);
    assert_eq!(calls[0].opaque.as_ref().unwrap().data, "sigA");
    assert_eq!(calls[1].opaque, None);

    let result = |n: usize| {
        let id = calls[n].id.clone();
        Part::ToolResult(ToolResult { call_id: id, text: "x".to_owned(), ..Default::default() })
    };
    let results = Message::new(Role::Tool, vec![result(0), result(1)]);
    let conversation = [user, answer.message, results];
    assert_eq!(ask(&provider, &conversation).await.unwrap().message.text(), "Done.");

    let (line, body) = asked.recv().await.unwrap();
    assert!(line.contains("/models/gemini-x-high:streamGenerateContent"), "{line}");
    assert_eq!(body["generationConfig"], json!({"maxOutputTokens": 99}));
    assert_eq!(body["systemInstruction"]["parts"][0]["text"], "Be terse.");
    let (_, body) = asked.recv().await.unwrap();
    let said = &body["contents"][1]["parts"];
    assert_eq!(said[0]["text"], "Let me see.");
    assert_eq!(said[0]["thoughtSignature"], "sigT");
    assert_eq!(said[1]["thoughtSignature"], "sigA");
    assert_eq!(said[1]["functionCall"]["args"], json!({"path": "a"}));
    let answered = body["contents"][2]["parts"].as_array().unwrap();
    let names: Vec<_> = answered.iter().map(|p| p["functionResponse"]["name"].clone()).collect();
    assert_eq!(names, ["read_file", "read_file"]);
}

#[tokio::test]
async fn a_half_stream_is_never_an_answer() {
    let half = vec![chunk(&json!([{"text": "Hel"}]), None)];
    let wrong = vec![chunk(&json!([]), Some("MALFORMED_FUNCTION_CALL"))];
    let (provider, _asked) = canned(vec![half, Vec::new(), wrong]).await;
    for _ in 0..3 {
        let error = ask(&provider, &[Message::user("Hi.")]).await.unwrap_err();
        assert_eq!(error.fault, Fault::Truncated, "{error}");
    }
}
