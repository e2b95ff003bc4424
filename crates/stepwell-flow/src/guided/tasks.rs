//! The execute phase: the planned tasks in their order, each with its own checkpoint.

use std::collections::{BTreeMap, BTreeSet};

use futures_util::StreamExt as _;
use futures_util::stream::FuturesUnordered;
use serde_json::{Value, json};
use stepwell::model::{Checkpoint, Kind, Money, NodeId, NodeKey, NodeState, Task, TaskStatus};
use stepwell::work::TaskEdit;
use stepwell::{Event, Lane, Seq, StopReason};
use stepwell_agent::machine::Limits;

use super::agents::AgentPart;
use super::answers::{FailureReply, TaskReport};
use super::calls::{all_denied, with_limits};
use super::guide::{Guide, Question, node_id, part};
use super::prompts::{Background, repair};
use super::schedule::{dependents, is_over, ready, undone};
use super::subagents::Subtask;
use crate::ask::Worker;
use crate::flow::NodeEvent;
use crate::halt::Halt;
use crate::pattern::step::lane;
use crate::spec::{OnFailure, YesPhase};
use crate::text::{first_line, plain};

/// The most attempts at a task; after them it is given up.
const MAX_ATTEMPTS: u32 = 10;

/// How much of a task's description is in its subagent's name.
const NAME_CHARS: usize = 100;

/// How much is shown of the reason for a denial, and of the agent's answer to it.
const MAX_REASON: usize = 500;

/// The most attempts at a task if no person is asked.
const ATTEMPTS_ALONE: u32 = 3;

/// An attempt at a task.
struct Attempt<'a> {
    key: NodeKey,
    id: &'a str,
    n: u32,
    /// The attempt with which its conversation began.
    from: u32,
    /// The first attempt since the task was planned, or reopened.
    opened: u32,
    /// Why the last attempt failed, and the user's instruction for this one.
    repair: Option<(String, String)>,
}

/// The events with an attempt's start and with its result.
struct Recorded<'a> {
    starting: &'a dyn Fn() -> Vec<Event>,
    finishing: &'a dyn Fn(&Value) -> Vec<Event>,
}

impl Guide<'_, '_> {
    /// Works on every ready task, in the order of the plan. Tasks that were added later, such as
    /// repairs, wait for their own visit.
    pub(super) async fn execute(&self, background: &Background) -> Result<(), Halt> {
        if self.is_past_visit() {
            return Ok(());
        }
        let most = self.config.parallel.map_or(1, std::num::NonZeroU32::get);
        let most = usize::try_from(most).unwrap_or(usize::MAX);
        let (mut running, mut busy) = (FuturesUnordered::new(), BTreeSet::new());
        let mut halt: Option<Halt> = None;
        loop {
            // Without parallel work, the next task does not overtake one that waits for a person.
            let waits = halt.as_ref().is_some_and(|halt| most == 1 || halt.stops_flow());
            let tasks = self.tasks()?;
            for task in ready(&tasks, &busy) {
                if waits || running.len() >= most {
                    break;
                }
                busy.insert(task.id.clone());
                running.push(self.task(background, task.id.clone()));
            }
            let Some((id, done)) = running.next().await else { break };
            match done {
                Ok(()) => drop(busy.remove(&id)),
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
        let tasks = self.tasks()?;
        if tasks.count(TaskStatus::Unrecoverable) == 0 {
            return Ok(());
        }
        // Reported once each time that a task is given up, not once a visit: a resume continues
        // without it.
        self.leave("given-up", self.flow.session.work()?.given_up, || {
            format!("the work is not done: {}", undone(&tasks).join(", "))
        })
    }

    async fn task(&self, background: &Background, id: String) -> (String, Result<(), Halt>) {
        let done = self.work_on(background, &id).await;
        (id, done)
    }

    /// Tries a task until it is done, skipped or given up.
    async fn work_on(&self, background: &Background, id: &str) -> Result<(), Halt> {
        // Planned ids are valid; the id of a user's task may not be.
        if let Err(why) = id.parse::<NodeId>() {
            return Err(self.flow.fail(&part("task", 1), None, &why.to_string(), None));
        }
        let (mut from, mut opened, mut repair) = (1, 1, None);
        for n in 1.. {
            let key = NodeKey::Attempt(node_id(id), n);
            let attempt = Attempt { key, id, n, from, opened, repair: repair.take() };
            let report = self.attempt(background, &attempt).await?;
            let reply = match report.done {
                true => None,
                false => Some(self.decide(&attempt, &report.summary)?),
            };
            match reply {
                Some(FailureReply::Retry) => from = n + 1,
                Some(FailureReply::Repair(hint)) => repair = Some((report.summary, hint)),
                None | Some(FailureReply::Skip | FailureReply::GiveUp) => {
                    let tasks = self.tasks()?;
                    let waits = |task: &Task| !tasks.waits_for(task).is_empty();
                    if tasks.get(id).is_none_or(|task| is_over(task.status) || waits(task)) {
                        return Ok(());
                    }
                    // The user reopened it.
                    (from, opened) = (n + 1, n + 1);
                }
            }
        }
        Ok(())
    }

    /// One attempt at a task: by the agent in the workspace, or by a subagent in a worktree.
    async fn attempt(
        &self,
        background: &Background,
        attempt: &Attempt<'_>,
    ) -> Result<TaskReport, Halt> {
        let Attempt { key, id, from, .. } = attempt;
        if let Some(output) = self.flow.state().memo.result(key) {
            return Ok(TaskReport::of_output(output));
        }
        let lane = match from {
            1 => lane(&format!("task-{id}")),
            from => lane(&format!("task-{id}/{from}")),
        };
        let tasks = self.tasks()?;
        let Some(task) = tasks.get(id) else {
            return Err(self.flow.fail(key, None, "its task is gone", None));
        };
        let prompt = match &attempt.repair {
            None => background.task(task, &tasks),
            // A new subagent does not know the last attempt.
            Some((why, hint)) if self.config.parallel.is_some() => {
                format!("{}\n\n{}", background.task(task, &tasks), repair(why, hint))
            }
            Some((why, hint)) => repair(why, hint),
        };
        self.note_upcoming(key, Some(self.config.execute.as_str()), || Some(prompt.clone()))?;
        self.may_start()?;
        let starting = || self.task_as(id, TaskStatus::Running);
        let finishing = |output: &Value| self.finished(attempt, &lane, output);
        let output = match self.config.parallel {
            Some(_) => {
                let (starting, finishing) = (&starting, &finishing);
                let (lane, name) = (lane.clone(), subagent_name(task));
                self.by_subagent(Subtask { key, lane, name, prompt, starting, finishing }).await?
            }
            None => {
                let part = AgentPart {
                    key,
                    agent: &self.config.execute,
                    lane: lane.clone(),
                    prompt: &|| Ok(prompt.clone()),
                    read: &|text| Ok(self.judge(&lane, TaskReport::parse(text)).output()),
                };
                let recorded = Recorded { starting: &starting, finishing: &finishing };
                self.by_agent(attempt, &part, &recorded).await?
            }
        };
        Ok(TaskReport::of_output(&output))
    }

    /// The agent's report. If all its calls were denied, the task is not done, whatever the report
    /// says.
    fn judge(&self, lane: &Lane, report: TaskReport) -> TaskReport {
        let denied = all_denied(self.flow.state().past.said(lane));
        match denied.filter(|_| report.done) {
            Some(why) => {
                let (why, said) = (plain(&why, MAX_REASON), plain(&report.summary, MAX_REASON));
                let summary = format!("it could do nothing: {why}. Its agent says: {said}");
                TaskReport { done: false, summary }
            }
            None => report,
        }
    }

    /// Lets the agent do a task in the workspace, within a task's budget.
    async fn by_agent(
        &self,
        attempt: &Attempt<'_>,
        part: &AgentPart<'_>,
        recorded: &Recorded<'_>,
    ) -> Result<Value, Halt> {
        let flow = self.flow;
        let permit = flow.permits.acquire().await;
        self.may_start()?;
        let base = flow.agent_setup(part.key, part.agent.as_str(), None)?;
        let limits = self.limits(attempt, &part.lane, &base.setup.rules.limits);
        let setup = with_limits(&base, limits.clone());
        let Recorded { starting, finishing } = *recorded;
        let (setup, shared_budget) = (&setup, &flow.shared_budget);
        let worker = Worker { setup, shared_budget, starting, finishing, judges_denied: true };
        let done = flow.ask_worker(part.key, &part.ask(), &worker).await;
        drop(permit);
        let own = matches!(done, Err(Halt::Limit(StopReason::BudgetExceeded)))
            && self.is_own_limit(&limits, &base.setup.rules.limits);
        if !own {
            return self.halting(done);
        }
        let summary = "what the task may use is used up".to_owned();
        let output = Value::Object(TaskReport { done: false, summary }.output());
        let more = finishing(&output);
        let state = NodeEvent::new(part.key, Some(part.agent.as_str()), NodeState::Done);
        flow.record_node(NodeEvent { output: Some(output.clone()), ..state }, more)?;
        Ok(output)
    }

    /// The limits of an attempt: a task's, for each attempt of its conversation, minus what the
    /// conversation used.
    fn limits(&self, attempt: &Attempt<'_>, lane: &Lane, base: &Limits) -> Limits {
        let budget = &self.config.task_budget;
        let times = u64::from(attempt.n - attempt.from + 1);
        let (mut tokens, mut cost) = (0, Money::ZERO);
        for event in self.flow.state().past.said(lane) {
            if let Event::Message(message) = &event.event {
                let used = message.usage.map_or(0, |usage| usage.total());
                tokens = u64::saturating_add(tokens, used);
                cost = cost.plus(message.cost.unwrap_or(Money::ZERO));
            }
        }
        let own =
            budget.max_tokens.map(|most| most.get().saturating_mul(times).saturating_sub(tokens));
        let times = i64::try_from(times).unwrap_or(1);
        let own_cost = budget.max_cost_usd.map(|most| {
            let all = (0..times).fold(Money::ZERO, |sum, _| sum.plus(most));
            all.minus(cost).max(Money::ZERO)
        });
        Limits {
            tokens: base.tokens.into_iter().chain(own).min(),
            budget: base.budget.into_iter().chain(own_cost).min(),
            ..*base
        }
    }

    /// Did the task's own limit stop an attempt, and not the limit of the whole work?
    fn is_own_limit(&self, limits: &Limits, base: &Limits) -> bool {
        let has_own = limits.tokens != base.tokens || limits.budget != base.budget;
        let left = self.flow.shared_budget.left();
        let nearer_tokens =
            limits.tokens.is_some_and(|own| left.tokens.is_none_or(|all| own < all));
        let nearer_cost = limits.budget.is_some_and(|own| left.cost.is_none_or(|all| own < all));
        has_own && (nearer_tokens || nearer_cost)
    }

    /// The events with an attempt's result: the task's status, and a checkpoint with its changed
    /// files.
    fn finished(&self, attempt: &Attempt<'_>, lane: &Lane, output: &Value) -> Vec<Event> {
        let done = TaskReport::of_output(output).done;
        let status = if done { TaskStatus::Done } else { TaskStatus::Failed };
        let mut events = self.task_as(attempt.id, status);
        let mut checkpoint = Checkpoint::automatic(format!("task-{}", attempt.id));
        let files = self.files_of(&attempt.key, lane);
        checkpoint.metadata = BTreeMap::from([
            ("task".to_owned(), json!(attempt.id)),
            ("attempt".to_owned(), json!(attempt.n)),
            ("files".to_owned(), json!(files)),
        ]);
        events.push(checkpoint.into());
        events
    }

    /// The files that a node's lane changed.
    fn files_of(&self, key: &NodeKey, lane: &Lane) -> BTreeSet<String> {
        let began = {
            let state = self.flow.state();
            state.memo.node(key).map_or(Seq::ZERO, |noted| noted.first_start)
        };
        let recorded = self.recorded_files().unwrap_or_default();
        let seqs = self.files_before_ends(lane, began, &recorded).into_iter();
        seqs.filter_map(|seq| recorded.get(&seq).cloned()).collect()
    }

    /// The changed files that the session recorded, with their seqs.
    pub(super) fn recorded_files(&self) -> Result<BTreeMap<Seq, String>, Halt> {
        let facts = self.flow.session.keyed_events(&[Kind::File])?.into_iter();
        let files = facts.filter_map(|fact| match fact.event {
            Event::File(file) if file.path != "." => Some((fact.seq, file.path)),
            _ => None,
        });
        Ok(files.collect())
    }

    /// The recorded files that a lane's calls changed. A call's changes directly precede its end.
    pub(super) fn files_before_ends(
        &self,
        lane: &Lane,
        began: Seq,
        recorded: &BTreeMap<Seq, String>,
    ) -> Vec<Seq> {
        let state = self.flow.state();
        let said = state.past.said(lane).iter().filter(|event| event.seq > began);
        let ends = said.filter(|event| matches!(event.event, Event::ToolFinished(_)));
        let before = |end: Seq| {
            let seqs = std::iter::successors(Some(end.prev()), |seq| Some(seq.prev()));
            seqs.take_while(|seq| recorded.contains_key(seq))
        };
        ends.flat_map(|event| before(event.seq)).collect()
    }

    /// The event that changes a task's status, if it changes.
    fn task_as(&self, id: &str, status: TaskStatus) -> Vec<Event> {
        let Ok(tasks) = self.tasks() else { return Vec::new() };
        let edit = TaskEdit { status: Some(status), ..TaskEdit::default() };
        // The user's own changes stay.
        let task = tasks.edit(id, edit).ok().filter(|task| Some(task) != tasks.get(id));
        task.into_iter().map(Event::from).collect()
    }

    /// Decides about a task after a failed attempt.
    fn decide(&self, attempt: &Attempt<'_>, why: &str) -> Result<FailureReply, Halt> {
        let Attempt { id, n, opened, .. } = *attempt;
        let key = NodeKey::Decide(node_id(id), n);
        let closing = |text: &str| match FailureReply::read(text) {
            FailureReply::Skip => self.task_as(id, TaskStatus::Skipped),
            FailureReply::GiveUp => {
                let mut events = self.task_as(id, TaskStatus::Unrecoverable);
                let tasks = self.tasks().unwrap_or_default();
                let after = dependents(&tasks, id).into_iter();
                let skipped = |task: Task| Task { status: TaskStatus::Skipped, ..task };
                events.extend(after.map(|task| Event::from(skipped(task))));
                events
            }
            _ => Vec::new(),
        };
        let prompt = format!(
            "Task {id} failed: {why}\n\nWhat now? (retry, repair: what to mind, skip, or give up)"
        );
        let default = Some("repair".to_owned());
        let (opening, agreed) = (Vec::new(), self.agreed(n - opened + 1));
        let question = Question { prompt, default, opening, closing: &closing, agreed };
        Ok(FailureReply::read(&self.ask_person(&key, question)?.text))
    }

    /// The decision after this many failures if no person is asked.
    fn agreed(&self, n: u32) -> Option<String> {
        let says = match self.config.on_failure {
            _ if n >= MAX_ATTEMPTS => "give up",
            OnFailure::Ask if self.config.says_yes(YesPhase::Execute) => "repair",
            OnFailure::Ask => return None,
            OnFailure::Retry => "retry",
            OnFailure::Repair => "repair",
            OnFailure::Skip => "skip",
            OnFailure::GiveUp => "give up",
        };
        let again = matches!(says, "retry" | "repair");
        Some(if again && n >= ATTEMPTS_ALONE { "give up" } else { says }.to_owned())
    }
}

/// The name of a task's subagent, on one line.
fn subagent_name(task: &Task) -> String {
    format!("task {}: {}", task.id, first_line(&task.description, NAME_CHARS))
}
