//! Finds, before anything is sent or run, what other people added to a conversation and what was
//! overwritten in it.

use std::collections::BTreeSet;

use stepwell::backend::Login;
use stepwell::model::{Gate, Time, ToolCall, Who};
use stepwell::trust::Runs;
use stepwell::{Event, Message, Recorded, Seq};

use super::notice::Notice;
use super::{Run, RunEvent};
use crate::error::Result;
use crate::machine::Waiting;

/// Why a scrubbed call does not run: its original arguments are gone.
pub(super) const SCRUBBED: &str = "its arguments were scrubbed after the model made the call, so \
    they no longer say what it asked for; make the call again";

/// How many requests of other people are reported: as many as a person reads.
const MOST_TOLD: usize = 5;

/// Who recorded the events of a conversation, and which were replaced since.
#[derive(Clone, Debug, Default)]
pub struct Provenance {
    /// Which run recorded which events, and whose run it was.
    pub runs: Runs,
    /// Events whose recorded content was replaced.
    pub replaced: BTreeSet<Seq>,
    /// The last event that this covers. This process records all later ones.
    pub read_to: Seq,
}

/// A request since the user's own last run.
pub(super) struct Request {
    seq: Seq,
    at: Time,
    text: String,
    /// The queued message that it repeats unchanged.
    said: Option<Seq>,
}

impl Request {
    /// A request in a log.
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
    /// Accepts other people's requests and calls as the user's own.
    pub fn accept_others(&mut self) {
        self.others.accepted = true;
    }

    /// Finds out which open calls were made in another person's run, whether their questions still
    /// describe them, and whose request is current.
    pub(super) fn judge_others(&mut self) -> Result<()> {
        // A dry run changes nothing, so it needs no approval.
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

    /// Reports other people's requests since the user's own last run. The model receives them,
    /// since a conversation cannot be unsaid. In a store in a folder all messages count as the
    /// user's.
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
            // Imported events have no author, and existed when the user resumed the session.
            let is_known = who.login.is_some() || !who.name.is_empty();
            if !is_known && !self.others.provenance.replaced.contains(&seq) {
                continue;
            }
            // The user's own message, which another person's run added to the conversation.
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

    /// The other person who recorded an event, if it was not the user.
    fn other(&self, seq: Seq) -> Result<Option<Who>> {
        if seq > self.others.provenance.read_to {
            return Ok(None);
        }
        let (well, id) = (self.session.well(), self.session.id());
        Ok(well.recorded_by_other(id, &self.others.provenance.runs, seq)?)
    }

    /// Does the recorded question describe the call and its author? An answer counts only for the
    /// text of its question.
    fn is_asked_rightly(&self, call: &ToolCall) -> bool {
        let Some(asked) = self.state.asked_before(&call.id) else { return true };
        if self.others.provenance.replaced.contains(&asked.seq) {
            return false;
        }
        let ours = self.gate(call, &self.question(call), None);
        let plain = self.gate(call, &self.preview(call), None);
        // If the user answered a question of another person's run, the question need not name that
        // person.
        let says =
            asked.gate.prompt == ours.prompt || asked.answered && asked.gate.prompt == plain.prompt;
        says && is_about(asked.gate, &ours, call)
    }

    /// The text of an approval, with the other person involved.
    pub(super) fn question(&self, call: &ToolCall) -> String {
        let preview = self.preview(call);
        match (self.state.others_call(&call.id), self.state.others_request()) {
            (Some(who), _) => format!("{preview} (called in a run of {})", who.in_full()),
            (None, Some(who)) => format!("{preview} (in answer to {})", who.in_full()),
            (None, None) => preview,
        }
    }
}

/// Is a question about this very call? Older events hold only the text.
fn is_about(asked: &Gate, ours: &Gate, call: &ToolCall) -> bool {
    let (Some(asked), Some(ours)) = (&asked.call, &ours.call) else { return true };
    let same = asked.arguments == ours.arguments || asked.arguments == call.arguments;
    asked.tool == ours.tool && same
}
