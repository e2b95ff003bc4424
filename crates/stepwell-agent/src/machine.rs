//! The next move of a run, decided from a state that is folded from its events. Pure: its tests
//! need no model, tool, disk or clock.
//!
//! Because the state is a fold of the log, a resumed run has the same state as the run that
//! stopped, and makes the same next move.

mod cut_off;
mod moves;
mod next;
mod others;

use std::collections::BTreeMap;

use stepwell::log::{ImportedCalls, Timeline};
use stepwell::model::{
    Answer, Effect, Gate, Grant, Money, Outcome, Role, Spent, StatusChanged, Task, TaskStatus,
    ToolCall, ToolTarget, Who,
};
use stepwell::work::Tasks;
use stepwell::{Event, Lane, Message, Recorded, Seq, SessionId, Status, StopReason};

use crate::context::window::is_request;
use crate::phases::PhaseState;

pub use cut_off::{Found, inspect, told};
pub use moves::{Baseline, By, Estimate, Limits, Move, Rules, Settled, Shrink, Stop};
pub use others::{AskedBefore, Waiting};

/// The state of a run in one lane.
#[derive(Clone, Debug)]
pub struct State {
    lane: Lane,
    turn: Turn,
    /// The user's rules for this session: whether calls that match a rule may run.
    remembered: BTreeMap<String, bool>,
    /// Approvals, by the id of the call that each is about, with their answers.
    gates: BTreeMap<String, GateState>,
    /// Calls made in another person's run, and by whom.
    others_calls: BTreeMap<String, Who>,
    /// The other person who made the current request, if it was not the user.
    others_request: Option<Who>,
    /// The seq of the last request.
    last_request: Option<Seq>,
    /// The planned tasks.
    pub tasks: Tasks,
    /// What this session spent, without its subagents.
    pub spent: Spent,
    /// The part of `spent` that was spent in another program, before the import.
    elsewhere: Money,
    /// What all subagents below this session spent.
    pub below: Spent,
    /// Steps of this lane.
    pub steps: u64,
    /// Answers of the model in this lane.
    pub answers: u64,
    /// Summaries that the model wrote for this lane.
    pub summaries: u64,
    /// Did the phase change since the model's last answer?
    pub turned: bool,
    /// Did a run stop before the work was done, without a new message since?
    stopped_early: bool,
    /// Did a run end as done, without a new message since? In another program such a session may
    /// end with anything: a tool's result, or no message at all.
    ended_as_done: bool,
    /// Calls since the user's last request, or since a run ended because no call was allowed; and
    /// how many of them were denied.
    calls: u64,
    denied: u64,
    /// The current phase, if the session has phases.
    pub phase: Option<PhaseState>,
    /// Calls that another program may have run.
    imported: ImportedCalls,
}

/// Whose turn it is.
#[derive(Clone, Debug, PartialEq)]
enum Turn {
    /// There are no messages yet.
    Nobody,
    /// The model's turn: the user or tools spoke last.
    Model,
    /// The tools' turn: these calls of the model's last answer.
    Tools(Vec<Call>),
    /// The model's last answer makes no calls.
    Over,
}

/// A call of the model's last answer.
#[derive(Clone, Debug, PartialEq)]
struct Call {
    call: ToolCall,
    /// Recorded when it began to run, in this process or an earlier one.
    started: Option<Started>,
    /// Was its result recorded?
    answered: bool,
    /// The seq of the message that made it.
    made_at: Seq,
}

/// A call that began to run.
#[derive(Clone, Debug, PartialEq)]
pub struct Started {
    /// Its effect class.
    pub effect: Effect,
    /// The files that it was about to change.
    pub targets: Vec<ToolTarget>,
    /// The session of the subagent that it was about to start.
    pub child: Option<SessionId>,
}

/// An approval and its answer.
#[derive(Clone, Debug, PartialEq, Eq)]
struct GateState {
    /// The seq of the question.
    asked: Seq,
    /// The recorded question, if it is known.
    gate: Option<Box<Gate>>,
    /// Must it be asked again, with new wording?
    stale: bool,
    answer: Option<GateAnswer>,
}

/// The answer to an approval.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GateAnswer {
    answer: Answer,
    who: Who,
}

impl GateAnswer {
    /// The recorded answer.
    #[must_use]
    pub const fn answer(&self) -> &Answer {
        &self.answer
    }

    /// Who gave it.
    #[must_use]
    pub const fn who(&self) -> &Who {
        &self.who
    }

    /// Does it allow the call?
    #[must_use]
    pub fn allows(&self) -> bool {
        self.answer.allows()
    }

    /// Does it make a rule for later calls?
    #[must_use]
    pub const fn lasts(&self) -> bool {
        matches!(
            self.answer,
            Answer::Allow { scope: Grant::Always } | Answer::Deny { never: true, .. }
        )
    }
}

impl State {
    /// The state before any event.
    #[must_use]
    pub fn new(lane: Lane) -> Self {
        Self {
            lane,
            turn: Turn::Nobody,
            remembered: BTreeMap::new(),
            gates: BTreeMap::new(),
            others_calls: BTreeMap::new(),
            others_request: None,
            last_request: None,
            tasks: Tasks::default(),
            spent: Spent::default(),
            elsewhere: Money::ZERO,
            below: Spent::default(),
            steps: 0,
            answers: 0,
            summaries: 0,
            turned: false,
            stopped_early: false,
            ended_as_done: false,
            calls: 0,
            denied: 0,
            phase: None,
            imported: ImportedCalls::default(),
        }
    }

    /// The state of a session's main lane after all of its events.
    #[must_use]
    pub fn of(events: &[Recorded]) -> Self {
        let mut state = Self::new(Lane::main());
        let last = events.last().map(|event| event.seq).unwrap_or_default();
        let timeline = Timeline::at(last, events.iter());
        for event in events.iter().filter(|event| timeline.contains(event.seq)) {
            state.apply(event);
        }
        state
    }

    /// Folds one event in. The caller leaves out events before a rewind's target.
    pub fn apply(&mut self, recorded: &Recorded) {
        self.imported.apply(recorded);
        match &recorded.event {
            // A fork counts its costs from zero.
            Event::Created(created) => {
                self.count(recorded);
                // A fork has not run yet, however its parent ended.
                self.ended_as_done = false;
                // A fork continues in the phase in which it branched off.
                if self.phase.map(|it| it.set) != created.phases {
                    self.phase = created.phases.map(PhaseState::begin);
                }
            }
            Event::Edited(_) => self.count(recorded),
            Event::Message(message) if message.lane == self.lane => {
                self.hear(message, recorded.seq);
            }
            Event::ToolStarted(started) if started.lane == self.lane => {
                let (effect, targets) = (started.effect, started.targets.clone());
                let child = started.child.clone();
                if let Some(call) = self.call(&started.call_id) {
                    call.started = Some(Started { effect, targets, child });
                }
            }
            Event::Step(step) if step.lane == self.lane => {
                self.steps += 1;
                if matches!(self.turn, Turn::Tools(_)) {
                    self.turn = Turn::Model;
                }
            }
            Event::Compacted(compacted) => {
                if let Some(usage) = compacted.usage {
                    self.spent.count(usage, compacted.cost);
                }
                if compacted.lane == self.lane {
                    self.turned = false;
                    self.summaries += u64::from(compacted.model.is_some());
                }
            }
            Event::ToolFinished(finished) if finished.lane == self.lane => {
                self.calls += 1;
                self.denied += u64::from(finished.outcome == Outcome::Denied);
            }
            // A resume or a crash says nothing new about how the last run stopped; its answer still
            // counts.
            Event::Status(StatusChanged { status: Status::Running, .. })
            | Event::Status(StatusChanged { reason: Some(StopReason::Crashed), .. }) => {}
            Event::Status(change) => {
                self.ended_as_done = change.status == Status::Success;
                self.stopped_early = !self.ended_as_done;
                // "Nothing was allowed" describes the run that ended. The resumed run is judged by
                // its own calls.
                if (change.status, change.reason) == (Status::Partial, Some(StopReason::LlmDone)) {
                    (self.calls, self.denied) = (0, 0);
                }
            }
            Event::Phase(change) => {
                self.turned = true;
                if let Some(state) = &mut self.phase {
                    state.enter(change.to);
                }
            }
            Event::Permission(permission) => {
                self.remembered.insert(permission.rule.clone(), permission.allow);
            }
            Event::Task(task) => self.tasks.put(task.clone()),
            Event::Gate(gate) => {
                let asked = Some(Box::new(gate.clone()));
                let asked =
                    GateState { asked: recorded.seq, gate: asked, stale: false, answer: None };
                self.gates.insert(gate.id.clone(), asked);
            }
            Event::GateAnswered(answer) => {
                let (given, who) = (answer.answer.clone(), answer.who.clone());
                let given = GateAnswer { answer: given, who };
                let asked =
                    GateState { asked: recorded.seq, gate: None, stale: false, answer: None };
                let gate = self.gates.entry(answer.id.clone()).or_insert(asked);
                // The first answer counts.
                gate.answer.get_or_insert(given);
            }
            _ => {}
        }
    }

    /// Folds in the parts of a rewound event that still count: its cost, and rules that deny. A
    /// rewind must not allow more than before.
    pub fn keep(&mut self, recorded: &Recorded) {
        match &recorded.event {
            Event::Permission(permission) if !permission.allow => self.apply(recorded),
            _ => self.count(recorded),
        }
    }

    /// Folds in only the cost: rewound calls were paid for too.
    fn count(&mut self, recorded: &Recorded) {
        let (usage, cost) = match &recorded.event {
            Event::Created(_) => {
                self.elsewhere = Money::ZERO;
                return self.spent = Spent::default();
            }
            Event::Edited(edited) => {
                if let Some(elsewhere) = &edited.elsewhere {
                    let before = std::mem::replace(&mut self.elsewhere, elsewhere.cost);
                    self.spent.cost = self.spent.cost.minus(before).plus(elsewhere.cost);
                }
                return;
            }
            Event::Message(message) => (message.usage, message.cost),
            Event::Compacted(compacted) => (compacted.usage, compacted.cost),
            _ => return,
        };
        if let Some(usage) = usage {
            self.spent.count(usage, cost);
        }
    }

    /// Is the work done: the model's last answer makes no calls, or another program ended the
    /// session as done, without open tasks?
    #[must_use]
    pub fn is_over(&self) -> bool {
        self.turn == Turn::Over || (self.ended_as_done && !self.has_open_tasks())
    }

    fn has_open_tasks(&self) -> bool {
        let is_open =
            |task: &Task| matches!(task.status, TaskStatus::Pending | TaskStatus::Running);
        self.tasks.iter().any(is_open)
    }

    /// Was the work stopped early although the model's last answer makes no calls: by a limit, by
    /// hand in another program, or with open tasks?
    #[must_use]
    pub fn is_unfinished(&self) -> bool {
        self.is_over() && (self.stopped_early || self.has_open_tasks())
    }

    /// Does this call still need a result?
    #[must_use]
    pub fn is_pending(&self, id: &str) -> bool {
        match &self.turn {
            Turn::Tools(calls) => calls.iter().any(|call| call.call.id == id && !call.answered),
            _ => false,
        }
    }

    /// The first call that still needs a result.
    #[must_use]
    pub fn pending(&self) -> Option<ToolCall> {
        match &self.turn {
            Turn::Tools(calls) => {
                calls.iter().find(|call| !call.answered).map(|call| call.call.clone())
            }
            _ => None,
        }
    }

    /// The calls of this turn without a result or a person's decision.
    #[must_use]
    pub fn undecided(&self) -> Vec<ToolCall> {
        let Turn::Tools(calls) = &self.turn else { return Vec::new() };
        let waiting = calls.iter().filter(|call| !call.answered);
        let undecided = waiting.filter(|call| self.answered(&call.call.id).is_none());
        undecided.map(|call| call.call.clone()).collect()
    }

    /// Did this call begin to run, as far as the log shows?
    #[must_use]
    pub fn is_started(&self, id: &str) -> bool {
        match &self.turn {
            Turn::Tools(calls) => calls.iter().any(|call| {
                call.call.id == id && (call.started.is_some() || self.may_have_run(call))
            }),
            _ => false,
        }
    }

    /// Could another program have run it?
    fn may_have_run(&self, call: &Call) -> bool {
        self.imported.may_have_run(call.made_at, &call.call.id)
    }

    /// Do all calls of this turn have results, without a recorded end of the step?
    #[must_use]
    pub fn is_unsealed(&self) -> bool {
        match &self.turn {
            Turn::Tools(calls) => calls.iter().all(|call| call.answered),
            _ => false,
        }
    }

    /// Is it the model's turn?
    #[must_use]
    pub const fn is_models_turn(&self) -> bool {
        matches!(self.turn, Turn::Nobody | Turn::Model)
    }

    /// Does an approval for this call wait for an answer?
    #[must_use]
    pub fn is_asked(&self, id: &str) -> bool {
        self.asked(id).is_some()
    }

    /// The seq of the open approval for this call.
    #[must_use]
    pub fn asked(&self, id: &str) -> Option<Seq> {
        self.gates.get(id).filter(|gate| gate.answer.is_none()).map(|gate| gate.asked)
    }

    /// What the user's rule says, if there is one.
    #[must_use]
    pub fn remembers(&self, rule: &str) -> Option<bool> {
        self.remembered.get(rule).copied()
    }

    /// What this session and its subagents spent.
    #[must_use]
    pub fn total(&self) -> Spent {
        let mut total = self.spent;
        total += self.below;
        total
    }

    /// The session of the subagent that a call was about to start.
    #[must_use]
    pub fn child(&self, id: &str) -> Option<&SessionId> {
        let Turn::Tools(calls) = &self.turn else { return None };
        calls.iter().find(|call| call.call.id == id)?.started.as_ref()?.child.as_ref()
    }

    /// Open questions about the work that a call started.
    #[must_use]
    pub fn open_below(&self, id: &str) -> Vec<String> {
        let below = format!("{id}/");
        let open =
            self.gates.iter().filter(|(id, gate)| gate.answer.is_none() && id.starts_with(&below));
        open.map(|(gate, _)| gate.clone()).collect()
    }

    /// The answer to a question.
    #[must_use]
    pub fn answered(&self, gate: &str) -> Option<&GateAnswer> {
        self.gates.get(gate)?.answer.as_ref()
    }

    fn hear(&mut self, message: &Message, at: Seq) {
        (self.stopped_early, self.ended_as_done) = (false, false);
        if is_request(message) {
            // A message in the middle of a run does not reset the calls that were allowed.
            let is_between = matches!(self.turn, Turn::Nobody | Turn::Over);
            if is_between || self.calls == self.denied {
                (self.calls, self.denied) = (0, 0);
            }
            (self.last_request, self.others_request) = (Some(at), None);
        }
        if let Some(usage) = message.usage {
            self.spent.count(usage, message.cost);
        }
        match message.role {
            Role::System => {}
            Role::User => self.turn = Turn::Model,
            Role::Assistant => {
                self.answers += 1;
                self.turned = false;
                // These approvals were for the calls of an earlier answer.
                self.gates.clear();
                let call = |call: &ToolCall| Call::new(call.clone(), at);
                let calls: Vec<Call> = message.calls().map(call).collect();
                self.turn = if calls.is_empty() { Turn::Over } else { Turn::Tools(calls) };
            }
            Role::Tool => {
                for result in message.results() {
                    if let Some(call) = self.call(&result.call_id) {
                        call.answered = true;
                    }
                }
            }
        }
    }

    fn call(&mut self, id: &str) -> Option<&mut Call> {
        match &mut self.turn {
            Turn::Tools(calls) => calls.iter_mut().find(|call| call.call.id == id),
            _ => None,
        }
    }
}

impl Call {
    fn new(call: ToolCall, made_at: Seq) -> Self {
        Self { call, started: None, answered: false, made_at }
    }
}

#[cfg(test)]
mod tests;
