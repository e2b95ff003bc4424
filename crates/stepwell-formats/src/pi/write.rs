//! Writing sessions of Pi.

use serde_json::{Value, json};
use stepwell::log::Head;
use stepwell::model::{Compacted, EventId, Image, Part, Role, Text, Time, ToolResult};
use stepwell::{Message, Seq, SessionId, Stepwell};

use super::WORDS;
use super::content::{SUMMARY, between};
use crate::Result;
use crate::journal::call_names::{Calls, object_of};
use crate::journal::form::{Envelope, LeftOver, LineWriter, Spot, Words};
use crate::journal::writing;
use crate::json::fields::{Fields, quoted};
use crate::read::neutral::KEPT;
use crate::snapshot::TimeForm;
use crate::write::facts::Form;
use crate::write::leftover_parts::Spare;
use crate::write::writer::{Exported, Outlet, is_token, is_uuid};

/// The version of the form that is written.
const VERSION: u32 = 3;

/// Writes a session.
pub(super) fn write(well: &Stepwell, id: &SessionId, to: &mut Outlet<'_>) -> Result<Exported> {
    let head = well.info(id)?.head;
    let own = name_of(&head);
    // The file is called by the time, and by the session.
    let named = to.name().map(|name| name.rsplit_once('_').map_or(name, |(_, name)| name));
    let named = named.filter(|name| *name == own || is_uuid(name)).map(str::to_owned);
    writing::write(well, &head, &named.unwrap_or(own), &Entries, to)
}

/// The session's name there: its own if it came from there, else one that is made of the name here.
pub(super) fn name_of(head: &Head) -> String {
    let source = head.source.as_ref().filter(|source| source.system == WORDS.system);
    match source {
        Some(source) if is_token(&source.id) => source.id.clone(),
        _ if is_uuid(head.id.as_str()) => head.id.to_string(),
        _ => EventId::derived(format!("pi\0{}", head.id).as_bytes()).to_string(),
    }
}

struct Entries;

impl LineWriter for Entries {
    fn words(&self) -> &'static Words {
        &WORDS
    }

    fn form(&self) -> Form {
        let system = WORDS.system;
        Form { system, names_models: true, names_agent: false, names_costs: true, provider: None }
    }

    fn header(&self, envelope: &Envelope<'_>, own: Option<&Fields<'_>>) -> Option<String> {
        let head = envelope.head;
        Some(match own {
            Some(own) => {
                let (id, cwd) = (quoted(envelope.session), quoted(envelope.folder()));
                match envelope.workspace {
                    Some(_) => own.rewritten(&[("id", Some(&id)), ("cwd", Some(&cwd))]),
                    None => own.rewritten(&[("id", Some(&id))]),
                }
            }
            None => json!({
                "type": "session",
                "version": VERSION,
                "id": envelope.session,
                "timestamp": TimeForm::Millis.text(head.created_at),
                "cwd": envelope.folder(),
            })
            .to_string(),
        })
    }

    fn name(&self, envelope: &Envelope<'_>, seq: Seq, nth: usize) -> String {
        let of = format!("{}\0{seq}\0{nth}", envelope.session);
        let name = EventId::derived(of.as_bytes()).to_string().replace('-', "");
        // Pi's own have eight: so many more that none is there twice.
        name[..16].to_owned()
    }

    fn line(&self, _: &Envelope<'_>, spot: &Spot<'_>, body: Value) -> String {
        let mut line = json!({
            "id": spot.name,
            "parentId": spot.parent,
            "timestamp": TimeForm::Millis.text(spot.at),
        });
        if let (Value::Object(line), Value::Object(body)) = (&mut line, body) {
            line.extend(body);
        }
        line.to_string()
    }

    fn message(
        &self,
        envelope: &Envelope<'_>,
        message: &Message,
        at: Time,
        calls: &mut Calls,
        left: &mut LeftOver,
    ) -> Vec<Value> {
        let mut lines = Vec::new();
        for (place, part) in message.parts.iter().enumerate() {
            let Part::ToolResult(result) = part else { continue };
            match answer(result, at, calls) {
                Some(line) => lines.push(line),
                None => left.spares.push(Spare::new("results without a call", place, part)),
            }
        }
        let provider = provider(envelope.head);
        let blocks = blocks(message, provider, calls, left);
        let said = |block: &Value| block["type"] != "thinking";
        match message.role {
            _ if blocks.is_empty() => {}
            Role::Assistant => lines.push(answered(envelope.head, message, &blocks, at)),
            _ if !blocks.iter().any(said) => {}
            Role::User if message.is_from_user() => lines.push(entry(&json!({
                "role": "user", "content": blocks, "timestamp": millis(at),
            }))),
            _ => lines.push(json!({
                "type": "custom_message",
                "customType": "context",
                "content": blocks,
                "display": false,
            })),
        }
        lines
    }

    fn compaction(
        &self,
        envelope: &Envelope<'_>,
        compacted: &Compacted,
        shown: &[Message],
        at: Time,
    ) -> Vec<Value> {
        let summary = compacted.summary.as_deref().unwrap_or_default();
        let (before, after) = SUMMARY;
        let bare = summary.strip_prefix(before).and_then(|rest| rest.strip_suffix(after));
        let summary = bare.filter(|bare| between(SUMMARY, bare) == summary).unwrap_or(summary);
        let mut lines = vec![json!({
            "type": "compaction",
            "summary": summary,
            // What stays follows.
            "firstKeptEntryId": "",
            "tokensBefore": compacted.tokens_before,
        })];
        let mut calls = Calls::default();
        for message in shown {
            lines.extend(self.message(envelope, message, at, &mut calls, &mut LeftOver::default()));
        }
        lines
    }

    fn title(&self, title: &str) -> Value {
        json!({ "type": "session_info", "name": title })
    }

    fn ours(&self, payload: Value) -> Value {
        json!({ "type": "custom", "customType": KEPT, "data": payload })
    }
}

fn entry(message: &Value) -> Value {
    json!({ "type": "message", "message": message })
}

fn millis(at: Time) -> i64 {
    at.as_micros() / 1_000
}

/// Whose model it is. Pi takes up a signature only from the same one.
fn provider(head: &Head) -> &str {
    match head.model_provider() {
        "" => "unknown",
        provider => provider,
    }
}

/// The way in which Pi speaks to a provider.
fn api(provider: &str) -> &'static str {
    match provider {
        "anthropic" => "anthropic-messages",
        "google" => "google-generative-ai",
        "openai" => "openai-responses",
        _ => "openai-completions",
    }
}

fn blocks(message: &Message, provider: &str, calls: &mut Calls, left: &mut LeftOver) -> Vec<Value> {
    let mut blocks = Vec::new();
    for (place, part) in message.parts.iter().enumerate() {
        let mut spare = |what| left.spares.push(Spare::new(what, place, part));
        match part {
            // An empty text is refused by providers.
            Part::Text(text) if text.text.trim().is_empty() => {}
            Part::Text(text) => blocks.push(json!({ "type": "text", "text": text.text })),
            Part::Thinking(thought) => match thinking(thought, provider) {
                Some(block) => blocks.push(block),
                None => spare("thinking of other agents"),
            },
            Part::Image(image) if image.data.starts_with("http") => {
                left.losses.count("pictures at an address");
                blocks.push(json!({ "type": "text", "text": image.data }));
            }
            Part::Image(image) => blocks.push(picture(image)),
            Part::ToolCall(call) => {
                let arguments = object_of(&call.arguments);
                if arguments != call.arguments {
                    spare("arguments that are no JSON object");
                }
                let arguments: Value = serde_json::from_str(&arguments).unwrap_or_default();
                let id = calls.call(&call.id, &call.name);
                blocks.push(json!({
                    "type": "toolCall", "id": id, "name": call.name, "arguments": arguments,
                }));
            }
            Part::ToolResult(_) => {}
        }
    }
    blocks
}

/// A thought, unless its signature is another provider's.
fn thinking(thought: &Text, provider: &str) -> Option<Value> {
    let mut block = json!({ "type": "thinking", "thinking": thought.text });
    if let Some(opaque) = &thought.opaque {
        if opaque.provider != provider || thought.text.is_empty() {
            return None;
        }
        block["thinkingSignature"] = json!(opaque.data);
    }
    Some(block)
}

fn picture(image: &Image) -> Value {
    let front = format!("data:{};base64,", image.media_type);
    let data = image.data.strip_prefix(&front).unwrap_or(&image.data);
    json!({ "type": "image", "mimeType": image.media_type, "data": data })
}

fn answered(head: &Head, message: &Message, blocks: &[Value], at: Time) -> Value {
    let calls = blocks.iter().any(|block| block["type"] == "toolCall");
    let usage = message.usage.unwrap_or_default();
    let cost: f64 = message.cost.unwrap_or_default().to_string().parse().unwrap_or_default();
    let (cached, written) = (usage.cached, usage.cache_written);
    let provider = provider(head);
    entry(&json!({
        "role": "assistant",
        "content": blocks,
        "api": api(provider),
        "provider": provider,
        "model": message.model.as_deref().unwrap_or(&head.model),
        "usage": {
            "input": usage.input.saturating_sub(cached).saturating_sub(written),
            "output": usage.output,
            "cacheRead": cached,
            "cacheWrite": written,
            "totalTokens": usage.total(),
            "cost": { "input": 0, "output": 0, "cacheRead": 0, "cacheWrite": 0, "total": cost },
        },
        "stopReason": if calls { "toolUse" } else { "stop" },
        "timestamp": millis(at),
    }))
}

fn answer(result: &ToolResult, at: Time, calls: &Calls) -> Option<Value> {
    let call = calls.result(&result.call_id)?;
    let text = json!({ "type": "text", "text": result.text });
    let content: Vec<Value> =
        std::iter::once(text).chain(result.images.iter().map(picture)).collect();
    Some(entry(&json!({
        "role": "toolResult",
        "toolCallId": call.id,
        "toolName": call.tool,
        "content": content,
        "isError": result.is_error,
        "timestamp": millis(at),
    })))
}
