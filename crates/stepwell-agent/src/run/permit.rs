//! Asking a person whether a call may run, and what becomes of the question.

use stepwell::{
    Answer, Event, Gate, GateAnswered, Message, Permission, Status, StopReason, ToolCall,
};

use super::{Cut, Question, Reply, Run, THE_USER};
use crate::error::Result;
use crate::machine::{Settled, Stop};
use crate::permission::Rule;
use crate::provider::CallError;
use crate::redact::RedactMessages as _;
use crate::tool::guard::needs_question;

impl Run<'_> {
    /// Asks a person whether a call may run.
    pub(super) async fn permit(
        &mut self,
        call: ToolCall,
        cut: Cut<'_>,
    ) -> Result<Option<(Stop, Option<CallError>)>> {
        let preview = self.preview(&call);
        let detail = self.detail(&call);
        let question = Question { call: &call, preview: &preview, detail };
        let reply = self.watcher.ask(&question, &|| cut.is_due());
        // Whoever took too long to answer allows nothing any more.
        if cut.is_due() {
            return Ok(None);
        }
        match reply {
            Reply::Yes => return self.go_ahead(call, cut).await,
            Reply::No(reason) => {
                self.settle(&call, &Settled::Denied(reason))?;
            }
            Reply::Always => return self.allow_on(call, None, cut).await,
            Reply::Like { pattern, allow: true } => {
                return self.allow_on(call, Some(pattern), cut).await;
            }
            Reply::Never => self.remember(&call, None, false)?,
            Reply::Like { pattern, allow: false } => self.remember(&call, Some(pattern), false)?,
            // What is not kept cannot be allowed later.
            Reply::Later if self.is_secret(&call) => {
                let why = "nobody can be asked, and what it holds that looks like a secret is \
                           not kept until someone can";
                self.settle(&call, &Settled::Denied(why.to_owned()))?;
            }
            Reply::Later => {
                let gate = Gate { id: call.id, prompt: preview, default: None, deadline: None };
                // A gate that was asked before the run was paused waits on.
                if !self.state.is_asked(&gate.id) {
                    self.record(vec![gate.into()])?;
                }
                let (status, reason) = (Status::Paused, StopReason::Gate);
                return Ok(Some((Stop { status, reason }, None)));
            }
        }
        Ok(None)
    }

    /// Runs a call that a person just allowed, or says so to whoever waits for the answer.
    async fn go_ahead(
        &mut self,
        call: ToolCall,
        cut: Cut<'_>,
    ) -> Result<Option<(Stop, Option<CallError>)>> {
        if self.state.is_asked(&call.id) {
            self.answer(&call, "approve")?;
            return Ok(None);
        }
        self.perform(call, cut).await
    }

    /// Remembers that calls like this one may run. Some files are asked about every time, and this
    /// one was just now.
    async fn allow_on(
        &mut self,
        call: ToolCall,
        pattern: Option<String>,
        cut: Cut<'_>,
    ) -> Result<Option<(Stop, Option<CallError>)>> {
        self.remember(&call, pattern, true)?;
        match needs_question(&call.name, &call.arguments) {
            true => self.go_ahead(call, cut).await,
            false => Ok(None),
        }
    }

    /// Answers the question that was asked about a call.
    pub(super) fn answer(&mut self, call: &ToolCall, answer: &str) -> Result<()> {
        let answered = self.closed_gate(call, answer, THE_USER.to_owned());
        self.record(answered.into_iter().collect())
    }

    /// A question that was asked about a call, and that nothing waits for any more.
    pub(super) fn closed_gate(&self, call: &ToolCall, answer: &str, who: String) -> Option<Event> {
        let answer = || GateAnswered::new(call.id.clone(), Answer::read(answer), who);
        self.state.is_asked(&call.id).then(|| answer().into())
    }

    /// Would the arguments of a call not be kept as they are?
    pub(super) fn is_secret(&self, call: &ToolCall) -> bool {
        let message = Message::assistant("").calling(&call.id, &call.name, &call.arguments);
        self.setup.redactor.redact_message(message).1
    }

    pub(super) fn remember(
        &mut self,
        call: &ToolCall,
        pattern: Option<String>,
        allow: bool,
    ) -> Result<()> {
        let rule = Rule::new(call.name.as_str(), pattern);
        let permission = Permission::new(rule.to_string(), allow);
        self.record(vec![permission.into()])
    }

    pub(super) fn preview(&self, call: &ToolCall) -> String {
        let arguments = serde_json::from_str(&call.arguments);
        match (self.tool(&call.name), arguments) {
            (Some(tool), Ok(arguments)) => tool.preview(&arguments),
            _ => format!("{} {}", call.name, call.arguments),
        }
    }

    pub(super) fn detail(&self, call: &ToolCall) -> Option<String> {
        let arguments = serde_json::from_str(&call.arguments).ok()?;
        self.tool(&call.name)?.detail(&arguments, &self.setup.place)
    }
}
