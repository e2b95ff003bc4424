//! A graph of tasks: each is done as soon as what it depends on is.

use std::collections::{BTreeMap, HashMap};

use futures_util::StreamExt as _;
use futures_util::stream::FuturesUnordered;
use serde_json::Value;
use stepwell::NodeKey;

use super::trail::described;
use super::{At, Otherwise, Reached, id, lane, response, step};
use crate::flow::Flow;
use crate::halt::Halt;
use crate::spec::{Task, Workflow};
use crate::template::{Scope, SharedMap};

/// What is known of the tasks.
struct Board<'a> {
    workflow: &'a Workflow,
    /// How many of its dependencies each task still waits for.
    waits: Vec<usize>,
    /// The tasks that wait for each.
    followers: HashMap<&'a str, Vec<usize>>,
    results: SharedMap,
    scope: Scope,
    /// The last answer of a person that each finished task could see, and whose place that is
    /// in the spec: the same however the tasks finished.
    heard: Vec<Option<(usize, Value)>>,
}

pub(super) async fn walk(flow: &Flow<'_>, workflow: &Workflow) -> Result<Reached, Halt> {
    let mut board = Board::new(flow, workflow);
    let mut running = FuturesUnordered::new();
    let mut last: BTreeMap<usize, Value> = BTreeMap::new();
    let mut halt: Option<Halt> = None;
    let ready: Vec<usize> = (0..workflow.tasks.len()).filter(|n| board.waits[*n] == 0).collect();
    for n in ready {
        running.push(perform(flow, n, &workflow.tasks[n], board.seen_by(n)));
    }
    while let Some((n, done)) = running.next().await {
        match done {
            Ok(output) => {
                for next in board.finish(n, &output) {
                    let task = &workflow.tasks[next];
                    running.push(perform(flow, next, task, board.seen_by(next)));
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
    // The last one as it is written, however the others finished.
    let last = last.into_values().next_back().unwrap_or_default();
    let mut scope = board.scope;
    if let Some((_, said)) = board.heard.into_iter().flatten().max_by_key(|(n, _)| *n) {
        scope.set("hitl_response", said);
    }
    scope.set("last_response", &last);
    Ok(Reached { scope, last })
}

async fn perform(
    flow: &Flow<'_>,
    n: usize,
    task: &Task,
    scope: Scope,
) -> (usize, Result<Value, Halt>) {
    let key = NodeKey::Task(id(&task.id));
    let at = At { key: &key, lane: lane(task.id.as_str()), scope: &scope };
    let otherwise = task.description.as_deref().map_or(Otherwise::LastResponse, Otherwise::Text);
    (n, step(flow, &task.step, at, otherwise).await)
}

impl<'a> Board<'a> {
    fn new(flow: &Flow<'_>, workflow: &'a Workflow) -> Self {
        let mut followers: HashMap<&str, Vec<usize>> = HashMap::new();
        for (n, task) in workflow.tasks.iter().enumerate() {
            for dep in &task.deps {
                followers.entry(dep.as_str()).or_default().push(n);
            }
        }
        let waits = workflow.tasks.iter().map(|task| task.deps.len()).collect();
        let (results, mut scope) = (SharedMap::default(), flow.variables.clone());
        scope.share("tasks", &results);
        let heard = vec![None; workflow.tasks.len()];
        Self { workflow, waits, followers, results, scope, heard }
    }

    /// What a task's templates see.
    fn seen_by(&self, n: usize) -> Scope {
        let mut scope = self.scope.clone();
        if let Some((_, said)) = &self.heard[n] {
            scope.set("hitl_response", said);
        }
        scope
    }

    /// Notes a result. Answers with the tasks that waited for nothing else.
    fn finish(&mut self, n: usize, output: &Value) -> Vec<usize> {
        let task = &self.workflow.tasks[n];
        self.results.set(task.id.as_str(), described(&task.step, output));
        if task.step.gate().is_some() {
            self.heard[n] = Some((n, response(output)));
        }
        let heard = self.heard[n].clone();
        let mut ready = Vec::new();
        for follower in self.followers.get(task.id.as_str()).into_iter().flatten() {
            let known = self.heard[*follower].as_ref().map(|(n, _)| *n);
            if heard.as_ref().map(|(n, _)| *n) > known {
                self.heard[*follower].clone_from(&heard);
            }
            self.waits[*follower] -= 1;
            if self.waits[*follower] == 0 {
                ready.push(*follower);
            }
        }
        ready
    }
}
