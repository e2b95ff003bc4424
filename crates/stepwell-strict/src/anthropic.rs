//! Anthropic's messages API: what it rejects, and how it streams.

use std::collections::HashSet;

use serde_json::{Value, json};

use crate::asked::Asked;
use crate::picture;
use crate::reply::{HttpError, Piece, Say, Stop, Tokens, chunks};

/// The names of betas that allow system messages inside the conversation, as Claude Code sends
/// them.
const SYSTEM_BETA: &str = "mid-conversation-";

/// Checks a request. The error is the vendor's message.
pub(crate) fn check(asked: &Asked, signatures: &HashSet<String>) -> Result<(), String> {
    if asked.header("anthropic-version").is_none() {
        return Err("anthropic-version: header is required".to_owned());
    }
    if !asked.header("anthropic-beta").is_some_and(|betas| betas.contains(SYSTEM_BETA)) {
        return check_body(&asked.body, signatures);
    }
    let mut body = asked.body.clone();
    if let Some(messages) = body["messages"].as_array_mut() {
        messages.retain(|message| message["role"] != "system");
    }
    check_body(&body, signatures)
}

/// Checks a request's body.
pub(crate) fn check_body(body: &Value, signatures: &HashSet<String>) -> Result<(), String> {
    for field in ["model", "max_tokens", "messages"] {
        if body.get(field).is_none_or(Value::is_null) {
            return Err(format!("{field}: Field required"));
        }
    }
    if body["max_tokens"].as_u64().is_none_or(|most| most == 0) {
        return Err("max_tokens: Input should be greater than or equal to 1".to_owned());
    }
    match &body["system"] {
        Value::Null => {}
        Value::String(text) if !text.trim().is_empty() => {}
        Value::Array(blocks) if !blocks.is_empty() => {}
        _ => return Err("system: text content blocks must be non-empty".to_owned()),
    }
    for (n, tool) in body["tools"].as_array().into_iter().flatten().enumerate() {
        if !is_id(tool["name"].as_str().unwrap_or_default()) {
            return Err(format!(
                "tools.{n}.custom.name: String should match pattern '^[a-zA-Z0-9_-]{{1,128}}$'"
            ));
        }
        let custom = tool["type"].as_str().is_none_or(|kind| kind == "custom");
        if custom && tool["input_schema"]["type"] != "object" {
            return Err(format!("tools.{n}.custom.input_schema.type: Field required"));
        }
    }
    let messages = body["messages"].as_array().map_or(&[][..], Vec::as_slice);
    if messages.is_empty() {
        return Err("messages: at least one message is required".to_owned());
    }
    check_messages(messages, signatures)
}

fn check_messages(messages: &[Value], signatures: &HashSet<String>) -> Result<(), String> {
    let mut open: Vec<&str> = Vec::new();
    let mut seen: HashSet<&str> = HashSet::new();
    for (n, message) in messages.iter().enumerate() {
        let role = message["role"].as_str().unwrap_or_default();
        match role {
            "user" | "assistant" => {}
            "system" => {
                return Err("messages: Unexpected role \"system\". The Messages API accepts a \
                            top-level `system` parameter, not \"system\" as an input message role."
                    .to_owned());
            }
            _ => return Err(format!("messages.{n}.role: Input should be 'user' or 'assistant'")),
        }
        if n == 0 && role != "user" {
            return Err("messages: first message must use the \"user\" role".to_owned());
        }
        let blocks = blocks(n, &message["content"])?;
        let results = results(n, role, &blocks)?;
        if let Some(missing) = open.iter().find(|id| !results.contains(id)) {
            return Err(format!(
                "messages.{}: `tool_use` ids were found without `tool_result` blocks immediately \
                 after: {missing}. Each `tool_use` block must have a corresponding `tool_result` \
                 block in the next message.",
                n - 1
            ));
        }
        if let Some(orphan) = results.iter().find(|id| !open.contains(id)) {
            return Err(format!(
                "messages.{n}.content.0: unexpected `tool_use_id` found in `tool_result` blocks: \
                 {orphan}. Each `tool_result` block must have a corresponding `tool_use` block in \
                 the previous message."
            ));
        }
        open = calls(n, role, &blocks, &mut seen)?;
        check_thinking(n, role, &blocks, signatures)?;
    }
    match open.first() {
        None => Ok(()),
        Some(id) => Err(format!(
            "messages.{}: `tool_use` ids were found without `tool_result` blocks immediately \
             after: {id}. Each `tool_use` block must have a corresponding `tool_result` block in \
             the next message.",
            messages.len() - 1
        )),
    }
}

/// A message's blocks; a plain text counts as one.
fn blocks(n: usize, content: &Value) -> Result<Vec<&Value>, String> {
    let empty = || {
        format!(
            "messages.{n}: all messages must have non-empty content except for the optional \
             final assistant message"
        )
    };
    match content {
        Value::String(text) if !text.trim().is_empty() => Ok(vec![content]),
        Value::Array(blocks) if !blocks.is_empty() => {
            for (k, block) in blocks.iter().enumerate() {
                check_block(&format!("messages.{n}.content.{k}"), block)?;
            }
            Ok(blocks.iter().collect())
        }
        Value::String(_) | Value::Array(_) | Value::Null => Err(empty()),
        _ => Err(format!("messages.{n}.content: Input should be a valid list")),
    }
}

fn check_block(place: &str, block: &Value) -> Result<(), String> {
    match block["type"].as_str().unwrap_or_default() {
        "text" => match block["text"].as_str() {
            Some("") | None => Err("messages: text content blocks must be non-empty".to_owned()),
            Some(text) if text.trim().is_empty() => {
                Err("messages: text content blocks must contain non-whitespace text".to_owned())
            }
            Some(_) => Ok(()),
        },
        "image" => {
            let source = &block["source"];
            let text = |field: &str| source[field].as_str();
            match (text("type"), text("media_type"), text("data"), text("url")) {
                (Some("base64"), Some(media_type), Some(data), _) => {
                    picture::check(media_type, data)
                        .map_err(|why| format!("{place}.image.source.base64: {why}"))
                }
                (Some("url"), _, _, Some(url)) if url.starts_with("http") => Ok(()),
                _ => Err(format!("{place}.image.source: Field required")),
            }
        }
        "tool_use" => {
            if !is_id(block["id"].as_str().unwrap_or_default()) {
                return Err(format!(
                    "{place}.tool_use.id: String should match pattern '^[a-zA-Z0-9_-]+$'"
                ));
            }
            if !block["input"].is_object() {
                return Err(format!("{place}.tool_use.input: Input should be a valid dictionary"));
            }
            Ok(())
        }
        "tool_result" => {
            let blocks = block["content"].as_array().into_iter().flatten();
            for (k, inner) in blocks.enumerate() {
                check_block(&format!("{place}.tool_result.content.{k}"), inner)?;
            }
            match block["content"].as_str() {
                Some(text) if text.trim().is_empty() => {
                    Err(format!("{place}.tool_result: content must be non-empty"))
                }
                _ => Ok(()),
            }
        }
        "thinking" | "redacted_thinking" => Ok(()),
        // Blocks of Anthropic's own tools go back unchanged.
        kind if kind == "server_tool_use" || kind.ends_with("_tool_result") => Ok(()),
        other => Err(format!("{place}: Input tag '{other}' found using 'type' does not match")),
    }
}

fn results<'a>(n: usize, role: &str, blocks: &[&'a Value]) -> Result<Vec<&'a str>, String> {
    let mut ids: Vec<&str> = Vec::new();
    for (k, block) in blocks.iter().enumerate().filter(|(_, b)| b["type"] == "tool_result") {
        if role != "user" {
            return Err(format!(
                "messages.{n}: `tool_result` blocks can only be in `user` messages"
            ));
        }
        // After anything else it is not "immediately after", and counts as missing.
        if k != ids.len() {
            break;
        }
        let id = block["tool_use_id"].as_str().unwrap_or_default();
        if ids.contains(&id) {
            return Err(format!(
                "messages.{n}.content.{k}: each tool_use must have a single result. Found \
                 multiple `tool_result` blocks with id: {id}"
            ));
        }
        ids.push(id);
    }
    Ok(ids)
}

fn calls<'a>(
    n: usize,
    role: &str,
    blocks: &[&'a Value],
    seen: &mut HashSet<&'a str>,
) -> Result<Vec<&'a str>, String> {
    let mut ids = Vec::new();
    for (k, block) in blocks.iter().enumerate().filter(|(_, b)| b["type"] == "tool_use") {
        if role != "assistant" {
            return Err(format!(
                "messages.{n}: `tool_use` blocks can only be in `assistant` messages"
            ));
        }
        let id = block["id"].as_str().unwrap_or_default();
        if !seen.insert(id) {
            return Err(format!("messages.{n}.content.{k}: `tool_use` ids must be unique"));
        }
        ids.push(id);
    }
    Ok(ids)
}

fn check_thinking(
    n: usize,
    role: &str,
    blocks: &[&Value],
    signatures: &HashSet<String>,
) -> Result<(), String> {
    for (k, block) in blocks.iter().enumerate() {
        let (kind, proof) = match block["type"].as_str() {
            Some("thinking") => ("thinking", &block["signature"]),
            Some("redacted_thinking") => ("redacted_thinking", &block["data"]),
            _ => continue,
        };
        if role != "assistant" {
            return Err(format!(
                "messages.{n}: `{kind}` blocks can only be in `assistant` messages"
            ));
        }
        if !proof.as_str().is_some_and(|proof| signatures.contains(proof)) {
            return Err(format!("messages.{n}.content.{k}: Invalid `signature` in `{kind}` block"));
        }
        if k + 1 == blocks.len() {
            return Err(format!(
                "messages.{n}: The final block in an assistant message cannot be `{kind}`."
            ));
        }
    }
    Ok(())
}

fn is_id(id: &str) -> bool {
    let legal = |b: u8| b.is_ascii_alphanumeric() || b == b'_' || b == b'-';
    !id.is_empty() && id.bytes().all(legal)
}

/// An error's body.
pub(crate) fn error(error: &HttpError) -> Value {
    let kind = match error.status {
        401 => "authentication_error",
        403 => "permission_error",
        404 => "not_found_error",
        429 => "rate_limit_error",
        529 => "overloaded_error",
        500.. => "api_error",
        _ => "invalid_request_error",
    };
    let kind = error.code.as_deref().unwrap_or(kind);
    json!({"type": "error", "error": {"type": kind, "message": error.message}})
}

fn name(say: &Say) -> &str {
    say.id.as_deref().unwrap_or("msg_1")
}

/// A non-streamed answer.
pub(crate) fn whole(say: &Say) -> Value {
    let content: Vec<Value> = say
        .pieces
        .iter()
        .map(|piece| match piece {
            Piece::Text(text) => json!({"type": "text", "text": text}),
            Piece::Thinking { text, signature } => {
                json!({"type": "thinking", "thinking": text, "signature": signature})
            }
            Piece::Redacted(data) => json!({"type": "redacted_thinking", "data": data}),
            Piece::Call { id, name, arguments } => {
                let input: Value = serde_json::from_str(&arguments.concat()).unwrap_or(json!({}));
                json!({"type": "tool_use", "id": id, "name": name, "input": input})
            }
        })
        .collect();
    json!({
        "id": name(say), "type": "message", "role": "assistant", "model": "strict",
        "content": content, "stop_reason": stop_reason(say.stops()),
        "usage": usage(say.tokens.unwrap_or_default()),
    })
}

/// An answer as server-sent events.
pub(crate) fn events(say: &Say) -> Vec<String> {
    let tokens = say.tokens.unwrap_or_default();
    let mut started = usage(tokens);
    started["output_tokens"] = json!(1);
    let mut events = vec![
        event(
            "message_start",
            &json!({"message": {
                "id": name(say), "type": "message", "role": "assistant", "model": "strict",
                "content": [], "stop_reason": null, "usage": started,
            }}),
        ),
        event("ping", &json!({})),
    ];
    for (index, piece) in say.pieces.iter().enumerate() {
        let start = |block: Value| {
            event("content_block_start", &json!({"index": index, "content_block": block}))
        };
        let delta =
            |delta: Value| event("content_block_delta", &json!({"index": index, "delta": delta}));
        match piece {
            Piece::Text(text) => {
                events.push(start(json!({"type": "text", "text": ""})));
                let chunks = chunks(text).into_iter();
                events.extend(chunks.map(|t| delta(json!({"type": "text_delta", "text": t}))));
            }
            Piece::Thinking { text, signature } => {
                events.push(start(json!({"type": "thinking", "thinking": "", "signature": ""})));
                let chunks = chunks(text).into_iter();
                events.extend(
                    chunks.map(|t| delta(json!({"type": "thinking_delta", "thinking": t}))),
                );
                events.push(delta(json!({"type": "signature_delta", "signature": signature})));
            }
            Piece::Redacted(data) => {
                events.push(start(json!({"type": "redacted_thinking", "data": data})));
            }
            Piece::Call { id, name, arguments } => {
                events
                    .push(start(json!({"type": "tool_use", "id": id, "name": name, "input": {}})));
                events.extend(arguments.iter().map(|chunk| {
                    delta(json!({"type": "input_json_delta", "partial_json": chunk}))
                }));
            }
        }
        events.push(event("content_block_stop", &json!({"index": index})));
    }
    events.push(event(
        "message_delta",
        &json!({
            "delta": {"stop_reason": stop_reason(say.stops()), "stop_sequence": null},
            "usage": usage(tokens),
        }),
    ));
    events.push(event("message_stop", &json!({})));
    events
}

/// The event with which a vendor fails in the middle of a stream.
pub(crate) fn overloaded() -> String {
    event("error", &json!({"error": {"type": "overloaded_error", "message": "Overloaded"}}))
}

fn event(kind: &str, data: &Value) -> String {
    let mut data = data.clone();
    data["type"] = json!(kind);
    format!("event: {kind}\ndata: {data}\n\n")
}

fn stop_reason(stop: Stop) -> &'static str {
    match stop {
        Stop::Done => "end_turn",
        Stop::Tools => "tool_use",
        Stop::Length => "max_tokens",
        Stop::Filtered => "refusal",
    }
}

/// Anthropic counts cache reads separately from the input.
fn usage(tokens: Tokens) -> Value {
    json!({
        "input_tokens": tokens.input - tokens.cached - tokens.cache_written,
        "cache_read_input_tokens": tokens.cached,
        "cache_creation_input_tokens": tokens.cache_written,
        "output_tokens": tokens.output,
        "output_tokens_details": {"thinking_tokens": tokens.reasoning},
    })
}
