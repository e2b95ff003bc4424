//! Asks a person to approve a call.
//!
//! The question is recorded before anyone sees it. The first answer in the log decides; it may come
//! from this process, another one, or another machine.

use stepwell::model::{
    Answer, AskedCall, Choice, Effect, Gate, GateAnswered, Kind, Permission, ToolCall, Who,
};
use stepwell::store::Facts;
use stepwell::trust::{Counted, Disregarded};
use stepwell::{Event, Message, Seq, Status, StopReason};

use super::dispatch::Halt;
use super::event::{GateAnswer, Here, OpenGate, RunEvent};
use super::front_end::Patience;
use super::news::News;
use super::notice::Notice;
use super::{Cancel, Run};
use crate::error::Result;
use crate::machine::{Settled, Stop};
use crate::permission::{Rule, may_be_remembered};
use crate::tool::{Done, guard};
use stepwell::log::RedactMessages as _;

/// The most bytes of a diff that a gate keeps, which is more than people read before they decide.
const MAX_DETAIL: usize = 32 << 10;

/// Why a call does not run if its secret was not kept: the process that knew the secret is gone, or
/// the model repeats the placeholder.
pub(super) const SECRET_GONE: &str = "its arguments contain a placeholder instead of a secret, \
    because secrets are not recorded; provide the secret again";

/// Why an open question with outdated text is closed.
const ASKED_ANEW: &str = "the question was asked again";

/// Why a call is denied in a run that asks nothing, if it may break a rule.
const DOUBTFUL_UNASKED: &str = "the user denied a command that this call may run, the call does \
    not show whether it does, and the run cannot ask; write the command out plainly";

/// Why a call with a secret is denied if no person can answer now.
const SECRET_UNASKED: &str = "no person can answer now, and the possible secret in its arguments \
    is not kept until one can";

impl Run<'_> {
    /// Asks a person to approve a call, after recording the question. Then the run waits for the
    /// answer, or pauses.
    pub(super) async fn ask_person(&mut self, call: ToolCall, mut cut: Cancel<'_>) -> Result<Halt> {
        if let Some(why) = self.calls.unkept.get(&call.id) {
            return self.finish_unrun(&call, &Settled::Unasked((*why).to_owned())).map(|()| None);
        }
        // Answers from before this run are known already. Those before a rewind do not count,
        // although the log has them after a question that counts again.
        let asked_before = self.state.open_question(&call.id).is_some();
        let refused = guard::refused_anyway(&call.name, &call.arguments, &self.setup.place);
        if let Some(why) = refused.filter(|_| !asked_before) {
            return self.finish(&call, &Done::failed(why), 0).map(|()| None);
        }
        // A run without a watcher, and without an open question about this call, does not wait.
        let unasked = self.front.patience == Patience::Pause && !asked_before;
        if unasked && self.state.is_only_doubtful(&call, &self.setup.rules) {
            let denied = Settled::Unasked(DOUBTFUL_UNASKED.to_owned());
            return self.finish_unrun(&call, &denied).map(|()| None);
        }
        let mut asked = self.open_gate(&call)?;
        let (seq, secret) = (asked.seq, self.is_secret(&call));
        let mut from = if asked_before { self.inbox.read_to.map(Seq::next) } else { Some(seq) };
        self.front.events.tell(RunEvent::Approval(Box::new(asked.clone())));
        // Subscribed before the first check, so that no answer is missed in between.
        let news = News::of(self.session.well(), self.session.id())?;
        while self.front.patience == Patience::Wait && !self.front.wishes.wants_pause() {
            if self.take_answer(&mut asked, &mut from)? {
                return Ok(None);
            }
            tokio::select! {
                // The next move finds out why it must stop.
                _ = cut.off() => return Ok(None),
                () = self.front.wishes.pause() => {}
                () = news.changed() => {}
            }
        }
        if self.take_answer(&mut asked, &mut from)? {
            return Ok(None);
        }
        // A call whose arguments are not kept cannot be approved later.
        if secret {
            return self
                .finish_unrun(&call, &Settled::Unasked(SECRET_UNASKED.to_owned()))
                .map(|()| None);
        }
        Ok(Some((Stop { status: Status::Paused, reason: StopReason::Gate }, None)))
    }

    /// The open question about a call, or a new one.
    fn open_gate(&mut self, call: &ToolCall) -> Result<OpenGate> {
        let (preview, detail) = (self.question(call), self.detail(call));
        let gate = self.gate(call, &preview, detail.as_deref());
        let at = self.session.now();
        let seq = match self.state.open_question(&call.id) {
            // A question from before the run stopped stays open.
            Some(seq) => seq,
            None => {
                // A question with outdated text is closed first.
                let closed = self.closed_gate(call, Answer::deny(ASKED_ANEW), self.me());
                let events = closed.into_iter().chain([gate.clone().into()]);
                self.record(events.collect())?;
                self.state.asked(&call.id).unwrap_or_default()
            }
        };
        let lease = self.session.lease().clone();
        let here = Here { lease, call: Some(call.clone()), preview, detail };
        let (store, session) = (self.session.well().store(), self.session.id().clone());
        Ok(OpenGate { here: Some(here), ..OpenGate::new(&**store, session, gate, (seq, at)) })
    }

    /// A gate with all that a person needs to answer it, without secrets.
    pub(super) fn gate(&self, call: &ToolCall, preview: &str, detail: Option<&str>) -> Gate {
        let redactor = &self.setup.redactor;
        let plain = |text: &str| redactor.redact(text).into_owned();
        let message = Message::assistant("").calling(&call.id, &call.name, &call.arguments);
        let (message, holds_secret) = redactor.redact_message(message);
        let arguments = message.calls().next().map(|call| call.arguments.clone());
        let effect = self.setup.rules.effects.get(&call.name).copied();
        let asked = AskedCall {
            tool: call.name.clone(),
            effect: effect.unwrap_or(Effect::Unsafe),
            arguments: arguments.unwrap_or_default(),
            detail: detail.map(|detail| plain(&shortened(detail))),
            choices: offered(call),
            holds_secret,
        };
        Gate { call: Some(Box::new(asked)), ..Gate::new(call.id.as_str(), plain(preview)) }
    }

    /// Looks for an answer that counts, from a seq on. Earlier events are not read, however many
    /// questions there were.
    fn take_answer(&mut self, open: &mut OpenGate, since: &mut Option<Seq>) -> Result<bool> {
        let (gate, from) = (open.gate.id.as_str(), *since);
        if self.state.answered(gate).is_some() {
            return Ok(true);
        }
        let Some(from) = from else { return Ok(false) };
        let (well, id) = (self.session.well(), self.session.id());
        let facts = Facts { from, ..Facts::under(&[Kind::GateAnswered], gate) };
        let Some(mut answered) = well.store().keyed(id, facts)?.into_iter().next() else {
            return Ok(false);
        };
        let judge = well.judge(id)?;
        match judge.answer(&answered) {
            Some(Counted::AskAgain(why)) => {
                self.ask_again(open, why)?;
                *since = Some(open.seq);
                return Ok(false);
            }
            Some(Counted::As(counted)) => {
                if let Event::GateAnswered(it) = &mut answered.event {
                    it.answer = counted;
                }
            }
            None => {}
        }
        // A rule is recorded together with its answer.
        let facts = Facts { from, ..Facts::of(&[Kind::Permission]) };
        let remembered = well.store().keyed(id, facts)?.into_iter();
        let remembered = remembered.filter(|event| is_denial(&event.event) || judge.gave(event));
        for event in remembered.chain([answered]) {
            self.state.apply(&event);
            if let Event::GateAnswered(it) = &event.event {
                let answer = GateAnswer {
                    session: self.session.id().clone(),
                    gate: it.id.clone(),
                    answer: it.answer.clone(),
                    who: it.who.clone(),
                    at: event.at,
                };
                self.front.events.tell(RunEvent::Recorded(event.clone()));
                self.front.events.tell(RunEvent::Answered(answer));
            } else {
                self.front.events.tell(RunEvent::Recorded(event));
            }
        }
        Ok(true)
    }

    /// Asks again if the answer does not count.
    fn ask_again(&mut self, open: &mut OpenGate, why: Disregarded) -> Result<()> {
        self.record(vec![open.gate.clone().into()])?;
        open.seq = self.state.asked(&open.gate.id).unwrap_or(open.seq);
        self.front.events.tell(RunEvent::Notice(Notice::Disregarded(why.into())));
        self.front.events.tell(RunEvent::Approval(Box::new(open.clone())));
        Ok(())
    }

    /// Records the rule that an answer asked for.
    pub(super) fn keep_choice(&mut self, call: &ToolCall) -> Result<()> {
        let Some(answer) = self.state.answered(&call.id) else { return Ok(()) };
        let (lasts, allow, who) = (answer.lasts(), answer.allows(), answer.who().clone());
        let rule = Rule::new(call.name.as_str(), None).to_string();
        if !lasts || self.state.remembers(&rule) == Some(allow) {
            return Ok(());
        }
        let permission = Permission { who: Some(who), ..Permission::new(rule, allow) };
        self.record(vec![permission.into()])
    }

    /// The event that closes a question about a call, if one is open.
    pub(super) fn closed_gate(&self, call: &ToolCall, answer: Answer, who: Who) -> Option<Event> {
        let answer = || GateAnswered::new(call.id.clone(), answer, who);
        self.state.is_asked(&call.id).then(|| answer().into())
    }

    /// Would redaction change the arguments of this call?
    fn is_secret(&self, call: &ToolCall) -> bool {
        let message = Message::assistant("").calling(&call.id, &call.name, &call.arguments);
        self.setup.redactor.redact_message(message).1
    }

    pub(super) fn preview(&self, call: &ToolCall) -> String {
        let arguments = serde_json::from_str(&call.arguments);
        match (self.tool(&call.name), arguments) {
            (Some(tool), Ok(arguments)) => tool.preview(&arguments),
            _ => format!("{} {}", call.name, call.arguments),
        }
    }

    fn detail(&self, call: &ToolCall) -> Option<String> {
        let arguments = serde_json::from_str(&call.arguments).ok()?;
        self.tool(&call.name)?.detail(&arguments, &self.setup.place)
    }
}

fn is_denial(event: &Event) -> bool {
    matches!(event, Event::Permission(permission) if !permission.allow)
}

/// The part of a diff that a gate keeps.
fn shortened(detail: &str) -> String {
    if detail.len() <= MAX_DETAIL {
        return detail.to_owned();
    }
    let cut = crate::tool::cut(detail, MAX_DETAIL);
    let left = detail.lines().count().saturating_sub(cut.lines().count());
    format!("{cut}\n… {left} more lines\n")
}

/// The possible answers. A rule is not offered if it could not be kept.
fn offered(call: &ToolCall) -> Vec<Choice> {
    let all = Choice::ALL.into_iter();
    all.filter(|choice| *choice != Choice::Always || may_be_remembered(call)).collect()
}
