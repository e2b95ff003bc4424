//! An orchestrator splits the work into subtasks; workers run them.

use serde_json::{Value, json};
use stepwell::model::NodeKey;

use super::step::{
    At, Completed, Fallback, Prompt, SCHEMA_RETRIES, key_index, lane, output_schema, response,
    run_step, set_unless_variable,
};
use crate::answer;
use crate::ask::Ask;
use crate::flow::Flow;
use crate::gate::Question;
use crate::halt::{self, Halt};
use crate::memo::is_approval;
use crate::node::Work;
use crate::spec::{OrchestratorWorkers, Step};
use crate::template::{Scope, Template};

/// The prompt for a further round.
const MORE: &str = "These are the workers' results:\n\n{{ workers | tojson }}\n\nIf more is to be \
    done, answer with a JSON list of further subtasks, such as [{\"task\": \"…\"}]. If not, answer \
    with an empty list: []";

/// The prompt for another plan after a person rejected one.
const ANOTHER: &str = "The plan is not accepted: {{ hitl_response }}\n\nAnswer with another one, as \
    a JSON list of subtasks, such as [{\"task\": \"…\"}].";

/// Reviews of plans have the numbers of their plans, from 1.
const REDUCE_REVIEW: NodeKey = NodeKey::Review(0);

/// What every part of the pattern needs.
struct Orchestration<'a, 'f> {
    flow: &'a Flow<'f>,
    config: &'a OrchestratorWorkers,
}

pub(crate) async fn walk(flow: &Flow<'_>, config: &OrchestratorWorkers) -> Result<Completed, Halt> {
    let orchestration = Orchestration { flow, config };
    let (mut scope, mut workers) = (flow.variables.clone(), Vec::new());
    set_workers(flow, &mut scope, &workers);
    let rounds = config.orchestrator.limits.max_rounds.map_or(1, std::num::NonZeroU32::get);
    let mut plan = 0;
    for round in 1..=rounds {
        scope.set("round", round);
        set_unless_variable(flow, &mut scope, "round_count", round);
        let tasks = orchestration.plan_round(round, &mut plan, &mut scope).await?;
        if tasks.is_empty() {
            break;
        }
        let jobs = tasks.iter().enumerate().map(|(n, task)| {
            let scope = scope.clone().with("task", task_text(task)).with("subtask", task);
            orchestration.run_worker(plan, key_index(n), task, scope)
        });
        workers.extend(halt::all(futures_util::future::join_all(jobs).await)?);
        set_workers(flow, &mut scope, &workers);
    }
    orchestration.finish(scope, &workers).await
}

fn set_workers(flow: &Flow<'_>, scope: &mut Scope, workers: &[Value]) {
    scope.set("workers", workers);
    set_unless_variable(flow, scope, "worker_count", workers.len());
    set_unless_variable(flow, scope, "num_workers", workers.len());
}

impl Orchestration<'_, '_> {
    /// The subtasks of a round. A reviewer may reject plans as often as they like; `plan` counts
    /// all plans.
    async fn plan_round(
        &self,
        round: u32,
        plan: &mut u32,
        scope: &mut Scope,
    ) -> Result<Vec<Value>, Halt> {
        let flow = self.flow;
        let mut input = if round == 1 { None } else { Template::parse(MORE).ok() };
        loop {
            *plan += 1;
            let output = self.ask_plan(*plan, input.as_ref(), scope).await?;
            let tasks = output["tasks"].as_array().cloned().unwrap_or_default();
            scope.set("plan", &tasks);
            set_unless_variable(flow, scope, "subtasks", &tasks);
            set_unless_variable(flow, scope, "task_count", tasks.len());
            let text = serde_json::to_string_pretty(&tasks).unwrap_or_default();
            set_unless_variable(flow, scope, "orchestrator_response", text);
            let Some(review) = &self.config.decomposition_review else { return Ok(tasks) };
            if tasks.is_empty() {
                return Ok(tasks);
            }
            let question = Question { gate: &review.0, scope };
            let answer = flow.node(&NodeKey::Review(*plan), Work::Gate(question)).await?;
            scope.set("hitl_response", response(&answer));
            if is_approval(answer["response"].as_str().unwrap_or_default()) {
                return Ok(tasks);
            }
            input = Template::parse(ANOTHER).ok();
        }
    }

    /// Asks the orchestrator for a plan. `input` replaces the prompt of the spec.
    async fn ask_plan(
        &self,
        n: u32,
        input: Option<&Template>,
        scope: &Scope,
    ) -> Result<Value, Halt> {
        let (key, orchestrator) = (NodeKey::Plan(n), &self.config.orchestrator);
        let agent = orchestrator.agent.as_str();
        let schema = output_schema(self.flow, &key, agent)?;
        let input = input.or(orchestrator.input.as_ref());
        let prompt = Prompt { agent, input, scope, fallback: Fallback::LastResponse };
        let max = orchestrator.limits.max_workers.map(std::num::NonZeroU32::get);
        let ask = Ask {
            lane: lane("orchestrator"),
            agent,
            tools: None,
            prompt: &|| prompt.render(self.flow),
            read: &|text| {
                schema.validate(text)?;
                answer::subtasks(text, max)
            },
            retries: orchestrator.max_retries,
        };
        self.flow.node(&key, Work::Ask(ask)).await
    }

    /// Runs subtask `n` of a plan.
    async fn run_worker(
        &self,
        plan: u32,
        n: u32,
        task: &Value,
        scope: Scope,
    ) -> Result<Value, Halt> {
        let (key, template) = (NodeKey::Worker(plan, n), &self.config.worker_template);
        let agent = template.agent.as_str();
        let schema = output_schema(self.flow, &key, agent)?;
        let text = task_text(task);
        let (input, fallback) = (template.input.as_ref(), Fallback::Text(&text));
        let prompt = Prompt { agent, input, scope: &scope, fallback };
        let ask = Ask {
            lane: lane(&format!("worker-{plan}-{n}")),
            agent,
            tools: template.tools.as_deref(),
            prompt: &|| prompt.render(self.flow),
            read: &|text| schema.read(text),
            retries: if schema.is_given() { SCHEMA_RETRIES } else { 0 },
        };
        let mut output = self.flow.node(&key, Work::Ask(ask)).await?;
        output["task"] = json!(text);
        output["status"] = json!("success");
        Ok(output)
    }

    /// Combines the workers' results, and runs the last steps.
    async fn finish(&self, mut scope: Scope, workers: &[Value]) -> Result<Completed, Halt> {
        let sections = workers.iter().map(|worker| {
            let text = worker["response"].as_str();
            let text = text.map_or_else(|| worker["response"].to_string(), str::to_owned);
            format!("## {}\n\n{text}", worker["task"].as_str().unwrap_or_default())
        });
        let mut last = Value::from(sections.collect::<Vec<_>>().join("\n\n"));
        scope.set("last_response", &last);
        if let Some(review) = &self.config.reduce_review {
            let question = Question { gate: &review.0, scope: &scope };
            let answer = self.flow.node(&REDUCE_REVIEW, Work::Gate(question)).await?;
            scope.set("hitl_response", response(&answer));
        }
        if let Some(reduce) = &self.config.reduce {
            last = self.run_last_step(reduce, &NodeKey::Reduce, "reduce", &mut scope).await?;
        }
        if let Some(writeup) = &self.config.writeup {
            last = self.run_last_step(writeup, &NodeKey::Writeup, "writeup", &mut scope).await?;
        }
        Ok(Completed { scope, last })
    }

    async fn run_last_step(
        &self,
        step: &Step,
        key: &NodeKey,
        name: &str,
        scope: &mut Scope,
    ) -> Result<Value, Halt> {
        let at = At { key, lane: lane(name), scope };
        let output = run_step(self.flow, step, at, Fallback::LastResponse).await?;
        let last = response(&output);
        scope.set(format!("{name}_response"), &last);
        scope.set("last_response", &last);
        if step.gate().is_some() {
            scope.set("hitl_response", &last);
        }
        Ok(last)
    }
}

/// The text of a subtask.
fn task_text(task: &Value) -> String {
    task["task"].as_str().unwrap_or_default().to_owned()
}
