//! Questions: the client is asked what is on record already, and whoever answers first counts.

use std::sync::Arc;

use serde::Deserialize;
use serde_json::{Value, json};
use stepwell::{Answer, Choice, Gate, Grant};
use stepwell_runtime::OpenGate;

use crate::rpc::Result;
use crate::turn::{Call, Chunk, Input, TurnEvent};

use super::agent::Agent;
use super::open::Open;
use super::update::{diff, text, tool_call};

/// Asks the client. An answer is on its way to the log when this ends; without one the question
/// stays as it is.
pub(super) async fn ask(agent: Arc<Agent>, open: Arc<Open>, gate: Box<OpenGate>) {
    let answer = match gate.gate.call.is_some() {
        true => permission(&agent, &open, &gate).await,
        false if agent.client().forms() => form(&agent, &open, &gate.gate).await,
        false => {
            // The turn ends with the question, and the next prompt answers it.
            Ok(None)
        }
    };
    let Some(running) = open.running() else { return };
    match answer {
        Ok(Some(answer)) => running.send(Input::Answer(gate, answer, None)),
        // The client knows no such question: it waits for another way.
        Ok(None) | Err(_) => running.send(Input::Leave),
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

async fn permission(agent: &Agent, open: &Open, gate: &OpenGate) -> Result<Option<Answer>> {
    let params = permission_request(open, gate);
    let answer = agent.peer.ask("session/request_permission", &params).answer().await?;
    let outcome = answer.get("outcome").cloned().unwrap_or_default();
    Ok(match serde_json::from_value(outcome) {
        Ok(Outcome::Selected { option_id }) => chosen(&option_id),
        // A turn that is cancelled ends by itself; the question stays.
        Ok(Outcome::Cancelled) | Err(_) => None,
    })
}

fn permission_request(open: &Open, gate: &OpenGate) -> Value {
    let asked = gate.gate.call.as_deref();
    let here = gate.here.as_ref().and_then(|here| here.call.as_ref());
    let id = here.map_or(gate.gate.id.as_str(), |call| call.id.as_str());
    let (tool, arguments) = asked.map_or(("", ""), |it| (it.tool.as_str(), it.arguments.as_str()));
    let call = Call::of(id, tool, arguments, &open.conversation.root());
    let mut shown = tool_call(&call);
    shown["status"] = json!("pending");
    let detail = asked.and_then(|asked| asked.detail.as_deref());
    let content = match (call.proposed(), detail) {
        (Some(change), _) => vec![diff(&change)],
        (None, Some(detail)) => vec![text(&format!("```diff\n{detail}\n```"))],
        (None, None) => vec![text(&gate.gate.prompt)],
    };
    shown["content"] = Value::Array(content);
    json!({"sessionId": open.name(), "toolCall": shown, "options": choices(&gate.gate)})
}

fn choices(gate: &Gate) -> Vec<Value> {
    let all = gate.call.as_ref().map(|call| call.choices.clone()).unwrap_or_default();
    let all = if all.is_empty() { Choice::ALL.to_vec() } else { all };
    let option = |choice: Choice| {
        let (id, name) = match choice {
            Choice::Once => ("allow_once", "Allow"),
            Choice::Always => ("allow_always", "Always allow this tool in this session"),
            Choice::Deny => ("reject_once", "Deny"),
            Choice::Never => ("reject_always", "Never allow this tool in this session"),
        };
        json!({"optionId": id, "kind": id, "name": name})
    };
    all.into_iter().map(option).collect()
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

async fn form(agent: &Agent, open: &Open, gate: &Gate) -> Result<Option<Answer>> {
    let mut field = json!({"type": "string", "title": "Answer"});
    if let Some(usual) = &gate.default {
        field["default"] = json!(usual);
    }
    let params = json!({
        "mode": "form",
        "sessionId": open.name(),
        "message": gate.prompt,
        "requestedSchema": {
            "type": "object",
            "properties": {"answer": field},
            "required": ["answer"],
        },
    });
    let answer = agent.peer.ask("elicitation/create", &params).answer().await?;
    let said = answer.pointer("/content/answer").and_then(Value::as_str);
    Ok(match (answer.get("action").and_then(Value::as_str), said) {
        (Some("accept"), Some(said)) => Some(Answer::Text(said.to_owned())),
        _ => None,
    })
}

/// What a session waits for, told to whoever opens it.
pub(super) fn tell_waiting(agent: &Agent, open: &Open) {
    if open.conversation.is_held().unwrap_or_default() {
        return;
    }
    for gate in open.conversation.open_gates().unwrap_or_default() {
        let hint = match gate.gate.call {
            Some(_) => "\n\nAnswer yes, always, no or never; or say what to do instead.",
            None => "",
        };
        let (message, text) = (format!("gate-{}", gate.gate.id), gate.gate.prompt.clone() + hint);
        open.tell(agent, &TurnEvent::Text(Chunk { message, text }));
    }
}
