//! What somebody else brought into a conversation: calls that their run made, and a request that
//! they recorded. What the user allowed, they allowed for what they started themselves.

use stepwell::Seq;
use stepwell::model::{Effect, Gate, Mode, ToolCall, Who};

use super::moves::{Move, Rules, Settled};
use super::next::must_not_repeat;
use super::{Call, State, Turn};

/// A call that waits for its result.
#[derive(Clone, Debug)]
pub struct Waiting {
    /// The call.
    pub call: ToolCall,
    /// The message that made it.
    pub made_at: Seq,
}

/// A question about a call, as it was asked.
#[derive(Clone, Copy, Debug)]
pub struct AskedBefore<'a> {
    /// The question.
    pub gate: &'a Gate,
    /// Where it was asked.
    pub seq: Seq,
    /// Was it answered?
    pub answered: bool,
}

impl State {
    /// The calls of this turn without a result.
    #[must_use]
    pub fn waiting(&self) -> Vec<Waiting> {
        let Turn::Tools(calls) = &self.turn else { return Vec::new() };
        let waiting = calls.iter().filter(|call| !call.answered);
        waiting.map(|it| Waiting { call: it.call.clone(), made_at: it.made_at }).collect()
    }

    /// The question that was asked about a call.
    #[must_use]
    pub fn asked_before(&self, call: &str) -> Option<AskedBefore<'_>> {
        let state = self.gates.get(call)?;
        let (gate, answered) = (state.gate.as_deref()?, state.answer.is_some());
        Some(AskedBefore { gate, seq: state.asked, answered })
    }

    /// Has the question about a call asked anew. One that is open stays so until then; an answer
    /// is forgotten.
    pub fn ask_anew(&mut self, call: &str) {
        match self.gates.get_mut(call) {
            Some(gate) if gate.answer.is_none() => gate.stale = true,
            _ => drop(self.gates.remove(call)),
        }
    }

    /// Where the question about a call was asked that waits for an answer.
    #[must_use]
    pub fn open_question(&self, call: &str) -> Option<Seq> {
        self.asked(call).filter(|_| !self.gates.get(call).is_some_and(|gate| gate.stale))
    }

    /// Notes whose run made a call: the user is asked about it, whatever they allowed before.
    pub fn note_others_call(&mut self, call: &str, who: Who) {
        self.others_calls.insert(call.to_owned(), who);
    }

    /// Notes who asked for what is worked on: until the user says something, they are asked
    /// before anything is changed.
    pub fn note_others_request(&mut self, who: Who) {
        self.others_request = Some(who);
    }

    /// Whose run made a call, if it was not the user's.
    #[must_use]
    pub fn others_call(&self, call: &str) -> Option<&Who> {
        self.others_calls.get(call)
    }

    /// Who else asked for what is worked on.
    #[must_use]
    pub const fn others_request(&self) -> Option<&Who> {
        self.others_request.as_ref()
    }

    /// Where something was last asked for in this lane.
    #[must_use]
    pub const fn last_request(&self) -> Option<Seq> {
        self.last_request
    }

    /// When a person is asked, given for whom the work is.
    #[must_use]
    pub fn mode(&self, rules: &Rules) -> Mode {
        match &self.others_request {
            Some(_) => rules.mode.min(Mode::ConfirmSensitive),
            None => rules.mode,
        }
    }

    /// When a person is asked about a call.
    pub(super) fn mode_of(&self, call: &ToolCall, rules: &Rules) -> Mode {
        match self.others_call(&call.id) {
            Some(_) => Mode::ConfirmAll,
            None => self.mode(rules),
        }
    }

    /// Does what the user allowed before cover a call?
    pub(super) fn is_covered(&self, call: &ToolCall) -> bool {
        self.others_request.is_none() && self.others_call(&call.id).is_none()
    }

    /// Did somebody else's run make a call, and did the user not allow it since?
    pub(super) fn is_unallowed(&self, call: &ToolCall) -> bool {
        let allowed = self.answered(&call.id).is_some_and(super::GateAnswer::allows);
        !allowed && self.others_call(&call.id).is_some()
    }

    /// What becomes of such a call. One that began does not run again.
    pub(super) fn begin_others(&self, pending: &Call, rules: &Rules) -> Move {
        let call = pending.call.clone();
        let goes_on = match &pending.started {
            None => !(self.may_have_run(pending) && must_not_repeat(&call, rules)),
            Some(started) => started.effect == Effect::Resumable || rules.retry_unsafe,
        };
        match goes_on {
            true => self.begin(call, rules),
            false => Move::Settle(call, Settled::Unknown),
        }
    }
}
