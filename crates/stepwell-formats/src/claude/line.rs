//! Lines of a transcript for what was recorded here.

use serde_json::{Value, json};
use stepwell::Message;
use stepwell::model::{Image, Mark, Part, Role, Text, Time, ToolResult, Usage};

use super::PROVIDER;
use crate::journal::call_names::{Calls, object_of};
use crate::json::fields::quoted;
use crate::read::mark::{CONTINUES, mark_json};
use crate::snapshot::TimeForm;
use crate::write::leftover_parts::Spare;
use crate::write::writer::Purpose;

/// The model of a message that names none.
pub(super) const NO_MODEL: &str = "<synthetic>";

/// What is the same on every line.
#[derive(Clone, Debug)]
pub(super) struct Envelope {
    pub(super) session: String,
    /// The subagent that the transcript is of.
    pub(super) agent: Option<String>,
    pub(super) cwd: String,
    /// What it is written for.
    pub(super) purpose: Purpose,
}

/// Where a line stands.
pub(super) struct Spot<'a> {
    pub(super) uuid: &'a str,
    pub(super) parent: Option<&'a str>,
    pub(super) at: Time,
}

impl Envelope {
    /// What a reader will call the session.
    pub(super) fn id(&self) -> String {
        match &self.agent {
            Some(agent) => format!("{}.{agent}", self.session),
            None => self.session.clone(),
        }
    }

    /// A line with what every line has, and more behind it.
    pub(super) fn line(&self, spot: &Spot<'_>, more: &Value) -> String {
        let mut line = json!({
            "parentUuid": spot.parent,
            "isSidechain": self.agent.is_some(),
            "userType": "external",
            "cwd": self.cwd,
            "sessionId": self.session,
            "version": env!("CARGO_PKG_VERSION"),
            "gitBranch": "",
            "uuid": spot.uuid,
            "timestamp": TimeForm::Millis.text(spot.at),
        });
        if let Some(agent) = &self.agent {
            line["agentId"] = json!(agent);
        }
        if let (Value::Object(line), Value::Object(more)) = (&mut line, more) {
            line.extend(more.clone());
        }
        line.to_string()
    }
}

/// What the provider calls the message of a line.
pub(super) fn message_id(uuid: &str) -> String {
    format!("msg_{}", uuid.replace('-', ""))
}

/// What a line says, for a message that was recorded here. Nothing, if the transcript can
/// hold nothing of it; what it cannot hold is left to `spares`.
pub(super) fn message(
    message: &Message,
    uuid: &str,
    calls: &mut Calls,
    spares: &mut Vec<Spare>,
) -> Option<Value> {
    let mut blocks: Vec<Value> = Vec::new();
    for (at, part) in message.parts.iter().enumerate() {
        let mut spare = |what| spares.push(Spare::new(what, at, part));
        blocks.extend(block(part, calls, &mut spare));
    }
    // A message without a block reaches the model as "(no content)".
    if blocks.is_empty() {
        return None;
    }
    match message.role {
        Role::System => None,
        Role::Assistant => {
            let calls = blocks.iter().any(|block| block["type"] == "tool_use");
            Some(json!({"type": "assistant", "message": {
                "model": message.model.as_deref().unwrap_or(NO_MODEL),
                "id": message_id(uuid),
                "type": "message",
                "role": "assistant",
                "content": blocks,
                "stop_reason": if calls { "tool_use" } else { "end_turn" },
                "stop_sequence": null,
                "usage": usage(message.usage.unwrap_or_default()),
            }}))
        }
        Role::User | Role::Tool => {
            let content = match (&message.parts[..], &blocks[..]) {
                ([Part::Text(text)], [_]) => json!(text.text),
                _ => json!(blocks),
            };
            Some(json!({"type": "user", "message": {"role": "user", "content": content}}))
        }
    }
}

fn block(part: &Part, calls: &mut Calls, spare: &mut dyn FnMut(&'static str)) -> Option<Value> {
    match part {
        // An empty text is refused by the provider.
        Part::Text(text) if text.text.is_empty() => None,
        Part::Text(text) => Some(json!({"type": "text", "text": text.text})),
        Part::Thinking(text) => thinking(text, spare),
        Part::Image(image) => Some(picture(image)),
        Part::ToolCall(call) => {
            let arguments = object_of(&call.arguments);
            if arguments != call.arguments {
                spare("arguments that are no JSON object");
            }
            let input: Value = serde_json::from_str(&arguments).unwrap_or_default();
            let id = calls.call(&call.id, &call.name);
            Some(json!({"type": "tool_use", "id": id, "name": call.name, "input": input}))
        }
        Part::ToolResult(result) => match calls.result(&result.call_id) {
            Some(call) => Some(answer(&call.id, result)),
            None => {
                spare("results without a call");
                None
            }
        },
    }
}

/// Thinking goes back only with the signature of whoever thought it.
fn thinking(text: &Text, spare: &mut dyn FnMut(&'static str)) -> Option<Value> {
    let opaque = text.opaque.as_ref().filter(|opaque| opaque.provider == PROVIDER);
    match opaque.map(|opaque| opaque.data.as_str()) {
        Some(data) if data.starts_with('{') => serde_json::from_str(data).ok(),
        Some(signature) => {
            Some(json!({"type": "thinking", "thinking": text.text, "signature": signature}))
        }
        None => {
            spare("thinking without Anthropic's signature");
            None
        }
    }
}

fn picture(image: &Image) -> Value {
    let source = match image.data.starts_with("http") {
        true => json!({"type": "url", "url": image.data}),
        false => {
            let front = format!("data:{};base64,", image.media_type);
            let data = image.data.strip_prefix(&front).unwrap_or(&image.data);
            json!({"type": "base64", "media_type": image.media_type, "data": data})
        }
    };
    json!({"type": "image", "source": source})
}

fn answer(id: &str, result: &ToolResult) -> Value {
    let content = match result.images.is_empty() {
        true => json!(result.text),
        false => {
            let text = json!({"type": "text", "text": result.text});
            std::iter::once(text).chain(result.images.iter().map(picture)).collect()
        }
    };
    let mut block = json!({"type": "tool_result", "tool_use_id": id, "content": content});
    if result.is_error {
        block["is_error"] = json!(true);
    }
    block
}

fn usage(usage: Usage) -> Value {
    let Usage { input, output, cached, cache_written, .. } = usage;
    json!({
        "input_tokens": input.saturating_sub(cached).saturating_sub(cache_written),
        "cache_creation_input_tokens": cache_written,
        "cache_read_input_tokens": cached,
        "output_tokens": output,
    })
}

/// The line that begins what follows a compaction.
pub(super) fn boundary(after: Option<&str>, tokens: u64) -> Value {
    json!({
        "parentUuid": null,
        "logicalParentUuid": after,
        "type": "system",
        "subtype": "compact_boundary",
        "content": "Conversation compacted",
        "isMeta": false,
        "level": "info",
        "compactMetadata": {"trigger": "auto", "preTokens": tokens},
    })
}

/// The line with a compaction's summary.
pub(super) fn summary(text: &str) -> Value {
    json!({
        "type": "user",
        "message": {"role": "user", "content": text},
        "isCompactSummary": true,
        "isVisibleInTranscriptOnly": true,
    })
}

/// The line that says which line the conversation ends with; none, if it was rewound to its
/// beginning. Claude Code writes the same after a rewind.
pub(super) fn ends_with(session: &str, line: Option<&str>) -> String {
    json!({"type": "last-prompt", "leafUuid": line, "explicit": true, "sessionId": session})
        .to_string()
}

/// The line that says which session this one goes on from.
pub(super) fn marked(session: &str, mark: &Mark) -> String {
    let (session, mark) = (quoted(session), mark_json(mark));
    format!(r#"{{"type":"stepwell","sessionId":{session},"{CONTINUES}":{mark}}}"#)
}

/// A line that the system passes over, for a part of a message that has no place in it.
pub(super) fn spare(session: &str, message: &str, spare: &Spare) -> String {
    let mut line = json!({"type": "stepwell", "sessionId": session, "of": message});
    if let (Value::Object(line), Value::Object(more)) = (&mut line, spare.line()) {
        line.extend(more);
    }
    line.to_string()
}

/// A line that the system passes over, and this format's reader does not.
pub(super) fn kept(session: &str, event: &str) -> String {
    format!(r#"{{"type":"stepwell","sessionId":{},"event":{event}}}"#, quoted(session))
}
