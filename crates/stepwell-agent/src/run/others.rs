//! What others brought into a conversation before the run began, and what was written over in it:
//! found out before anything is sent or run.

use std::collections::BTreeSet;

use stepwell::backend::Login;
use stepwell::model::{Gate, Time, ToolCall, Who};
use stepwell::trust::Runs;
use stepwell::{Event, Message, Recorded, Seq};

use super::notice::Notice;
use super::{Run, RunEvent};
use crate::error::Result;
use crate::machine::Waiting;

/// Why a call is not run that was scrubbed: nobody knows any more what was asked for.
pub(super) const SCRUBBED: &str = "its arguments were scrubbed since the model made it: what they \
                                   say now is not what it asked for, so it has to ask anew";

/// How many requests of others are told: as many as a person reads.
const MOST_TOLD: usize = 5;

/// What is known of who recorded a conversation, and of what was replaced in it since.
#[derive(Clone, Debug, Default)]
pub struct Provenance {
    /// Whose runs recorded what.
    pub runs: Runs,
    /// Events that no longer say what was recorded.
    pub replaced: BTreeSet<Seq>,
    /// The last event of which this is known. What comes after it, this process records.
    pub read_to: Seq,
}

/// Something that was asked for since the user's own last run.
pub(super) struct Request {
    seq: Seq,
    at: Time,
    text: String,
    /// The word that it takes in unchanged.
    said: Option<Seq>,
}

impl Request {
    /// A message of a log that asks for something.
    pub(super) fn of(recorded: &Recorded, message: &Message, log: &[Recorded]) -> Self {
        let text = message.text();
        let is_said = |seq: &Seq| {
            let place = log.binary_search_by_key(seq, |event| event.seq);
            place.is_ok_and(|at| matches!(&log[at].event, Event::Said(it) if it.text == text))
        };
        let said = message.said.filter(is_said);
        Self { seq: recorded.seq, at: recorded.at, text, said }
    }
}

impl Run<'_> {
    /// Takes what others asked for, and the calls that their runs made, for the user's own.
    pub fn accept_others(&mut self) {
        self.others.accepted = true;
    }

    /// Finds out which of the calls that wait somebody else's run made, whether the questions about
    /// them still say what would be done, and whose request is worked on.
    pub(super) fn judge_others(&mut self) -> Result<()> {
        // What changes nothing needs no consent.
        if self.setup.dry_run {
            return Ok(());
        }
        self.judge_requests()?;
        for Waiting { call, made_at } in self.state.waiting() {
            if !self.others.accepted
                && let Some(who) = self.other(made_at)?
            {
                self.state.note_others_call(&call.id, who);
            }
            if !self.is_asked_rightly(&call) {
                self.state.ask_anew(&call.id);
            }
        }
        Ok(())
    }

    /// Tells what others asked for since the user's own last run: the model is shown it, since a
    /// conversation cannot be unsaid. In a folder everyone's words count.
    fn judge_requests(&mut self) -> Result<()> {
        let requests = std::mem::take(&mut self.others.requests);
        let (well, id) = (self.session.well(), self.session.id());
        if requests.is_empty() || well.store().login()?.is_none() {
            return Ok(());
        }
        let judge = well.judge(id)?;
        let older = requests.len().saturating_sub(MOST_TOLD);
        for Request { seq, at, text, said } in requests.into_iter().skip(older) {
            let Some(who) = self.other(seq)?.filter(|who| !judge.listens_to(who)) else { continue };
            // What was imported is nobody's, and was there when the user took the session up.
            let is_known = who.login.is_some() || !who.name.is_empty();
            if !is_known && !self.others.provenance.replaced.contains(&seq) {
                continue;
            }
            // The user's own word, which somebody else's run took in.
            let own = || Login::Noted(judge.me.login.clone());
            if matches!(said, Some(said) if well.store().written_by(id, said)? == own()) {
                continue;
            }
            let is_worked_on = self.state.last_request() == Some(seq) && !self.others.accepted;
            let notice = Notice::OthersRequest { who: who.in_full(), at, text, is_worked_on };
            self.front.events.tell(RunEvent::Notice(notice));
            if is_worked_on {
                self.state.note_others_request(who);
            }
        }
        Ok(())
    }

    /// Who recorded an event, if it was somebody else.
    fn other(&self, seq: Seq) -> Result<Option<Who>> {
        if seq > self.others.provenance.read_to {
            return Ok(None);
        }
        let (well, id) = (self.session.well(), self.session.id());
        Ok(well.recorded_by_other(id, &self.others.provenance.runs, seq)?)
    }

    /// Does the question about a call say what would be done, and for whom? Whoever answered it
    /// answered what it said.
    fn is_asked_rightly(&self, call: &ToolCall) -> bool {
        let Some(asked) = self.state.asked_before(&call.id) else { return true };
        if self.others.provenance.replaced.contains(&asked.seq) {
            return false;
        }
        let ours = self.gate(call, &self.question(call), None);
        let plain = self.gate(call, &self.preview(call), None);
        // A question of another's run that the user answered need not say whose it is.
        let says =
            asked.gate.prompt == ours.prompt || asked.answered && asked.gate.prompt == plain.prompt;
        says && is_about(asked.gate, &ours, call)
    }

    /// What a person is asked about a call, with whose it is.
    pub(super) fn question(&self, call: &ToolCall) -> String {
        let preview = self.preview(call);
        match (self.state.others_call(&call.id), self.state.others_request()) {
            (Some(who), _) => format!("{preview} (called in a run of {})", who.in_full()),
            (None, Some(who)) => format!("{preview} (in answer to {})", who.in_full()),
            (None, None) => preview,
        }
    }
}

/// Does a question hold the same call? Earlier versions kept only its words.
fn is_about(asked: &Gate, ours: &Gate, call: &ToolCall) -> bool {
    let (Some(asked), Some(ours)) = (&asked.call, &ours.call) else { return true };
    let same = asked.arguments == ours.arguments || asked.arguments == call.arguments;
    asked.tool == ours.tool && same
}
