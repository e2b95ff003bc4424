//! OpenAI's responses API: what it rejects, and how it streams.

use std::collections::HashSet;

use serde_json::{Value, json};

use crate::reply::{HttpError, Piece, Say, Stop, Tokens, chunks};

/// Checks a request. The error is the vendor's message.
pub(crate) fn check(body: &Value) -> Result<(), String> {
    if !body.is_object() {
        return Err("We could not parse the JSON body of your request.".to_owned());
    }
    if body["model"].as_str().is_none_or(str::is_empty) {
        return Err("Missing required parameter: 'model'.".to_owned());
    }
    match &body["input"] {
        Value::String(text) if !text.is_empty() => Ok(()),
        Value::Array(items) if !items.is_empty() => check_items(items),
        _ => Err("Missing required parameter: 'input'.".to_owned()),
    }
}

/// Each call needs one output, and each output its call.
fn check_items(items: &[Value]) -> Result<(), String> {
    let mut calls: HashSet<&str> = HashSet::new();
    let mut outputs: HashSet<&str> = HashSet::new();
    for (n, item) in items.iter().enumerate() {
        let id = item["call_id"].as_str().unwrap_or_default();
        let kind = item["type"].as_str().unwrap_or("message");
        match kind {
            "message" => check_message(n, item)?,
            "function_call" | "custom_tool_call" | "local_shell_call" => {
                let text = if kind == "function_call" { "arguments" } else { "input" };
                if kind != "local_shell_call" && !item[text].is_string() {
                    return Err(format!("Missing required parameter: 'input[{n}].{text}'."));
                }
                if id.is_empty() || !calls.insert(id) {
                    return Err(format!("Invalid 'input[{n}].call_id': '{id}'."));
                }
            }
            "function_call_output" | "custom_tool_call_output" => {
                if !calls.contains(id) {
                    return Err(format!(
                        "No tool call found for function call output with call_id {id}."
                    ));
                }
                if item["output"].is_null() || !outputs.insert(id) {
                    return Err(format!("Invalid 'input[{n}].output' of call '{id}'."));
                }
            }
            _ => {}
        }
    }
    match calls.difference(&outputs).next() {
        None => Ok(()),
        Some(id) => Err(format!("No tool output found for function call {id}.")),
    }
}

fn check_message(n: usize, item: &Value) -> Result<(), String> {
    let role = item["role"].as_str().unwrap_or_default();
    if !["user", "assistant", "system", "developer"].contains(&role) {
        return Err(format!(
            "Invalid value: '{role}'. Supported values are: 'assistant', 'system', 'developer', \
             and 'user'. (input[{n}].role)"
        ));
    }
    let parts = match &item["content"] {
        Value::String(text) if !text.is_empty() => return Ok(()),
        Value::Array(parts) if !parts.is_empty() => parts,
        _ => return Err(format!("Invalid 'input[{n}].content': expected non-empty content.")),
    };
    parts.iter().try_for_each(|part| {
        let kind = part["type"].as_str().unwrap_or_default();
        let sound = match (role, kind) {
            ("assistant", "output_text" | "refusal") => true,
            ("assistant", _) => false,
            (_, "input_image") => part["image_url"].as_str().is_some_and(is_image),
            (_, kind) => kind == "input_text" || kind == "input_file",
        };
        match sound {
            true => Ok(()),
            false => Err(format!("Invalid value: '{kind}'. (input[{n}].content of {role})")),
        }
    })
}

fn is_image(url: &str) -> bool {
    let embedded = url.strip_prefix("data:image/").and_then(|rest| rest.split_once(";base64,"));
    embedded.is_some_and(|(_, data)| !data.contains(':')) || url.starts_with("http")
}

/// A non-streamed answer.
pub(crate) fn whole(say: &Say) -> Value {
    let items: Vec<Value> = items(say).into_iter().map(|(item, _)| item).collect();
    response(say, "completed", &items)
}

/// An answer as server-sent events.
pub(crate) fn events(say: &Say) -> Vec<String> {
    let begun = json!({"response": response(say, "in_progress", &[])});
    let mut events = vec![event("response.created", &begun)];
    let mut done = Vec::new();
    for (index, (item, deltas)) in items(say).into_iter().enumerate() {
        let mut added = item.clone();
        for (field, empty) in [("content", json!([])), ("arguments", json!(""))] {
            if added.get(field).is_some() {
                added[field] = empty;
            }
        }
        let place = |more: Value| {
            let mut data = json!({"output_index": index, "item_id": item["id"]});
            data.as_object_mut().into_iter().for_each(|it| {
                it.extend(more.as_object().cloned().unwrap_or_default());
            });
            data
        };
        events.push(event("response.output_item.added", &place(json!({"item": added}))));
        events.extend(deltas.into_iter().map(|(kind, delta)| {
            event(kind, &place(json!({"content_index": 0, "summary_index": 0, "delta": delta})))
        }));
        events.push(event("response.output_item.done", &place(json!({"item": item}))));
        done.push(item);
    }
    let (kind, status) = match say.stops() {
        Stop::Done | Stop::Tools => ("response.completed", "completed"),
        Stop::Length | Stop::Filtered => ("response.incomplete", "incomplete"),
    };
    events.push(event(kind, &json!({"response": response(say, status, &done)})));
    events
}

/// The event with which a vendor fails in the middle of a stream.
pub(crate) fn overloaded() -> String {
    let error = json!({"code": "server_is_overloaded", "message": "Overloaded"});
    event("response.failed", &json!({"response": {"status": "failed", "error": error}}))
}

/// An error's body.
pub(crate) fn error(error: &HttpError) -> Value {
    crate::openai::error(error)
}

/// The items of an answer, each with its streamed events.
fn items(say: &Say) -> Vec<(Value, Vec<(&'static str, String)>)> {
    let named = |n: usize, piece: &Piece| match piece {
        Piece::Text(text) => {
            let content = json!([{"type": "output_text", "text": text, "annotations": []}]);
            let item = json!({
                "type": "message", "id": format!("msg_{n}"), "role": "assistant",
                "status": "completed", "content": content,
            });
            (item, deltas("response.output_text.delta", chunks(text)))
        }
        Piece::Thinking { text, signature } => {
            let item = json!({
                "type": "reasoning", "id": format!("rs_{n}"), "encrypted_content": signature,
                "summary": [{"type": "summary_text", "text": text}],
            });
            (item, deltas("response.reasoning_summary_text.delta", chunks(text)))
        }
        Piece::Redacted(data) => {
            let id = format!("rs_{n}");
            let item =
                json!({"type": "reasoning", "id": id, "summary": [], "encrypted_content": data});
            (item, Vec::new())
        }
        Piece::Call { id, name, arguments } => {
            let item = json!({
                "type": "function_call", "id": format!("fc_{n}"), "call_id": id, "name": name,
                "arguments": arguments.concat(), "status": "completed",
            });
            (item, deltas("response.function_call_arguments.delta", arguments.clone()))
        }
    };
    say.pieces.iter().enumerate().map(|(n, piece)| named(n, piece)).collect()
}

fn deltas(kind: &'static str, chunks: Vec<String>) -> Vec<(&'static str, String)> {
    chunks.into_iter().map(|chunk| (kind, chunk)).collect()
}

fn response(say: &Say, status: &str, output: &[Value]) -> Value {
    let usage = (status != "in_progress").then(|| usage(say.tokens.unwrap_or_default()));
    let reason = match say.stops() {
        Stop::Length => Some("max_output_tokens"),
        Stop::Filtered => Some("content_filter"),
        Stop::Done | Stop::Tools => None,
    };
    json!({
        "id": "resp_1", "object": "response", "model": "strict", "status": status,
        "output": output, "usage": usage,
        "incomplete_details": reason.map(|reason| json!({"reason": reason})),
    })
}

fn event(kind: &str, data: &Value) -> String {
    let mut data = data.clone();
    data["type"] = json!(kind);
    format!("event: {kind}\ndata: {data}\n\n")
}

fn usage(tokens: Tokens) -> Value {
    json!({
        "input_tokens": tokens.input,
        "input_tokens_details": {"cached_tokens": tokens.cached},
        "output_tokens": tokens.output,
        "output_tokens_details": {"reasoning_tokens": tokens.reasoning},
        "total_tokens": tokens.input + tokens.output,
    })
}
