//! Messages: a content, and segments that say how it was shown.

use stepwell::model::{Part, Role, Text, Time, ToolCall, ToolResult, Usage};
use stepwell::{Lane, Message};

use super::SKIPPED;
use crate::json::fields::{Fields, elements};
use crate::snapshot::{Escapes, Layout, Object, Style, TimeForm, list, moment, number, styled};
use crate::write::writer::Losses;

/// Means that there is no time.
const ZERO: &str = "0001-01-01T00:00:00Z";

const PLAIN: Style = Style { layout: Layout::Tight, escapes: Escapes::Few };

/// A message, and when it was said; `None` if it is of a kind that is not known.
pub(super) fn read(fields: &Fields<'_>) -> Option<(Message, Option<Time>)> {
    let role = match fields.text("role")?.as_ref() {
        "system" => Role::System,
        "user" => Role::User,
        "assistant" => Role::Assistant,
        "tool" => Role::Tool,
        _ => return None,
    };
    let text = fields.text("content").unwrap_or_default();
    let mut parts = Vec::new();
    if role == Role::Tool {
        let call_id = fields.text("tool_call_id").unwrap_or_default().into_owned();
        let text = text.into_owned();
        parts.push(Part::ToolResult(ToolResult { call_id, text, ..ToolResult::default() }));
    } else {
        parts.extend(thinking(fields).map(|text| Part::Thinking(Text { text, opaque: None })));
        if !text.is_empty() {
            parts.push(Part::text(text));
        }
        let calls = fields.raw("tool_calls").and_then(|raw| elements(raw).ok());
        parts.extend(calls.unwrap_or_default().into_iter().filter_map(call));
    }
    let mut message = Message::new(role, parts);
    if fields.is_true("skip_for_llm") {
        message.lane = skipped();
    }
    message.usage = fields.object("usage").map(|usage| Usage {
        input: number(&usage, "prompt_tokens").unwrap_or(0),
        output: number(&usage, "completion_tokens").unwrap_or(0),
        ..Usage::default()
    });
    Some((message, fields.raw("created_at").and_then(moment)))
}

/// The lane of what was said to the program and not to the model.
pub(super) fn skipped() -> Lane {
    SKIPPED.parse().unwrap_or_default()
}

fn thinking(fields: &Fields<'_>) -> impl Iterator<Item = String> {
    let raw = fields.raw("segments").unwrap_or("[]");
    let all: Vec<String> = elements(raw)
        .unwrap_or_default()
        .into_iter()
        .filter_map(|raw| Fields::parse(raw).ok())
        .filter(|segment| segment.text("type").as_deref() == Some("thinking"))
        .filter_map(|segment| Some(segment.text("content")?.into_owned()))
        .collect();
    all.into_iter()
}

fn call(raw: &str) -> Option<Part> {
    let call = Fields::parse(raw).ok()?;
    Some(Part::ToolCall(ToolCall {
        id: call.text("id")?.into_owned(),
        name: call.text("name").unwrap_or_default().into_owned(),
        // Go escapes what no model wrote so.
        arguments: styled(call.raw("input").unwrap_or("{}"), PLAIN),
        opaque: None,
    }))
}

/// The object for a message. What it cannot hold is counted.
pub(super) fn write(message: &Message, at: Time, losses: &mut Losses) -> String {
    let mut object = Object::new();
    let role = match message.role {
        Role::System => "system",
        Role::User => "user",
        Role::Assistant => "assistant",
        Role::Tool => "tool",
    };
    object.put_text("role", role);
    let result = message.results().next();
    let text = result.map_or_else(|| message.text(), |result| result.text.clone());
    object.put_text("content", &text);
    object.put("segments", &segments(message));
    let calls: Vec<String> = message.calls().map(|it| written_call(it, losses)).collect();
    if !calls.is_empty() {
        object.put("tool_calls", &list(calls));
    }
    if let Some(result) = result {
        object.put_text("tool_call_id", &result.call_id);
        if result.is_error {
            losses.count("whether a tool failed");
        }
        result.images.iter().for_each(|_| losses.count("pictures of tools"));
    }
    if let Some(usage) = &message.usage {
        let mut tokens = Object::new();
        tokens.put("prompt_tokens", &usage.input.to_string());
        tokens.put("completion_tokens", &usage.output.to_string());
        tokens.put("total_tokens", &usage.total().to_string());
        object.put("usage", &tokens.end());
    }
    object.put_text("created_at", &TimeForm::Zulu.text(at));
    if message.lane == skipped() {
        object.put("skip_for_llm", "true");
    }
    let pictures = message.parts.iter().filter(|part| matches!(part, Part::Image(_)));
    pictures.for_each(|_| losses.count("pictures"));
    object.end()
}

fn segments(message: &Message) -> String {
    let segment = |part: &Part| {
        let (kind, text) = match part {
            Part::Thinking(text) => ("thinking", &text.text),
            Part::Text(text) => ("content", &text.text),
            _ => return None,
        };
        let mut segment = Object::new();
        segment.put_text("type", kind);
        segment.put_text("content", text);
        segment.put("duration_ms", "0");
        segment.put("visible", "true");
        segment.put_text("started_at", ZERO);
        Some(segment.end())
    };
    list(message.parts.iter().filter_map(segment))
}

fn written_call(call: &ToolCall, losses: &mut Losses) -> String {
    let mut object = Object::new();
    object.put_text("id", &call.id);
    object.put_text("name", &call.name);
    match Fields::parse(&call.arguments) {
        Ok(_) => object.put("input", &call.arguments),
        Err(_) => {
            losses.count("arguments that are no object");
            let mut input = Object::new();
            input.put_text("malformed_arguments", &call.arguments);
            object.put("input", &input.end());
        }
    }
    object.end()
}
