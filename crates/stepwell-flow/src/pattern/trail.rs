//! A trail: steps one after the other, each of which sees those before it.

use serde_json::{Value, json};
use stepwell::{Lane, NodeKey};

use super::{At, Otherwise, response, step};
use crate::flow::Flow;
use crate::halt::Halt;
use crate::spec::Step;
use crate::template::Scope;

/// Steps that were done, and what templates see of them.
pub(super) struct Trail {
    pub(super) scope: Scope,
    steps: Vec<Value>,
    pub(super) last: Value,
}

impl Trail {
    /// No step yet; `scope` is what is seen besides.
    pub(super) fn new(scope: Scope) -> Self {
        let mut trail = Self { scope, steps: Vec::new(), last: Value::Null };
        trail.scope.set("steps", &trail.steps);
        trail
    }

    /// Does steps, one after the other.
    pub(super) async fn walk(
        mut self,
        flow: &Flow<'_>,
        steps: &[Step],
        key: impl Fn(u32) -> NodeKey,
        lane: impl Fn(&str) -> Lane,
    ) -> Result<Self, Halt> {
        for (n, step_of) in steps.iter().enumerate() {
            let key = key(super::number(n));
            let agent = step_of.agent().map(|step| step.agent.as_str());
            let lane = lane(agent.unwrap_or("human"));
            let at = At { key: &key, lane, scope: &self.scope };
            let output = step(flow, step_of, at, Otherwise::LastResponse).await?;
            self.push(n, step_of, &output);
        }
        Ok(self)
    }

    fn push(&mut self, index: usize, step: &Step, output: &Value) {
        self.last = response(output);
        let mut entry = described(step, output);
        entry["index"] = json!(index);
        self.steps.push(entry);
        self.scope.set("steps", &self.steps);
        self.scope.set("last_response", &self.last);
        if step.gate().is_some() {
            self.scope.set("hitl_response", &self.last);
        }
    }

    /// What a branch or a route came to.
    pub(super) fn steps(&self) -> &[Value] {
        &self.steps
    }
}

/// What templates see of a piece of work that is done.
pub(super) fn described(step: &Step, output: &Value) -> Value {
    let mut entry = output.clone();
    entry["status"] = json!("success");
    match step {
        Step::Agent(step) => entry["agent"] = json!(step.agent.as_str()),
        Step::Hitl(_) => entry["type"] = json!("hitl"),
    }
    entry
}
