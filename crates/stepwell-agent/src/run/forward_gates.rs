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
        let gates = self.waiting_in(id)?;
        let mut events = self.closed(&call.id, id, Waiting::StaysOpen)?;
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
        let gates = self.waiting_in(id)?;
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
        self.closed(&call.id, id, Waiting::Closes)
    }

    /// Closes what was asked for a child, with the child's own answer if it has one.
    fn closed(&self, call: &str, child: &SessionId, waiting: Waiting) -> Result<Vec<Event>> {
        let open = self.state.open_below(call);
        if open.is_empty() {
            return Ok(Vec::new());
        }
        let ignored = self.session.well().weigh(child)?.ignored;
        let mut closed = Vec::new();
        for ours in open {
            let its = self.asked_below(call, child, &ours)?;
            let counts = |asked: &Asked| !asked.answered_at.is_some_and(|at| ignored.contains(&at));
            let (answer, who) = match its.map(|asked| (counts(&asked), asked.answer)) {
                Some((_, None)) if waiting == Waiting::StaysOpen => continue,
                Some((true, Some(answer))) => (answer.answer, answer.who),
                // What somebody else allowed there is not allowed here.
                Some((false, Some(_))) => (Answer::deny("it is asked again"), self.me()),
                // It was rewound, or asked in a session that this one was forked from.
                _ => (Answer::deny("it is no longer asked"), self.me()),
            };
            closed.push(GateAnswered::new(ours, answer, who).into());
        }
        Ok(closed)
    }

    /// The child's question that is asked under a name here, by its own name.
    fn asked_below(&self, call: &str, child: &SessionId, ours: &str) -> Result<Option<Asked>> {
        let Some(name) = ours.strip_prefix(call).and_then(|rest| rest.strip_prefix('/')) else {
            return Ok(None);
        };
        // The name may itself end as one does that was asked after a rewind.
        let plain = name.rsplit_once('@').map(|(plain, _)| plain);
        for name in std::iter::once(name).chain(plain) {
            let gates = Gates::named(&**self.session.well().store(), child, name)?;
            if above(call, name, gates.moved) == ours
                && let Some(asked) = gates.asked.into_iter().next_back()
            {
                return Ok(Some(asked));
            }
        }
        Ok(None)
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
