//! Events and messages as text.

use stepwell::model::{Part, Rewinding, Role, Undone};
use stepwell::{Event, Message};

use crate::text::{indented, one_line, visible, word};
use crate::wording;

/// What a message says, on one line.
#[must_use]
pub fn gist(message: &Message) -> String {
    let parts = message.parts.iter().map(|part| match part {
        Part::Text(text) => one_line(&text.text),
        Part::Thinking(text) => format!("(thinks: {})", one_line(&text.text)),
        Part::Image(_) => "(an image)".to_owned(),
        Part::ToolCall(call) => format!("{}({})", call.name, one_line(&call.arguments)),
        Part::ToolResult(result) if result.is_error => {
            format!("failed: {}", one_line(&result.text))
        }
        Part::ToolResult(result) => one_line(&result.text),
    });
    let parts: Vec<String> = parts.filter(|part| !part.is_empty()).collect();
    format!("{}: {}", speaker(message), visible(&parts.join(" ")))
}

/// Who says a message.
#[must_use]
pub fn speaker(message: &Message) -> &'static str {
    match message.role {
        Role::System => "system",
        Role::User if !message.is_from_user() => "context",
        Role::User => "user",
        Role::Assistant => "assistant",
        Role::Tool => "tool",
    }
}

/// What an event says, on one line.
#[must_use]
pub fn detail(event: &Event) -> String {
    match event {
        Event::Created(created) => one_line(&created.task),
        Event::Message(message) => gist(message),
        Event::Status(change) => change.status.to_string(),
        Event::Settings(settings) => one_line(&wording::settings(settings)),
        Event::Phase(change) => format!("{} to {}", change.from, change.to),
        Event::Rewinding(Rewinding::Begun { to, files, .. }) => {
            format!("to {to}, {}", stepwell::model::counted(*files, "file"))
        }
        Event::Rewinding(Rewinding::Dropped { why, .. }) => format!("dropped: {why}"),
        Event::Rewound(rewound) => format!("to {}, {}", rewound.to, word(rewound.scope)),
        Event::Undone(Undone::Compaction { of } | Undone::Rewind { of, .. }) => {
            format!("of {of}")
        }
        Event::Said(said) => one_line(&format!("{}: {}", said.who, said.text)),
        Event::StopAsked(stop) => one_line(&format!("by {}", stop.who)),
        Event::WorkAsked(asked) => {
            one_line(&format!("{}: {}", asked.who, wording::work_change(&asked.change)))
        }
        Event::GateAnswered(it) => one_line(&format!("{}: {}, by {}", it.id, it.answer, it.who)),
        Event::Permission(permission) => {
            let who = permission.who.as_ref().map(|who| format!(", by {who}"));
            let allow = if permission.allow { "allowed" } else { "denied" };
            one_line(&format!("{} {allow}{}", permission.rule, who.unwrap_or_default()))
        }
        Event::Error(failure) => one_line(&failure.message),
        other => other.key().map(|key| one_line(&key)).unwrap_or_default(),
    }
}

/// What a message says, part by part.
#[must_use]
pub fn parts(message: &Message) -> Vec<String> {
    let parts = message.parts.iter().map(|part| match part {
        Part::Text(text) => text.text.clone(),
        Part::Thinking(text) => indented(&text.text, "| "),
        Part::Image(image) => format!("(an image, {})", visible(&image.media_type)),
        Part::ToolCall(call) => {
            format!("-> {}({})", one_line(&call.name), one_line(&call.arguments))
        }
        Part::ToolResult(result) if result.is_error => {
            indented(&format!("(failed) {}", result.text), "<- ")
        }
        Part::ToolResult(result) => indented(&result.text, "<- "),
    });
    parts.filter(|part| !part.is_empty()).collect()
}
