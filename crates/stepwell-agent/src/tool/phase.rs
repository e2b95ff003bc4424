//! `phase`: shows and changes the session's phase. It only changes the session's record, and only
//! as its set of phases allows.

use futures_util::future::BoxFuture;
use serde::Deserialize;
use serde_json::{Value, json};
use stepwell::model::{Effect, Move, PhaseChanged, PhaseSet};

use super::{Done, Plan, Tool, ToolEnv, parse, spec};
use crate::phases::PhaseState;
use crate::provider::ToolSpec;

#[derive(Debug)]
pub(super) struct Phases {
    spec: ToolSpec,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Arguments {
    #[serde(default)]
    to: Option<String>,
}

pub(super) fn phase(set: PhaseSet) -> Phases {
    let names: Vec<&str> = set.phases().iter().map(|phase| phase.as_str()).collect();
    let spec = spec(
        "phase",
        "The current phase of your work, which the session records. Without `to` it shows the \
         phase and the possible next ones. Change the phase when your work does; each change is a \
         checkpoint that the user can go back to.",
        &json!({
            "to": { "type": "string", "enum": names, "description": "The phase to move to." },
        }),
        &[],
    );
    Phases { spec }
}

impl Phases {
    fn answer(arguments: &Value, state: PhaseState) -> Result<Done, String> {
        let Arguments { to } = parse("phase", arguments)?;
        let PhaseState { set, phase: from, returns } = state;
        let Some(name) = to else {
            return Ok(Done::ok(format!("in phase {from}; next: {}", names(state))));
        };
        let to = set.parse(&name).ok_or_else(|| format!("unknown phase {name:?}"))?;
        match set.judge(from, to, returns) {
            Move::Legal => {
                let entered = PhaseState { phase: to, ..state };
                let text = format!("in phase {to}; next: {}", names(entered));
                Ok(Done { phase: Some(PhaseChanged { from, to }), ..Done::ok(text) })
            }
            Move::Stay => Ok(Done::ok(format!("already in phase {from}"))),
            Move::Illegal(_) => {
                Err(format!("{from} cannot move to {to}; it can move to {}", names(state)))
            }
        }
    }
}

fn names(state: PhaseState) -> String {
    let next = state.set.next(state.phase, state.returns);
    let names: Vec<&str> = next.iter().map(|phase| phase.as_str()).collect();
    if names.is_empty() { "none, it is final".to_owned() } else { names.join(", ") }
}

impl Tool for Phases {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn effect(&self) -> Effect {
        Effect::Pure
    }

    fn preview(&self, arguments: &Value) -> String {
        match arguments.get("to").and_then(Value::as_str) {
            Some(to) => format!("phase {to}"),
            None => "phase".to_owned(),
        }
    }

    fn plan(&self, _arguments: &Value, _place: &ToolEnv) -> Result<Plan, String> {
        Ok(Plan::default())
    }

    fn enter(&self, arguments: &Value, state: Option<PhaseState>) -> Option<Done> {
        let none = || Err("this session has no phases".to_owned());
        let answer = state.map_or_else(none, |state| Self::answer(arguments, state));
        Some(answer.unwrap_or_else(Done::failed))
    }

    fn run<'a>(&'a self, _arguments: &'a Value, _place: &'a ToolEnv) -> BoxFuture<'a, Done> {
        Box::pin(async { Done::failed("phase changes only the record and is never run") })
    }
}

#[cfg(test)]
mod tests {
    use stepwell::model::Phase;

    use super::*;

    #[test]
    fn a_phase_is_entered_only_as_the_set_allows() {
        let tool = phase(PhaseSet::Workflow);
        let state = PhaseState { set: PhaseSet::Workflow, phase: Phase::Plan, returns: 0 };
        let ask = |to: Value| tool.enter(&to, Some(state)).unwrap();
        assert!(ask(json!({})).text.starts_with("in phase plan; next: execute"));
        let moved = ask(json!({"to": "execute"})).phase;
        assert_eq!(moved, Some(PhaseChanged { from: Phase::Plan, to: Phase::Execute }));
        let refused = ask(json!({"to": "ship"}));
        assert_eq!(refused.phase, None);
        assert!(refused.text.contains("plan cannot move to ship"), "{}", refused.text);
        assert_eq!(tool.enter(&json!({}), None).unwrap().phase, None);
    }
}
