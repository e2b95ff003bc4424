//! What a user can choose for a session: mode, model, thought level, agent.

use serde_json::{Value, json};
use stepwell::model::Mode;
use stepwell_agent::provider::remote::Effort;

use crate::rpc::{Result, RpcError};
use crate::turn::Conversation;

use super::fault::failed;

/// The option for how long a model thinks, and its value while nobody chose one.
const THOUGHT: &str = "thought_level";
const USUAL: &str = "default";

/// The modes, and which one holds.
pub(super) fn modes(on: &Conversation) -> Result<Value> {
    let holds = on.holds().map_err(|error| failed(&error))?;
    let mode = |mode: Mode| {
        let (name, description) = described(mode);
        json!({"id": mode.as_str(), "name": name, "description": description})
    };
    let available: Vec<Value> = Mode::ALL.into_iter().map(mode).collect();
    Ok(json!({"currentModeId": holds.mode.as_str(), "availableModes": available}))
}

const fn described(mode: Mode) -> (&'static str, &'static str) {
    match mode {
        Mode::ConfirmAll => ("Ask always", "Asks before every call of a tool"),
        Mode::ConfirmSensitive => {
            ("Ask before changes", "Asks before a call that changes something")
        }
        Mode::Yolo => ("Never ask", "Runs every call without asking"),
    }
}

/// Every option, and what holds.
pub(super) fn options(on: &Conversation) -> Result<Value> {
    let holds = on.holds().map_err(|error| failed(&error))?;
    let mode = |mode: Mode| {
        let (name, description) = described(mode);
        json!({"value": mode.as_str(), "name": name, "description": description})
    };
    let modes: Vec<Value> = Mode::ALL.into_iter().map(mode).collect();
    let mut options = vec![json!({
        "id": "mode", "name": "Mode", "category": "mode", "type": "select",
        "currentValue": holds.mode.as_str(), "options": modes,
    })];
    let named = |name: &String| json!({"value": name, "name": name});
    let mut models = on.models();
    if !holds.model.is_empty() {
        models.retain(|model| *model != holds.model);
        models.insert(0, holds.model.clone());
        let models: Vec<Value> = models.iter().map(named).collect();
        options.push(json!({
            "id": "model", "name": "Model", "category": "model", "type": "select",
            "currentValue": holds.model, "options": models,
        }));
    }
    let efforts = Effort::ALL.map(|effort| (effort.as_str(), effort.as_str()));
    let efforts = std::iter::once((USUAL, "As the provider has it")).chain(efforts);
    let efforts: Vec<Value> =
        efforts.map(|(value, name)| json!({"value": value, "name": name})).collect();
    options.push(json!({
        "id": THOUGHT, "name": "Thought level", "category": "thought_level", "type": "select",
        "currentValue": on.chosen().effort.map_or(USUAL, Effort::as_str), "options": efforts,
    }));
    let agents: Vec<Value> = on.runtime().agents().keys().map(named).collect();
    options.push(json!({
        "id": "agent", "name": "Agent", "type": "select",
        "currentValue": holds.agent, "options": agents,
    }));
    Ok(Value::Array(options))
}

/// Chooses something for the turns to come.
pub(super) fn choose(on: &Conversation, option: &str, value: &str) -> Result<()> {
    let wrong = |why: String| RpcError::invalid_params(why);
    match option {
        "mode" => on.choose_mode(value).map_err(wrong)?,
        "model" => on.choose_model(value).map_err(wrong)?,
        "agent" => on.choose_agent(value).map_err(wrong)?,
        THOUGHT => {
            let effort = Effort::ALL.into_iter().find(|effort| effort.as_str() == value);
            if effort.is_none() && value != USUAL {
                let why = format!("there is no thought level {value:?}");
                return Err(RpcError::invalid_params(why));
            }
            on.chosen().effort = effort;
        }
        _ => return Err(RpcError::invalid_params(format!("there is no option {option:?}"))),
    }
    Ok(())
}
