//! A workflow: each task starts as soon as its dependencies are done.

use std::collections::{BTreeMap, HashMap};

use futures_util::StreamExt as _;
use futures_util::stream::FuturesUnordered;
use serde_json::Value;
use stepwell::model::NodeKey;

use super::sequence::result_entry;
use super::step::{At, Completed, Fallback, lane, node_id, response, run_step};
use crate::flow::Flow;
use crate::halt::Halt;
use crate::spec::{Task, Workflow};
use crate::template::{Scope, SharedMap};

/// The progress of a workflow's tasks.
struct Progress<'a> {
    workflow: &'a Workflow,
    /// The number of unfinished dependencies of each task.
    pending_deps: Vec<usize>,
    /// The tasks that depend on each task.
    dependents: HashMap<&'a str, Vec<usize>>,
    results: SharedMap,
    scope: Scope,
    /// For each task, the last answer of a person among the tasks before it. Last by the order
    /// of the spec, so that it does not depend on the order in which tasks finish.
    answers: Vec<Option<HumanAnswer>>,
}

/// What a person answered in a task.
#[derive(Clone)]
struct HumanAnswer {
    /// The task's index in the spec.
    task: usize,
    response: Value,
}

pub(crate) async fn walk(flow: &Flow<'_>, workflow: &Workflow) -> Result<Completed, Halt> {
    let mut progress = Progress::new(flow, workflow);
    let mut running = FuturesUnordered::new();
    let mut last: BTreeMap<usize, Value> = BTreeMap::new();
    let mut halt: Option<Halt> = None;
    let ready = |n: &usize| progress.pending_deps[*n] == 0;
    let ready: Vec<usize> = (0..workflow.tasks.len()).filter(ready).collect();
    for n in ready {
        running.push(run_task(flow, n, &workflow.tasks[n], progress.scope_of(n)));
    }
    while let Some((n, done)) = running.next().await {
        match done {
            Ok(output) => {
                for next in progress.finish(n, &output) {
                    let task = &workflow.tasks[next];
                    running.push(run_task(flow, next, task, progress.scope_of(next)));
                }
                last.insert(n, response(&output));
            }
            Err(why) => {
                halt = Some(match halt.take() {
                    Some(first) => first.or(why),
                    None => why,
                });
            }
        }
    }
    if let Some(halt) = halt {
        return Err(halt);
    }
    // The last task in the spec, whichever finished last.
    let last = last.into_values().next_back().unwrap_or_default();
    let mut scope = progress.scope;
    let answers = progress.answers.into_iter().flatten();
    if let Some(answer) = answers.max_by_key(|answer| answer.task) {
        scope.set("hitl_response", answer.response);
    }
    scope.set("last_response", &last);
    Ok(Completed { scope, last })
}

async fn run_task(
    flow: &Flow<'_>,
    n: usize,
    task: &Task,
    scope: Scope,
) -> (usize, Result<Value, Halt>) {
    let key = NodeKey::Task(node_id(&task.id));
    let at = At { key: &key, lane: lane(task.id.as_str()), scope: &scope };
    let fallback = task.description.as_deref().map_or(Fallback::LastResponse, Fallback::Text);
    (n, run_step(flow, &task.step, at, fallback).await)
}

impl<'a> Progress<'a> {
    fn new(flow: &Flow<'_>, workflow: &'a Workflow) -> Self {
        let mut dependents: HashMap<&str, Vec<usize>> = HashMap::new();
        for (n, task) in workflow.tasks.iter().enumerate() {
            for dep in &task.deps {
                dependents.entry(dep.as_str()).or_default().push(n);
            }
        }
        let pending_deps = workflow.tasks.iter().map(|task| task.deps.len()).collect();
        let (results, mut scope) = (SharedMap::default(), flow.variables.clone());
        scope.share("tasks", &results);
        let answers = vec![None; workflow.tasks.len()];
        Self { workflow, pending_deps, dependents, results, scope, answers }
    }

    /// The values that a task's templates see.
    fn scope_of(&self, n: usize) -> Scope {
        let mut scope = self.scope.clone();
        if let Some(answer) = &self.answers[n] {
            scope.set("hitl_response", &answer.response);
        }
        scope
    }

    /// Stores a task's result. Returns the tasks that can start now.
    fn finish(&mut self, n: usize, output: &Value) -> Vec<usize> {
        let task = &self.workflow.tasks[n];
        self.results.set(task.id.as_str(), result_entry(&task.step, output));
        if task.step.gate().is_some() {
            self.answers[n] = Some(HumanAnswer { task: n, response: response(output) });
        }
        let answer = self.answers[n].clone();
        let mut ready = Vec::new();
        for dependent in self.dependents.get(task.id.as_str()).into_iter().flatten() {
            let known = self.answers[*dependent].as_ref().map(|answer| answer.task);
            if answer.as_ref().map(|answer| answer.task) > known {
                self.answers[*dependent].clone_from(&answer);
            }
            self.pending_deps[*dependent] -= 1;
            if self.pending_deps[*dependent] == 0 {
                ready.push(*dependent);
            }
        }
        ready
    }
}
