//! Questions of subagents: asked by those above them too, and answered in both.

use stepwell::{Event, Gate, GateAnswered, Kind, Session, SessionId, Status, StopReason, ToolCall};

use super::charge::{Charge, wants};
use super::dispatch::Halt;
use super::{Run, THE_USER};
use crate::error::Result;
use crate::machine::Stop;

impl Run<'_> {
    /// A child waits for a person: so does its parent, with the same question.
    pub(super) fn pause(&mut self, call: &ToolCall, id: &SessionId) -> Result<Halt> {
        for (gate, answer) in gates(self.session, id)? {
            let ours = above(call, &gate.id);
            if answer.is_none() && !self.state.is_asked(&ours) {
                let prompt = wants(id, &gate.prompt);
                self.record(vec![Gate { id: ours, prompt, ..gate }.into()])?;
            }
        }
        Ok(Some((Stop { status: Status::Paused, reason: StopReason::Gate }, None)))
    }

    /// Gives a child the answers that its parent got for it.
    pub(super) fn pass_answers(&self, id: &SessionId) -> Result<()> {
        let head = self.session.well().store().standing(id)?.head;
        let Some(charge) = Charge::of(&head) else { return Ok(()) };
        for (gate, answer) in gates(self.session, id)? {
            let given = self.state.answered(&format!("{}/{}", charge.call, gate.id));
            if let (None, Some(given)) = (answer, given) {
                let who = THE_USER.to_owned();
                let answer = GateAnswered { id: gate.id, answer: given.words(), who };
                self.session.well().answer(id, answer)?;
            }
        }
        Ok(())
    }

    /// Questions of a child's that its parent asked too, and that nothing waits for any more.
    pub(super) fn settled_gates(&self, call: &ToolCall, id: &SessionId) -> Result<Vec<Event>> {
        let gates = gates(self.session, id)?;
        let closed = self.state.open_below(&call.id).into_iter().map(|ours| {
            let its = gates.iter().find(|(gate, _)| above(call, &gate.id) == ours);
            let answer = its.and_then(|(_, answer)| answer.clone());
            let (answer, who) = answer.map_or_else(
                // It was asked in a session that this one was forked from.
                || ("deny: it is no longer asked".to_owned(), THE_USER.to_owned()),
                |answer| (answer.answer, answer.who),
            );
            GateAnswered { id: ours, answer, who }.into()
        });
        Ok(closed.collect())
    }
}

/// The name of a child's question in its parent's session.
fn above(call: &ToolCall, gate: &str) -> String {
    format!("{}/{gate}", call.id)
}

/// A session's questions, each with its answer.
fn gates(session: &Session, id: &SessionId) -> Result<Vec<(Gate, Option<GateAnswered>)>> {
    let mut found: Vec<(Gate, Option<GateAnswered>)> = Vec::new();
    for fact in session.well().store().facts(id, &[Kind::Gate, Kind::GateAnswered])? {
        match fact.event {
            Event::Gate(gate) => found.push((gate, None)),
            Event::GateAnswered(answer) => {
                if let Some(gate) = found.iter_mut().find(|(gate, _)| gate.id == answer.id) {
                    gate.1 = Some(answer);
                }
            }
            _ => {}
        }
    }
    Ok(found)
}
