//! Writing chats.

use serde_json::{Value, json};
use stepwell::log::Head;
use stepwell::model::{Compacted, EventId, Part, Role, Time};
use stepwell::{Message, Seq, SessionId, Stepwell};

use super::WORDS;
use crate::Result;
use crate::gemini_content::{answer, contents, usage_metadata, written};
use crate::journal::call_names::Calls;
use crate::journal::form::{Envelope, LeftOver, LineWriter, Spot, Words};
use crate::journal::writing;
use crate::json::fields::Fields;
use crate::read::neutral::KEPT;
use crate::snapshot::TimeForm;
use crate::write::facts::Form;
use crate::write::leftover_parts::Spare;
use crate::write::writer::{Exported, Outlet, is_uuid};

/// Writes a session.
pub(super) fn write(well: &Stepwell, id: &SessionId, to: &mut Outlet<'_>) -> Result<Exported> {
    let head = well.info(id)?.head;
    let named = to.name().filter(|name| is_uuid(name)).map(str::to_owned);
    let session = named.unwrap_or_else(|| name_of(&head));
    writing::write(well, &head, &session, &Chat, to)
}

/// The session's name there: its own if it came from there, else one that is made of the name here.
pub(super) fn name_of(head: &Head) -> String {
    let source = head.source.as_ref().filter(|source| source.system == WORDS.system);
    match source {
        Some(source) if is_uuid(&source.id) => source.id.clone(),
        _ if is_uuid(head.id.as_str()) => head.id.to_string(),
        _ => EventId::named(format!("qwen\0{}", head.id).as_bytes()).to_string(),
    }
}

struct Chat;

impl LineWriter for Chat {
    fn words(&self) -> &'static Words {
        &WORDS
    }

    fn form(&self) -> Form {
        let system = WORDS.system;
        Form { system, names_models: true, names_agent: false, names_costs: false, provider: None }
    }

    fn header(&self, _: &Envelope<'_>, _: Option<&Fields<'_>>) -> Option<String> {
        None
    }

    fn name(&self, envelope: &Envelope<'_>, seq: Seq, nth: usize) -> String {
        let of = format!("{}\0{seq}\0{nth}", envelope.session);
        EventId::derived(of.as_bytes()).to_string()
    }

    fn line(&self, envelope: &Envelope<'_>, spot: &Spot<'_>, body: Value) -> String {
        let mut line = json!({
            "uuid": spot.name,
            "parentUuid": spot.parent,
            "sessionId": envelope.session,
            "timestamp": TimeForm::Millis.text(spot.at),
            "cwd": envelope.folder(),
            "version": env!("CARGO_PKG_VERSION"),
        });
        if let (Value::Object(line), Value::Object(body)) = (&mut line, body) {
            line.extend(body);
        }
        line.to_string()
    }

    fn message(
        &self,
        _: &Envelope<'_>,
        message: &Message,
        _: Time,
        calls: &mut Calls,
        left: &mut LeftOver,
    ) -> Vec<Value> {
        let mut lines = Vec::new();
        for (at, part) in message.parts.iter().enumerate() {
            let Part::ToolResult(result) = part else { continue };
            match answer(result, calls) {
                Some((id, parts)) => {
                    let status = if result.is_error { "error" } else { "success" };
                    lines.push(json!({
                        "type": "tool_result",
                        "provenance": "tool_result",
                        "message": { "role": "user", "parts": parts },
                        "toolCallResult": {
                            "callId": id, "status": status, "resultDisplay": result.text,
                        },
                    }));
                }
                None => left.spares.push(Spare::new("results without a call", at, part)),
            }
        }
        let said = written(message, calls, left);
        if !said.is_empty() {
            lines.push(match message.role {
                Role::Assistant => said_by_model(message, &said, left),
                _ => said_by_user(message, &said),
            });
        }
        lines
    }

    fn compaction(
        &self,
        _: &Envelope<'_>,
        compacted: &Compacted,
        shown: &[Message],
        _: Time,
    ) -> Vec<Value> {
        let (mut calls, mut left) = (Calls::default(), LeftOver::default());
        let summary = compacted.summary.as_ref();
        let summary = summary.map(|text| json!({ "role": "user", "parts": [{ "text": text }] }));
        let shown = shown.iter().flat_map(|it| contents(it, &mut calls, &mut left));
        let history: Vec<Value> = summary.into_iter().chain(shown).collect();
        vec![json!({
            "type": "system",
            "provenance": "system",
            "subtype": "chat_compression",
            "systemPayload": {
                "info": {
                    "originalTokenCount": compacted.tokens_before,
                    "newTokenCount": compacted.tokens_after,
                    "compressionStatus": 1,
                },
                "compressedHistory": history,
            },
        })]
    }

    fn title(&self, title: &str) -> Value {
        json!({
            "type": "system",
            "provenance": "system",
            "subtype": "custom_title",
            "systemPayload": { "customTitle": title, "titleSource": "manual" },
        })
    }

    fn ours(&self, payload: Value) -> Value {
        json!({
            "type": "system", "provenance": "system", "subtype": KEPT, "systemPayload": payload,
        })
    }
}

fn said_by_user(message: &Message, parts: &[Value]) -> Value {
    let provenance = if message.is_from_user() { "real_user" } else { "system" };
    let content = json!({ "role": "user", "parts": parts });
    json!({ "type": "user", "provenance": provenance, "message": content })
}

fn said_by_model(message: &Message, parts: &[Value], left: &mut LeftOver) -> Value {
    let mut line = json!({
        "type": "assistant",
        "provenance": "assistant_output",
        "model": message.model.as_deref().unwrap_or_default(),
        "message": { "role": "model", "parts": parts },
    });
    if let Some(usage) = message.usage {
        if usage.cache_written > 0 {
            left.losses.count("tokens that were written to a cache");
        }
        line["usageMetadata"] = usage_metadata(usage);
    }
    line
}
