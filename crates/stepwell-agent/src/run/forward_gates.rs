//! Questions of subagents: asked by those above them too, and answered in both.

use stepwell::gates::{Asked, Gates};
use stepwell::{Answer, Event, Gate, GateAnswered, Seq, SessionId, Status, StopReason, ToolCall};

use super::Run;
use super::SubagentRecord;
use super::dispatch::Halt;
use crate::error::Result;
use crate::machine::Stop;

impl Run<'_> {
    /// A child waits for a person: so does its parent, with the same question.
    pub(super) fn pause(&mut self, call: &ToolCall, id: &SessionId) -> Result<Halt> {
        let gates = self.gates_of(id)?;
        let mut events = self.closed(&call.id, id, &gates, Waiting::StaysOpen)?;
        for asked in gates.open() {
            let ours = above(&call.id, &asked.gate.id, gates.moved);
            if !self.state.is_asked(&ours) {
                let prompt = wants(id, &asked.gate.prompt);
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

    /// Gives a child the answers that its parent got for it.
    pub(super) fn pass_answers(&self, id: &SessionId) -> Result<()> {
        let head = self.session.well().store().info(id)?.head;
        let Some(record) = SubagentRecord::of(&head) else { return Ok(()) };
        let gates = self.gates_of(id)?;
        for asked in gates.open() {
            let id_below = asked.gate.id.clone();
            let given = self.state.answered(&above(&record.call, &id_below, gates.moved));
            if let Some(given) = given {
                let (answer, who) = (given.answer().clone(), given.who().clone());
                self.session.well().answer(id, GateAnswered::new(id_below, answer, who))?;
            }
        }
        Ok(())
    }

    /// Questions of a child's that its parent asked too, and that nothing waits for any more.
    pub(super) fn settled_gates(&self, call: &ToolCall, id: &SessionId) -> Result<Vec<Event>> {
        self.closed(&call.id, id, &self.gates_of(id)?, Waiting::Closes)
    }

    /// Closes what was asked for a child, with the child's own answer if it has one.
    fn closed(
        &self,
        call: &str,
        child: &SessionId,
        gates: &Gates,
        waiting: Waiting,
    ) -> Result<Vec<Event>> {
        let open = self.state.open_below(call);
        if open.is_empty() {
            return Ok(Vec::new());
        }
        let ignored = self.session.well().weigh(child)?.ignored;
        let closed = open.into_iter().filter_map(|ours| {
            let mut all = gates.asked.iter().rev();
            let its = all.find(|asked| above(call, &asked.gate.id, gates.moved) == ours);
            let counts = |asked: &Asked| !asked.answered_at.is_some_and(|at| ignored.contains(&at));
            let (answer, who) = match its.map(|asked| (asked.answer.clone(), counts(asked))) {
                Some((None, _)) if waiting == Waiting::StaysOpen => return None,
                Some((Some(answer), true)) => (answer.answer, answer.who),
                // What somebody else allowed there is not allowed here.
                Some((Some(_), false)) => (Answer::deny("it is asked again"), self.me()),
                // It was rewound, or asked in a session that this one was forked from.
                _ => (Answer::deny("it is no longer asked"), self.me()),
            };
            Some(GateAnswered::new(ours, answer, who).into())
        });
        Ok(closed.collect())
    }

    fn gates_of(&self, id: &SessionId) -> Result<Gates> {
        Ok(Gates::of(&**self.session.well().store(), id)?)
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

/// The name of a child's question in its parent's session. Whoever rewinds a child is asked anew:
/// what was allowed before was perhaps another call of the same name.
fn above(call: &str, gate: &str, moved: Option<Seq>) -> String {
    match moved {
        Some(moved) => format!("{call}/{gate}@{moved}"),
        None => format!("{call}/{gate}"),
    }
}

/// A subagent's question, as those above it ask it.
fn wants(id: &SessionId, preview: &str) -> String {
    format!("for subagent {id}: {preview}")
}
