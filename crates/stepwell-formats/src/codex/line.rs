//! Lines of a rollout for what was recorded here.

use serde_json::{Value, json};
use stepwell::Message;
use stepwell::log::Head;
use stepwell::model::{Image, Part, Role, ToolResult, Usage};

use super::item::{failed, url};
use crate::snapshot::TimeForm;
use crate::write::leftover_parts::Spare;

/// The session that started a subagent's.
#[derive(Clone, Debug)]
pub(super) struct Parent {
    /// Its name there.
    pub(super) thread: String,
    /// How many there are above the subagent.
    pub(super) depth: usize,
}

/// The first line, which is about the whole session.
pub(super) fn meta(head: &Head, id: &str, parent: Option<&Parent>) -> Value {
    let source = match parent {
        None => json!("cli"),
        Some(Parent { thread, depth }) => {
            let spawn = json!({"parent_thread_id": thread, "depth": depth});
            json!({"subagent": {"thread_spawn": spawn}})
        }
    };
    json!({
        "id": id,
        "timestamp": TimeForm::Millis.text(head.created_at),
        "cwd": head.workspace,
        "originator": "stepwell",
        "cli_version": env!("CARGO_PKG_VERSION"),
        "source": source,
        "agent_role": Some(&head.agent).filter(|it| parent.is_some() && !it.is_empty()),
        // A provider that Codex does not have makes it refuse the session, and leave it out
        // of its lists. Without one, it is whoever is configured there.
        "model_provider": null,
        "history_mode": "legacy",
    })
}

/// The items of a message: what the model was sent, or what it answered. What they cannot
/// hold is left to `spares`.
pub(super) fn items(message: &Message, spares: &mut Vec<Spare>) -> Vec<Value> {
    let mut items: Vec<Value> = Vec::new();
    let mut content: Vec<Value> = Vec::new();
    let role = match message.role {
        Role::User | Role::Tool => "user",
        Role::Assistant => "assistant",
        Role::System => "developer",
    };
    for (at, part) in message.parts.iter().enumerate() {
        match part {
            Part::Text(text) if text.text.is_empty() => {}
            Part::Text(text) => content.push(text_block(role, &text.text)),
            Part::Image(image) => content.push(picture(image)),
            // Without what only its provider can read it is refused.
            Part::Thinking(_) => spares.push(Spare::new("thinking of other agents", at, part)),
            Part::ToolCall(call) => {
                close(&mut items, &mut content, role);
                items.push(json!({
                    "type": "function_call",
                    "name": call.name,
                    "arguments": call.arguments,
                    "call_id": call.id,
                }));
            }
            Part::ToolResult(result) => {
                close(&mut items, &mut content, role);
                items.push(answer(result));
                if result.is_error && !failed(&result.text) {
                    // Its text is in the item.
                    let ToolResult { call_id, is_error, .. } = result.clone();
                    let mark = ToolResult { call_id, is_error, ..ToolResult::default() };
                    let what = "marks of results that are errors";
                    spares.push(Spare::new(what, at, &Part::ToolResult(mark)));
                }
            }
        }
    }
    close(&mut items, &mut content, role);
    items
}

fn close(items: &mut Vec<Value>, content: &mut Vec<Value>, role: &str) {
    if !content.is_empty() {
        let content = std::mem::take(content);
        items.push(json!({"type": "message", "role": role, "content": content}));
    }
}

fn text_block(role: &str, text: &str) -> Value {
    let kind = if role == "assistant" { "output_text" } else { "input_text" };
    json!({"type": kind, "text": text})
}

fn picture(image: &Image) -> Value {
    json!({"type": "input_image", "image_url": url(image)})
}

fn answer(result: &ToolResult) -> Value {
    let output = match result.images.is_empty() {
        true => json!(result.text),
        false => {
            let text = json!({"type": "input_text", "text": result.text});
            std::iter::once(text).chain(result.images.iter().map(picture)).collect()
        }
    };
    json!({"type": "function_call_output", "call_id": result.call_id, "output": output})
}

/// What a screen shows of a message: without it a session is not offered to be resumed.
pub(super) fn shown(message: &Message) -> Option<Value> {
    let text = message.text();
    match message.role {
        _ if text.is_empty() => None,
        Role::User => Some(json!({"type": "user_message", "message": text, "images": []})),
        Role::Assistant => Some(json!({"type": "agent_message", "message": text})),
        Role::System | Role::Tool => None,
    }
}

/// Tokens of an answer, if they were counted, and of all until now. It also says that the
/// answer is complete.
pub(super) fn tokens(last: Option<Usage>, total: Usage) -> Value {
    let info = last.map(|last| {
        json!({
            "total_token_usage": usage(total),
            "last_token_usage": usage(last),
            "model_context_window": null,
        })
    });
    json!({"type": "token_count", "info": info, "rate_limits": null})
}

fn usage(usage: Usage) -> Value {
    json!({
        "input_tokens": usage.input,
        "cached_input_tokens": usage.cached,
        "cache_write_input_tokens": usage.cache_written,
        "output_tokens": usage.output,
        "reasoning_output_tokens": usage.reasoning,
        "total_tokens": usage.total(),
    })
}
