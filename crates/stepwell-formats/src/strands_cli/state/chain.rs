//! A chain: `current_step`, `step_history`.

use serde_json::{Value, json};

use super::{Outcome, Progress};
use crate::json::fields::Fields;

pub(super) fn read(state: &Fields<'_>, progress: &mut Progress) {
    let history = state.raw("step_history");
    let next = progress.add_steps(history, &["step_history"], |n| format!("step/{n}"));
    let current = state.get::<u64>("current_step").unwrap_or(next);
    if current > next {
        progress
            .doubts
            .push(format!("steps that are done: {current}; steps that are recorded: {next}"));
    }
    progress.next = Some(format!("step/{next}"));
}

pub(super) fn write(outcome: &Outcome<'_>) -> Value {
    let steps = outcome.steps("step");
    json!({"current_step": steps.len(), "step_history": steps})
}
