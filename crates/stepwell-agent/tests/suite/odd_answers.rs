//! Answers that are neither a success nor a plain failure, and servers with unusual habits.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::{Value, json};
use stepwell::model::{Part, Role, Usage};
use stepwell::{Message, Status, StopReason};
use stepwell_agent::provider::remote::{Endpoint, Protocol, Remote};
use stepwell_agent::provider::retry::{Patience, Retrying};
use stepwell_agent::provider::{Delta, Ended, Fault, Provider};
use stepwell_strict::{Raw, Reply, Rules, Say, Strict};

use crate::endings::{Person, scene};
use crate::gemini;
use crate::providers::{BOTH, ask, endpoint, remote, request, results, strict, tools, user};

const QUICK: Patience = Patience {
    attempts: 3,
    first: Duration::from_millis(1),
    longest: Duration::from_millis(2),
    total: Duration::from_secs(60),
    seed: 7,
};

/// A stream of these events, valid in both protocols.
fn events(events: &[Value]) -> Raw {
    let event = |event: &Value| match event["type"].as_str() {
        Some(name) => format!("event: {name}\ndata: {event}\n\n"),
        None => format!("data: {event}\n\n"),
    };
    let body: String = events.iter().map(event).collect();
    Reply::raw(200, body).header("content-type", "text/event-stream")
}

/// An OpenAI stream of these deltas, with a finish reason.
fn openai(deltas: &[Value], finish: &str) -> Raw {
    let chunk = |delta: &Value, finish: Value| json!({"id": "chatcmpl-1", "choices": [{"index": 0, "delta": delta, "finish_reason": finish}]});
    let mut chunks: Vec<Value> = deltas.iter().map(|it| chunk(it, Value::Null)).collect();
    chunks.push(chunk(&json!({}), json!(finish)));
    let mut raw = events(&chunks);
    raw.body.push_str("data: [DONE]\n\n");
    raw
}

/// An Anthropic stream of these blocks and their deltas, with a stop reason.
fn anthropic(blocks: &[(Value, Vec<Value>)], stop: &Value) -> Raw {
    let mut all = vec![json!({"type": "message_start", "message": {
        "id": "msg_1", "role": "assistant", "content": [], "usage": {"input_tokens": 7, "output_tokens": 1},
    }})];
    for (index, (block, deltas)) in blocks.iter().enumerate() {
        all.push(json!({"type": "content_block_start", "index": index, "content_block": block}));
        let delta =
            |it: &Value| json!({"type": "content_block_delta", "index": index, "delta": it});
        all.extend(deltas.iter().map(delta));
        all.push(json!({"type": "content_block_stop", "index": index}));
    }
    all.push(json!({"type": "message_delta", "delta": stop, "usage": {"output_tokens": 5}}));
    all.push(json!({"type": "message_stop"}));
    events(&all)
}

fn said(text: &str) -> (Value, Vec<Value>) {
    (json!({"type": "text", "text": ""}), vec![json!({"type": "text_delta", "text": text})])
}

/// A stream of a protocol with this text and this end.
fn ending(protocol: Protocol, text: &str, word: &str) -> Raw {
    match protocol {
        Protocol::OpenAi => openai(&[json!({"content": text})], word),
        _ => anthropic(&[said(text)], &json!({"stop_reason": word})),
    }
}

#[tokio::test]
async fn an_answer_that_ends_for_an_unknown_reason_fails_the_run_with_that_reason() {
    for protocol in BOTH {
        for word in ["error", "gremlins"] {
            let strict = strict().await;
            strict.push(ending(protocol, "Half of", word));
            let scene = scene();
            let setup = scene.setup(Arc::new(remote(&strict, protocol)));
            let ended = scene.run(&setup, &Person::default(), Some("go")).await;
            assert_eq!((ended.status, ended.reason), (Status::Failed, StopReason::LlmError));
            let error = ended.error.unwrap();
            assert!(error.what.contains(&format!("{word:?}")), "{error}");
        }
    }
}

#[tokio::test]
async fn a_paused_turn_goes_on_with_what_was_said() {
    let strict = strict().await;
    let search =
        json!({"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {}});
    let asks = vec![json!({"type": "input_json_delta", "partial_json": "{\"query\": \"owls\"}"})];
    let found = json!({"type": "web_search_tool_result", "tool_use_id": "srvtoolu_1", "content": [
        {"type": "web_search_result", "url": "https://example.org", "encrypted_content": "Zm91bmQ="},
    ]});
    let first = [said("I look."), (search.clone(), asks)];
    strict.push(anthropic(&first, &json!({"stop_reason": "pause_turn"})));
    let second = [(found.clone(), vec![]), said("Owls sleep by day.")];
    strict.push(anthropic(&second, &json!({"stop_reason": "end_turn"})));
    let provider = remote(&strict, Protocol::Anthropic);
    let answer = ask(&provider, &[user()]).await.unwrap();
    assert_eq!(answer.message.text(), "I look.\nOwls sleep by day.");
    assert_eq!(answer.ended, Ended::Complete);
    assert_eq!(answer.usage, Some(Usage { input: 14, output: 10, ..Usage::default() }));
    assert_eq!(answer.message.calls().count(), 0, "a server's tool is not ours to run");

    // Blocks of the server's own tools go back unchanged, in their place.
    let mut searched = search;
    searched["input"] = json!({"query": "owls"});
    let again = &strict.asked()[1].body["messages"];
    assert_eq!(again.as_array().unwrap().len(), 2);
    let text = |text: &str| json!({"type": "text", "text": text});
    assert_eq!(again[1]["content"], json!([text("I look."), searched]));
    strict.push(Say::text("ok"));
    ask(&provider, &[user(), answer.message, user()]).await.unwrap();
    let all = strict.asked()[2].body["messages"][1]["content"].clone();
    assert_eq!(all, json!([text("I look."), searched, found, text("Owls sleep by day.")]));
    assert_eq!(strict.rejected(), 0);
}

/// Streams that refuse, with the text in each.
fn refusals() -> Vec<(Protocol, Raw, &'static str)> {
    let field = [json!({"refusal": "I can't help "}), json!({"refusal": "with that."})];
    let why = json!({"stop_reason": "refusal",
        "stop_details": {"type": "refusal", "category": "cyber", "explanation": "I can't help with that."}});
    let text = "I can't help with that.";
    vec![
        (Protocol::OpenAi, openai(&field, "stop"), text),
        (Protocol::OpenAi, openai(&[json!({"content": text})], "content_filter"), text),
        (Protocol::OpenAi, openai(&[], "content_filter"), ""),
        (Protocol::OpenAi, openai(&[], "content_filtered"), ""),
        (Protocol::Anthropic, ending(Protocol::Anthropic, text, "refusal"), text),
        (Protocol::Anthropic, anthropic(&[], &why), text),
    ]
}

#[tokio::test]
async fn a_refusal_is_shown_and_ends_the_run_as_a_refusal() {
    for (protocol, raw, text) in refusals() {
        let strict = strict().await;
        strict.push(raw.clone());
        let scene = scene();
        let setup = scene.setup(Arc::new(remote(&strict, protocol)));
        let ended = scene.run(&setup, &Person::default(), Some("go")).await;
        let how = (ended.status, ended.reason, ended.output.as_str());
        assert_eq!(how, (Status::Failed, StopReason::Refusal, text), "{}", raw.body);
        assert_eq!(ended.error.unwrap().fault, Fault::Declined);
        assert_eq!(strict.asked().len(), 1, "it is not asked again");
        let mut told = Vec::new();
        strict.push(raw);
        let (messages, tools) = ([user()], tools());
        let provider = remote(&strict, protocol);
        let mut hear = |delta| told.push(delta);
        let answer = provider.answer(request(&messages, &tools), &mut hear).await.unwrap();
        assert_eq!((answer.ended, answer.message.text().as_str()), (Ended::Refused, text));
        let shown = told.iter().map(|it| if let Delta::Text(it) = it { it.as_str() } else { "" });
        assert_eq!(shown.collect::<String>(), text);
    }
}

#[tokio::test]
async fn gemini_refuses_an_answer_or_the_question() {
    let said = gemini::chunk(&json!([{"text": "I"}]), Some("SAFETY"));
    let mut mute = json!({"candidates": [{"finishReason": "PROHIBITED_CONTENT"}]});
    mute["candidates"][0]["finishMessage"] = json!("It is prohibited.");
    let blocked = json!({"promptFeedback": {"blockReason": "SAFETY"}, "usageMetadata": {"promptTokenCount": 3}});
    let (provider, _asked) = gemini::canned(vec![vec![said], vec![mute], vec![blocked]]).await;
    for text in ["I", "It is prohibited.", ""] {
        let answer = gemini::ask(&provider, &[Message::user("Hi.")]).await.unwrap();
        assert_eq!((answer.ended, answer.message.text().as_str()), (Ended::Refused, text));
    }
}

#[tokio::test]
async fn a_server_that_refuses_is_quoted_in_its_own_words() {
    let fast_api =
        json!({"detail": [{"type": "missing", "loc": ["body", "top_k"], "msg": "Field required"}]});
    let mistral = json!({"object": "error", "message": {"detail": [{"msg": "top_k is too large", "loc": ["body"]}]}});
    let told = json!({"detail": "no such adapter"});
    let flat = json!({"error": "the queue is closed for maintenance"});
    let nested = json!({"error": {"message": "the upstream refused", "code": 402}});
    let of_its_own =
        json!({"base_resp": {"status_code": 1004, "status_msg": "carry the key"}, "choices": null});
    let with_code = json!({"code": "InvalidParameter", "message": "No such key"});
    let in_list = json!({"success": false, "errors": [{"code": 7003, "message": "no route"}], "result": null});
    let titled = json!({"title": "No such lane", "status": 400});
    let json = |status, body: &Value| {
        Reply::raw(status, body.to_string()).header("content-type", "application/json")
    };
    let cases = [
        (
            json(422, &fast_api),
            "422 Unprocessable Entity: body.top_k: Field required",
            Fault::Refused,
        ),
        (json(422, &mistral), "422 Unprocessable Entity: body: top_k is too large", Fault::Refused),
        (json(422, &told), "422 Unprocessable Entity: no such adapter", Fault::Refused),
        (Reply::raw(422, "top_k?\n"), "422 Unprocessable Entity: top_k?", Fault::Refused),
        (json(200, &flat), "an error: the queue is closed for maintenance", Fault::Refused),
        (json(200, &nested), "an error: the upstream refused", Fault::Refused),
        (events(&[nested]), "in the middle of its answer: the upstream refused", Fault::Refused),
        (events(&[flat]), "in the middle of its answer: the queue is closed", Fault::Unavailable),
        (json(200, &of_its_own), "an error: carry the key", Fault::Refused),
        (json(200, &with_code), "an error: No such key", Fault::Refused),
        (json(200, &in_list), "an error: no route", Fault::Refused),
        (Reply::raw(200, "The gate is shut"), "an error: The gate is shut", Fault::Refused),
        (Reply::raw(200, "Overloaded: wait\n\n"), "Overloaded: wait", Fault::Unavailable),
        (json(400, &titled), "400 Bad Request: No such lane", Fault::Refused),
    ];
    for protocol in BOTH {
        for (reply, says, fault) in &cases {
            let strict = strict().await;
            strict.push(reply.clone());
            let error = ask(&remote(&strict, protocol), &[user()]).await.unwrap_err();
            assert!(error.what.contains(says), "{protocol:?}: {error}\n{}", reply.body);
            assert_eq!(error.fault, *fault, "{protocol:?}: {error}");
        }
    }
}

#[tokio::test]
async fn what_a_server_says_in_place_of_an_answers_pieces_is_quoted() {
    let choice = json!({"id": "c", "choices": [{"index": 0, "delta": {"content": ""}, "finish_reason": "error",
        "error": {"code": 502, "message": "the model behind is silent"}}]});
    let done = |it: &Value| {
        let mut raw = events(std::slice::from_ref(it));
        raw.body.push_str("data: [DONE]\n\n");
        raw
    };
    let event = json!({"code": 400, "message": "top_k is wrong"});
    for (reply, says, fault) in [
        (events(std::slice::from_ref(&choice)), "the model behind is silent", Fault::Unavailable),
        (events(std::slice::from_ref(&event)), "top_k is wrong", Fault::Refused),
        (done(&event), "top_k is wrong", Fault::Refused),
    ] {
        let strict = strict().await;
        strict.push(reply);
        let error = ask(&remote(&strict, Protocol::OpenAi), &[user()]).await.unwrap_err();
        assert!(error.what.ends_with(says), "{error}");
        assert_eq!(error.fault, fault, "{error}");
    }
    // An answer despite the odd end is still an answer.
    let strict = strict().await;
    let mut raw = events(&[json!({"message": "The model is loaded first."})]);
    raw.body.push_str(&openai(&[json!({"content": "Hello."})], "stop").body);
    strict.push(raw);
    let answer = ask(&remote(&strict, Protocol::OpenAi), &[user()]).await.unwrap();
    assert_eq!(answer.message.text(), "Hello.");
}

#[tokio::test]
async fn a_byte_order_mark_is_no_part_of_an_answer() {
    for protocol in BOTH {
        let strict = strict().await;
        let mut raw = ending(
            protocol,
            "Hello.",
            if protocol == Protocol::OpenAi { "stop" } else { "end_turn" },
        );
        raw.body.insert(0, '\u{feff}');
        strict.push(raw);
        strict.push(Reply::raw(400, "\u{feff}{\"error\": {\"message\": \"top_k is too large\"}}"));
        let provider = remote(&strict, protocol);
        assert_eq!(ask(&provider, &[user()]).await.unwrap().message.text(), "Hello.");
        let error = ask(&provider, &[user()]).await.unwrap_err();
        assert_eq!(error.what, "400 Bad Request: top_k is too large");
    }
}

/// How often a server with this answer is asked, and its last fault.
async fn asked(reply: impl Into<Reply>) -> (usize, Fault) {
    let strict = strict().await;
    let reply = reply.into();
    strict.answer_with(move |_| reply.clone());
    let provider = Retrying::new(remote(&strict, Protocol::OpenAi), QUICK);
    let error = ask(&provider, &[user()]).await.unwrap_err();
    (strict.asked().len(), error.fault)
}

#[tokio::test]
async fn a_server_decides_whether_it_is_asked_again() {
    let error = |status| Reply::raw(status, "{\"error\": {\"message\": \"no\"}}");
    assert_eq!(asked(error(500)).await, (3, Fault::Unavailable));
    assert_eq!(asked(error(500).header("x-should-retry", "false")).await, (1, Fault::Refused));
    assert_eq!(asked(error(429).header("x-should-retry", "false")).await, (1, Fault::Refused));
    assert_eq!(asked(error(400)).await, (1, Fault::Refused));
    assert_eq!(asked(error(400).header("x-should-retry", "true")).await, (3, Fault::Unavailable));
}

#[tokio::test]
async fn a_wait_may_be_a_date_or_milliseconds() {
    let busy = |status| Reply::raw(status, "{\"error\": {\"message\": \"slow\"}}");
    let now = "Wed, 21 Oct 2026 07:28:00 GMT";
    let date = |status| {
        busy(status).header("date", now).header("retry-after", "Wed, 21 Oct 2026 07:28:09 GMT")
    };
    let past = busy(429).header("date", now).header("retry-after", "Tue, 20 Oct 2026 07:28:09 GMT");
    for (reply, wait) in [
        (date(429), Duration::from_secs(9)),
        (date(503), Duration::from_secs(9)),
        (past, Duration::ZERO),
        (busy(429).header("retry-after-ms", "1250"), Duration::from_millis(1250)),
        (busy(529).header("retry-after", "4"), Duration::from_secs(4)),
    ] {
        let strict = strict().await;
        strict.push(reply);
        let error = ask(&remote(&strict, Protocol::OpenAi), &[user()]).await.unwrap_err();
        assert_eq!(error.fault, Fault::RateLimited(Some(wait)), "{error}");
    }
}

#[tokio::test]
async fn a_tools_input_may_come_whole() {
    let strict = strict().await;
    let whole = json!({"type": "tool_use", "id": "toolu_1", "name": "read_file", "input": {"path": "a.md", "n": 1}});
    strict.push(anthropic(&[(whole, vec![])], &json!({"stop_reason": "tool_use"})));
    let answer = ask(&remote(&strict, Protocol::Anthropic), &[user()]).await.unwrap();
    let call = answer.message.calls().next().unwrap();
    assert_eq!((&*call.id, &*call.arguments), ("toolu_1", r#"{"path":"a.md","n":1}"#));
}

#[tokio::test]
async fn a_legacy_function_call_is_a_call() {
    let strict = strict().await;
    let pieces = [
        json!({"role": "assistant", "content": null, "function_call": {"name": "read_file", "arguments": ""}}),
        json!({"function_call": {"arguments": "{\"path\": "}}),
        json!({"function_call": {"arguments": "\"a.md\"}"}}),
    ];
    strict.push(openai(&pieces, "function_call"));
    let provider = remote(&strict, Protocol::OpenAi);
    let answer = ask(&provider, &[user()]).await.unwrap();
    let calls: Vec<_> = answer.message.calls().map(|it| (&*it.name, &*it.arguments)).collect();
    assert_eq!(calls, [("read_file", "{\"path\": \"a.md\"}")]);
    strict.push(Say::text("ok"));
    let tool = results(&answer.message);
    ask(&provider, &[user(), answer.message, tool]).await.unwrap();
    assert_eq!(strict.rejected(), 0);
}

#[tokio::test]
async fn a_call_that_is_written_into_the_text_is_a_call_where_tools_were_offered() {
    let written = "I look.\n<tool_call>\n{\"name\": \"read_file\", \"arguments\": {\"path\":  \"a.md\"}}\n</tool_call>";
    let other = "<tool_call>{\"name\": \"unheard_of\", \"arguments\": {}}</tool_call>";
    let broken = "<tool_call>{\"name\": \"read_file\", </tool_call>";
    let offered = tools();
    let read = async |tools: &[_], deltas: &[Value], finish: &str| {
        let strict = strict().await;
        strict.push(openai(deltas, finish));
        let messages = [user()];
        let provider = remote(&strict, Protocol::OpenAi);
        let answer = provider.answer(request(&messages, tools), &mut |_| {}).await.unwrap();
        let calls = answer.message.calls().map(|it| it.arguments.clone()).collect::<Vec<_>>();
        (answer.message.text(), calls)
    };
    let (said, calls) = read(&offered, &openai_text(written), "stop").await;
    assert_eq!(
        (said.as_str(), calls.as_slice()),
        ("I look.", &["{\"path\":  \"a.md\"}".to_owned()][..])
    );
    let thinks = "<think>Shall I <tool_call>{\"name\": \"read_file\"}</tool_call>, or a bare <tool_call>?</think>";
    let (said, calls) = read(&offered, &openai_text(&format!("{thinks}{written}")), "stop").await;
    assert_eq!((said, calls.len()), (format!("{thinks}I look."), 1));
    let only_thinks = &*format!("{thinks}I leave it.");
    let left = [(&[][..], written), (&offered, other), (&offered, broken), (&offered, only_thinks)];
    for (tools, text) in left {
        let (said, calls) = read(tools, &openai_text(text), "stop").await;
        assert_eq!((said.as_str(), calls.len()), (text, 0));
    }
    let structured = json!({"tool_calls": [{"index": 0, "id": "a", "function": {"name": "read_file", "arguments": "{}"}}]});
    let both = [json!({"content": written}), structured];
    let (said, calls) = read(&offered, &both, "tool_calls").await;
    assert_eq!((said.as_str(), calls.as_slice()), (written, &["{}".to_owned()][..]));
}

fn openai_text(text: &str) -> [Value; 1] {
    [json!({"content": text})]
}

/// A port of this machine without a listener.
async fn silent_port() -> u16 {
    let listener = tokio::net::TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
    listener.local_addr().unwrap().port()
}

#[tokio::test]
async fn a_local_server_that_does_not_run_fails_at_once_and_says_where() {
    let strict = Strict::start(Rules::default()).await.unwrap();
    let port = silent_port().await;
    let tries = Arc::new(Mutex::new(0));
    for (provider, host, hint) in [
        ("ollama", "localhost", "`ollama serve`"),
        ("mine", "127.0.0.1", "base_url"),
        ("mine", "0.0.0.0", "base_url"),
    ] {
        let endpoint = Endpoint {
            provider: provider.to_owned(),
            base_url: Some(format!("http://{host}:{port}/v1")),
            ..endpoint(&strict, Protocol::OpenAi)
        };
        let count = Arc::clone(&tries);
        let provider = Retrying::new(Remote::new(endpoint).unwrap(), QUICK)
            .telling(move |_| *count.lock().unwrap() += 1);
        let error = ask(&provider, &[user()]).await.unwrap_err();
        assert!(error.what.contains(&format!("{host}:{port}")), "{error}");
        assert!(error.what.contains(hint), "{error}");
        assert_eq!(error.fault, Fault::NotRunning);
    }
    assert_eq!(*tries.lock().unwrap(), 0, "it was asked again");
}

#[tokio::test]
async fn a_far_server_that_cannot_be_reached_is_asked_again() {
    let strict = strict().await;
    let port = silent_port().await;
    // A host name behind a proxy that does not run, so no network is needed.
    let endpoint = Endpoint {
        base_url: Some("http://model.example/v1".to_owned()),
        proxy: Some(format!("http://127.0.0.1:{port}")),
        ..endpoint(&strict, Protocol::OpenAi)
    };
    let tries = Arc::new(Mutex::new(0));
    let count = Arc::clone(&tries);
    let provider = Retrying::new(Remote::new(endpoint).unwrap(), QUICK)
        .telling(move |_| *count.lock().unwrap() += 1);
    let error = ask(&provider, &[user()]).await.unwrap_err();
    assert_eq!(error.fault, Fault::Unavailable);
    assert!(error.what.contains("model.example"), "{error}");
    assert_eq!(*tries.lock().unwrap(), 2);
}

#[tokio::test]
async fn a_base_url_keeps_its_path_and_its_query() {
    let (asked, mut paths) = tokio::sync::mpsc::unbounded_channel();
    let listener = tokio::net::TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
    let port = listener.local_addr().unwrap().port();
    tokio::spawn(async move {
        use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _};
        while let Ok((socket, _)) = listener.accept().await {
            let mut socket = tokio::io::BufReader::new(socket);
            let mut line = String::new();
            socket.read_line(&mut line).await.unwrap();
            asked.send(line).unwrap();
            let _ =
                socket.write_all(b"HTTP/1.1 400 Bad Request\r\nconnection: close\r\n\r\n").await;
        }
    });
    let strict = strict().await;
    let at = format!("http://127.0.0.1:{port}");
    for (protocol, base, path) in [
        (Protocol::OpenAi, "/v1", "/v1/chat/completions"),
        (Protocol::OpenAi, "/a/b/?api-version=1", "/a/b/chat/completions?api-version=1"),
        (Protocol::Anthropic, "", "/messages"),
        (Protocol::Gemini, "/v1beta/", "/v1beta/models/some-model:streamGenerateContent?alt=sse"),
    ] {
        let endpoint =
            Endpoint { base_url: Some(format!("{at}{base}")), ..endpoint(&strict, protocol) };
        ask(&Remote::new(endpoint).unwrap(), &[user()]).await.unwrap_err();
        assert_eq!(paths.recv().await.unwrap(), format!("POST {path} HTTP/1.1\r\n"));
    }
}

/// Answers every request of every connection with this stream, and counts the connections.
async fn counting(stream: &'static str) -> (String, Arc<Mutex<usize>>) {
    use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _};
    let listener = tokio::net::TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
    let address = format!("http://{}/v1", listener.local_addr().unwrap());
    let connections = Arc::new(Mutex::new(0));
    let count = Arc::clone(&connections);
    tokio::spawn(async move {
        while let Ok((socket, _)) = listener.accept().await {
            *count.lock().unwrap() += 1;
            let mut socket = tokio::io::BufReader::new(socket);
            tokio::spawn(async move {
                let (mut line, mut length) = (String::new(), 0);
                while socket.read_line(&mut line).await.is_ok_and(|read| read > 0) {
                    let said = line.to_lowercase();
                    if let Some(said) = said.strip_prefix("content-length:") {
                        length = said.trim().parse().unwrap();
                    }
                    if line == "\r\n" {
                        let mut body = vec![0; std::mem::take(&mut length)];
                        socket.read_exact(&mut body).await.unwrap();
                        let head = "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n";
                        let size = stream.len();
                        let all = format!("{head}{size:x}\r\n{stream}\r\n0\r\n\r\n");
                        socket.write_all(all.as_bytes()).await.unwrap();
                    }
                    line.clear();
                }
            });
        }
    });
    (address, connections)
}

#[tokio::test]
async fn a_connection_serves_the_next_call_too() {
    let stream = "data: {\"choices\": [{\"delta\": {\"content\": \"Hi.\"}, \
                  \"finish_reason\": \"stop\"}]}\n\ndata: [DONE]\n\n";
    let (address, connections) = counting(stream).await;
    let strict = strict().await;
    let endpoint = Endpoint { base_url: Some(address), ..endpoint(&strict, Protocol::OpenAi) };
    let provider = Remote::new(endpoint).unwrap();
    for _ in 0..3 {
        assert_eq!(ask(&provider, &[user()]).await.unwrap().message.text(), "Hi.");
    }
    assert_eq!(*connections.lock().unwrap(), 1);
}

#[tokio::test]
async fn a_refused_answer_leaves_no_call_behind() {
    let strict = strict().await;
    let call = json!({"type": "tool_use", "id": "toolu_1", "name": "read_file", "input": {}});
    let half = vec![json!({"type": "input_json_delta", "partial_json": "{\"path\": \"a.m"})];
    strict.push(anthropic(&[said("I"), (call, half)], &json!({"stop_reason": "refusal"})));
    let answer = ask(&remote(&strict, Protocol::Anthropic), &[user()]).await.unwrap();
    assert_eq!(answer.ended, Ended::Refused);
    assert_eq!(answer.message, {
        let mut kept = Message::new(Role::Assistant, vec![Part::text("I")]);
        kept.model.clone_from(&answer.message.model);
        kept.call.clone_from(&answer.message.call);
        kept
    });
}
