//! Asking the model, and taking in its answer.

use stepwell::{Event, Failure, Message, Status, StopReason, Usage};

use super::compact::turn;
use super::{Cut, Happening, MAX_CUT_SHORT, Run, record};
use crate::error::Result;
use crate::machine::Stop;
use crate::provider::{self, CallError, Fault, GO_ON, Purpose, Request};
use crate::redact::Redactor;

impl Run<'_> {
    /// Asks the model, and records its answer if it gave one.
    pub(super) async fn ask(
        &mut self,
        mut cut: Cut<'_>,
    ) -> Result<Option<(Stop, Option<CallError>)>> {
        let reserved = match self.room_for_call(&mut cut).await {
            Ok(reserved) => reserved,
            Err(stop) => return Ok(Some((stop, None))),
        };
        let request = Request {
            model: &self.setup.model,
            system: self.window.instructions(),
            messages: self.window.messages(),
            tools: &self.specs,
            max_output: self.setup.max_output,
            turn: turn(&self.state, &self.lane, Purpose::Answer),
        };
        let watcher = &mut self.watcher;
        let mut told = |delta| watcher.saw(Happening::Delta(delta));
        let answered = tokio::select! {
            answer = self.setup.provider.answer(request, &mut told) => Ok(answer),
            stop = cut.off() => Err(stop),
        };
        let answer = match answered {
            Err(stop) => return Ok(Some((stop, None))),
            Ok(Err(error)) => return self.call_failed(error),
            Ok(Ok(answer)) => answer,
        };
        self.learn(answer.usage);
        let heard = self.hear(answer);
        // Only now: what was heard says what it took.
        drop(reserved);
        heard
    }

    /// Records an answer, and with it that the step is complete if it asks for nothing.
    pub(super) fn hear(
        &mut self,
        answer: provider::Answer,
    ) -> Result<Option<(Stop, Option<CallError>)>> {
        let provider::Answer { message, usage, cost, ended } = answer;
        let mut message = message.in_lane(self.lane.clone());
        self.name_calls(&mut message);
        if message.parts.is_empty() {
            // No provider takes a message back that says nothing.
            message.parts.push(stepwell::Part::text("(no answer)"));
        }
        let usage = usage.unwrap_or_else(|| self.estimated(&message));
        message.model = Some(self.setup.model.clone());
        message.usage = Some(usage);
        message.cost = cost.or_else(|| (self.setup.cost)(&usage));
        let asks = message.calls().next().is_some();
        let cut_short = !asks && ended == provider::Ended::OutputLimit;
        let text = message.text();
        match self.cut_short {
            0 => self.ended.output = text,
            _ => self.ended.output.push_str(&text),
        }
        self.cut_short = if cut_short { self.cut_short + 1 } else { 0 };
        let mut events: Vec<Event> = vec![message.clone().into()];
        if !asks {
            events.extend(self.sealed());
        }
        // Together with the answer: taken up after a crash, it must not look complete.
        let go_on = Message::user(GO_ON).in_lane(self.lane.clone());
        if cut_short {
            events.push(go_on.into());
        }
        self.record(events)?;
        self.pay(usage, message.cost);
        self.watcher.saw(Happening::Answered(&message));
        if !asks {
            self.watcher.saw(Happening::Step(self.state.steps, &self.state.total()));
        }
        let what = match ended {
            provider::Ended::Filtered => "the provider filtered its answer".to_owned(),
            _ if self.cut_short >= MAX_CUT_SHORT => format!(
                "{MAX_CUT_SHORT} answers in a row were cut off at {} tokens (model.max_output)",
                self.setup.max_output
            ),
            _ => return Ok(None),
        };
        let provider = self.setup.provider.name().to_owned();
        self.call_failed(CallError { provider, what, fault: Fault::Refused })
    }

    /// About what an answer took, for a provider that does not say.
    pub(super) fn estimated(&mut self, message: &Message) -> Usage {
        if !std::mem::replace(&mut self.estimates, true) {
            let notice = format!(
                "{} does not say how many tokens it used: they are estimated",
                self.setup.provider.name()
            );
            self.watcher.saw(Happening::Notice(&notice));
        }
        let output = record::tokens("", std::slice::from_ref(message), &[]);
        Usage { input: self.tokens, output, ..Usage::default() }
    }

    /// Gives each call an id that none had before: what was said about one call must never
    /// be taken for another.
    pub(super) fn name_calls(&mut self, message: &mut Message) {
        for part in &mut message.parts {
            if let stepwell::Part::ToolCall(call) = part {
                let mut id = call.id.clone();
                let mut n = 1;
                while id.is_empty() || !self.ids.take(&id) {
                    n += 1;
                    id = format!("{}-{n}", if call.id.is_empty() { "call" } else { &call.id });
                }
                call.id = id;
                if Redactor::is_redacted(&call.arguments) {
                    self.redacted.push(call.id.clone());
                }
            }
        }
    }

    pub(super) fn call_failed(
        &mut self,
        error: CallError,
    ) -> Result<Option<(Stop, Option<CallError>)>> {
        if error.fault == Fault::ContextFull && self.can_shrink()? {
            return Ok(None);
        }
        self.record(vec![Failure { message: error.to_string() }.into()])?;
        let stop = match error.fault {
            Fault::ContextFull => Stop::limit(StopReason::ContextFull),
            _ => Stop { status: Status::Failed, reason: StopReason::LlmError },
        };
        Ok(Some((stop, Some(error))))
    }
}
