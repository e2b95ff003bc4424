//! Providers over HTTP, against a server that rejects what the vendors reject.

use std::time::Duration;

use serde_json::{Value, json};
use stepwell::Message;
use stepwell::model::{Image, Opaque, Part, Role, Text, ToolResult, Usage};
use stepwell_agent::provider::remote::{Effort, Endpoint, Key, Protocol, Remote, Sampling};
use stepwell_agent::provider::{
    Answer, CallError, Delta, Ended, Fault, Provider, Request, ToolSpec, Turn,
};
use stepwell_strict::{Dialect, Ending, Reply, Rules, Say, Stop, Strict, Tokens};

pub(crate) const BOTH: [Protocol; 2] = [Protocol::OpenAi, Protocol::Anthropic];
pub(crate) const PROMPT: &str = "Where does the nightjar of operation Halcyon sleep?";
pub(crate) const PIXEL: &str = "iVBORw0KGgo=";

pub(crate) async fn strict() -> Strict {
    Strict::start(Rules::default()).await.unwrap()
}

pub(crate) fn endpoint(strict: &Strict, protocol: Protocol) -> Endpoint {
    Endpoint {
        provider: "vendor".to_owned(),
        protocol,
        base_url: Some(strict.base_url()),
        key: Some(Key::new(strict.key())),
        timeout: Duration::from_secs(20),
        proxy: None,
    }
}

pub(crate) fn remote(strict: &Strict, protocol: Protocol) -> Remote {
    Remote::new(endpoint(strict, protocol)).unwrap()
}

pub(crate) fn tools() -> Vec<ToolSpec> {
    let parameters = json!({"type": "object", "properties": {"path": {"type": "string"}}});
    let description = "Reads a file.".to_owned();
    vec![ToolSpec { name: "read_file".to_owned(), description, parameters }]
}

pub(crate) fn request<'a>(messages: &'a [Message], tools: &'a [ToolSpec]) -> Request<'a> {
    let (model, system, turn) = ("some-model", "You are terse.", Turn::default());
    Request { model, system, messages, tools, max_output: 1234, turn }
}

pub(crate) async fn ask(
    provider: &dyn Provider,
    messages: &[Message],
) -> Result<Answer, CallError> {
    provider.answer(request(messages, &tools()), &mut |_| {}).await
}

pub(crate) fn user() -> Message {
    Message::user(PROMPT)
}

pub(crate) fn results(of: &Message) -> Message {
    let result = |id: &str| {
        Part::ToolResult(ToolResult {
            call_id: id.to_owned(),
            text: "done".to_owned(),
            ..ToolResult::default()
        })
    };
    Message::new(Role::Tool, of.calls().map(|call| result(&call.id)).collect())
}

#[tokio::test]
async fn calls_without_ids_of_their_own_are_told_apart() {
    for ids in [["", ""], ["x", "x"]] {
        let strict = strict().await;
        strict.push(
            Say::default().calling(ids[0], "read_file", &["{\"path\":", "\"a.md\"}"]).calling(
                ids[1],
                "read_file",
                &["{\"path\":", "\"b.md\"}"],
            ),
        );
        let provider = remote(&strict, Protocol::OpenAi);
        let answer = ask(&provider, &[user()]).await.unwrap().message;
        let calls: Vec<_> = answer.calls().collect();
        assert_eq!(calls.len(), 2, "{calls:?}");
        assert_ne!(calls[0].id, calls[1].id);
        let paths: Vec<_> = calls.iter().map(|call| call.arguments.as_str()).collect();
        assert_eq!(paths, ["{\"path\":\"a.md\"}", "{\"path\":\"b.md\"}"]);
    }
}

#[tokio::test]
async fn calls_are_read_in_every_dialect_of_openai() {
    let dialects =
        [Dialect::OpenAi, Dialect::Unnumbered, Dialect::UnnumberedPieces, Dialect::AllZero];
    for dialect in dialects {
        let strict = strict().await;
        let say = Say::text("I look.")
            .calling("one", "read_file", &["{\"path\":", "\"a.md\"}"])
            .calling("two", "read_file", &["{\"path\":", "\"b.md\"}"]);
        strict.push(say.dialect(dialect));
        let provider = remote(&strict, Protocol::OpenAi);
        let answer = ask(&provider, &[user()]).await.unwrap().message;
        let calls: Vec<_> = answer.calls().map(|call| (&*call.id, &*call.arguments)).collect();
        let expected = [("one", "{\"path\":\"a.md\"}"), ("two", "{\"path\":\"b.md\"}")];
        assert_eq!(calls, expected, "{dialect:?}");
        assert_eq!(answer.text(), "I look.", "{dialect:?}");
    }
}

#[tokio::test]
async fn an_answer_that_says_it_calls_tools_and_calls_none_is_an_error() {
    for protocol in BOTH {
        let strict = strict().await;
        strict.push(Say::text("I will.").stopping(Stop::Tools));
        let error = ask(&remote(&strict, protocol), &[user()]).await.unwrap_err();
        assert_eq!(error.fault, Fault::Truncated);
        assert!(error.what.contains("announces tool calls"), "{error}");
    }
}

#[tokio::test]
async fn what_is_no_stream_is_named_as_what_it_is() {
    for protocol in BOTH {
        let strict = strict().await;
        let provider = remote(&strict, protocol);
        strict.push(Reply::Page("<html><body>\n\nWelcome to the proxy</body></html>".to_owned()));
        strict.push(Say::text("Hello.").dialect(Dialect::Unstreamed));
        for (is, is_not) in [("with a web page", "one piece"), ("in one piece", "web page")] {
            let error = ask(&provider, &[user()]).await.unwrap_err();
            assert_eq!(error.fault, Fault::Refused, "{error}");
            assert!(error.what.contains("instead of an event stream"), "{error}");
            assert!(error.what.contains(is) && !error.what.contains(is_not), "{error}");
        }
        assert_eq!(strict.asked().len(), 2);
    }
}

#[tokio::test]
async fn how_long_a_model_thinks_is_asked_in_its_providers_words_and_only_if_it_is_wanted() {
    for protocol in BOTH {
        let strict = strict().await;
        for effort in [None, Some(Effort::High)] {
            let sampling = Sampling { effort, ..Sampling::default() };
            let provider = Remote::new(endpoint(&strict, protocol)).unwrap();
            strict.push(Say::text("Hello."));
            ask(&provider.with_sampling(sampling), &[user()]).await.unwrap();
        }
        let [usual, hard] = strict.asked().try_into().unwrap();
        let says = |body: &Value| match protocol {
            Protocol::OpenAi => body["reasoning_effort"] == "high",
            _ => body["output_config"]["effort"] == "high" || body["thinking"].is_object(),
        };
        assert!(!says(&usual.body) && says(&hard.body), "{protocol:?}: {}", hard.text);
    }
}

#[tokio::test]
async fn what_only_keeps_the_connection_alive_is_silence() {
    for protocol in BOTH {
        for after in [0, 4] {
            let strict = strict().await;
            let timeout = Duration::from_millis(300);
            let hasty = Endpoint { timeout, ..endpoint(&strict, protocol) };
            strict.push(Say::text("Hello.").ending(Ending::KeptAliveAfter(after)));
            let asked = ask(&Remote::new(hasty).unwrap(), &[user()]).await;
            assert_eq!(asked.unwrap_err().fault, Fault::TimedOut, "{protocol:?} after {after}");
        }
    }
}

#[tokio::test]
async fn how_long_a_provider_asks_to_wait_is_told() {
    let strict = strict().await;
    strict.push(Reply::error(429, "slow down").retry_after("7"));
    let error = ask(&remote(&strict, Protocol::OpenAi), &[user()]).await.unwrap_err();
    assert_eq!(error.what, "429 Too Many Requests, it asks to wait 7s: slow down");
}

#[tokio::test]
async fn every_kind_of_part_goes_out_and_comes_back() {
    for protocol in BOTH {
        let strict = strict().await;
        let provider = remote(&strict, protocol);
        strict.push(
            Say::default()
                .thinking("First the trees, thén the ground.", "c2lnbmVk")
                .redacted("aGlkZGVu")
                .saying("I will löök at both. 🦉")
                .calling("call_1", "read_file", &["{ \"path\":", " \"a.md\" }"])
                .calling("call_2", "read_file", &["{}"]),
        );
        let image = |data: &str| Image {
            media_type: "image/png".to_owned(),
            data: data.to_owned(),
            opaque: None,
        };
        let mut first = user();
        first.parts.push(Part::Image(image(PIXEL)));
        first.parts.push(Part::Image(image("https://example.org/owl.png")));
        first.parts.push(Part::text("  "));
        let mut told = Vec::new();
        let tools = tools();
        let messages = [Message::system("Be kind."), first.clone()];
        let mut hear = |delta| told.push(delta);
        let answer = provider.answer(request(&messages, &tools), &mut hear).await.unwrap();

        let said: String = told
            .iter()
            .filter_map(|d| if let Delta::Text(text) = d { Some(text.as_str()) } else { None })
            .collect();
        assert_eq!(said, "I will löök at both. 🦉");
        assert_eq!(answer.message.text(), said);
        assert_eq!(answer.ended, Ended::Complete);
        assert_eq!(answer.message.model.as_deref(), Some("some-model"));
        let calls: Vec<_> =
            answer.message.calls().map(|c| (c.id.as_str(), c.arguments.as_str())).collect();
        assert_eq!(calls, [("call_1", "{ \"path\": \"a.md\" }"), ("call_2", "{}")]);
        let thought = |part: &Part| match part {
            Part::Thinking(text) => Some((text.text.clone(), text.opaque.clone().unwrap().data)),
            _ => None,
        };
        let thoughts: Vec<_> = answer.message.parts.iter().filter_map(thought).collect();
        let visible = "First the trees, thén the ground.".to_owned();
        match protocol {
            Protocol::Anthropic => {
                let hidden = r#"{"type":"redacted_thinking","data":"aGlkZGVu"}"#;
                let hidden = (String::new(), hidden.to_owned());
                assert_eq!(thoughts, [(visible, "c2lnbmVk".to_owned()), hidden]);
            }
            _ => assert_eq!(thoughts, [(visible, "reasoning_content".to_owned())]),
        }

        let mut tool = results(&answer.message);
        let Part::ToolResult(failed) = &mut tool.parts[1] else { unreachable!() };
        failed.is_error = true;
        failed.text = "no such file".to_owned();
        failed.images = vec![image(PIXEL)];
        let Part::ToolResult(silent) = &mut tool.parts[0] else { unreachable!() };
        silent.text = String::new();
        strict.push(Say::text("They sleep on the ground."));
        let [system, _] = messages;
        let conversation = [system, first, answer.message, tool, Message::user("Thanks."), user()];
        ask(&provider, &conversation).await.unwrap();

        let asked = strict.asked();
        assert_eq!(
            strict.rejected(),
            0,
            "{:?}",
            asked.iter().map(|a| &a.rejected).collect::<Vec<_>>()
        );
        let body = &asked[1].body;
        assert!(!asked[1].text.contains("\"text\":\"  \""));
        assert!(asked[1].text.contains(PIXEL) && asked[1].text.contains("owl.png"));
        match protocol {
            Protocol::Anthropic => anthropic_saw(body),
            _ => openai_saw(body),
        }
    }
}

fn anthropic_saw(body: &Value) {
    assert_eq!(body["system"], "You are terse.\n\nBe kind.");
    assert_eq!(body["max_tokens"], 1234);
    let blocks = &body["messages"][1]["content"];
    let kinds: Vec<_> = blocks.as_array().unwrap().iter().map(|b| b["type"].clone()).collect();
    assert_eq!(kinds, ["thinking", "redacted_thinking", "text", "tool_use", "tool_use"]);
    assert_eq!(blocks[0]["signature"], "c2lnbmVk");
    assert_eq!(blocks[3]["input"], json!({"path": "a.md"}));
    let results = &body["messages"][2]["content"];
    assert_eq!(results[0]["content"], "(no output)");
    assert_eq!(results[1]["is_error"], true);
    assert_eq!(results[1]["content"][1]["type"], "image");
}

fn openai_saw(body: &Value) {
    assert_eq!(body["max_tokens"], 1234);
    assert_eq!(body["stream_options"], json!({"include_usage": true}));
    let roles: Vec<_> =
        body["messages"].as_array().unwrap().iter().map(|m| m["role"].clone()).collect();
    let expected =
        ["system", "system", "user", "assistant", "tool", "tool", "user", "user", "user"];
    assert_eq!(roles, expected);
    let spoke = &body["messages"][3];
    assert_eq!(spoke["tool_calls"][0]["function"]["arguments"], "{ \"path\": \"a.md\" }");
    assert_eq!(spoke["reasoning_content"], "First the trees, thén the ground.");
    assert_eq!(body["messages"][5]["content"], "error: no such file");
}

#[tokio::test]
async fn thinking_between_words_keeps_its_place() {
    let strict = strict().await;
    let provider = remote(&strict, Protocol::Anthropic);
    strict.push(
        Say::default()
            .redacted("front")
            .thinking("one", "sig1")
            .saying("so")
            .thinking("two", "sig2")
            .calling("call_1", "read_file", &["{}"]),
    );
    let answer = ask(&provider, &[user()]).await.unwrap();
    strict.push(Say::text("ok"));
    let tool = results(&answer.message);
    ask(&provider, &[user(), answer.message, tool]).await.unwrap();
    let blocks = strict.asked()[1].body["messages"][1]["content"].clone();
    let shown: Vec<_> = blocks
        .as_array()
        .unwrap()
        .iter()
        .map(|b| {
            (b["type"].as_str().unwrap().to_owned(), b["signature"].as_str().map(str::to_owned))
        })
        .collect();
    let block =
        |kind: &str, signature: Option<&str>| (kind.to_owned(), signature.map(str::to_owned));
    assert_eq!(
        shown,
        [
            block("redacted_thinking", None),
            block("thinking", Some("sig1")),
            block("text", None),
            block("thinking", Some("sig2")),
            block("tool_use", None),
        ]
    );
}

#[tokio::test]
async fn malformed_arguments_are_kept_and_go_back_in_a_valid_form() {
    for protocol in BOTH {
        let strict = strict().await;
        let provider = remote(&strict, protocol);
        let wrong = Say::default()
            .calling("a", "read_file", &["{\"path\": ", "\"x"])
            .calling("b", "read_file", &[])
            .calling("c", "read_file", &["[1, 2]"]);
        strict.push(wrong.stopping(Stop::Length));
        let answer = ask(&provider, &[user()]).await.unwrap();
        let arguments: Vec<_> = answer.message.calls().map(|c| c.arguments.clone()).collect();
        assert_eq!(arguments, ["{\"path\": \"x", "{}", "[1, 2]"]);
        assert_eq!(answer.ended, Ended::OutputLimit);
        strict.push(Say::text("ok"));
        let tool = results(&answer.message);
        ask(&provider, &[user(), answer.message, tool]).await.unwrap();
        assert!(strict.asked()[1].text.contains("invalid_json"));
    }
}

#[tokio::test]
async fn anthropic_is_asked_to_keep_what_it_will_be_sent_again() {
    let strict = strict().await;
    let provider = remote(&strict, Protocol::Anthropic);
    strict.push(Say::text("a"));
    strict.push(Say::text("b"));
    let first = ask(&provider, &[user()]).await.unwrap().message;
    ask(&provider, &[user(), first, Message::user("more")]).await.unwrap();
    let marks = |asked: &stepwell_strict::Asked| {
        let messages = asked.body["messages"].as_array().unwrap().clone();
        let mark = |message: &Value| message["content"][0].get("cache_control").is_some();
        messages.iter().map(mark).collect::<Vec<_>>()
    };
    assert_eq!(marks(&strict.asked()[0]), [true]);
    assert_eq!(marks(&strict.asked()[1]), [true, false, true]);
}

#[tokio::test]
async fn tokens_are_counted_in_one_way() {
    for protocol in BOTH {
        let strict = strict().await;
        let provider = remote(&strict, protocol);
        let cache_written = if protocol == Protocol::Anthropic { 60 } else { 0 };
        let tokens = Tokens { input: 1000, cached: 900, cache_written, output: 50, reasoning: 30 };
        strict.push(Say::text("hi").using(tokens));
        let usage = ask(&provider, &[user()]).await.unwrap().usage;
        let counted = Usage { input: 1000, output: 50, cached: 900, cache_written, reasoning: 30 };
        assert_eq!(usage, Some(counted));
    }
    let strict = strict().await;
    strict.push(Say::text("hi"));
    let answer = ask(&remote(&strict, Protocol::OpenAi), &[user()]).await.unwrap();
    assert_eq!(answer.usage, None, "what was not said is not counted as zero");
}

#[tokio::test]
async fn an_answer_names_the_providers_response_and_says_why_it_ended() {
    for (protocol, id, done, calls) in [
        (Protocol::OpenAi, "chatcmpl-1", "stop", "tool_calls"),
        (Protocol::Anthropic, "msg_1", "end_turn", "tool_use"),
    ] {
        let strict = strict().await;
        let provider = remote(&strict, protocol);
        strict.push(Say::text("Done."));
        strict.push(Say::default().calling("call_1", "read_file", &["{}"]));
        for reason in [done, calls] {
            let mut told = Vec::new();
            let (messages, tools) = ([user()], tools());
            let mut hear = |delta| told.push(delta);
            let answer = provider.answer(request(&messages, &tools), &mut hear).await.unwrap();
            let call = answer.message.call.unwrap();
            assert_eq!(call.response_id.as_deref(), Some(id));
            assert_eq!(call.finish_reason.as_deref(), Some(reason));
            // The beginning is reported even if the answer only makes calls.
            assert_eq!(told.contains(&Delta::Call), reason == calls, "{told:?}");
        }
    }
}

#[tokio::test]
async fn a_refusal_ends_an_answer_as_filtered() {
    for protocol in BOTH {
        let strict = strict().await;
        strict.push(Say::text("I").stopping(Stop::Filtered));
        let answer = ask(&remote(&strict, protocol), &[user()]).await.unwrap();
        assert_eq!(answer.ended, Ended::Refused);
    }
}

#[tokio::test]
async fn a_models_name_arrives_as_it_was_typed() {
    let names = ["x-high", "x-low", "x-none", "gpt-5-minimal", "a/b-max", "openai::x-medium", "o3"];
    for protocol in BOTH {
        let strict = strict().await;
        strict.answer_with(|_| Say::text("ok").into());
        let provider = remote(&strict, protocol);
        let messages = [user()];
        for model in names {
            let named = Request { model, ..request(&messages, &[]) };
            provider.answer(named, &mut |_| {}).await.unwrap();
        }
        for (asked, name) in strict.asked().iter().zip(names) {
            assert_eq!(asked.body["model"], name);
            assert_eq!(asked.body.get("reasoning_effort"), None);
            assert_eq!(asked.body.get("thinking"), None);
            assert_eq!(asked.body.get("output_config"), None);
            assert_eq!(asked.body.get("tools"), None);
        }
    }
}

#[tokio::test]
async fn signed_thinking_goes_back_to_its_signer_and_model_only() {
    let strict = strict().await;
    strict.trust_signature("sig");
    strict.answer_with(|_| Say::text("ok").into());
    let provider = remote(&strict, Protocol::Anthropic);
    let thinking = |signer: &str| {
        let opaque = Opaque { provider: signer.to_owned(), data: "sig".to_owned() };
        Part::Thinking(Text { text: "Hm.".to_owned(), opaque: Some(opaque) })
    };
    let said = |signer: &str, model: Option<&str>| {
        let mut message = Message::new(Role::Assistant, vec![thinking(signer), Part::text("Yes.")]);
        message.model = model.map(str::to_owned);
        [user(), message, user()]
    };
    for (signer, model, kept) in [
        ("vendor", Some("some-model"), true),
        ("vendor", None, true),
        ("vendor", Some("another"), false),
        ("another", Some("some-model"), false),
    ] {
        ask(&provider, &said(signer, model)).await.unwrap();
        let text = strict.asked().last().unwrap().text.clone();
        assert_eq!(text.contains("\"signature\":\"sig\""), kept, "{signer} {model:?}");
    }
    assert_eq!(strict.rejected(), 0);
}

#[tokio::test]
async fn thinking_that_is_refused_is_left_out_and_the_call_goes_on() {
    let strict = strict().await;
    strict.push(Say::text("ok"));
    let opaque = Opaque { provider: "vendor".to_owned(), data: "stale".to_owned() };
    let thinking = Part::Thinking(Text { text: "Hm.".to_owned(), opaque: Some(opaque) });
    let said = Message::new(Role::Assistant, vec![thinking, Part::text("Yes.")]);
    let answer = ask(&remote(&strict, Protocol::Anthropic), &[user(), said, user()]).await;
    assert_eq!(answer.unwrap().message.text(), "ok");
    assert_eq!(strict.asked().len(), 2);
}

#[tokio::test]
async fn ids_stay_unique_and_legal_over_a_conversation() {
    for protocol in BOTH {
        let strict = strict().await;
        let provider = remote(&strict, protocol);
        let long = "i".repeat(70);
        let foreign = Message::assistant("Hm.")
            .calling("call#read#0", "read_file", "{}")
            .calling(&long, "read_file", "{}")
            .calling("call_0", "read_file", "{}");
        let mut conversation = vec![user(), foreign.clone(), results(&foreign)];
        for _ in 0..3 {
            strict.push(Say::default().calling("call_0", "read_file", &["{}"]));
            let answer = ask(&provider, &conversation).await.unwrap();
            conversation.push(answer.message.clone());
            conversation.push(results(&answer.message));
        }
        stepwell::View::check(&conversation).unwrap();
        assert_eq!(strict.rejected(), 0, "{:?}", strict.asked().last().unwrap().rejected);
    }
}

#[tokio::test]
async fn a_conversation_that_begins_with_the_model_is_made_valid() {
    for protocol in BOTH {
        let strict = strict().await;
        strict.push(Say::text("ok"));
        let thought_only = Message::new(
            Role::Assistant,
            vec![Part::Thinking(Text { text: "Hm.".to_owned(), opaque: None })],
        );
        let conversation = [thought_only, Message::assistant("Hello."), user()];
        ask(&remote(&strict, protocol), &conversation).await.unwrap();
    }
}
