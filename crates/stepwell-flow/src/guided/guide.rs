//! The building blocks of guided work: entering a phase, computing a value once, asking a person.
//! Each is a node, recorded in one append with its consequences.

use std::cell::RefCell;
use std::collections::BTreeMap;

use serde_json::{Value, json};
use stepwell::Event;
use stepwell::model::{
    Checkpoint, Gate, Move, Node, NodeId, NodeKey, NodeState, Phase, PhaseChanged, Task,
};
use stepwell::work::Tasks;

use crate::flow::{Flow, NodeEvent, Upcoming};
use crate::gate::NO_PERSON;
use crate::halt::{Halt, Left};
use crate::spec::Guided;

/// Guided work in a flow.
pub(super) struct Guide<'a, 'f> {
    pub(super) flow: &'a Flow<'f>,
    pub(super) config: &'a Guided,
    /// The goal.
    pub(super) goal: String,
    /// How often each phase was entered so far in this walk.
    visits: RefCell<BTreeMap<&'static str, u32>>,
    /// The current phase of the walk.
    current: RefCell<Option<NodeKey>>,
    /// In a dry run, the tasks that would be recorded.
    pretended: RefCell<Vec<Task>>,
}

/// A question for a person.
pub(super) struct Question<'a> {
    pub(super) prompt: String,
    pub(super) default: Option<String>,
    /// Recorded together with the question.
    pub(super) opening: Vec<Event>,
    /// Recorded together with the answer.
    pub(super) closing: &'a dyn Fn(&str) -> Vec<Event>,
    /// The answer, if no person is asked.
    pub(super) agreed: Option<String>,
}

/// A recorded answer.
pub(super) struct Answered {
    pub(super) text: String,
    /// Did a person answer?
    pub(super) by_person: bool,
}

impl<'a, 'f> Guide<'a, 'f> {
    pub(super) fn new(flow: &'a Flow<'f>, config: &'a Guided, goal: String) -> Self {
        let (visits, current, pretended) = Default::default();
        Self { flow, config, goal, visits, current, pretended }
    }

    /// Enters a phase, once. Its checkpoint is the target of rewinds.
    pub(super) fn enter(&self, phase: Phase) -> Result<(), Halt> {
        let n =
            *self.visits.borrow_mut().entry(phase.as_str()).and_modify(|n| *n += 1).or_insert(1);
        let key = NodeKey::Phase(node_id(phase.as_str()), n);
        let before = self.current.replace(Some(key.clone()));
        let is_known = self.flow.state().memo.node(&key).is_some();
        if is_known || self.flow.dry_run.is_some() {
            return Ok(());
        }
        if self.flow.is_halted() {
            return Err(Halt::NotStarted);
        }
        let mut events = Vec::new();
        events.extend(before.map(|before| Event::from(done(&before, json!({})))));
        events
            .push(Node { state: NodeState::Started, output: None, ..done(&key, json!({})) }.into());
        let head = self.flow.session.info()?.head;
        let (Some(set), Some(from)) = (head.phases, head.phase) else {
            return Err(self.flow.fail(&key, None, "the session has no phases", None));
        };
        match set.judge(from, phase, head.discuss_returns) {
            Move::Legal => {
                events.push(PhaseChanged { from, to: phase }.into());
                events.push(Checkpoint::of_phase(phase).into());
            }
            Move::Stay => {}
            Move::Illegal(_) => {
                let what = format!("the work cannot move from {from} to {phase}");
                return Err(self.flow.fail(&key, None, &what, None));
            }
        }
        self.flow.record(events)
    }

    /// Is the walk in an earlier visit of a phase, which a later one continues?
    pub(super) fn is_past_visit(&self) -> bool {
        let current = self.current.borrow();
        let state = self.flow.state();
        current.as_ref().is_some_and(|key| state.memo.result(key).is_some())
    }

    /// Was a phase entered this many times?
    pub(super) fn was_entered(&self, phase: Phase, times: u32) -> bool {
        let key = NodeKey::Phase(node_id(phase.as_str()), times);
        self.flow.state().memo.node(&key).is_some()
    }

    /// Ends the last phase.
    pub(super) fn finish(&self) -> Result<(), Halt> {
        let Some(key) = self.current.take() else { return Ok(()) };
        self.part(&key, || Ok((json!({}), Vec::new()))).map(drop)
    }

    /// A value that needs neither an agent nor a person: the recorded one, or it is computed now
    /// and recorded with its consequences. A dry run computes it too, so `work` must only read.
    pub(super) fn part(
        &self,
        key: &NodeKey,
        work: impl FnOnce() -> Result<(Value, Vec<Event>), String>,
    ) -> Result<Value, Halt> {
        if let Some(output) = self.flow.state().memo.result(key) {
            return Ok(output.clone());
        }
        self.may_start()?;
        let (output, more) = work().map_err(|why| self.flow.fail(key, None, &why, None))?;
        if self.flow.dry_run.is_some() {
            self.pretend(more);
            return Ok(output);
        }
        let mut events = vec![done(key, output.clone()).into()];
        events.extend(more);
        self.flow.record(events)?;
        Ok(output)
    }

    /// May another node start?
    pub(super) fn may_start(&self) -> Result<(), Halt> {
        if self.flow.is_halted() {
            return Err(Halt::NotStarted);
        }
        if *self.flow.interrupt.borrow() {
            return Err(Halt::Interrupted);
        }
        Ok(())
    }

    /// In a dry run, notes a node instead of starting it.
    pub(super) fn note_upcoming(
        &self,
        key: &NodeKey,
        agent: Option<&str>,
        asks: impl FnOnce() -> Option<String>,
    ) -> Result<(), Halt> {
        let Some(upcoming) = &self.flow.dry_run else { return Ok(()) };
        let asks = asks().map(|text| self.flow.agents.redactor().redact(&text).into_owned());
        let (key, agent) = (key.to_string(), agent.map(str::to_owned));
        upcoming.borrow_mut().push(Upcoming { key, agent, asks });
        Err(Halt::NotStarted)
    }

    /// In a dry run, continues as if these events were recorded.
    fn pretend(&self, events: Vec<Event>) {
        let tasks = events.into_iter().filter_map(|event| match event {
            Event::Task(task) => Some(task),
            _ => None,
        });
        self.pretended.borrow_mut().extend(tasks);
    }

    /// A person's answer. Pauses the flow until there is one.
    pub(super) fn ask_person(
        &self,
        key: &NodeKey,
        question: Question<'_>,
    ) -> Result<Answered, Halt> {
        if let Some(output) = self.flow.state().memo.result(key) {
            return Ok(Answered::of(output));
        }
        let id = key.to_string();
        let asked = self.flow.state().memo.gate(&id).cloned();
        if let Some(asked) = &asked {
            let Some(answer) = &asked.answer else {
                self.note_upcoming(key, None, || Some(asked.gate.prompt.clone()))?;
                return Err(Halt::Paused);
            };
            let output = json!({ "response": answer.answer.text(), "who": answer.who });
            return self.close(key, output, question.closing);
        }
        if question.agreed.is_none() {
            self.note_upcoming(key, None, || Some(question.prompt.clone()))?;
        }
        self.may_start()?;
        if let Some(agreed) = question.agreed {
            let output = json!({ "response": agreed, "who": NO_PERSON });
            return self.close(key, output, question.closing);
        }
        let redact = |text: &str| self.flow.agents.redactor().redact(text).into_owned();
        let (prompt, default) = (redact(&question.prompt), question.default);
        let mut events = vec![Gate { default, ..Gate::new(id, prompt) }.into()];
        events.extend(question.opening);
        self.flow.record_node(NodeEvent::new(key, None, NodeState::Started), events)?;
        Err(Halt::Paused)
    }

    /// Records an answer as its node's result, with its consequences.
    fn close(
        &self,
        key: &NodeKey,
        output: Value,
        closing: &dyn Fn(&str) -> Vec<Event>,
    ) -> Result<Answered, Halt> {
        let answered = Answered::of(&output);
        let more = closing(&answered.text);
        if self.flow.dry_run.is_some() {
            self.pretend(more);
            return Ok(answered);
        }
        let output = Some(output);
        let done = NodeEvent { output, ..NodeEvent::new(key, None, NodeState::Done) };
        self.flow.record_node(done, more)?;
        Ok(answered)
    }

    /// Ends the work with something unfinished, unless its user has seen that and resumed it.
    pub(super) fn leave(
        &self,
        part: &str,
        n: u32,
        what: impl FnOnce() -> String,
    ) -> Result<(), Halt> {
        let key = NodeKey::Work(node_id(part), n);
        if self.flow.state().memo.result(&key).is_some() {
            return Ok(());
        }
        let what = what();
        self.note_upcoming(&key, None, || Some(what.clone()))?;
        self.may_start()?;
        Err(Halt::Left(Left { key, what }))
    }

    /// The session's current tasks.
    pub(super) fn tasks(&self) -> Result<Tasks, Halt> {
        let mut tasks = self.flow.session.work()?.tasks;
        self.pretended.borrow().iter().for_each(|task| tasks.put(task.clone()));
        Ok(tasks)
    }
}

impl Answered {
    fn of(output: &Value) -> Self {
        let text = output.get("response").and_then(Value::as_str).unwrap_or_default().to_owned();
        let by_person = output.get("who").is_some_and(|who| who != NO_PERSON);
        Self { text, by_person }
    }
}

/// The key of a part.
pub(super) fn part(name: &str, n: u32) -> NodeKey {
    NodeKey::Work(node_id(name), n)
}

/// A name as part of a key.
pub(super) fn node_id(name: &str) -> NodeId {
    name.parse().expect("names of parts and ids of planned tasks are short and have no slash")
}

/// A node's result.
pub(super) fn done(key: &NodeKey, output: Value) -> Node {
    Node {
        key: key.to_string(),
        state: NodeState::Done,
        output: Some(output),
        usage: None,
        error: None,
    }
}
