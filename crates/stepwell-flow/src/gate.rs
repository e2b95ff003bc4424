//! A node that a person answers: a question, asked once and answered once.

use std::time::Duration;

use serde_json::{Value, json};
use stepwell::model::{Gate, GateAnswered, Kind, NodeKey, NodeState, Time};
use stepwell::sessions::GUARD;
use stepwell::store::Facts;
use stepwell::trust::Counted;
use stepwell_agent::run::{GateAnswer, Notice, RunEvent};

use crate::error::Error;
use crate::flow::{Flow, NodeEvent};
use crate::halt::Halt;
use crate::spec;
use crate::template::Scope;

/// A question for a person.
pub(crate) struct Question<'a> {
    /// The question as the spec describes it.
    pub(crate) gate: &'a spec::Gate,
    /// The values that its templates see.
    pub(crate) scope: &'a Scope,
}

/// The recorded `who` of an answer that is the default after a timeout.
pub const NOBODY: &str = "nobody (its time was up)";

/// The recorded `who` if the user agreed in advance not to be asked.
pub const NO_PERSON: &str = "nobody (it was agreed to beforehand)";

/// Why an answer is rejected.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NoAnswer {
    /// It is empty, and the question has no default.
    #[error("the answer is empty, and the question has no default")]
    Empty,
    /// It does not match the pattern of the spec.
    #[error("the answer does not match {pattern:?}")]
    Unfit {
        /// The regular expression.
        pattern: String,
    },
    /// The deadline has passed, so the default is the answer.
    #[error("the answer is too late: the deadline was {deadline}, so the default is used")]
    Late {
        /// The question's deadline.
        deadline: Time,
    },
}

/// Validates an answer. Returns the text to record: an empty answer becomes the default.
pub fn accept(
    asked: &Gate,
    described: Option<&spec::Gate>,
    text: &str,
    now: Time,
) -> Result<String, NoAnswer> {
    if let (Some(deadline), Some(_)) = (asked.deadline.filter(|it| *it <= now), &asked.default) {
        return Err(NoAnswer::Late { deadline });
    }
    if text.trim().is_empty() {
        return asked.default.clone().ok_or(NoAnswer::Empty);
    }
    let pattern = described.and_then(|gate| gate.validation.as_ref()?.pattern.as_ref());
    match pattern {
        Some(pattern) if !pattern.matches(text) => {
            Err(NoAnswer::Unfit { pattern: pattern.as_str().to_owned() })
        }
        _ => Ok(text.to_owned()),
    }
}

impl Flow<'_> {
    /// The answer to a question. Pauses the flow while there is none.
    pub(crate) fn gate(&self, key: &NodeKey, question: &Question<'_>) -> Result<Value, Halt> {
        let id = key.to_string();
        let asked = self.state().memo.gate(&id).cloned();
        let Some(asked) = asked else {
            // A flow that has failed asks no further questions.
            if self.is_halted() {
                return Err(Halt::NotStarted);
            }
            return self.open_gate(key, question);
        };
        if let Some(answer) = asked.answer {
            return self.finish_gate(key, &answer);
        }
        match asked.gate.deadline.filter(|deadline| *deadline <= self.session.now()) {
            None => Err(Halt::Paused),
            Some(_) => match asked.gate.default {
                Some(answer) => {
                    let answer = self.record_answer(GateAnswered::new(id, answer, NOBODY))?;
                    self.finish_gate(key, &answer)
                }
                None => {
                    let what = "the question timed out, and it has no default answer";
                    Err(self.fail(key, None, what, None))
                }
            },
        }
    }

    /// Records the question, and pauses the flow.
    fn open_gate(&self, key: &NodeKey, question: &Question<'_>) -> Result<Value, Halt> {
        let Question { gate, scope } = question;
        let fail = |what: String| self.fail(key, None, &what, None);
        let prompt = gate.prompt.render(scope).map_err(|error| fail(format!("prompt: {error}")))?;
        let context = gate.context_display.as_ref().map(|context| context.render(scope));
        let context = context
            .transpose()
            .map_err(|error| fail(format!("context_display: {error}")))?
            .filter(|context| !context.trim().is_empty());
        let prompt = match context {
            Some(context) => format!("{}\n\n{}", prompt.trim_end(), context.trim_end()),
            None => prompt.trim_end().to_owned(),
        };
        let prompt = self.agents.redactor().redact(&prompt).into_owned();
        let asked = Gate {
            default: gate.default.clone(),
            deadline: deadline(gate.timeout_seconds, self.session.now()),
            ..Gate::new(key.to_string(), prompt)
        };
        let started = NodeEvent::new(key, None, NodeState::Started);
        self.record_node(started, vec![asked.into()])?;
        Err(Halt::Paused)
    }

    /// Records an answer as its node's result.
    fn finish_gate(&self, key: &NodeKey, answer: &GateAnswered) -> Result<Value, Halt> {
        let output = json!({ "response": answer.answer.text(), "who": answer.who });
        let done = NodeEvent {
            output: Some(output.clone()),
            ..NodeEvent::new(key, None, NodeState::Done)
        };
        self.record_node(done, Vec::new())?;
        Ok(output)
    }

    /// Records an answer. The first one counts: if another was recorded before, returns that.
    pub(crate) fn record_answer(&self, answer: GateAnswered) -> Result<GateAnswered, Halt> {
        let was_halted = self.is_halted();
        let Err(halt) = self.record(vec![answer.clone().into()]) else { return Ok(answer) };
        if !matches!(halt, Halt::Broken(Error::Store(stepwell::Error::Illegal { .. }))) {
            return Err(halt);
        }
        self.read_new_answers()?;
        if !was_halted {
            self.restart();
        }
        let first = self.state().memo.gate(&answer.id).and_then(|asked| asked.answer.clone());
        let Some(first) = first else {
            // An earlier answer does not count, so the question is asked again.
            self.record(vec![answer.clone().into()])?;
            return Ok(answer);
        };
        let why = format!("it was already answered by {}", first.who);
        let notice = Notice::AnswerRefused { gate: first.id.clone(), why };
        self.events.tell(RunEvent::Notice(notice));
        Ok(first)
    }

    /// Whether a question's deadline has passed.
    pub(crate) fn is_overdue(&self, gate: &Gate) -> bool {
        gate.deadline.is_some_and(|deadline| deadline <= self.session.now())
    }

    /// Reads answers from other processes since the flow began. Returns whether any of them count;
    /// a question with another answer is asked again. Earlier gates are not checked.
    pub(crate) fn read_new_answers(&self) -> Result<bool, Halt> {
        let from = self.read_to.next();
        let facts = Facts { from, ..Facts::of(&[Kind::GateAnswered]) };
        let facts = self.session.well().store().keyed(self.session.id(), facts)?;
        let (mut found, mut again) = (false, Vec::new());
        for fact in facts {
            let stepwell::Event::GateAnswered(answer) = &fact.event else { continue };
            let mut state = self.state();
            let asked = state.memo.gate(&answer.id);
            let Some(asked) = asked.filter(|it| it.answer.is_none() && it.seq < fact.seq) else {
                continue;
            };
            let judge = self.session.well().judge(self.session.id())?;
            if let Some(Counted::AskAgain(why)) = judge.answer(&fact) {
                again.push((asked.gate.clone(), why));
                continue;
            }
            found = true;
            let (session, gate) = (self.session.id().clone(), answer.id.clone());
            let (answer, who, at) = (answer.answer.clone(), answer.who.clone(), fact.at);
            state.apply(fact);
            drop(state);
            let answered = GateAnswer { session, gate, answer, who, at };
            self.events.tell(RunEvent::Answered(answered));
        }
        for (gate, why) in again {
            self.announced.borrow_mut().remove(&gate.id);
            self.record(vec![gate.into()])?;
            self.events.tell(RunEvent::Notice(Notice::Disregarded(why.into())));
        }
        Ok(found)
    }

    /// The number of open questions whose deadline has passed.
    pub(crate) fn overdue(&self) -> usize {
        self.state().memo.open().into_iter().filter(|gate| self.is_overdue(gate)).count()
    }

    /// The time until the next question is overdue.
    pub(crate) fn until_deadline(&self) -> Duration {
        let now = self.session.now();
        let state = self.state();
        let deadlines = state.memo.open().into_iter().filter_map(|gate| gate.deadline);
        let next = deadlines.filter(|deadline| *deadline > now).min();
        next.map_or(GUARD, |deadline| deadline.since(now))
    }
}

/// The deadline for an answer; none if there is no timeout or it is 0.
fn deadline(seconds: Option<u64>, now: Time) -> Option<Time> {
    let seconds = seconds.filter(|seconds| *seconds > 0)?;
    Some(now.plus(Duration::from_secs(seconds)))
}
