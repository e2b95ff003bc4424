//! LangChain's messages as ours.

use serde_json::Value;
use stepwell::Message;
use stepwell::model::{Part, Role, ToolCall, ToolResult, Usage};

use super::super::conversation::{Spoken, has_only, picture, text, thinking, tokens};
use super::value::CLASS;

/// Is it a message, or what takes one away?
pub(super) fn is_message(value: &Value) -> bool {
    kind(value).is_some()
}

/// Does it take a message away? Its id says which.
pub(super) fn is_removal(value: &Value) -> bool {
    kind(value).as_deref() == Some("remove")
}

/// What kind of message it is: `human`, `ai`, `tool`, …
fn kind(value: &Value) -> Option<String> {
    let class = text(value, CLASS).filter(|class| class.contains("messages"));
    let has_content = value.get("content").is_some();
    if let Some(role) = text(value, "role").filter(|_| has_content && class.is_none()) {
        // What people write: a role and a text.
        return Some(role.to_owned());
    }
    let name = class?.rsplit('.').next()?;
    let name = name.strip_suffix("Chunk").unwrap_or(name).strip_suffix("Message")?;
    Some(name.to_lowercase())
}

/// What a message says; none, if it says nothing.
pub(super) fn message(value: &Value) -> Option<Spoken> {
    let said = value.get("content").map(content).unwrap_or_default();
    let (role, mut parts) = match kind(value)?.as_str() {
        "human" | "user" => (Role::User, said),
        "ai" | "assistant" => (Role::Assistant, said),
        "system" | "developer" => (Role::System, said),
        "tool" | "function" => (Role::Tool, vec![result(value, &said)]),
        "chat" => (chat_role(text(value, "role")), said),
        _ => return None,
    };
    let calls = |name: &str| value.get(name).and_then(Value::as_array).into_iter().flatten();
    if role == Role::Assistant {
        parts.extend(calls("tool_calls").chain(calls("invalid_tool_calls")).map(call));
    }
    if parts.is_empty() {
        return None;
    }
    let mut message = Message::new(role, parts);
    message.usage = value.get("usage_metadata").and_then(usage);
    let about = value.get("response_metadata");
    message.model = about.and_then(|it| text(it, "model_name")).map(str::to_owned);
    Some(Spoken { message, rest: vec![rest(value)] })
}

fn chat_role(role: Option<&str>) -> Role {
    match role {
        Some("assistant") => Role::Assistant,
        Some("system") => Role::System,
        _ => Role::User,
    }
}

fn content(content: &Value) -> Vec<Part> {
    if let Some(said) = content.as_str() {
        return if said.is_empty() { Vec::new() } else { vec![Part::text(said)] };
    }
    content.as_array().into_iter().flatten().filter_map(block).collect()
}

fn block(block: &Value) -> Option<Part> {
    if let Some(said) = block.as_str() {
        return Some(Part::text(said));
    }
    let first = |names: &[&str]| {
        let mut found = names.iter().filter_map(|name| text(block, name));
        found.find(|it| !it.is_empty())
    };
    match text(block, "type")? {
        "text" | "output_text" | "input_text" => first(&["text"]).map(Part::text),
        "thinking" | "reasoning" => first(&["thinking", "reasoning", "text"]).map(thinking),
        "image_url" => {
            let url = block.get("image_url")?;
            Some(picture("", url.as_str().or_else(|| text(url, "url"))?))
        }
        "image" => {
            let media = text(block, "mime_type").unwrap_or_default();
            first(&["base64", "data", "url"]).map(|data| picture(media, data))
        }
        _ => None,
    }
}

fn call(call: &Value) -> Part {
    let own = |name: &str| text(call, name).unwrap_or_default().to_owned();
    let arguments = match call.get("args") {
        Some(Value::String(text)) => text.clone(),
        Some(arguments) => arguments.to_string(),
        None => "{}".to_owned(),
    };
    Part::ToolCall(ToolCall { id: own("id"), name: own("name"), arguments, opaque: None })
}

fn result(value: &Value, said: &[Part]) -> Part {
    let call_id = text(value, "tool_call_id").or_else(|| text(value, "name")).unwrap_or_default();
    let mut result = ToolResult { call_id: call_id.to_owned(), ..ToolResult::default() };
    let texts = said.iter().filter_map(|part| match part {
        Part::Text(it) => Some(it.text.as_str()),
        _ => None,
    });
    result.text = texts.collect::<Vec<_>>().join("\n");
    let pictures = said.iter().filter_map(|part| match part {
        Part::Image(it) => Some(it.clone()),
        _ => None,
    });
    result.images = pictures.collect();
    result.is_error = text(value, "status") == Some("error");
    Part::ToolResult(result)
}

fn usage(used: &Value) -> Option<Usage> {
    used.is_object().then(|| {
        let details = |name: &str| used.get(name).unwrap_or(&Value::Null);
        let (input, output) = (details("input_token_details"), details("output_token_details"));
        Usage {
            input: tokens(used, "input_tokens"),
            output: tokens(used, "output_tokens"),
            cached: tokens(input, "cache_read"),
            cache_written: tokens(input, "cache_creation"),
            reasoning: tokens(output, "reasoning"),
        }
    })
}

/// What our message does not hold.
fn rest(value: &Value) -> String {
    let mut rest = value.clone();
    let Some(fields) = rest.as_object_mut() else { return String::new() };
    if fields.get("content").is_some_and(Value::is_string) {
        fields.remove("content");
    }
    let calls = fields.get("tool_calls").and_then(Value::as_array);
    if calls.is_some_and(|it| it.iter().all(|it| has_only(it, &["name", "args", "id", "type"]))) {
        fields.remove("tool_calls");
    }
    rest.to_string()
}
