//! A conversation as Anthropic's messages take it.

use genai::chat::{ChatOptions, ChatRequest};
use serde_json::{Value, json};
use stepwell::{Image, Message, Part, Role, Text, ToolResult};

use super::WireRequest;
use super::outgoing::{Ids, arguments, own, spoken, systems, tool_name, tools};
use super::picture::Picture;
use crate::provider::{Purpose, Request};

/// See `openai`: the true name travels in the extra body.
const NEUTRAL_MODEL: &str = "model";

/// Said first where a conversation would begin with the model, which Anthropic refuses.
const OPENING: &str = "(the beginning of the conversation was left out)";

/// Whether the model is shown its earlier thinking.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Thoughts {
    Kept,
    /// Anthropic ties thinking to the conversation that it came in; where that was compacted
    /// or rewound since, it may refuse it.
    Left,
}

pub(super) fn encode(provider: &str, request: Request<'_>, thoughts: Thoughts) -> WireRequest {
    let ids = Ids::of(request.messages);
    let mut messages: Vec<Value> = Vec::with_capacity(request.messages.len() + 1);
    for message in request.messages {
        let (role, blocks) = match message.role {
            Role::System => continue,
            Role::User => ("user", user(&message.parts)),
            Role::Assistant => {
                // Thinking is tied to the model, too.
                let same = message.model.as_deref().is_none_or(|model| model == request.model);
                let signer = (same && thoughts == Thoughts::Kept).then_some(provider);
                ("assistant", assistant(message, &ids, signer))
            }
            Role::Tool => ("user", message.results().map(|r| result(r, &ids)).collect()),
        };
        if blocks.is_empty() {
            continue;
        }
        if messages.is_empty() && role != "user" {
            messages.push(json!({"role": "user", "content": OPENING}));
        }
        match messages.last_mut() {
            // Results stand together in one message.
            Some(last) if message.role == Role::Tool && holds_results(last) => {
                let earlier = last["content"].take();
                let earlier = earlier.as_array().cloned().unwrap_or_default();
                last["content"] = earlier.into_iter().chain(blocks).collect();
            }
            _ => messages.push(json!({"role": role, "content": blocks})),
        }
    }
    // What is sent only once is not worth keeping.
    if request.turn.purpose == Purpose::Answer {
        mark_for_cache(&mut messages);
    }
    let mut chat = ChatRequest::new(Vec::new());
    let said = request.messages.iter().filter(|message| message.role == Role::System);
    chat.system = systems(request.system, said);
    chat.tools = tools(request.tools);
    let body = json!({
        "model": request.model,
        "max_tokens": request.max_output,
        "messages": messages,
    });
    WireRequest {
        model: NEUTRAL_MODEL.to_owned(),
        chat,
        options: ChatOptions::default().with_extra_body(body),
    }
}

/// Asks for all up to here to be kept, so that the next request pays for what is new. The
/// last message but one of the user's side is where the request before this one ended.
fn mark_for_cache(messages: &mut [Value]) {
    let users = messages.iter_mut().rev().filter(|message| message["role"] == "user");
    for message in users.take(2) {
        if let Some(last) = message["content"].as_array_mut().and_then(|blocks| blocks.last_mut()) {
            last["cache_control"] = json!({"type": "ephemeral"});
        }
    }
}

fn holds_results(message: &Value) -> bool {
    message["content"][0]["type"] == "tool_result"
}

fn user(parts: &[Part]) -> Vec<Value> {
    parts
        .iter()
        .filter_map(|part| match part {
            Part::Text(text) => spoken(text).map(text_block),
            Part::Image(picture) => Some(image(picture)),
            Part::Thinking(_) | Part::ToolCall(_) | Part::ToolResult(_) => None,
        })
        .collect()
}

fn assistant(message: &Message, ids: &Ids<'_>, signer: Option<&str>) -> Vec<Value> {
    let block = |part: &Part| match part {
        Part::Text(text) => spoken(text).map(text_block),
        Part::Thinking(text) => thinking(text, signer?),
        Part::ToolCall(call) => Some(json!({
            "type": "tool_use",
            "id": ids.get(&call.id),
            "name": tool_name(&call.name),
            "input": arguments(&call.arguments),
        })),
        Part::Image(_) | Part::ToolResult(_) => None,
    };
    let mut blocks: Vec<Value> = message.parts.iter().filter_map(block).collect();
    // A message may not end with thinking.
    let thought =
        |block: &Value| block["type"] == "thinking" || block["type"] == "redacted_thinking";
    while blocks.last().is_some_and(thought) {
        blocks.pop();
    }
    blocks
}

/// Thinking goes back as it came, with its signature, to the one who signed it. Hidden
/// thinking was kept as its whole block; a signature never begins with a brace.
fn thinking(text: &Text, provider: &str) -> Option<Value> {
    let data = own(text.opaque.as_ref(), provider)?;
    if data.starts_with('{') {
        return serde_json::from_str(data).ok();
    }
    Some(json!({"type": "thinking", "thinking": text.text, "signature": data}))
}

fn result(result: &ToolResult, ids: &Ids<'_>) -> Value {
    let text = match result.text.trim() {
        "" if result.images.is_empty() => "(no output)",
        _ => result.text.as_str(),
    };
    let content = if result.images.is_empty() {
        json!(text)
    } else {
        let said = (!text.trim().is_empty()).then(|| text_block(text));
        said.into_iter().chain(result.images.iter().map(image)).collect()
    };
    let mut block = json!({
        "type": "tool_result",
        "tool_use_id": ids.get(&result.call_id),
        "content": content,
    });
    if result.is_error {
        block["is_error"] = json!(true);
    }
    block
}

fn text_block(text: &str) -> Value {
    json!({"type": "text", "text": text})
}

fn image(image: &Image) -> Value {
    let source = match Picture::of(image) {
        Picture::Told(text) => return text_block(&text),
        Picture::Url(url) => json!({"type": "url", "url": url}),
        Picture::Base64 { media_type, data } => {
            json!({"type": "base64", "media_type": media_type, "data": data})
        }
    };
    json!({"type": "image", "source": source})
}
