//! What the turn engine tells, as the protocol's updates. Pure.

use serde_json::{Value, json};
use stepwell::model::Money;

use crate::turn::{
    Call, CallChange, CallKind, CallState, Chunk, Diff, Location, PlanState, Severity, TurnEvent,
};

use super::input::Capabilities;

/// An update; none, if the client has no place for it.
pub(super) fn update(event: &TurnEvent, client: &Capabilities) -> Option<Value> {
    Some(match event {
        TurnEvent::User(chunk) => message("user_message_chunk", chunk),
        TurnEvent::Text(chunk) => message("agent_message_chunk", chunk),
        TurnEvent::Thought(chunk) => message("agent_thought_chunk", chunk),
        TurnEvent::Call(call) => {
            let mut update = tool_call(call);
            update["sessionUpdate"] = json!("tool_call");
            update["status"] = json!("pending");
            update
        }
        TurnEvent::CallChanged(change) => changed(change),
        TurnEvent::Plan(entries) => {
            let entry = |entry: &crate::turn::PlanEntry| {
                let status = match entry.state {
                    PlanState::Pending => "pending",
                    PlanState::Running => "in_progress",
                    PlanState::Done => "completed",
                };
                json!({"content": entry.text, "priority": "medium", "status": status})
            };
            let entries: Vec<Value> = entries.iter().map(entry).collect();
            json!({"sessionUpdate": "plan", "entries": entries})
        }
        // How full a context is means nothing without its size.
        TurnEvent::Usage(usage) if usage.size == 0 => return None,
        TurnEvent::Usage(usage) => {
            let (used, size) = (usage.used, usage.size);
            let mut update = json!({"sessionUpdate": "usage_update", "used": used, "size": size});
            // The protocol has no word for an estimate, nor for a part.
            if let Some(cost) = usage.cost {
                update["cost"] = json!({"amount": dollars(cost), "currency": "USD"});
            }
            update
        }
        TurnEvent::Compacted { seq, summary } if client.compactions() => {
            let summary = summary.as_ref().map(|text| json!([{"type": "text", "text": text}]));
            json!({
                "sessionUpdate": "compaction_update",
                "compactionId": seq.to_string(),
                "status": "completed",
                "summary": summary,
            })
        }
        TurnEvent::Title(title) => json!({"sessionUpdate": "session_info_update", "title": title}),
        TurnEvent::Notice(notice) if client.notices() => {
            let severity = match notice.severity {
                Severity::Info => "info",
                Severity::Warning => "warning",
            };
            let (title, description) = (&notice.title, &notice.description);
            let mut update =
                json!({"sessionUpdate": "notice", "severity": severity, "title": title});
            if let Some(description) = description {
                update["description"] = json!(description);
            }
            update
        }
        TurnEvent::Compacted { .. }
        | TurnEvent::Notice(_)
        | TurnEvent::Ask(_)
        | TurnEvent::Answered { .. }
        | TurnEvent::Ended { .. } => return None,
    })
}

fn message(kind: &str, Chunk { message, text }: &Chunk) -> Value {
    json!({
        "sessionUpdate": kind,
        "messageId": message,
        "content": {"type": "text", "text": text},
    })
}

/// A call, without how it stands.
pub(super) fn tool_call(call: &Call) -> Value {
    let locations: Vec<Value> = call.locations.iter().map(location).collect();
    json!({
        "toolCallId": call.id,
        "title": call.title,
        "name": call.tool,
        "kind": kind(call.kind),
        "locations": locations,
        "rawInput": call.input,
    })
}

fn changed(change: &CallChange) -> Value {
    let status = match change.state {
        CallState::Running => "in_progress",
        CallState::Done => "completed",
        CallState::Failed => "failed",
    };
    let mut update = json!({
        "sessionUpdate": "tool_call_update",
        "toolCallId": change.id,
        "status": status,
    });
    let mut content: Vec<Value> = change.diffs.iter().map(diff).collect();
    if let Some(said) = change.text.as_ref().filter(|said| !said.is_empty()) {
        content.push(text(said));
        if change.state != CallState::Running {
            update["rawOutput"] = json!({"text": said});
        }
    }
    if !content.is_empty() {
        update["content"] = Value::Array(content);
    }
    if !change.diffs.is_empty() {
        let locations = change.diffs.iter().map(|diff| json!({"path": diff.path}));
        update["locations"] = locations.collect();
    }
    update
}

/// A change of a file, as content of a call.
pub(super) fn diff(diff: &Diff) -> Value {
    json!({
        "type": "diff",
        "path": diff.path,
        "oldText": diff.before,
        "newText": diff.after,
    })
}

/// Text, as content of a call.
pub(super) fn text(text: &str) -> Value {
    json!({"type": "content", "content": {"type": "text", "text": text}})
}

fn location(Location { path, line }: &Location) -> Value {
    match line {
        Some(line) => json!({"path": path, "line": line}),
        None => json!({"path": path}),
    }
}

const fn kind(kind: CallKind) -> &'static str {
    match kind {
        CallKind::Read => "read",
        CallKind::Edit => "edit",
        CallKind::Delete => "delete",
        CallKind::Search => "search",
        CallKind::Execute => "execute",
        CallKind::Think => "think",
        CallKind::Fetch => "fetch",
        CallKind::Other => "other",
    }
}

/// Dollars as the protocol counts them: a number, though money is kept exactly.
fn dollars(money: Money) -> f64 {
    money.to_string().parse().unwrap_or_default()
}
