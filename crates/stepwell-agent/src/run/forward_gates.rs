//! Questions of subagents: asked by those above them too, and answered in both.

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
    /// A child waits for a person: so does its parent, with the same question.
    pub(super) fn pause(&mut self, call: &ToolCall, id: &SessionId) -> Result<Halt> {
        let gates = self.subagents().waiting_in(id)?;
        self.close_above(&call.id, id, Waiting::StaysOpen)?;
        let mut events = Vec::new();
        let task = task_line(&self.session.well().info(id)?.head);
        for asked in gates.open() {
            let ours = name_above(&call.id, &asked.gate.id, gates.moved);
            if !self.state.is_asked(&ours) {
                let prompt = format!("for subagent {id} ({task}): {}", asked.gate.prompt);
                // What the child holds that is secret is known to nobody here.
                let asker = Some(asked.gate.asker.clone().unwrap_or_else(|| id.clone()));
                events.push(Gate { id: ours, prompt, asker, ..asked.gate.clone() }.into());
            }
        }
        if !events.is_empty() {
            self.record(events)?;
        }
        Ok(Some((Stop { status: Status::Paused, reason: StopReason::Gate }, None)))
    }

    /// Closes the questions of a child's that its parent asked too, and that nothing waits for any
    /// more.
    pub(super) fn settle_gates(&mut self, call: &ToolCall, id: &SessionId) -> Result<()> {
        self.close_above(&call.id, id, Waiting::Closes)
    }

    /// Closes what was asked for a child, with the child's own answer if it has one. Anyone may
    /// close it before: whoever answers the child's question does.
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

    /// Takes in what somebody else answered to a question of a child's here, since this run began.
    /// Says whether it was answered: what does not count closes it too.
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
            Some(Counted::AskAgain(_)) => Answer::deny("it is asked again"),
            None => given.answer.clone(),
        };
        let event = GateAnswered { answer, ..given }.into();
        self.state.apply(&Recorded { event, ..answered.clone() });
        self.front.events.tell(RunEvent::Recorded(answered));
        Ok(true)
    }
}

impl Subagents<'_> {
    /// Gives a child the answers that its parent got for it.
    pub(super) fn pass_answers(&self, id: &SessionId) -> Result<()> {
        let well = self.session.well();
        let head = well.store().info(id)?.head;
        let Some(record) = head.facts.subagent.as_deref() else { return Ok(()) };
        let gates = self.waiting_in(id)?;
        for asked in gates.open() {
            let id_below = asked.gate.id.clone();
            let ours = name_above(&record.call, &id_below, gates.moved);
            let Some(given) = self.state.answered(&ours) else { continue };
            // One that was asked anew since may ask something else.
            let asked_in = asked_in(&**well.store(), id, &id_below)?;
            if !asked_in.iter().any(|it| it.asked.gate.id == ours) {
                continue;
            }
            let (answer, who) = (given.answer().clone(), given.who().clone());
            match well.answer(id, GateAnswered::new(id_below, answer, who)) {
                // Somebody was quicker.
                Ok(_) | Err(StoreError::Illegal { .. }) => {}
                Err(error) => return Err(error.into()),
            }
        }
        Ok(())
    }

    /// What was answered to a child's question, if nothing waits for it any more.
    fn answer_below(
        &self,
        child: &SessionId,
        ours: &str,
        waiting: Waiting,
    ) -> Result<Option<(Answer, Who)>> {
        let well = self.session.well();
        let its = asked_below(&**well.store(), child, self.session.id(), ours)?;
        // It was rewound, asked anew, or asked in a session that this one was forked from.
        let Some(its) = its else {
            return Ok(Some((
                Answer::deny("it is no longer asked"),
                self.session.well().who().clone(),
            )));
        };
        let Some(answer) = its.answer else {
            return Ok(match waiting {
                Waiting::StaysOpen => None,
                Waiting::Closes => {
                    Some((Answer::deny("it is no longer asked"), self.session.well().who().clone()))
                }
            });
        };
        // What somebody else allowed there is not allowed here.
        let ignored = well.weigh(child)?.ignored;
        Ok(Some(match its.answered_at.is_some_and(|at| ignored.contains(&at)) {
            true => (Answer::deny("it is asked again"), self.session.well().who().clone()),
            false => (answer.answer, answer.who),
        }))
    }

    fn waiting_in(&self, id: &SessionId) -> Result<Gates> {
        Ok(Gates::waiting(&**self.session.well().store(), id)?)
    }
}

/// What becomes of a question that a child still waits with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Waiting {
    /// It waits on.
    StaysOpen,
    /// The child is over: it waits for nothing.
    Closes,
}
