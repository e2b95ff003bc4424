//! A node whose work is a person's: a question, asked once and answered once.

use std::time::Duration;

use serde_json::{Value, json};
use stepwell::{Gate, GateAnswered, NodeKey, NodeState, Time};

use crate::error::Error;
use crate::flow::{Flow, NodeEvent};
use crate::halt::Halt;
use crate::observer::FlowEvent;
use crate::spec;
use crate::template::Scope;

/// A question for a person.
pub(crate) struct Question<'a> {
    /// What the spec says.
    pub(crate) gate: &'a spec::Gate,
    /// What its templates see.
    pub(crate) scope: &'a Scope,
}

/// Who answers when nobody does in time.
pub const NOBODY: &str = "nobody (its time was up)";

/// Why an answer is not taken.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NoAnswer {
    /// It says nothing, and there is nothing to stand in for it.
    #[error("the answer is empty, and the question has no default")]
    Empty,
    /// It does not look as the spec wants it.
    #[error("the answer does not fit {pattern:?}")]
    Unfit {
        /// What it is to fit.
        pattern: String,
    },
    /// Its time is up, and its default stands.
    #[error(
        "the answer comes too late: it was wanted until {deadline}, and now its default counts"
    )]
    Late {
        /// Until when it was wanted.
        deadline: Time,
    },
}

/// What an answer comes to, given what was asked.
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
        Some(pattern) if !pattern.fits(text) => {
            Err(NoAnswer::Unfit { pattern: pattern.as_str().to_owned() })
        }
        _ => Ok(text.to_owned()),
    }
}

impl Flow<'_> {
    /// The answer to a question, or a pause.
    pub(crate) fn gate(&self, key: &NodeKey, question: &Question<'_>) -> Result<Value, Halt> {
        let id = key.to_string();
        let asked = self.state().memo.gate(&id).cloned();
        let Some(asked) = asked else {
            // A person is asked nothing for a flow that has failed.
            if self.is_halted() {
                return Err(Halt::NotStarted);
            }
            return self.put(key, question);
        };
        if let Some(answer) = asked.answer {
            return self.answered(key, &answer);
        }
        match asked.gate.deadline.filter(|deadline| *deadline <= self.session.now()) {
            None => Err(Halt::Paused),
            Some(_) => match asked.gate.default {
                Some(answer) => {
                    let answer = self.give(GateAnswered::new(id, answer, NOBODY))?;
                    self.answered(key, &answer)
                }
                None => {
                    let what = "nobody answered in time, and the question has no default";
                    Err(self.fail(key, None, what, None))
                }
            },
        }
    }

    /// Asks.
    fn put(&self, key: &NodeKey, question: &Question<'_>) -> Result<Value, Halt> {
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
        let asked = Gate {
            id: key.to_string(),
            prompt: self.agents.redactor().redact(&prompt).into_owned(),
            default: gate.default.clone(),
            deadline: deadline(gate.timeout_seconds, self.session.now()),
        };
        let started = NodeEvent::new(key, None, NodeState::Started);
        self.record_node(started, vec![asked.into()])?;
        Err(Halt::Paused)
    }

    /// Records an answer as its node's result.
    fn answered(&self, key: &NodeKey, answer: &GateAnswered) -> Result<Value, Halt> {
        let output = json!({ "response": answer.answer.text(), "who": answer.who });
        let done = NodeEvent {
            output: Some(output.clone()),
            ..NodeEvent::new(key, None, NodeState::Done)
        };
        self.record_node(done, Vec::new())?;
        Ok(output)
    }

    /// Records an answer. If somebody else was quicker theirs counts, and is returned.
    pub(crate) fn give(&self, answer: GateAnswered) -> Result<GateAnswered, Halt> {
        let was_halted = self.is_halted();
        let Err(halt) = self.record(vec![answer.clone().into()]) else { return Ok(answer) };
        if !matches!(halt, Halt::Broken(Error::Store(stepwell::Error::Illegal { .. }))) {
            return Err(halt);
        }
        self.take_answers()?;
        let theirs = self.state().memo.gate(&answer.id).and_then(|asked| asked.answer.clone());
        let theirs = theirs.ok_or(halt)?;
        if !was_halted {
            self.restart();
        }
        let notice = format!("[{}] was answered by {} meanwhile", theirs.id, theirs.who);
        self.state().observer.on_event(FlowEvent::Notice(&notice));
        Ok(theirs)
    }

    /// Is an answer stored that is not taken in yet?
    pub(crate) fn is_answered(&self, id: &str) -> bool {
        let facts = self.session.facts(&[stepwell::Kind::GateAnswered]).unwrap_or_default();
        facts.iter().any(|fact| {
            fact.seq > self.read_to
                && matches!(&fact.event, stepwell::Event::GateAnswered(it) if it.id == id)
        })
    }

    /// Is a question's time up?
    pub(crate) fn is_late(&self, gate: &Gate) -> bool {
        gate.deadline.is_some_and(|deadline| deadline <= self.session.now())
    }

    /// Takes in answers that others gave. Says whether there were any.
    pub(crate) fn take_answers(&self) -> Result<bool, Halt> {
        let facts = self.session.facts(&[stepwell::Kind::GateAnswered])?;
        let mut state = self.state();
        let mut found = false;
        for fact in facts {
            let stepwell::Event::GateAnswered(answer) = &fact.event else { continue };
            let open = state.memo.gate(&answer.id).is_some_and(|asked| asked.answer.is_none());
            if open && fact.seq > self.read_to {
                state.apply(fact);
                found = true;
            }
        }
        Ok(found)
    }

    /// How many open questions' time is up.
    pub(crate) fn overdue(&self) -> usize {
        self.state().memo.open().into_iter().filter(|gate| self.is_late(gate)).count()
    }
}

/// Until when an answer is wanted.
fn deadline(seconds: Option<u64>, now: Time) -> Option<Time> {
    let seconds = seconds.filter(|seconds| *seconds > 0)?;
    Some(now.plus(Duration::from_secs(seconds)))
}
