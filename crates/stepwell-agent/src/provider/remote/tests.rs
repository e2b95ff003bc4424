//! Tables of events for the readers of the three protocols.

use serde_json::json;
use stepwell::model::Part;

use super::*;
use crate::provider::{ToolSpec, Turn};

/// The answer that a protocol's reader makes of these events: the parts with their opaque data, and
/// the reason for the end.
fn read(protocol: Protocol, events: &[Value]) -> String {
    let parameters = json!({"type": "object"});
    let tool = ToolSpec { name: "look".to_owned(), description: String::new(), parameters };
    let tools = [tool];
    let (model, system, turn) = ("m", "", Turn::default());
    let request = Request { model, system, messages: &[], tools: &tools, max_output: 9, turn };
    let (mut draft, mut reader) = (Draft::new("p"), protocol.reader(request));
    for event in events {
        let data = event.as_str().map_or_else(|| event.to_string(), str::to_owned);
        let read = reader.event(&Event { name: String::new(), data }, &mut draft);
        if read.unwrap() == Progress::Done {
            let answer = draft.finish(request).unwrap();
            return format!("{} {:?}", shown(&answer.message.parts), answer.ended);
        }
    }
    "it has no end".to_owned()
}

fn shown(parts: &[Part]) -> String {
    parts.iter().map(shown_part).collect::<Vec<_>>().join(" ")
}

fn shown_part(part: &Part) -> String {
    let (said, opaque) = match part {
        Part::Text(text) => (text.text.clone(), &text.opaque),
        Part::Thinking(text) => (format!("~{}", text.text), &text.opaque),
        Part::ToolCall(call) => (format!("!{}{}", call.name, call.arguments), &call.opaque),
        other => panic!("{other:?}"),
    };
    let own = opaque.as_ref().map(|it| format!("[{}]", it.data)).unwrap_or_default();
    format!("{said}{own}")
}

#[test]
fn openais_events_become_an_answer() {
    let delta = |delta: Value| json!({"choices": [{"delta": delta, "finish_reason": null}]});
    let end = |word: &str| json!({"choices": [{"delta": {}, "finish_reason": word}]});
    let written = "<tool_call>{\"name\": \"look\", \"arguments\": {\"at\":  1}}</tool_call>";
    let mistral = json!([{"type": "thinking", "thinking": [{"text": "hm"}]}, {"text": "yes"}]);
    for (deltas, word, answer) in [
        (vec![json!({"content": "a"}), json!({"content": "b"})], "stop", "ab Complete"),
        (
            vec![json!({"reasoning": "hm"}), json!({"content": "a"})],
            "length",
            "~hm[reasoning_content] a OutputLimit",
        ),
        (vec![json!({"content": mistral})], "stop", "~hm[reasoning_content] yes Complete"),
        (vec![json!({"content": written})], "stop", "!look{\"at\":  1} Complete"),
        (vec![json!({"refusal": "no"})], "stop", "no Refused"),
        (vec![json!({"function_call": {"name": "look"}})], "function_call", "!look{} Complete"),
    ] {
        let mut events: Vec<Value> = deltas.into_iter().map(delta).collect();
        events.extend([end(word), json!("[DONE]")]);
        assert_eq!(read(Protocol::OpenAi, &events), answer);
        assert_eq!(read(Protocol::OpenAi, &events[..events.len() - 1]), "it has no end");
    }
}

#[test]
fn anthropics_events_become_an_answer() {
    let begin = |block: Value| json!({"type": "content_block_start", "content_block": block});
    let delta = |kind: &str, field: &str, text: &str| json!({"type": "content_block_delta", "delta": {"type": kind, field: text}});
    let stop = json!({"type": "content_block_stop"});
    let server = json!({"type": "server_tool_use", "id": "s", "input": {}});
    for (events, answer) in [
        (
            vec![
                begin(json!({"type": "thinking", "thinking": "", "signature": ""})),
                delta("thinking_delta", "thinking", "hm"),
                delta("signature_delta", "signature", "si"),
                delta("signature_delta", "signature", "gn"),
                stop.clone(),
                begin(json!({"type": "redacted_thinking", "data": "x"})),
                stop.clone(),
                begin(json!({"type": "text", "text": "a"})),
                delta("text_delta", "text", "b"),
            ],
            "~hm[sign] ~[{\"type\":\"redacted_thinking\",\"data\":\"x\"}] ab",
        ),
        (
            vec![begin(server), delta("input_json_delta", "partial_json", "{\"q\": 1}"), stop],
            "~[{\"type\":\"server_tool_use\",\"id\":\"s\",\"input\":{\"q\":1}}]",
        ),
        // Interrupted in the middle.
        (
            vec![
                begin(json!({"type": "tool_use", "id": "c", "name": "look", "input": {}})),
                delta("input_json_delta", "partial_json", "{\"at\":"),
            ],
            "!look{\"at\":",
        ),
    ] {
        let end = json!({"type": "message_delta", "delta": {"stop_reason": "max_tokens"}});
        let events = [events, vec![end, json!({"type": "message_stop"})]].concat();
        assert_eq!(read(Protocol::Anthropic, &events), format!("{answer} OutputLimit"));
    }
}

#[test]
fn geminis_events_become_an_answer() {
    let parts = |parts: Value| json!({"candidates": [{"content": {"parts": parts}}]});
    let end = json!({"candidates": [{"finishReason": "STOP"}]});
    let signed = json!([{"text": "a", "thoughtSignature": "s"}, {"text": "b"}]);
    for (said, answer) in [
        (json!([{"text": "hm", "thought": true}, {"text": "a"}]), "~hm a"),
        (signed, "a[s] b"),
        (json!([{"text": "a"}, {"text": "", "thoughtSignature": "s"}]), "a[s]"),
        (
            json!([{"functionCall": {"name": "look", "args": {"at": 1}}, "thoughtSignature": "s"}]),
            "!look{\"at\":1}[s]",
        ),
    ] {
        let answer = format!("{answer} Complete");
        assert_eq!(read(Protocol::Gemini, &[parts(said), end.clone()]), answer);
    }
}
