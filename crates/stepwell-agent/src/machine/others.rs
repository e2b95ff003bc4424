//! Calls and requests that another person added to a conversation. The user's rules cover only work
//! that the user started.

use stepwell::Seq;
use stepwell::model::{Effect, Gate, Mode, ToolCall, Who};

use super::moves::{Move, Rules, Settled};
use super::next::must_not_repeat;
use super::{Call, State, Turn};

/// A call without a result.
#[derive(Clone, Debug)]
pub struct Waiting {
    /// The call.
    pub call: ToolCall,
    /// The message that made it.
    pub made_at: Seq,
}

/// An earlier approval for a call.
#[derive(Clone, Copy, Debug)]
pub struct AskedBefore<'a> {
    /// The recorded question.
    pub gate: &'a Gate,
    /// Its seq.
    pub seq: Seq,
    /// Was it answered?
    pub answered: bool,
}

impl State {
    /// The calls of this turn without results.
    #[must_use]
    pub fn waiting(&self) -> Vec<Waiting> {
        let Turn::Tools(calls) = &self.turn else { return Vec::new() };
        let waiting = calls.iter().filter(|call| !call.answered);
        waiting.map(|it| Waiting { call: it.call.clone(), made_at: it.made_at }).collect()
    }

    /// The last approval for a call.
    #[must_use]
    pub fn asked_before(&self, call: &str) -> Option<AskedBefore<'_>> {
        let state = self.gates.get(call)?;
        let (gate, answered) = (state.gate.as_deref()?, state.answer.is_some());
        Some(AskedBefore { gate, seq: state.asked, answered })
    }

    /// Makes the run ask about a call again. An open question stays open until then; an answer no
    /// longer counts.
    pub fn ask_anew(&mut self, call: &str) {
        match self.gates.get_mut(call) {
            Some(gate) if gate.answer.is_none() => gate.stale = true,
            _ => drop(self.gates.remove(call)),
        }
    }

    /// The seq of the open approval for a call.
    #[must_use]
    pub fn open_question(&self, call: &str) -> Option<Seq> {
        self.asked(call).filter(|_| !self.gates.get(call).is_some_and(|gate| gate.stale))
    }

    /// Marks a call as made in another person's run: the user must approve it, whatever their rules
    /// allow.
    pub fn note_others_call(&mut self, call: &str, who: Who) {
        self.others_calls.insert(call.to_owned(), who);
    }

    /// Marks the current request as another person's: until the user sends a message, every change
    /// needs an approval.
    pub fn note_others_request(&mut self, who: Who) {
        self.others_request = Some(who);
    }

    /// The other person in whose run the call was made, if any.
    #[must_use]
    pub fn others_call(&self, call: &str) -> Option<&Who> {
        self.others_calls.get(call)
    }

    /// The other person who made the current request, if any.
    #[must_use]
    pub const fn others_request(&self) -> Option<&Who> {
        self.others_request.as_ref()
    }

    /// The seq of this lane's last request.
    #[must_use]
    pub const fn last_request(&self) -> Option<Seq> {
        self.last_request
    }

    /// The mode, given who made the current request.
    #[must_use]
    pub fn mode(&self, rules: &Rules) -> Mode {
        match &self.others_request {
            Some(_) => rules.mode.min(Mode::ConfirmSensitive),
            None => rules.mode,
        }
    }

    /// The mode for one call.
    pub(super) fn mode_of(&self, call: &ToolCall, rules: &Rules) -> Mode {
        match self.others_call(&call.id) {
            Some(_) => Mode::ConfirmAll,
            None => self.mode(rules),
        }
    }

    /// Do the user's rules cover this call?
    pub(super) fn is_covered(&self, call: &ToolCall) -> bool {
        self.others_request.is_none() && self.others_call(&call.id).is_none()
    }

    /// Was the call made in another person's run and not approved by the user since?
    pub(super) fn is_unallowed(&self, call: &ToolCall) -> bool {
        let allowed = self.answered(&call.id).is_some_and(super::GateAnswer::allows);
        !allowed && self.others_call(&call.id).is_some()
    }

    /// The move for such a call. If it already began, it does not run again.
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
