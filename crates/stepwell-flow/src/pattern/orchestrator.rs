//! A planner that divides the work, and workers that do it.

use serde_json::{Value, json};
use stepwell::NodeKey;

use super::{At, Otherwise, Reached, lane, number, offer, prompt, response, shape, step};
use crate::answer;
use crate::ask::Ask;
use crate::flow::Flow;
use crate::gate::Question;
use crate::halt::{self, Halt};
use crate::memo::agrees;
use crate::node::Work;
use crate::spec::{OrchestratorWorkers, Step};
use crate::template::{Scope, Template};

/// What an orchestrator is asked for a further round.
const MORE: &str = "These are the workers' results:\n\n{{ workers | tojson }}\n\nIf more is to be \
    done, answer with a JSON list of further subtasks, such as [{\"task\": \"…\"}]. If not, answer \
    with an empty list: []";

/// What an orchestrator is asked when a person wants another plan.
const ANOTHER: &str = "The plan is not accepted: {{ hitl_response }}\n\nAnswer with another one, as \
    a JSON list of subtasks, such as [{\"task\": \"…\"}].";

/// The reviews of plans are numbered as these are, from 1.
const REDUCE_REVIEW: NodeKey = NodeKey::Review(0);

pub(super) async fn walk(flow: &Flow<'_>, config: &OrchestratorWorkers) -> Result<Reached, Halt> {
    let (mut scope, mut workers) = (flow.variables.clone(), Vec::new());
    tell_workers(flow, &mut scope, &workers);
    let rounds = config.orchestrator.limits.max_rounds.map_or(1, std::num::NonZeroU32::get);
    let mut plan = 0;
    for round in 1..=rounds {
        scope.set("round", round);
        offer(flow, &mut scope, "round_count", round);
        let tasks = plan_round(flow, config, (&mut plan, round), &mut scope).await?;
        if tasks.is_empty() {
            break;
        }
        let jobs = tasks.iter().enumerate().map(|(n, task)| {
            let scope = scope.clone().with("task", subject(task)).with("subtask", task);
            worker(flow, config, (plan, number(n)), (task, scope))
        });
        workers.extend(halt::all(futures_util::future::join_all(jobs).await)?);
        tell_workers(flow, &mut scope, &workers);
    }
    finish(flow, config, scope, &workers).await
}

fn tell_workers(flow: &Flow<'_>, scope: &mut Scope, workers: &[Value]) {
    scope.set("workers", workers);
    offer(flow, scope, "worker_count", workers.len());
    offer(flow, scope, "num_workers", workers.len());
}

/// The subtasks of a round. A person may want another plan, as often as they like.
async fn plan_round(
    flow: &Flow<'_>,
    config: &OrchestratorWorkers,
    (plan, round): (&mut u32, u32),
    scope: &mut Scope,
) -> Result<Vec<Value>, Halt> {
    let mut asks = if round == 1 { None } else { Template::parse(MORE).ok() };
    loop {
        *plan += 1;
        let output = ask_plan(flow, config, *plan, (asks.as_ref(), scope)).await?;
        let tasks = output["tasks"].as_array().cloned().unwrap_or_default();
        scope.set("plan", &tasks);
        offer(flow, scope, "subtasks", &tasks);
        offer(flow, scope, "task_count", tasks.len());
        let shown = serde_json::to_string_pretty(&tasks).unwrap_or_default();
        offer(flow, scope, "orchestrator_response", shown);
        let Some(review) = &config.decomposition_review else { return Ok(tasks) };
        if tasks.is_empty() {
            return Ok(tasks);
        }
        let question = Question { gate: &review.0, scope };
        let said = flow.node(&NodeKey::Review(*plan), Work::Gate(question)).await?;
        scope.set("hitl_response", response(&said));
        if agrees(said["response"].as_str().unwrap_or_default()) {
            return Ok(tasks);
        }
        asks = Template::parse(ANOTHER).ok();
    }
}

async fn ask_plan(
    flow: &Flow<'_>,
    config: &OrchestratorWorkers,
    n: u32,
    (asks, scope): (Option<&Template>, &Scope),
) -> Result<Value, Halt> {
    let (key, orchestrator) = (NodeKey::Plan(n), &config.orchestrator);
    let agent = orchestrator.agent.as_str();
    let shape = shape(flow, &key, agent)?;
    let input = asks.or(orchestrator.input.as_ref());
    let most = orchestrator.limits.max_workers.map(std::num::NonZeroU32::get);
    let ask = Ask {
        lane: lane("orchestrator"),
        agent,
        tools: None,
        prompt: &|| prompt(flow, agent, input, scope, &Otherwise::LastResponse),
        read: &|text| {
            shape.holds(text)?;
            answer::subtasks(text, most)
        },
        retries: orchestrator.max_retries,
    };
    flow.node(&key, Work::Ask(ask)).await
}

/// Has a worker do a subtask.
async fn worker(
    flow: &Flow<'_>,
    config: &OrchestratorWorkers,
    (plan, n): (u32, u32),
    (task, scope): (&Value, Scope),
) -> Result<Value, Halt> {
    let (key, template) = (NodeKey::Worker(plan, n), &config.worker_template);
    let agent = template.agent.as_str();
    let shape = shape(flow, &key, agent)?;
    let subject = subject(task);
    let otherwise = Otherwise::Text(&subject);
    let ask = Ask {
        lane: lane(&format!("worker-{plan}-{n}")),
        agent,
        tools: template.tools.as_deref(),
        prompt: &|| prompt(flow, agent, template.input.as_ref(), &scope, &otherwise),
        read: &|text| shape.read(text),
        retries: if shape.is_given() { super::SHAPE_RETRIES } else { 0 },
    };
    let mut output = flow.node(&key, Work::Ask(ask)).await?;
    output["task"] = json!(subject);
    output["status"] = json!("success");
    Ok(output)
}

/// What a subtask is about.
fn subject(task: &Value) -> String {
    task["task"].as_str().unwrap_or_default().to_owned()
}

/// Brings the workers' results together, and has the last word said.
async fn finish(
    flow: &Flow<'_>,
    config: &OrchestratorWorkers,
    mut scope: Scope,
    workers: &[Value],
) -> Result<Reached, Halt> {
    let said = workers.iter().map(|worker| {
        let text = worker["response"].as_str();
        let text = text.map_or_else(|| worker["response"].to_string(), str::to_owned);
        format!("## {}\n\n{text}", worker["task"].as_str().unwrap_or_default())
    });
    let all = said.collect::<Vec<_>>().join("\n\n");
    let mut last = Value::from(all.as_str());
    scope.set("last_response", &last);
    if let Some(review) = &config.reduce_review {
        let question = Question { gate: &review.0, scope: &scope };
        let said = flow.node(&REDUCE_REVIEW, Work::Gate(question)).await?;
        scope.set("hitl_response", response(&said));
    }
    let steps = [
        (&config.reduce, NodeKey::Reduce, "reduce"),
        (&config.writeup, NodeKey::Writeup, "writeup"),
    ];
    for (of, key, name) in steps {
        let Some(of) = of else { continue };
        last = end_step(flow, of, (&key, name), &mut scope).await?;
    }
    Ok(Reached { scope, last })
}

async fn end_step(
    flow: &Flow<'_>,
    of: &Step,
    (key, name): (&NodeKey, &str),
    scope: &mut Scope,
) -> Result<Value, Halt> {
    let at = At { key, lane: lane(name), scope };
    let output = step(flow, of, at, Otherwise::LastResponse).await?;
    let last = response(&output);
    scope.set(format!("{name}_response"), &last);
    scope.set("last_response", &last);
    if of.gate().is_some() {
        scope.set("hitl_response", &last);
    }
    Ok(last)
}
