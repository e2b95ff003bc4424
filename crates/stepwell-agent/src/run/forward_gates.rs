//! Forwards the questions of subagents to the sessions above them, and answers between both.

use stepwell::model::{Answer, Gate, GateAnswered, Kind, ToolCall, Who};
use stepwell::store::Facts;
use stepwell::trust::Counted;
use stepwell::work::Gates;
use stepwell::{Error as StoreError, Event, Recorded, SessionId, Status, StopReason};
use stepwell_files::forwarded::{asked_below, asked_in, name_above};

use super::Run;
use super::dispatch::Halt;
use super::event::{RunEvent, task_line};
use super::subagents::Subagents;
use crate::error::{Error, Result};
use crate::machine::Stop;

impl Run<'_> {
    /// A child waits for a person, so its parent asks the same question.
    pub(super) fn pause(&mut self, call: &ToolCall, id: &SessionId) -> Result<Halt> {
        let gates = self.subagents().waiting_in(id)?;
        self.close_above(&call.id, id, Waiting::StaysOpen)?;
        let mut events = Vec::new();
        let task = task_line(&self.session.well().info(id)?.head);
        for asked in gates.open() {
            let ours = name_above(&call.id, &asked.gate.id, gates.moved);
            if !self.state.is_asked(&ours) {
                let prompt = format!("for subagent {id} ({task}): {}", asked.gate.prompt);
                // The child's secrets are unknown here.
                let asker = Some(asked.gate.asker.clone().unwrap_or_else(|| id.clone()));
                events.push(Gate { id: ours, prompt, asker, ..asked.gate.clone() }.into());
            }
        }
        if !events.is_empty() {
            self.record(events)?;
        }
        Ok(Some((Stop { status: Status::Paused, reason: StopReason::Gate }, None)))
    }

    /// Closes the parent's copies of a child's questions that are no longer open.
    pub(super) fn settle_gates(&mut self, call: &ToolCall, id: &SessionId) -> Result<()> {
        self.close_above(&call.id, id, Waiting::Closes)
    }

    /// Closes the copy of a child's question, with the child's own answer if there is one. The
    /// answer may have closed the copy already.
    fn close_above(&mut self, call: &str, child: &SessionId, waiting: Waiting) -> Result<()> {
        for ours in self.state.open_below(call) {
            if self.take_copied_answer(&ours)? {
                continue;
            }
            let Some((answer, who)) = self.subagents().answer_below(child, &ours, waiting)? else {
                continue;
            };
            let answer = GateAnswered::new(ours.clone(), answer, who);
            match self.record(vec![answer.into()]) {
                Err(Error::Store(StoreError::Illegal { .. }))
                    if self.take_copied_answer(&ours)? => {}
                recorded => recorded?,
            }
        }
        Ok(())
    }

    /// Takes another process's answer to a copied question since this run began. Returns whether it
    /// was answered; an answer that does not count closes the question too.
    fn take_copied_answer(&mut self, ours: &str) -> Result<bool> {
        let (well, id) = (self.session.well(), self.session.id());
        let Some(from) = self.state.asked(ours) else { return Ok(true) };
        let facts = Facts { from, ..Facts::under(&[Kind::GateAnswered], ours) };
        let Some(answered) = well.store().keyed(id, facts)?.into_iter().next() else {
            return Ok(false);
        };
        let counted = well.judge(id)?.answer(&answered);
        let Event::GateAnswered(given) = answered.event.clone() else { return Ok(false) };
        let answer = match counted {
            Some(Counted::As(answer)) => answer,
            Some(Counted::AskAgain(_)) => Answer::deny("the question was asked again"),
            None => given.answer.clone(),
        };
        let event = GateAnswered { answer, ..given }.into();
        self.state.apply(&Recorded { event, ..answered.clone() });
        self.front.events.tell(RunEvent::Recorded(answered));
        Ok(true)
    }
}

impl Subagents<'_> {
    /// Passes the parent's answers on to a child.
    pub(super) fn pass_answers(&self, id: &SessionId) -> Result<()> {
        let well = self.session.well();
        let head = well.store().info(id)?.head;
        let Some(record) = head.facts.subagent.as_deref() else { return Ok(()) };
        let gates = self.waiting_in(id)?;
        for asked in gates.open() {
            let id_below = asked.gate.id.clone();
            let ours = name_above(&record.call, &id_below, gates.moved);
            let Some(given) = self.state.answered(&ours) else { continue };
            // The child may have asked again since, with another question.
            let asked_in = asked_in(&**well.store(), id, &id_below)?;
            if !asked_in.iter().any(|it| it.asked.gate.id == ours) {
                continue;
            }
            let (answer, who) = (given.answer().clone(), given.who().clone());
            match well.answer(id, GateAnswered::new(id_below, answer, who)) {
                // Another answer came first.
                Ok(_) | Err(StoreError::Illegal { .. }) => {}
                Err(error) => return Err(error.into()),
            }
        }
        Ok(())
    }

    /// The answer to a child's question, if the question is no longer open.
    fn answer_below(
        &self,
        child: &SessionId,
        ours: &str,
        waiting: Waiting,
    ) -> Result<Option<(Answer, Who)>> {
        let well = self.session.well();
        let its = asked_below(&**well.store(), child, self.session.id(), ours)?;
        // It was rewound, asked again, or asked in the session that this one was forked from.
        let Some(its) = its else {
            return Ok(Some((
                Answer::deny("the question is no longer open"),
                self.session.well().who().clone(),
            )));
        };
        let Some(answer) = its.answer else {
            return Ok(match waiting {
                Waiting::StaysOpen => None,
                Waiting::Closes => Some((
                    Answer::deny("the question is no longer open"),
                    self.session.well().who().clone(),
                )),
            });
        };
        // What another person allowed there is not allowed here.
        let ignored = well.weigh(child)?.ignored;
        Ok(Some(match its.answered_at.is_some_and(|at| ignored.contains(&at)) {
            true => {
                (Answer::deny("the question was asked again"), self.session.well().who().clone())
            }
            false => (answer.answer, answer.who),
        }))
    }

    fn waiting_in(&self, id: &SessionId) -> Result<Gates> {
        Ok(Gates::waiting(&**self.session.well().store(), id)?)
    }
}

/// What happens to a child's open question.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Waiting {
    /// It stays open.
    StaysOpen,
    /// The child is done, so its question closes.
    Closes,
}
