//! Calls the model and records its answer.

use std::sync::atomic::{AtomicBool, Ordering};

use parking_lot::Mutex;
use stepwell::model::{Failure, ModelCall, Time, Usage};
use stepwell::{Event, Message, Status, StopReason};

use super::approval::SECRET_GONE;
use super::compactor::turn;
use super::news::ticking;
use super::{Cancel, MAX_BLANK, MAX_CUT_SHORT, Notice, Reserved, Run, RunEvent, record};
use crate::error::Result;
use crate::machine::Stop;
use crate::provider::{
    self, CallError, Delta, Fault, GO_ON, NO_ANSWER, Purpose, Request, SAY_SOMETHING,
};
use stepwell::log::Redactor;

/// The outcome of a call of the model.
enum Answering {
    Done(Box<std::result::Result<provider::Answer, CallError>>),
    Stopped(Stop),
    Hurried,
}

/// The outcome of asking the model.
pub(super) enum Asked<'a> {
    /// It answered. The reservation for the call is still held.
    Answered(Box<provider::Answer>, Option<Reserved<'a>>),
    /// It did not answer. The run continues, or ends for this reason.
    Unanswered(Option<(Stop, Option<CallError>)>),
}

/// When the pieces of an answer arrived.
struct Pieces {
    asked_at: Time,
    first_at: Mutex<Option<Time>>,
}

impl Pieces {
    /// Notes a piece. After a void piece, the next one counts as the first.
    fn note(&self, delta: &Delta, now: impl FnOnce() -> Time) {
        let mut first = self.first_at.lock();
        match delta {
            Delta::Void => *first = None,
            _ if first.is_none() => *first = Some(now()),
            _ => {}
        }
    }

    /// Stores in the answer when it was requested and when it began.
    fn tell_of(&self, message: &mut Message) {
        let first_at = *self.first_at.lock();
        let told = message.call.take().map(|call| *call).unwrap_or_default();
        let call = ModelCall { asked_at: Some(self.asked_at), first_at, ..told };
        message.call = Some(Box::new(call));
    }
}

impl<'a> Run<'a> {
    /// Asks the model.
    pub(super) async fn ask(&mut self, mut cut: Cancel<'_>) -> Result<Asked<'a>> {
        if let Some(stop) = self.stuck()? {
            return Ok(Asked::Unanswered(Some(stop)));
        }
        let reserved = match self.room_for_call(&mut cut).await {
            Ok(reserved) => reserved,
            Err(stop) => return Ok(Asked::Unanswered(Some((stop, None)))),
        };
        let request = Request {
            model: &self.setup.model,
            system: self.window.instructions(),
            messages: self.window.messages(),
            tools: &self.request.specs,
            max_output: self.max_output(),
            turn: turn(&self.state, &self.lane, Purpose::Answer),
        };
        let (events, heard) = (&self.front.events, AtomicBool::new(false));
        let mut wishes = self.front.wishes.clone();
        let well = self.session.well().clone();
        // Only one of the lanes that hear the request to hurry has the new message.
        let hurried = async {
            loop {
                wishes.hurry().await;
                wishes.heed();
                if self.has_urgent_words() {
                    return;
                }
            }
        };
        let pieces = Pieces { asked_at: well.now(), first_at: Mutex::new(None) };
        let mut told = |delta: Delta| {
            pieces.note(&delta, || well.now());
            if delta != Delta::Call {
                heard.store(delta != Delta::Void, Ordering::Relaxed);
                events.tell(RunEvent::Delta(delta));
            }
        };
        let answering = async {
            tokio::select! {
                answer = self.setup.provider.answer(request, &mut told) => Answering::Done(Box::new(answer)),
                stop = cut.off() => Answering::Stopped(stop),
                () = hurried => Answering::Hurried,
            }
        };
        // Reports the waiting time until the first piece.
        let answered = ticking(answering, |waited| {
            if !heard.load(Ordering::Relaxed) {
                events.tell(RunEvent::Waiting(waited));
            }
        });
        let mut answer = match answered.await {
            Answering::Stopped(stop) => return Ok(Asked::Unanswered(Some((stop, None)))),
            // A new message comes first; the partial answer is dropped.
            Answering::Hurried => {
                self.front.events.tell(RunEvent::Delta(Delta::Void));
                return Ok(Asked::Unanswered(None));
            }
            Answering::Done(answer) => match *answer {
                Ok(answer) => answer,
                Err(error) => return self.call_failed(error).map(Asked::Unanswered),
            },
        };
        let counted = self.request.counted(&self.window);
        let input = answer.usage.map_or(0, |usage| usage.input);
        self.compactor.seen.calibration.learn(counted, input);
        pieces.tell_of(&mut answer.message);
        Ok(Asked::Answered(Box::new(answer), reserved))
    }

    /// Records an answer, and the end of the step if the answer makes no calls.
    pub(super) fn hear(
        &mut self,
        answer: provider::Answer,
    ) -> Result<Option<(Stop, Option<CallError>)>> {
        let provider::Answer { message, usage, cost, ended } = answer;
        let mut message = message.in_lane(self.lane.clone());
        self.name_calls(&mut message);
        let asks = message.calls().next().is_some();
        let blank = !asks && message.text().trim().is_empty();
        let (blank, text) = match ended {
            provider::Ended::Complete => (blank, message.text()),
            provider::Ended::OutputLimit | provider::Ended::Refused => (false, message.text()),
        };
        if blank || message.parts.is_empty() {
            message.parts.push(stepwell::model::Part::text(NO_ANSWER));
        }
        let usage = usage.unwrap_or_else(|| self.estimated(&message));
        message.model = Some(self.setup.model.clone());
        message.usage = Some(usage);
        message.cost = cost.or_else(|| (self.setup.cost)(&usage));
        let cut_short = !asks && ended == provider::Ended::OutputLimit;
        match self.answers.cut_short {
            0 => self.ended.output = text,
            _ => self.ended.output.push_str(&text),
        }
        self.answers.cut_short = if cut_short { self.answers.cut_short + 1 } else { 0 };
        self.answers.blank = if blank { self.answers.blank + 1 } else { 0 };
        let mut events: Vec<Event> = vec![message.clone().into()];
        if !asks {
            events.extend(self.sealed());
        }
        // Recorded together with the answer, which must not look complete after a crash.
        let aside = cut_short.then_some(GO_ON).or_else(|| blank.then_some(SAY_SOMETHING));
        if let Some(aside) = aside {
            events.push(Message::user(aside).in_lane(self.lane.clone()).into());
        }
        self.record(events)?;
        self.pay(usage, message.cost);
        if !asks {
            self.tell_step();
        }
        let what = match ended {
            provider::Ended::Refused => return self.refused(&message),
            _ if self.answers.cut_short >= MAX_CUT_SHORT => format!(
                "{MAX_CUT_SHORT} answers in a row were truncated at {} tokens (model.max_output)",
                self.max_output()
            ),
            _ if self.answers.blank >= MAX_BLANK => {
                format!("{MAX_BLANK} answers in a row were empty")
            }
            _ => return Ok(None),
        };
        let provider = self.setup.provider.name().to_owned();
        self.call_failed(CallError { provider, what, fault: Fault::Refused })
    }

    fn refused(&mut self, message: &Message) -> Result<Option<(Stop, Option<CallError>)>> {
        let word = message.call.as_ref().and_then(|call| call.finish_reason.as_deref());
        let what = format!("the model refused to answer ({})", word.unwrap_or("refusal"));
        let provider = self.setup.provider.name().to_owned();
        self.call_failed(CallError { provider, what, fault: Fault::Declined })
    }

    /// An estimate of an answer's usage, if the provider reports none.
    pub(super) fn estimated(&mut self, message: &Message) -> Usage {
        if !std::mem::replace(&mut self.answers.estimates, true) {
            let provider = self.setup.provider.name().to_owned();
            self.front.events.notice(Notice::TokensEstimated { provider });
        }
        let output = record::tokens("", std::slice::from_ref(message), &[]);
        Usage { input: self.request.tokens, output, ..Usage::default() }
    }

    /// Gives each call a unique id, so that an approval of one call can never count for another.
    pub(super) fn name_calls(&mut self, message: &mut Message) {
        for part in &mut message.parts {
            if let stepwell::model::Part::ToolCall(call) = part {
                let mut id = call.id.clone();
                let mut n = 1;
                while id.is_empty() || !self.calls.ids.claim(&id) {
                    n += 1;
                    id = format!("{}-{n}", if call.id.is_empty() { "call" } else { &call.id });
                }
                call.id = id;
                if Redactor::is_redacted(&call.arguments) {
                    self.calls.unkept.insert(call.id.clone(), SECRET_GONE);
                }
            }
        }
    }

    pub(super) fn call_failed(
        &mut self,
        error: CallError,
    ) -> Result<Option<(Stop, Option<CallError>)>> {
        let is_full = error.fault == Fault::ContextFull;
        if is_full && (self.can_shorten_answer() || self.can_shrink()? || self.can_halve_answer()) {
            return Ok(None);
        }
        self.record(vec![Failure { message: error.to_string() }.into()])?;
        let stop = match error.fault {
            Fault::ContextFull => Stop::limit(StopReason::ContextFull),
            Fault::Declined => Stop { status: Status::Failed, reason: StopReason::Refusal },
            _ => Stop { status: Status::Failed, reason: StopReason::LlmError },
        };
        Ok(Some((stop, Some(error))))
    }
}
