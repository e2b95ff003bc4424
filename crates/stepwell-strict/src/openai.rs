//! OpenAI's chat completions: what it rejects, and how it streams.

use std::collections::HashSet;

use serde_json::{Value, json};

use crate::picture;
use crate::reply::{Dialect, HttpError, Piece, Say, Stop, Tokens, chunks};

/// OpenAI's limit on call ids.
const LONGEST_ID: usize = 40;

/// Checks a request. The error is the vendor's message.
pub(crate) fn check(body: &Value) -> Result<(), String> {
    if !body.is_object() {
        return Err("We could not parse the JSON body of your request.".to_owned());
    }
    if body["model"].as_str().is_none_or(str::is_empty) {
        return Err("you must provide a model parameter".to_owned());
    }
    let Some(messages) = body["messages"].as_array() else {
        return Err("Missing required parameter: 'messages'.".to_owned());
    };
    if messages.is_empty() {
        return Err("Invalid 'messages': empty array. Expected an array with minimum length 1, \
                    but got an empty array instead."
            .to_owned());
    }
    if !body["stream_options"].is_null() && body["stream"] != json!(true) {
        return Err(
            "The 'stream_options' parameter is only allowed when 'stream' is enabled.".to_owned()
        );
    }
    check_tools(body)?;
    check_messages(messages)
}

fn check_tools(body: &Value) -> Result<(), String> {
    let Some(tools) = body.get("tools") else { return Ok(()) };
    let tools = tools.as_array().filter(|tools| !tools.is_empty());
    let Some(tools) = tools else {
        return Err("Invalid 'tools': empty array. Expected an array with minimum length 1, but \
                    got an empty array instead."
            .to_owned());
    };
    for (n, tool) in tools.iter().enumerate() {
        let function = &tool["function"];
        if tool["type"] != "function" || !is_name(&function["name"]) {
            return Err(format!(
                "Invalid 'tools[{n}].function.name': string does not match pattern. Expected a \
                 string that matches the pattern '^[a-zA-Z0-9_-]+$'."
            ));
        }
        if function["parameters"]["type"] != "object" {
            return Err(format!(
                "Invalid schema for function '{}': schema must be a JSON Schema of 'type: \
                 \"object\"', got 'type: \"None\"'.",
                function["name"].as_str().unwrap_or_default()
            ));
        }
    }
    Ok(())
}

fn check_messages(messages: &[Value]) -> Result<(), String> {
    let mut open: Vec<&str> = Vec::new();
    let mut calls: Vec<&str> = Vec::new();
    let mut seen: HashSet<&str> = HashSet::new();
    for (n, message) in messages.iter().enumerate() {
        let role = message["role"].as_str().unwrap_or_default();
        if role != "tool" {
            unanswered(&open)?;
            calls.clear();
        }
        match role {
            "system" | "developer" | "user" => check_content(n, &message["content"])?,
            "assistant" => {
                calls = check_assistant(n, message, &mut seen)?;
                open = calls.clone();
            }
            "tool" => {
                if calls.is_empty() {
                    return Err("Invalid parameter: messages with role 'tool' must be a response \
                                to a preceeding message with 'tool_calls'."
                        .to_owned());
                }
                let id = message["tool_call_id"].as_str().unwrap_or_default();
                let Some(at) = open.iter().position(|open| *open == id) else {
                    return Err(if calls.contains(&id) {
                        format!("Duplicate value for 'tool_call_id' of '{id}' in message[{n}].")
                    } else {
                        format!(
                            "Invalid parameter: 'tool_call_id' of '{id}' not found in \
                             'tool_calls' of previous message."
                        )
                    });
                };
                open.remove(at);
                check_content(n, &message["content"])?;
            }
            other => {
                return Err(format!(
                    "Invalid value: '{other}'. Supported values are: 'system', 'assistant', \
                     'user', 'function', 'tool', and 'developer'."
                ));
            }
        }
    }
    unanswered(&open)
}

fn unanswered(open: &[&str]) -> Result<(), String> {
    if open.is_empty() {
        return Ok(());
    }
    Err(format!(
        "An assistant message with 'tool_calls' must be followed by tool messages responding to \
         each 'tool_call_id'. The following tool_call_ids did not have response messages: {}",
        open.join(", ")
    ))
}

fn check_assistant<'a>(
    n: usize,
    message: &'a Value,
    seen: &mut HashSet<&'a str>,
) -> Result<Vec<&'a str>, String> {
    let calls = message.get("tool_calls").filter(|calls| !calls.is_null());
    let content = &message["content"];
    if !content.is_null() || calls.is_none() {
        check_content(n, content)?;
    }
    let Some(calls) = calls else { return Ok(Vec::new()) };
    let Some(calls) = calls.as_array().filter(|calls| !calls.is_empty()) else {
        return Err(format!(
            "Invalid 'messages[{n}].tool_calls': empty array. Expected an array with minimum \
             length 1, but got an empty array instead."
        ));
    };
    let mut ids = Vec::new();
    for (k, call) in calls.iter().enumerate() {
        let place = format!("messages[{n}].tool_calls[{k}]");
        let id = call["id"].as_str().unwrap_or_default();
        if id.is_empty() || call["type"] != "function" {
            return Err(format!("Missing required parameter: '{place}.id'."));
        }
        if id.len() > LONGEST_ID {
            return Err(format!(
                "Invalid '{place}.id': string too long. Expected a string with maximum length \
                 {LONGEST_ID}, but got a string with length {} instead.",
                id.len()
            ));
        }
        if !is_name(&call["function"]["name"]) {
            return Err(format!("Invalid '{place}.function.name': string does not match pattern."));
        }
        if !call["function"]["arguments"].is_string() {
            return Err(format!(
                "Invalid type for '{place}.function.arguments': expected a string."
            ));
        }
        if !seen.insert(id) {
            return Err(format!("Duplicate value for 'tool_call_id' of '{id}' in message[{n}]."));
        }
        ids.push(id);
    }
    Ok(ids)
}

/// OpenAI accepts some empty texts; compatible servers are stricter, so all are rejected here.
fn check_content(n: usize, content: &Value) -> Result<(), String> {
    let empty =
        || format!("Invalid value for 'messages[{n}].content': expected non-empty content.");
    match content {
        Value::String(text) if !text.trim().is_empty() => Ok(()),
        Value::Array(parts) if !parts.is_empty() => {
            parts.iter().try_for_each(|part| match part["type"].as_str() {
                Some("text") if part["text"].as_str().is_some_and(|t| !t.trim().is_empty()) => {
                    Ok(())
                }
                Some("text") => Err(empty()),
                Some("image_url") => check_image(n, &part["image_url"]["url"]),
                other => Err(format!(
                    "Invalid value: '{}'. Supported values are: 'text', 'image_url', \
                     'input_audio', 'refusal', and 'file'.",
                    other.unwrap_or_default()
                )),
            })
        }
        Value::String(_) | Value::Array(_) => Err(empty()),
        _ => {
            Err(format!("Invalid value for 'content': expected a string, got null. (message {n})"))
        }
    }
}

fn check_image(n: usize, url: &Value) -> Result<(), String> {
    let url = url.as_str().unwrap_or_default();
    if url.starts_with("https://") || url.starts_with("http://") {
        return Ok(());
    }
    let embedded = url.strip_prefix("data:").and_then(|rest| rest.split_once(";base64,"));
    let taken = match embedded {
        Some((media_type, data)) => picture::check(media_type, data),
        None => Err("expected a valid image URL".to_owned()),
    };
    taken.map_err(|why| format!("Invalid 'messages[{n}].content': {why}."))
}

fn is_name(name: &Value) -> bool {
    let legal = |b: u8| b.is_ascii_alphanumeric() || b == b'_' || b == b'-';
    name.as_str().is_some_and(|name| !name.is_empty() && name.bytes().all(legal))
}

/// An error's body.
pub(crate) fn error(error: &HttpError) -> Value {
    let kind = match error.status {
        429 => "rate_limit_error",
        500.. => "server_error",
        _ => "invalid_request_error",
    };
    json!({"error": {"message": error.message, "type": kind, "param": null, "code": error.code}})
}

/// A non-streamed answer.
pub(crate) fn whole(say: &Say) -> Value {
    let mut content = String::new();
    let mut reasoning = String::new();
    let mut calls = Vec::new();
    for piece in &say.pieces {
        match piece {
            Piece::Text(text) => content.push_str(text),
            Piece::Thinking { text, .. } => reasoning.push_str(text),
            Piece::Redacted(_) => {}
            Piece::Call { id, name, arguments } => calls.push(json!({
                "id": id, "type": "function",
                "function": {"name": name, "arguments": arguments.concat()},
            })),
        }
    }
    let mut message = json!({"role": "assistant", "content": content});
    if !reasoning.is_empty() {
        message["reasoning_content"] = json!(reasoning);
    }
    if !calls.is_empty() {
        message["tool_calls"] = json!(calls);
    }
    let mut body = json!({
        "id": "chatcmpl-1", "object": "chat.completion", "model": "strict",
        "choices": [{"index": 0, "message": message, "finish_reason": finish(say.stops())}],
    });
    if let Some(tokens) = say.tokens {
        body["usage"] = usage(tokens);
    }
    body
}

/// An answer as server-sent events.
pub(crate) fn events(say: &Say) -> Vec<String> {
    let mut events = vec![delta(&json!({"role": "assistant", "content": ""}))];
    let mut index = 0;
    for piece in &say.pieces {
        match piece {
            Piece::Text(text) => {
                events.extend(chunks(text).into_iter().map(|t| delta(&json!({"content": t}))));
            }
            Piece::Thinking { text, .. } => {
                let chunks = chunks(text).into_iter();
                events.extend(chunks.map(|t| delta(&json!({"reasoning_content": t}))));
            }
            Piece::Redacted(_) => {}
            Piece::Call { id, name, arguments } => {
                let pieces = Call { id, name, arguments }.pieces(say.dialect, index);
                events.extend(pieces.iter().map(|piece| delta(&json!({"tool_calls": [piece]}))));
                index += 1;
            }
        }
    }
    let finished = json!({"id": "chatcmpl-1", "object": "chat.completion.chunk", "choices": [
        {"index": 0, "delta": {}, "finish_reason": finish(say.stops())}
    ]});
    events.push(event(&finished));
    if let Some(tokens) = say.tokens {
        events.push(event(&json!({"id": "chatcmpl-1", "choices": [], "usage": usage(tokens)})));
    }
    events.push("data: [DONE]\n\n".to_owned());
    events
}

/// A tool call.
struct Call<'a> {
    id: &'a str,
    name: &'a str,
    /// Its arguments, in the streamed pieces.
    arguments: &'a [String],
}

impl Call<'_> {
    /// Its pieces in a dialect.
    fn pieces(&self, dialect: Dialect, index: usize) -> Vec<Value> {
        let Self { id, name, arguments } = self;
        let whole = |arguments: &str| json!({"id": id, "type": "function", "function": {"name": name, "arguments": arguments}});
        let more = |arguments: &String| json!({"function": {"arguments": arguments}});
        let pieces = std::iter::once(whole("")).chain(arguments.iter().map(more));
        let numbered = |mut piece: Value, index: usize| {
            piece["index"] = json!(index);
            piece
        };
        match dialect {
            Dialect::OpenAi | Dialect::Unstreamed => {
                pieces.map(|piece| numbered(piece, index)).collect()
            }
            Dialect::UnnumberedPieces => pieces.collect(),
            Dialect::Unnumbered => vec![whole(&arguments.concat())],
            Dialect::AllZero => vec![numbered(whole(&arguments.concat()), 0)],
        }
    }
}

/// The event with which a vendor fails in the middle of a stream.
pub(crate) fn overloaded() -> String {
    event(&json!({"error": {
        "message": "The server is currently overloaded.", "type": "server_error", "code": null,
    }}))
}

fn delta(delta: &Value) -> String {
    event(&json!({"id": "chatcmpl-1", "object": "chat.completion.chunk", "choices": [
        {"index": 0, "delta": delta, "finish_reason": null}
    ]}))
}

fn event(data: &Value) -> String {
    format!("data: {data}\n\n")
}

fn finish(stop: Stop) -> &'static str {
    match stop {
        Stop::Done => "stop",
        Stop::Tools => "tool_calls",
        Stop::Length => "length",
        Stop::Filtered => "content_filter",
    }
}

fn usage(tokens: Tokens) -> Value {
    json!({
        "prompt_tokens": tokens.input,
        "completion_tokens": tokens.output,
        "total_tokens": tokens.input + tokens.output,
        "prompt_tokens_details": {"cached_tokens": tokens.cached},
        "completion_tokens_details": {"reasoning_tokens": tokens.reasoning},
    })
}
