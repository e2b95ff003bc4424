//! Questions: the client is asked what is on record already, and whoever answers first counts.

use serde::Deserialize;
use serde_json::{Value, json};
use stepwell::model::{Answer, Choice, Gate, Grant, counted};
use stepwell_runtime::OpenGate;

use crate::rpc::Result;
use crate::turn::{Call, Conversation, Proposal};

use super::client::Client;
use super::update::{diff, text, tool_call};

/// What the client answers; nothing, if it knows no such question: it waits for another way.
pub(super) async fn answer(
    client: &Client,
    on: &Conversation,
    gate: &OpenGate,
) -> Result<Option<Answer>> {
    match gate.gate.call.is_some() {
        true => permission(client, on, gate).await,
        false if client.able().forms() => form(client, on, &gate.gate).await,
        // The turn ends with the question, and the next prompt answers it.
        false => Ok(None),
    }
}

#[derive(Deserialize)]
#[serde(tag = "outcome", rename_all = "snake_case")]
enum Outcome {
    Cancelled,
    #[serde(rename_all = "camelCase")]
    Selected {
        option_id: String,
    },
}

async fn permission(client: &Client, on: &Conversation, gate: &OpenGate) -> Result<Option<Answer>> {
    let params = permission_request(on, gate).await;
    let answer = client.peer.ask("session/request_permission", &params).answer().await?;
    let outcome = answer.get("outcome").cloned().unwrap_or_default();
    Ok(match serde_json::from_value(outcome) {
        Ok(Outcome::Selected { option_id }) => chosen(&option_id),
        // A turn that is cancelled ends by itself; the question stays.
        Ok(Outcome::Cancelled) | Err(_) => None,
    })
}

async fn permission_request(on: &Conversation, gate: &OpenGate) -> Value {
    let asked = gate.gate.call.as_deref();
    let here = gate.here.as_ref().and_then(|here| here.call.as_ref());
    let id = here.map_or(gate.gate.id.as_str(), |call| call.id.as_str());
    let (tool, arguments) = asked.map_or(("", ""), |it| (it.tool.as_str(), it.arguments.as_str()));
    let call = Call::of(id, tool, arguments, &on.root());
    let mut shown = tool_call(&call);
    shown["status"] = json!("pending");
    let detail = asked.and_then(|asked| asked.detail.as_deref());
    let root = on.root();
    // Files may be slow to read. Without them the question is asked all the same.
    let proposed = tokio::task::spawn_blocking(move || call.proposed(&root)).await;
    let content = match (proposed.unwrap_or_default(), detail) {
        (Some(Proposal::Change(change)), _) => vec![diff(&change)],
        (Some(Proposal::Replaces { bytes }), detail) => {
            let bytes = counted(usize::try_from(bytes).unwrap_or(usize::MAX), "byte");
            vec![text(&format!("This replaces a file of {bytes}.")), in_words(gate, detail)]
        }
        (None, detail) => vec![in_words(gate, detail)],
    };
    shown["content"] = Value::Array(content);
    json!({"sessionId": on.id(), "toolCall": shown, "options": choices(&gate.gate)})
}

/// What would change, as the run says it; else the question.
fn in_words(gate: &OpenGate, detail: Option<&str>) -> Value {
    match detail {
        Some(detail) => text(&format!("```diff\n{detail}\n```")),
        None => text(&gate.gate.prompt),
    }
}

fn choices(gate: &Gate) -> Vec<Value> {
    let Some(call) = gate.call.as_deref() else { return Vec::new() };
    let option = |choice: &Choice| {
        let id = match choice {
            Choice::Once => "allow_once",
            Choice::Always => "allow_always",
            Choice::Deny => "reject_once",
            Choice::Never => "reject_always",
        };
        json!({"optionId": id, "kind": id, "name": choice.label(&call.tool, None)})
    };
    call.offered().iter().map(option).collect()
}

fn chosen(option: &str) -> Option<Answer> {
    match option {
        "allow_once" => Some(Answer::ALLOW_ONCE),
        "allow_always" => Some(Answer::Allow { scope: Grant::Always }),
        "reject_once" => Some(Answer::Deny { reason: None, never: false }),
        "reject_always" => Some(Answer::Deny { reason: None, never: true }),
        _ => None,
    }
}

async fn form(client: &Client, on: &Conversation, gate: &Gate) -> Result<Option<Answer>> {
    let mut field = json!({"type": "string", "title": "Answer"});
    if let Some(usual) = &gate.default {
        field["default"] = json!(usual);
    }
    let params = json!({
        "mode": "form",
        "sessionId": on.id(),
        "message": gate.prompt,
        "requestedSchema": {
            "type": "object",
            "properties": {"answer": field},
            "required": ["answer"],
        },
    });
    let answer = client.peer.ask("elicitation/create", &params).answer().await?;
    let said = answer.pointer("/content/answer").and_then(Value::as_str);
    Ok(match (answer.get("action").and_then(Value::as_str), said) {
        (Some("accept"), Some(said)) => Some(Answer::Text(said.to_owned())),
        _ => None,
    })
}
