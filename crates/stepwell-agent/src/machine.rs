//! What happens next: a state that is folded from what was recorded, and the one move that
//! follows from it. Pure; its tests need no model, tool, disk or clock.
//!
//! Because the state is a fold of the log, a run that is resumed is in the same state as
//! the one that stopped, and makes the same next move.

use std::collections::BTreeMap;

use stepwell::{
    Effect, Event, Lane, Message, Money, Outcome, Recorded, Role, Seq, SessionId, Spent, Status,
    StopReason, Tasks, ToolCall, ToolTarget,
};

use crate::permission::{Mode, Verdict, judge};
use crate::tool::is_read_only;

/// Where a run is.
#[derive(Clone, Debug)]
pub struct State {
    lane: Lane,
    turn: Turn,
    /// Choices of the user that are remembered for this session.
    remembered: BTreeMap<String, bool>,
    /// Questions for permission, by the call that each is about, and how they were answered.
    gates: BTreeMap<String, Option<GateAnswer>>,
    /// What is planned.
    pub tasks: Tasks,
    /// What this session spent itself.
    pub spent: Spent,
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

/// An answer to a question for permission.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GateAnswer {
    seq: Seq,
    allow: bool,
    reason: String,
}

impl GateAnswer {
    /// The answer in words, as it is recorded.
    #[must_use]
    pub fn words(&self) -> String {
        match (self.allow, self.reason.as_str()) {
            (true, _) => "approve".to_owned(),
            (false, "") => "deny".to_owned(),
            (false, reason) => format!("deny: {reason}"),
        }
    }
}

/// What the run may do; it does not change while it runs.
#[derive(Clone, Debug)]
pub struct Rules {
    /// When a person is asked.
    pub mode: Mode,
    /// Does a call that was cut off run again, though nobody knows what it did?
    pub retry_unsafe: bool,
    /// Each tool's effect, by its name.
    pub effects: BTreeMap<String, Effect>,
    /// Limits.
    pub limits: Limits,
}

/// What a run may use.
#[derive(Clone, Debug, Default)]
pub struct Limits {
    /// Steps in this invocation.
    pub steps: Option<u64>,
    /// Tokens in this invocation.
    pub tokens: Option<u64>,
    /// Dollars in this invocation.
    pub budget: Option<Money>,
    /// Dollars in the session, over all of its invocations, and in its subagents' sessions.
    pub budget_total: Option<Money>,
}

/// What was used when this invocation began.
#[derive(Clone, Copy, Debug, Default)]
pub struct Baseline {
    /// What the session had spent, with its subagents.
    pub spent: Spent,
    /// Its steps.
    pub steps: u64,
}

/// What the next call may cost at most, as far as that is known.
#[derive(Clone, Copy, Debug, Default)]
pub struct Estimate {
    /// Tokens, in both directions.
    pub tokens: u64,
    /// Dollars; absent, the price is not known.
    pub cost: Option<Money>,
    /// How the conversation is to shrink first, if it is.
    pub shrink: Option<Shrink>,
}

/// How a conversation is to shrink.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shrink {
    /// A model summarises what goes, which may cost so much at most.
    Summarise {
        /// Tokens, in both directions.
        tokens: u64,
        /// Dollars; absent, the price is not known.
        cost: Option<Money>,
    },
    /// What goes is left out.
    Truncate,
}

/// Who writes the summary of what is left out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum By {
    /// A model.
    Model,
    /// Nobody.
    Nobody,
}

/// The next move.
#[derive(Clone, Debug, PartialEq)]
pub enum Move {
    /// Ask the model.
    CallModel,
    /// Make the conversation shorter first.
    Compact(By),
    /// Run a tool; that it starts is recorded first.
    RunTool(ToolCall),
    /// A call was cut off whose change may have been made: look whether it was.
    Inspect(ToolCall, Vec<ToolTarget>),
    /// Answer a call without running it.
    Settle(ToolCall, Settled),
    /// Ask a person whether a call may run.
    Ask(ToolCall),
    /// The step is complete: record it.
    Seal,
    /// Stop.
    Stop(Stop),
}

/// Why a call is answered without being run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Settled {
    /// It was cut off, and nobody knows what it did.
    Unknown,
    /// It may not run.
    Denied(String),
    /// It did not begin before the user said something else.
    Passed,
    /// There is no such tool.
    NoSuchTool,
}

/// How a run stops.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stop {
    /// How it stands then.
    pub status: Status,
    /// Why.
    pub reason: StopReason,
}

impl Stop {
    /// A limit was reached.
    #[must_use]
    pub const fn limit(reason: StopReason) -> Self {
        Self { status: Status::Partial, reason }
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
            tasks: Tasks::default(),
            spent: Spent::default(),
            below: Spent::default(),
            steps: 0,
            answers: 0,
            summaries: 0,
            turned: false,
        }
    }

    /// Takes in what was recorded. Events that a rewind took back are to be left out.
    pub fn apply(&mut self, recorded: &Recorded) {
        match &recorded.event {
            // A fork starts to count anew.
            Event::Created(_) => self.spent = Spent::default(),
            Event::Message(message) if message.lane == self.lane => self.hear(message),
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
            Event::Phase(_) => self.turned = true,
            Event::Permission(permission) => {
                self.remembered.insert(permission.rule.clone(), permission.allow);
            }
            Event::Task(task) => self.tasks.put(task.clone()),
            Event::Gate(gate) => {
                self.gates.insert(gate.id.clone(), None);
            }
            Event::GateAnswered(answer) => {
                let (word, reason) = answer.answer.split_once(':').unwrap_or((&answer.answer, ""));
                let allow = matches!(word.trim(), "approve" | "approved" | "yes" | "y" | "allow");
                let gate = answer.id.clone();
                let answer =
                    GateAnswer { seq: recorded.seq, allow, reason: reason.trim().to_owned() };
                self.gates.insert(gate, Some(answer));
            }
            _ => {}
        }
    }

    /// Takes in only what was spent: what a rewind took back was paid all the same.
    pub fn count(&mut self, recorded: &Recorded) {
        let (usage, cost) = match &recorded.event {
            Event::Created(_) => return self.spent = Spent::default(),
            Event::Message(message) => (message.usage, message.cost),
            Event::Compacted(compacted) => (compacted.usage, compacted.cost),
            _ => return,
        };
        if let Some(usage) = usage {
            self.spent.count(usage, cost);
        }
    }

    /// Does the model's last answer ask for nothing?
    #[must_use]
    pub fn is_over(&self) -> bool {
        self.turn == Turn::Over
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

    /// Forgets what was allowed up to a seq.
    pub fn distrust(&mut self, to: Seq) {
        self.remembered.retain(|_, allow| !*allow);
        for answer in self.gates.values_mut() {
            answer.take_if(|answer| answer.allow && answer.seq <= to);
        }
    }

    /// Did this call begin to run?
    #[must_use]
    pub fn is_started(&self, id: &str) -> bool {
        match &self.turn {
            Turn::Tools(calls) => {
                calls.iter().any(|call| call.call.id == id && call.started.is_some())
            }
            _ => false,
        }
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
        matches!(self.gates.get(id), Some(None))
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
            self.gates.iter().filter(|(gate, answer)| answer.is_none() && gate.starts_with(&below));
        open.map(|(gate, _)| gate.clone()).collect()
    }

    /// What a person answered to a question.
    #[must_use]
    pub fn answered(&self, gate: &str) -> Option<&GateAnswer> {
        self.gates.get(gate)?.as_ref()
    }

    fn hear(&mut self, message: &Message) {
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
                let calls: Vec<Call> = message.calls().cloned().map(Call::new).collect();
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

    /// The next move, given what the next call to the model may cost.
    #[must_use]
    pub fn next(&self, rules: &Rules, since: &Baseline, estimate: &Estimate) -> Move {
        let calls = match &self.turn {
            Turn::Tools(calls) => calls,
            Turn::Over => {
                let (status, reason) = (Status::Success, StopReason::LlmDone);
                return Move::Stop(Stop { status, reason });
            }
            Turn::Nobody | Turn::Model => return self.ask_model(rules, since, estimate),
        };
        let Some(pending) = calls.iter().find(|call| !call.answered) else {
            return Move::Seal;
        };
        let call = pending.call.clone();
        // A tool of a server's that once was pure may be so no more.
        let now = rules.effects.get(&call.name).copied().unwrap_or(Effect::Pure);
        match &pending.started {
            Some(Started { effect: Effect::Resumable, .. }) => Move::RunTool(call),
            Some(Started { effect: Effect::Pure, .. }) if now == Effect::Pure => {
                Move::RunTool(call)
            }
            Some(Started { effect: Effect::Idempotent, targets, .. }) => {
                Move::Inspect(call, targets.clone())
            }
            Some(_) if rules.retry_unsafe => Move::RunTool(call),
            Some(_) => Move::Settle(call, Settled::Unknown),
            None => self.begin(call, rules),
        }
    }

    /// What becomes of a call that has not run.
    fn begin(&self, call: ToolCall, rules: &Rules) -> Move {
        let Some(effect) = rules.effects.get(&call.name) else {
            return Move::Settle(call, Settled::NoSuchTool);
        };
        match self.gates.get(&call.id) {
            Some(Some(GateAnswer { allow: true, .. })) => return Move::RunTool(call),
            Some(Some(GateAnswer { allow: false, reason, .. })) => {
                return Move::Settle(call, Settled::Denied(reason.clone()));
            }
            _ => {}
        }
        // A subagent that only looks is judged as what looks.
        let looks = *effect == Effect::Resumable && is_read_only(&call.arguments);
        let effect = if looks { &Effect::Pure } else { effect };
        match judge(rules.mode, *effect, self.remembered.get(&call.name).copied()) {
            Verdict::Allow => Move::RunTool(call),
            Verdict::Deny => Move::Settle(call, Settled::Denied(String::new())),
            Verdict::Ask => Move::Ask(call),
        }
    }

    fn ask_model(&self, rules: &Rules, since: &Baseline, estimate: &Estimate) -> Move {
        let steps = self.steps.saturating_sub(since.steps);
        if rules.limits.steps.is_some_and(|limit| steps >= limit) {
            return Move::Stop(Stop::limit(StopReason::MaxSteps));
        }
        if let Some(shrink) = estimate.shrink {
            return Move::Compact(self.summariser(rules, since, shrink));
        }
        match self.affords(&rules.limits, since, estimate.tokens, estimate.cost) {
            true => Move::CallModel,
            false => Move::Stop(Stop::limit(StopReason::BudgetExceeded)),
        }
    }

    /// Who writes a summary: a model, unless it would cost more than is left.
    #[must_use]
    pub fn summariser(&self, rules: &Rules, since: &Baseline, shrink: Shrink) -> By {
        match shrink {
            Shrink::Summarise { tokens, cost }
                if self.affords(&rules.limits, since, tokens, cost) =>
            {
                By::Model
            }
            Shrink::Summarise { .. } | Shrink::Truncate => By::Nobody,
        }
    }

    /// May a call be made that costs so much at most?
    fn affords(&self, limits: &Limits, since: &Baseline, tokens: u64, cost: Option<Money>) -> bool {
        let total = self.total();
        let used = total.usage.total().saturating_sub(since.spent.usage.total());
        let spent = total.cost.minus(since.spent.cost);
        let with = |spent: Money| Some(spent.plus(cost?));
        !(limits.tokens.is_some_and(|limit| used.saturating_add(tokens) > limit)
            || exceeds(limits.budget, with(spent))
            || exceeds(limits.budget_total, with(total.cost)))
    }
}

impl Call {
    fn new(call: ToolCall) -> Self {
        Self { call, started: None, answered: false }
    }
}

/// Is what it may come to more than the limit? Not knowing counts as more: whoever sets a
/// limit wants it kept.
fn exceeds(limit: Option<Money>, cost: Option<Money>) -> bool {
    limit.is_some_and(|limit| cost.is_none_or(|cost| cost > limit))
}

/// How a call that was cut off stands, by what is on disk now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Found {
    /// Its change was made.
    Made,
    /// Nothing was changed.
    Untouched,
    /// Neither: something else happened to its targets.
    Other,
}

/// What a call that was cut off did, given what its targets are now.
#[must_use]
pub fn inspect(targets: &[ToolTarget], now: &[Option<stepwell::Digest>]) -> Found {
    let all = |is: fn(&ToolTarget) -> &Option<stepwell::Digest>| {
        targets.len() == now.len() && targets.iter().zip(now).all(|(target, now)| is(target) == now)
    };
    if targets.is_empty() {
        Found::Other
    } else if all(|target| &target.after) {
        Found::Made
    } else if all(|target| &target.before) {
        Found::Untouched
    } else {
        Found::Other
    }
}

/// What a model is told of a call that was not run, or whose end nobody saw.
#[must_use]
pub fn told(settled: &Settled) -> (String, Outcome) {
    match settled {
        Settled::Unknown => (stepwell::INTERRUPTED.to_owned(), Outcome::Unknown),
        Settled::Denied(reason) if reason.is_empty() => {
            ("the user did not allow this".to_owned(), Outcome::Denied)
        }
        Settled::Denied(reason) => {
            (format!("the user did not allow this: {reason}"), Outcome::Denied)
        }
        Settled::Passed => {
            ("not run: the user said something else first".to_owned(), Outcome::Denied)
        }
        Settled::NoSuchTool => ("there is no such tool".to_owned(), Outcome::Failed),
    }
}

#[cfg(test)]
mod tests {
    use stepwell::{
        Digest, Failure, Gate, GateAnswered, Permission, Step, Time, ToolStarted, Usage,
    };

    use super::*;

    /// A run, told event by event.
    struct Told(State, u64);

    impl Told {
        fn new() -> Self {
            Self(State::new(Lane::main()), 0)
        }

        fn then(mut self, event: impl Into<Event>) -> Self {
            self.1 += 1;
            let (seq, event) = (Seq::new(self.1), event.into());
            self.0.apply(&Recorded { seq, at: Time::EPOCH, id: None, event });
            self
        }

        fn next(&self, rules: &Rules) -> Move {
            self.0.next(rules, &Baseline::default(), &Estimate::default())
        }
    }

    fn rules(mode: Mode) -> Rules {
        let effects =
            [("look", Effect::Pure), ("write", Effect::Idempotent), ("run", Effect::Unsafe)];
        let effects = effects.into_iter().map(|(name, it)| (name.to_owned(), it)).collect();
        Rules { mode, retry_unsafe: false, effects, limits: Limits::default() }
    }

    fn asks(calls: &[(&str, &str)]) -> Message {
        let message = Message::assistant("hm");
        calls.iter().fold(message, |message, (id, tool)| message.calling(*id, *tool, "{}"))
    }

    fn started(id: &str, effect: Effect, targets: Vec<ToolTarget>) -> ToolStarted {
        let (lane, call_id, tool) = (Lane::main(), id.to_owned(), String::new());
        let (arguments, child) = (Digest::of(b""), None);
        ToolStarted { lane, call_id, tool, effect, arguments, targets, child }
    }

    fn call(made: &Move) -> &str {
        match made {
            Move::RunTool(call)
            | Move::Inspect(call, _)
            | Move::Settle(call, _)
            | Move::Ask(call) => &call.id,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_conversation_goes_from_user_to_model_to_tools_and_back() {
        let yolo = rules(Mode::Yolo);
        let told = Told::new().then(Message::user("go"));
        assert_eq!(told.next(&yolo), Move::CallModel);
        let told = told.then(asks(&[("a", "look"), ("b", "run")]));
        assert_eq!(call(&told.next(&yolo)), "a");
        let told = told.then(Message::tool_result("a", "x"));
        assert!(matches!(told.next(&yolo), Move::RunTool(call) if call.id == "b"));
        let told = told.then(Message::tool_result("b", "y"));
        assert_eq!(told.next(&yolo), Move::Seal);
        let told = told.then(Step { lane: Lane::main(), n: 1 });
        assert_eq!(told.next(&yolo), Move::CallModel);
        let told = told.then(Message::assistant("done")).then(Step { lane: Lane::main(), n: 2 });
        let done = Stop { status: Status::Success, reason: StopReason::LlmDone };
        assert_eq!(told.next(&yolo), Move::Stop(done));
        // Whoever says more goes on.
        assert_eq!(told.then(Message::user("more")).next(&yolo), Move::CallModel);
    }

    #[test]
    fn a_call_that_was_cut_off_is_treated_by_its_effect() {
        let cut_off = |tool, effect, targets| {
            let told = Told::new().then(Message::user("go")).then(asks(&[("a", tool)]));
            told.then(started("a", effect, targets))
        };
        let cut = |effect, targets| cut_off("run", effect, targets);
        let yolo = rules(Mode::Yolo);
        let pure = cut_off("look", Effect::Pure, vec![]).next(&yolo);
        assert!(matches!(pure, Move::RunTool(_)));
        // What was pure when it began, and is unsafe now, is not repeated.
        let changed = cut(Effect::Pure, vec![]).next(&yolo);
        assert!(matches!(changed, Move::Settle(_, Settled::Unknown)));
        let target = ToolTarget { path: "f".into(), before: None, after: Some(Digest::of(b"x")) };
        let inspect = cut(Effect::Idempotent, vec![target.clone()]).next(&yolo);
        assert!(matches!(inspect, Move::Inspect(_, targets) if targets == [target]));
        let unknown = cut(Effect::Unsafe, vec![]).next(&yolo);
        assert!(matches!(unknown, Move::Settle(_, Settled::Unknown)));
        let retry = Rules { retry_unsafe: true, ..rules(Mode::Yolo) };
        assert!(matches!(cut(Effect::Unsafe, vec![]).next(&retry), Move::RunTool(_)));
    }

    #[test]
    fn what_a_cut_off_change_did_is_told_by_its_targets() {
        let (old, new) = (Some(Digest::of(b"old")), Some(Digest::of(b"new")));
        let target = |before, after| ToolTarget { path: "f".into(), before, after };
        assert_eq!(inspect(&[target(old, new)], &[new]), Found::Made);
        assert_eq!(inspect(&[target(old, new)], &[old]), Found::Untouched);
        assert_eq!(inspect(&[target(old, new)], &[None]), Found::Other);
        assert_eq!(inspect(&[target(old, None)], &[None]), Found::Made);
        assert_eq!(inspect(&[target(old, new), target(None, new)], &[new, None]), Found::Other);
        assert_eq!(inspect(&[], &[]), Found::Other);
    }

    #[test]
    fn permission_follows_mode_memory_and_gates() {
        let asked = |tool| Told::new().then(Message::user("go")).then(asks(&[("a", tool)]));
        let sensitive = rules(Mode::ConfirmSensitive);
        assert!(matches!(asked("look").next(&sensitive), Move::RunTool(_)));
        assert!(matches!(asked("write").next(&sensitive), Move::Ask(_)));
        assert!(matches!(asked("look").next(&rules(Mode::ConfirmAll)), Move::Ask(_)));
        assert!(matches!(asked("run").next(&rules(Mode::Yolo)), Move::RunTool(_)));
        let nobody = asked("dance").next(&rules(Mode::Yolo));
        assert!(matches!(nobody, Move::Settle(_, Settled::NoSuchTool)));
        let remembered = |allow| asked("run").then(Permission { rule: "run".into(), allow });
        assert!(matches!(remembered(true).next(&sensitive), Move::RunTool(_)));
        let denied = remembered(false).next(&sensitive);
        assert!(matches!(denied, Move::Settle(_, Settled::Denied(_))));
        let gate = Gate { id: "a".into(), prompt: "?".into(), default: None, deadline: None };
        let waiting = asked("run").then(gate);
        assert!(matches!(waiting.next(&sensitive), Move::Ask(_)));
        assert!(waiting.0.is_asked("a"));
        let answer =
            |text: &str| GateAnswered { id: "a".into(), answer: text.into(), who: "me".into() };
        let approved = Told(waiting.0.clone(), waiting.1).then(answer("approve"));
        assert!(matches!(approved.next(&sensitive), Move::RunTool(_)));
        let denied = waiting.then(answer("deny: too risky")).next(&sensitive);
        let why = Settled::Denied("too risky".to_owned());
        assert!(matches!(denied, Move::Settle(_, settled) if settled == why));
    }

    #[test]
    fn limits_are_kept_before_the_call_that_would_break_them() {
        let dollars = |text: &str| text.parse::<Money>().ok();
        let usage = Usage { input: 100, output: 10, ..Usage::default() };
        let spent = Message::assistant("x").spending(usage, dollars("0.5"));
        let told = Told::new().then(spent).then(Message::user("go"));
        let told = told.then(Step { lane: Lane::main(), n: 1 });
        let next = |limits: Limits, cost: Option<Money>| {
            let rules = Rules { limits, ..rules(Mode::Yolo) };
            let estimate = Estimate { tokens: 50, cost, ..Estimate::default() };
            told.0.next(&rules, &Baseline::default(), &estimate)
        };
        let stops = |limits, cost| match next(limits, cost) {
            Move::Stop(stop) => Some(stop.reason),
            _ => None,
        };
        let budget = |text| Limits { budget: dollars(text), ..Limits::default() };
        assert_eq!(stops(Limits::default(), None), None);
        assert_eq!(stops(budget("0.6"), dollars("0.1")), None);
        assert_eq!(stops(budget("0.6"), dollars("0.11")), Some(StopReason::BudgetExceeded));
        assert_eq!(stops(budget("0"), dollars("0.01")), Some(StopReason::BudgetExceeded));
        // What may cost anything costs too much.
        assert_eq!(stops(budget("9"), None), Some(StopReason::BudgetExceeded));
        let steps = |n| Limits { steps: Some(n), ..Limits::default() };
        assert_eq!(stops(steps(1), None), Some(StopReason::MaxSteps));
        assert_eq!(stops(steps(2), None), None);
        let tokens = |n| Limits { tokens: Some(n), ..Limits::default() };
        assert_eq!(stops(tokens(160), None), None);
        assert_eq!(stops(tokens(159), None), Some(StopReason::BudgetExceeded));
        // Only the whole session's budget remembers what was spent before.
        let since = Baseline { spent: told.0.spent, steps: told.0.steps };
        let rules = Rules { limits: budget("0.2"), ..rules(Mode::Yolo) };
        let estimate = Estimate { tokens: 50, cost: dollars("0.1"), shrink: None };
        assert_eq!(told.0.next(&rules, &since, &estimate), Move::CallModel);
        let limits = Limits { budget_total: dollars("0.2"), ..Limits::default() };
        let total = Rules { limits, ..rules };
        assert!(matches!(told.0.next(&total, &since, &estimate), Move::Stop(_)));
    }

    #[test]
    fn a_conversation_shrinks_before_the_model_is_asked_and_within_the_budget() {
        let told = Told::new().then(Message::user("go"));
        let next = |limits: Limits, shrink| {
            let rules = Rules { limits, ..rules(Mode::Yolo) };
            let estimate = Estimate { tokens: 50, shrink: Some(shrink), ..Estimate::default() };
            told.0.next(&rules, &Baseline::default(), &estimate)
        };
        let summary = Shrink::Summarise { tokens: 100, cost: "0.1".parse().ok() };
        assert_eq!(next(Limits::default(), summary), Move::Compact(By::Model));
        assert_eq!(next(Limits::default(), Shrink::Truncate), Move::Compact(By::Nobody));
        let budget = |text: &str| Limits { budget: text.parse().ok(), ..Limits::default() };
        assert_eq!(next(budget("0.1"), summary), Move::Compact(By::Model));
        assert_eq!(next(budget("0.09"), summary), Move::Compact(By::Nobody));
        let free = Shrink::Summarise { tokens: 100, cost: None };
        assert_eq!(next(budget("9"), free), Move::Compact(By::Nobody));
        let tokens = Limits { tokens: Some(99), ..Limits::default() };
        assert_eq!(next(tokens, summary), Move::Compact(By::Nobody));
        let steps = Limits { steps: Some(0), ..Limits::default() };
        assert!(matches!(next(steps, summary), Move::Stop(_)));
        // While tools run nothing shrinks.
        let told = told.then(asks(&[("a", "look")]));
        let estimate = Estimate { shrink: Some(summary), ..Estimate::default() };
        let made = told.0.next(&rules(Mode::Yolo), &Baseline::default(), &estimate);
        assert!(matches!(made, Move::RunTool(_)));
    }

    #[test]
    fn a_new_phase_counts_until_the_model_speaks_or_the_conversation_shrinks() {
        use stepwell::{Compacted, Phase, PhaseChanged};
        let turn = PhaseChanged { from: Phase::Discuss, to: Phase::Plan };
        let told = Told::new().then(Message::user("go")).then(turn);
        assert!(told.0.turned);
        assert!(!Told(told.0.clone(), told.1).then(Message::assistant("x")).0.turned);
        let compacted = Compacted {
            model: Some("m".into()),
            ..Compacted::new(Lane::main(), Seq::new(1), Seq::new(1))
        };
        let told = told.then(compacted);
        assert!(!told.0.turned);
        assert_eq!((told.0.summaries, told.0.answers), (1, 0));
    }

    #[test]
    fn a_subagent_is_taken_up_where_its_session_stands() {
        let call = Message::assistant("").calling("c", "hand_on", r#"{"task":"x"}"#);
        let started = |child: &str| {
            let child = Some(child.parse().unwrap());
            ToolStarted { child, ..started("c", Effect::Resumable, Vec::new()) }
        };
        let told = Told::new().then(call).then(started("one"));
        let rules = rules(Mode::ConfirmAll);
        assert!(matches!(told.next(&rules), Move::RunTool(call) if call.id == "c"));
        assert_eq!(told.0.child("c").unwrap().as_str(), "one");
        // A fork starts another for the same call.
        assert_eq!(told.then(started("two")).0.child("c").unwrap().as_str(), "two");
    }

    #[test]
    fn a_subagent_that_only_looks_is_not_asked_about() {
        let mut rules = rules(Mode::ConfirmSensitive);
        rules.effects.insert("hand_on".to_owned(), Effect::Resumable);
        let next = |arguments: &str| {
            let call = Message::assistant("").calling("c", "hand_on", arguments);
            Told::new().then(call).next(&rules)
        };
        assert!(matches!(next(r#"{"task":"x"}"#), Move::RunTool(_)));
        assert!(matches!(next(r#"{"task":"x","workspace":"worktree"}"#), Move::Ask(_)));
    }

    #[test]
    fn what_subagents_spent_counts_against_every_limit() {
        let mut told = Told::new().then(Message::user("go"));
        let usage = Usage { input: 60, output: 40, ..Usage::default() };
        told.0.below.count(usage, Some("0.5".parse().unwrap()));
        let stops = |limits: Limits| {
            let rules = Rules { limits, ..rules(Mode::Yolo) };
            let cost = Some("0.2".parse().unwrap());
            let estimate = Estimate { tokens: 10, cost, ..Estimate::default() };
            matches!(told.0.next(&rules, &Baseline::default(), &estimate), Move::Stop(_))
        };
        let dollars = |text: &str| Some(text.parse().unwrap());
        for (limit, stop) in [("0.6", true), ("0.7", false)] {
            assert_eq!(stops(Limits { budget: dollars(limit), ..Limits::default() }), stop);
            assert_eq!(stops(Limits { budget_total: dollars(limit), ..Limits::default() }), stop);
        }
        assert!(stops(Limits { tokens: Some(109), ..Limits::default() }));
        assert!(!stops(Limits { tokens: Some(110), ..Limits::default() }));
    }

    #[test]
    fn other_events_change_nothing() {
        let told = Told::new().then(Message::user("go")).then(Failure { message: "x".into() });
        assert_eq!(told.next(&rules(Mode::Yolo)), Move::CallModel);
        let other = Message::assistant("elsewhere").in_lane("side".parse().unwrap());
        assert_eq!(told.then(other).next(&rules(Mode::Yolo)), Move::CallModel);
    }
}
