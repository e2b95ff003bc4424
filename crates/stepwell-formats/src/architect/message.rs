//! Messages of OpenAI's chat: objects there, parts here. What an object says otherwise than
//! the one that would be written for the message is kept beside it.

use std::borrow::Cow;
use std::collections::HashMap;

use stepwell::Message;
use stepwell::model::{Image, Part, Role, ToolCall, ToolResult};

use crate::json::fields::{Fields, elements, quoted, text_of};
use crate::snapshot::{Object, list};
use crate::write::writer::Losses;

/// The tools that were called, by the calls' ids: a result names its tool there.
pub(super) type Tools = HashMap<String, String>;

/// A message; `None` if it is of a kind that is not known.
pub(super) fn read(fields: &Fields<'_>) -> Option<Message> {
    let role = match fields.text("role")?.as_ref() {
        "system" | "developer" => Role::System,
        "user" => Role::User,
        "assistant" => Role::Assistant,
        "tool" => Role::Tool,
        _ => return None,
    };
    let mut parts = content(fields.raw("content").unwrap_or("null"));
    if role == Role::Tool {
        let texts: Vec<&str> = parts.iter().filter_map(Part::as_text).collect();
        let text = texts.join("\n");
        let call_id = fields.text("tool_call_id").unwrap_or_default().into_owned();
        let result = ToolResult { call_id, text, ..ToolResult::default() };
        parts = vec![Part::ToolResult(result)];
    }
    if role == Role::Assistant {
        let calls = fields.raw("tool_calls").and_then(|raw| elements(raw).ok());
        parts.extend(calls.unwrap_or_default().into_iter().filter_map(call).map(Part::ToolCall));
    }
    Some(Message::new(role, parts))
}

fn content(raw: &str) -> Vec<Part> {
    if let Some(text) = text_of(raw) {
        return vec![Part::text(text)];
    }
    let blocks = elements(raw).unwrap_or_default();
    blocks.into_iter().filter_map(|raw| block(&Fields::parse(raw).ok()?)).collect()
}

fn block(block: &Fields<'_>) -> Option<Part> {
    match block.text("type")?.as_ref() {
        "text" => Some(Part::text(block.text("text")?)),
        "image_url" => {
            let url = block.object("image_url")?.text("url")?.into_owned();
            let (media_type, data) = match url.strip_prefix("data:")?.split_once(";base64,") {
                Some((media_type, data)) => (media_type.to_owned(), data.to_owned()),
                None => (String::new(), url),
            };
            Some(Part::Image(Image { media_type, data, opaque: None }))
        }
        _ => None,
    }
}

fn call(raw: &str) -> Option<ToolCall> {
    let call = Fields::parse(raw).ok()?;
    let function = call.object("function")?;
    let arguments = function.raw("arguments").unwrap_or("\"\"");
    // Some write the object itself and not its text.
    let arguments = text_of(arguments).map_or_else(|| arguments.to_owned(), Cow::into_owned);
    Some(ToolCall {
        id: call.text("id").unwrap_or_default().into_owned(),
        name: function.text("name").unwrap_or_default().into_owned(),
        arguments,
        opaque: None,
    })
}

/// The object for a message. What it cannot hold is counted.
pub(super) fn write(message: &Message, tools: &mut Tools, losses: &mut Losses) -> String {
    let mut object = Object::new();
    let role = match message.role {
        Role::System => "system",
        Role::User => "user",
        Role::Assistant => "assistant",
        Role::Tool => "tool",
    };
    object.put_text("role", role);
    if let (Role::Tool, [Part::ToolResult(result)]) = (message.role, &message.parts[..]) {
        object.put_text("tool_call_id", &result.call_id);
        if let Some(tool) = tools.get(&result.call_id) {
            object.put_text("name", tool);
        }
        object.put_text("content", &result.text);
        if result.is_error {
            losses.count("whether a tool failed");
        }
        result.images.iter().for_each(|_| losses.count("pictures of tools"));
        return object.end();
    }
    object.put("content", &said(message, losses));
    let calls: Vec<String> = message
        .calls()
        .map(|call| {
            tools.insert(call.id.clone(), call.name.clone());
            let mut function = Object::new();
            function.put_text("name", &call.name);
            function.put_text("arguments", &call.arguments);
            let mut object = Object::new();
            object.put_text("id", &call.id);
            object.put_text("type", "function");
            object.put("function", &function.end());
            object.end()
        })
        .collect();
    if !calls.is_empty() {
        object.put("tool_calls", &list(calls));
    }
    object.end()
}

/// A message's content: a text, blocks where there are pictures, or nothing.
fn said(message: &Message, losses: &mut Losses) -> String {
    let mut blocks = Vec::new();
    let mut pictures = false;
    for part in &message.parts {
        match part {
            Part::Text(text) => {
                let mut block = Object::new();
                block.put_text("type", "text");
                block.put_text("text", &text.text);
                blocks.push(block.end());
            }
            Part::Image(image) => {
                pictures = true;
                let url = match image.media_type.is_empty() {
                    true => image.data.clone(),
                    false => format!("data:{};base64,{}", image.media_type, image.data),
                };
                let mut inner = Object::new();
                inner.put_text("url", &url);
                let mut block = Object::new();
                block.put_text("type", "image_url");
                block.put("image_url", &inner.end());
                blocks.push(block.end());
            }
            Part::Thinking(_) => losses.count("thinking"),
            Part::ToolCall(_) | Part::ToolResult(_) => {}
        }
    }
    match (pictures, blocks.is_empty()) {
        (true, _) => list(blocks),
        (false, true) => "null".to_owned(),
        (false, false) => quoted(&message.text()),
    }
}
