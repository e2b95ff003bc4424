//! Asking a person whether a call may run.
//!
//! The question is on record before anyone is shown it, and the answer is whatever the log says
//! first: it may come from this process, another one, or another machine.

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

/// The most bytes of a diff that a gate keeps: as much as a person reads before they decide.
const MAX_DETAIL: usize = 32 << 10;

/// Why a call is not run whose secret was not kept: the process that knew it is gone, or the model
/// repeats what it was shown in its place.
pub(super) const SECRET_GONE: &str = "where its arguments should hold a secret they hold a \
                                      placeholder: secrets are not kept, so it has to be given anew";

/// Why a question is closed that is asked in other words.
const ASKED_ANEW: &str = "it is asked anew";

/// Why a call is denied that may break a rule, in a run that asks nothing.
const DOUBTFUL_UNASKED: &str = "the user forbade a command that this call may run, it cannot be told \
                                from the call, and nobody can be asked; write the command out plainly";

/// Why a call with a secret is denied where nobody can be asked now.
const SECRET_UNASKED: &str = "nobody can be asked, and what it holds that looks like a secret is \
                              not kept until someone can";

impl Run<'_> {
    /// Asks a person whether a call may run: on record first. Then the run waits for an answer, or
    /// pauses.
    pub(super) async fn ask_person(&mut self, call: ToolCall, mut cut: Cancel<'_>) -> Result<Halt> {
        if let Some(why) = self.calls.unkept.get(&call.id) {
            return self.finish_unrun(&call, &Settled::Unasked((*why).to_owned())).map(|()| None);
        }
        // All that was answered before the run began is known. Of that, what a rewind took back does
        // not count, though it stands in the log behind a question that counts again.
        let asked_before = self.state.open_question(&call.id).is_some();
        let refused = guard::refused_anyway(&call.name, &call.arguments, &self.setup.place);
        if let Some(why) = refused.filter(|_| !asked_before) {
            return self.finish(&call, &Done::failed(why), 0).map(|()| None);
        }
        // A run that nobody watches, and that asks about nothing else, is not kept waiting.
        let unasked = self.front.patience == Patience::Pause && !asked_before;
        if unasked && self.state.is_only_doubtful(&call, &self.setup.rules) {
            let denied = Settled::Unasked(DOUBTFUL_UNASKED.to_owned());
            return self.finish_unrun(&call, &denied).map(|()| None);
        }
        let mut asked = self.open_gate(&call)?;
        let (seq, secret) = (asked.seq, self.is_secret(&call));
        let mut from = if asked_before { self.inbox.read_to.map(Seq::next) } else { Some(seq) };
        self.front.events.tell(RunEvent::Approval(Box::new(asked.clone())));
        // Subscribed before the first look, so that no answer falls between.
        let news = News::of(self.session.well(), self.session.id())?;
        while self.front.patience == Patience::Wait && !self.front.wishes.wants_pause() {
            if self.take_answer(&mut asked, &mut from)? {
                return Ok(None);
            }
            tokio::select! {
                // Why it stops is seen before the next move.
                _ = cut.off() => return Ok(None),
                () = self.front.wishes.pause() => {}
                () = news.changed() => {}
            }
        }
        if self.take_answer(&mut asked, &mut from)? {
            return Ok(None);
        }
        // What is not kept cannot be allowed later.
        if secret {
            return self
                .finish_unrun(&call, &Settled::Unasked(SECRET_UNASKED.to_owned()))
                .map(|()| None);
        }
        Ok(Some((Stop { status: Status::Paused, reason: StopReason::Gate }, None)))
    }

    /// The question about a call: the one that was asked before, or a new one.
    fn open_gate(&mut self, call: &ToolCall) -> Result<OpenGate> {
        let (preview, detail) = (self.question(call), self.detail(call));
        let gate = self.gate(call, &preview, detail.as_deref());
        let at = self.session.now();
        let seq = match self.state.open_question(&call.id) {
            // A question that was asked before the run stopped waits on.
            Some(seq) => seq,
            None => {
                // A question that no longer says what is asked makes room for this one.
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

    /// A question with what a person needs to answer it, without secrets.
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

    /// Takes in the answer to a question, if the log has one from a seq on that counts. Nothing
    /// before is looked at, however much was asked.
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
        // What is remembered from now on was recorded together with the answer.
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

    /// Asks a question again whose answer does not count.
    fn ask_again(&mut self, open: &mut OpenGate, why: Disregarded) -> Result<()> {
        self.record(vec![open.gate.clone().into()])?;
        open.seq = self.state.asked(&open.gate.id).unwrap_or(open.seq);
        self.front.events.tell(RunEvent::Notice(Notice::Disregarded(why.into())));
        self.front.events.tell(RunEvent::Approval(Box::new(open.clone())));
        Ok(())
    }

    /// Remembers a choice that is meant for later calls too, if its answer said so.
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

    /// A question that was asked about a call, and that nothing waits for any more.
    pub(super) fn closed_gate(&self, call: &ToolCall, answer: Answer, who: Who) -> Option<Event> {
        let answer = || GateAnswered::new(call.id.clone(), answer, who);
        self.state.is_asked(&call.id).then(|| answer().into())
    }

    /// Would the arguments of a call not be kept as they are?
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

/// As much of a diff as a gate keeps.
fn shortened(detail: &str) -> String {
    if detail.len() <= MAX_DETAIL {
        return detail.to_owned();
    }
    let cut = crate::tool::cut(detail, MAX_DETAIL);
    let left = detail.lines().count().saturating_sub(cut.lines().count());
    format!("{cut}\n… {left} more lines\n")
}

/// What can be answered. What would be chosen in vain is not offered.
fn offered(call: &ToolCall) -> Vec<Choice> {
    let all = Choice::ALL.into_iter();
    all.filter(|choice| *choice != Choice::Always || may_be_remembered(call)).collect()
}
