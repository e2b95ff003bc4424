//! A sequence of steps, each of which sees the results of those before it.

use serde_json::{Value, json};
use stepwell::Lane;
use stepwell::model::NodeKey;

use super::step::{At, Fallback, key_index, response, run_step};
use crate::flow::Flow;
use crate::halt::Halt;
use crate::spec::Step;
use crate::template::Scope;

/// Finished steps, and the values that templates see.
pub(super) struct Sequence {
    pub(super) scope: Scope,
    steps: Vec<Value>,
    pub(super) last: Value,
}

impl Sequence {
    /// A sequence without a finished step. `scope` has the other values that templates see.
    pub(super) fn new(scope: Scope) -> Self {
        let mut sequence = Self { scope, steps: Vec::new(), last: Value::Null };
        sequence.scope.set("steps", &sequence.steps);
        sequence
    }

    /// Runs steps, one after the other.
    pub(crate) async fn walk(
        mut self,
        flow: &Flow<'_>,
        steps: &[Step],
        key: impl Fn(u32) -> NodeKey,
        lane: impl Fn(&str) -> Lane,
    ) -> Result<Self, Halt> {
        for (n, step) in steps.iter().enumerate() {
            let key = key(key_index(n));
            let agent = step.agent().map(|step| step.agent.as_str());
            let lane = lane(agent.unwrap_or("human"));
            let at = At { key: &key, lane, scope: &self.scope };
            let output = run_step(flow, step, at, Fallback::LastResponse).await?;
            self.push(n, step, &output);
        }
        Ok(self)
    }

    fn push(&mut self, index: usize, step: &Step, output: &Value) {
        self.last = response(output);
        let mut entry = result_entry(step, output);
        entry["index"] = json!(index);
        self.steps.push(entry);
        self.scope.set("steps", &self.steps);
        self.scope.set("last_response", &self.last);
        if step.gate().is_some() {
            self.scope.set("hitl_response", &self.last);
        }
    }

    /// The results of the finished steps.
    pub(super) fn steps(&self) -> &[Value] {
        &self.steps
    }
}

/// A finished step, as templates see it.
pub(super) fn result_entry(step: &Step, output: &Value) -> Value {
    let mut entry = output.clone();
    entry["status"] = json!("success");
    match step {
        Step::Agent(step) => entry["agent"] = json!(step.agent.as_str()),
        Step::Hitl(_) => entry["type"] = json!("hitl"),
    }
    entry
}
