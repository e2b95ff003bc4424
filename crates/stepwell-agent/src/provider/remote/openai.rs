//! A conversation as OpenAI's chat completions take it, and those who speak as it does.

use genai::chat::{ChatOptions, ChatRequest};
use serde_json::{Value, json};
use stepwell::{Image, Message, Part, Role, ToolCall};

use super::WireRequest;
use super::outgoing::{Ids, arguments, own, result_text, spoken, systems, tool_name, tools};
use super::picture::Picture;
use crate::provider::Request;

/// What marks thinking that came in the field `reasoning_content`. Some vendors want
/// it back beside the calls that it led to; OpenAI never sends it.
pub(super) const REASONING_CONTENT: &str = "reasoning_content";

/// The library is given a name without meaning, because it takes `-high` and the like off
/// the true one, which travels in the extra body instead.
const NEUTRAL_MODEL: &str = "model";

pub(super) fn encode(provider: &str, request: Request<'_>) -> WireRequest {
    let mut messages = Vec::with_capacity(request.messages.len() + 1);
    if let Some(system) = systems(request.system, std::iter::empty()) {
        messages.push(json!({"role": "system", "content": system}));
    }
    let ids = Ids::of(request.messages);
    for message in request.messages {
        push(&mut messages, message, &ids, provider);
    }
    let mut body = json!({"model": request.model, "messages": messages});
    body[limit_field(provider, request.model)] = json!(request.max_output);
    let mut chat = ChatRequest::new(Vec::new());
    chat.tools = tools(request.tools);
    WireRequest {
        model: NEUTRAL_MODEL.to_owned(),
        chat,
        options: ChatOptions::default().with_extra_body(body),
    }
}

/// OpenAI's newer models refuse `max_tokens`; many who speak as it does know nothing else.
fn limit_field(provider: &str, model: &str) -> &'static str {
    let base = model.rsplit('/').next().unwrap_or(model);
    let newer = ["gpt-5", "gpt-6", "o1", "o3", "o4"].iter().any(|new| base.starts_with(new));
    if provider == "openai" || newer { "max_completion_tokens" } else { "max_tokens" }
}

fn push(messages: &mut Vec<Value>, message: &Message, ids: &Ids<'_>, provider: &str) {
    match message.role {
        Role::System => {
            let text = message.text();
            if !text.trim().is_empty() {
                messages.push(json!({"role": "system", "content": text}));
            }
        }
        Role::User => messages.extend(user(&message.parts)),
        Role::Assistant => messages.extend(assistant(message, ids, provider)),
        Role::Tool => {
            for result in message.results() {
                messages.push(json!({
                    "role": "tool",
                    "tool_call_id": ids.get(&result.call_id),
                    "content": result_text(result),
                }));
            }
            // A tool message holds text only: the user shows the pictures.
            let images: Vec<Value> =
                message.results().flat_map(|result| &result.images).map(image).collect();
            if !images.is_empty() {
                let mut content = vec![json!({"type": "text", "text": "The tools' pictures:"})];
                content.extend(images);
                messages.push(json!({"role": "user", "content": content}));
            }
        }
    }
}

fn user(parts: &[Part]) -> Option<Value> {
    let mut content: Vec<Value> = parts
        .iter()
        .filter_map(|part| match part {
            Part::Text(text) => spoken(text).map(|text| json!({"type": "text", "text": text})),
            Part::Image(picture) => Some(image(picture)),
            Part::Thinking(_) | Part::ToolCall(_) | Part::ToolResult(_) => None,
        })
        .collect();
    // Plain text as a plain string, which every server takes.
    let content = match content.as_mut_slice() {
        [] => return None,
        [only] if only["type"] == "text" => only["text"].take(),
        _ => Value::Array(content),
    };
    Some(json!({"role": "user", "content": content}))
}

fn assistant(message: &Message, ids: &Ids<'_>, provider: &str) -> Option<Value> {
    let texts: Vec<&str> = message
        .parts
        .iter()
        .filter_map(|part| if let Part::Text(text) = part { spoken(text) } else { None })
        .collect();
    let calls: Vec<Value> = message.calls().map(|call| tool_call(call, ids)).collect();
    if texts.is_empty() && calls.is_empty() {
        return None;
    }
    let mut sent = json!({"role": "assistant"});
    if !texts.is_empty() {
        sent["content"] = json!(texts.join("\n"));
    }
    if calls.is_empty() {
        return Some(sent);
    }
    sent["tool_calls"] = Value::Array(calls);
    let thoughts: Vec<&str> = message
        .parts
        .iter()
        .filter_map(|part| match part {
            Part::Thinking(text) => own(text.opaque.as_ref(), provider)
                .is_some_and(|field| field == REASONING_CONTENT)
                .then_some(text.text.as_str()),
            _ => None,
        })
        .collect();
    if !thoughts.is_empty() {
        sent[REASONING_CONTENT] = json!(thoughts.join("\n"));
    }
    Some(sent)
}

/// Arguments go back as the model wrote them if they are an object, byte for byte.
fn tool_call(call: &ToolCall, ids: &Ids<'_>) -> Value {
    let well_formed = matches!(serde_json::from_str(&call.arguments), Ok(Value::Object(_)));
    let text = if well_formed {
        call.arguments.clone()
    } else {
        Value::Object(arguments(&call.arguments)).to_string()
    };
    json!({
        "id": ids.get(&call.id),
        "type": "function",
        "function": {"name": tool_name(&call.name), "arguments": text},
    })
}

fn image(image: &Image) -> Value {
    let url = match Picture::of(image) {
        Picture::Told(text) => return json!({"type": "text", "text": text}),
        Picture::Url(url) => url.to_owned(),
        Picture::Base64 { media_type, data } => format!("data:{media_type};base64,{data}"),
    };
    json!({"type": "image_url", "image_url": {"url": url}})
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_limit_is_named_as_the_model_wants_it() {
        assert_eq!(limit_field("openai", "gpt-4o"), "max_completion_tokens");
        assert_eq!(limit_field("mine", "llama3"), "max_tokens");
        assert_eq!(limit_field("openrouter", "openai/o3-mini"), "max_completion_tokens");
    }
}
