//! What happens next: a state that is folded from what was recorded, and the one move that
//! follows from it. Pure; its tests need no model, tool, disk or clock.
//!
//! Because the state is a fold of the log, a run that is resumed is in the same state as
//! the one that stopped, and makes the same next move.

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

/// Where a run is.
#[derive(Clone, Debug)]
pub struct State {
    lane: Lane,
    turn: Turn,
    /// Choices of the user that are remembered for this session.
    remembered: BTreeMap<String, bool>,
    /// Questions for permission, by the call that each is about, and how they were answered.
    gates: BTreeMap<String, GateState>,
    /// Calls that somebody else's run made, and whose.
    others_calls: BTreeMap<String, Who>,
    /// Who else asked for what is worked on.
    others_request: Option<Who>,
    /// Where something was last asked for.
    last_request: Option<Seq>,
    /// What is planned.
    pub tasks: Tasks,
    /// What this session spent itself.
    pub spent: Spent,
    /// Of that, what it cost before it came here.
    elsewhere: Money,
    /// What its subagents spent, and theirs.
    pub below: Spent,
    /// Steps of this lane.
    pub steps: u64,
    /// Answers of the model in this lane, and summaries that it was asked for.
    pub answers: u64,
    /// See `answers`.
    pub summaries: u64,
    /// Did the work enter another phase since the model last spoke?
    pub turned: bool,
    /// Did the run stop before the work was done, since anyone spoke?
    stopped_early: bool,
    /// Did it end as done, and was nothing said since? What another program finished may end with
    /// anything: a tool's result, or no message at all.
    ended_as_done: bool,
    /// Calls since the user last asked for something, or a run ended because none was allowed, and
    /// how many of them were not allowed.
    calls: u64,
    denied: u64,
    /// Where the work is, if the session has phases.
    pub phase: Option<PhaseState>,
    /// The calls that another program may have run.
    imported: ImportedCalls,
}

/// Whose turn it is.
#[derive(Clone, Debug, PartialEq)]
enum Turn {
    /// Nothing was said yet.
    Nobody,
    /// The model's: a user or tools spoke last.
    Model,
    /// The tools', for the calls of the model's last answer.
    Tools(Vec<Call>),
    /// Nobody's: the model's last answer asks for nothing.
    Over,
}

/// A call of the model's last answer.
#[derive(Clone, Debug, PartialEq)]
struct Call {
    call: ToolCall,
    /// It began to run, in this process or in one that died.
    started: Option<Started>,
    /// Its result was recorded.
    answered: bool,
    /// The message that made it.
    made_at: Seq,
}

/// A call that began to run.
#[derive(Clone, Debug, PartialEq)]
pub struct Started {
    /// How it may be treated.
    pub effect: Effect,
    /// What it was to change.
    pub targets: Vec<ToolTarget>,
    /// The subagent's session that it was to start.
    pub child: Option<SessionId>,
}

/// A question for permission, and its answer.
#[derive(Clone, Debug, PartialEq, Eq)]
struct GateState {
    /// Where it was asked.
    asked: Seq,
    /// What was asked, if that is known.
    gate: Option<Box<Gate>>,
    /// Is it to be asked anew, in other words?
    stale: bool,
    answer: Option<GateAnswer>,
}

/// An answer to a question for permission.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GateAnswer {
    answer: Answer,
    who: Who,
}

impl GateAnswer {
    /// The answer, as it is recorded.
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

    /// Is it meant for later calls of the tool too?
    #[must_use]
    pub const fn lasts(&self) -> bool {
        matches!(
            self.answer,
            Answer::Allow { scope: Grant::Always } | Answer::Deny { never: true, .. }
        )
    }
}

impl State {
    /// A run of which nothing is known yet.
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

    /// Where a session's main lane is, by all of its events.
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

    /// Takes in what was recorded. Events that a rewind took back are to be left out.
    pub fn apply(&mut self, recorded: &Recorded) {
        self.imported.apply(recorded);
        match &recorded.event {
            // A fork starts to count anew.
            Event::Created(created) => {
                self.count(recorded);
                // A fork did not run yet, whatever became of what it branched off from.
                self.ended_as_done = false;
                // It goes on where it branched off.
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
            // That a run is taken up says nothing about how it stopped, and neither does that it
            // crashed: its last answer stands as it is.
            Event::Status(StatusChanged { status: Status::Running, .. })
            | Event::Status(StatusChanged { reason: Some(StopReason::Crashed), .. }) => {}
            Event::Status(change) => {
                self.ended_as_done = change.status == Status::Success;
                self.stopped_early = !self.ended_as_done;
                // That nothing was allowed was said of the run that ended so. One that resumes it
                // is judged by what it wants itself.
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

    /// Takes in what counts of an event that a rewind took back: what was spent, and what was
    /// forbidden. To go back is no way to be allowed more.
    pub fn keep(&mut self, recorded: &Recorded) {
        match &recorded.event {
            Event::Permission(permission) if !permission.allow => self.apply(recorded),
            _ => self.count(recorded),
        }
    }

    /// Takes in only what was spent: what a rewind took back was paid all the same.
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

    /// Is nothing left to be done: the model's last answer asks for nothing, or it all ended as
    /// done in another program, without open tasks?
    #[must_use]
    pub fn is_over(&self) -> bool {
        self.turn == Turn::Over || (self.ended_as_done && !self.has_open_tasks())
    }

    fn has_open_tasks(&self) -> bool {
        let is_open =
            |task: &Task| matches!(task.status, TaskStatus::Pending | TaskStatus::Running);
        self.tasks.iter().any(is_open)
    }

    /// Was the work stopped before it was done, though the model's last answer asks for nothing:
    /// by a limit or by hand in another program, or with tasks that are open?
    #[must_use]
    pub fn is_unfinished(&self) -> bool {
        self.is_over() && (self.stopped_early || self.has_open_tasks())
    }

    /// Does this call still wait for its result?
    #[must_use]
    pub fn is_pending(&self, id: &str) -> bool {
        match &self.turn {
            Turn::Tools(calls) => calls.iter().any(|call| call.call.id == id && !call.answered),
            _ => false,
        }
    }

    /// The first call that still waits for its result.
    #[must_use]
    pub fn pending(&self) -> Option<ToolCall> {
        match &self.turn {
            Turn::Tools(calls) => {
                calls.iter().find(|call| !call.answered).map(|call| call.call.clone())
            }
            _ => None,
        }
    }

    /// The calls of this turn without a result that no person decided on.
    #[must_use]
    pub fn undecided(&self) -> Vec<ToolCall> {
        let Turn::Tools(calls) = &self.turn else { return Vec::new() };
        let waiting = calls.iter().filter(|call| !call.answered);
        let undecided = waiting.filter(|call| self.answered(&call.call.id).is_none());
        undecided.map(|call| call.call.clone()).collect()
    }

    /// Did this call begin to run, as far as anyone knows?
    #[must_use]
    pub fn is_started(&self, id: &str) -> bool {
        match &self.turn {
            Turn::Tools(calls) => calls.iter().any(|call| {
                call.call.id == id && (call.started.is_some() || self.may_have_run(call))
            }),
            _ => false,
        }
    }

    /// May another program have run it?
    fn may_have_run(&self, call: &Call) -> bool {
        self.imported.may_have_run(call.made_at, &call.call.id)
    }

    /// Are there calls in this turn, each with its result, and is the step not complete yet?
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

    /// Was a person asked about this call, without an answer yet?
    #[must_use]
    pub fn is_asked(&self, id: &str) -> bool {
        self.asked(id).is_some()
    }

    /// Where a person was asked about this call, if there is no answer yet.
    #[must_use]
    pub fn asked(&self, id: &str) -> Option<Seq> {
        self.gates.get(id).filter(|gate| gate.answer.is_none()).map(|gate| gate.asked)
    }

    /// What is remembered under a rule.
    #[must_use]
    pub fn remembers(&self, rule: &str) -> Option<bool> {
        self.remembered.get(rule).copied()
    }

    /// What this session and those of its subagents spent.
    #[must_use]
    pub fn total(&self) -> Spent {
        let mut total = self.spent;
        total += self.below;
        total
    }

    /// The subagent's session that a call was to start.
    #[must_use]
    pub fn child(&self, id: &str) -> Option<&SessionId> {
        let Turn::Tools(calls) = &self.turn else { return None };
        calls.iter().find(|call| call.call.id == id)?.started.as_ref()?.child.as_ref()
    }

    /// Questions about what a call started that wait for an answer.
    #[must_use]
    pub fn open_below(&self, id: &str) -> Vec<String> {
        let below = format!("{id}/");
        let open =
            self.gates.iter().filter(|(id, gate)| gate.answer.is_none() && id.starts_with(&below));
        open.map(|(gate, _)| gate.clone()).collect()
    }

    /// What a person answered to a question.
    #[must_use]
    pub fn answered(&self, gate: &str) -> Option<&GateAnswer> {
        self.gates.get(gate)?.answer.as_ref()
    }

    fn hear(&mut self, message: &Message, at: Seq) {
        (self.stopped_early, self.ended_as_done) = (false, false);
        if is_request(message) {
            // Words in the middle of a run in which something was allowed do not make it forgotten.
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
                // What was allowed was allowed for the calls of another answer.
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
