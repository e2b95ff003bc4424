//! A partial answer, and the meaning of the reason for which it ended.

use std::collections::HashSet;

use serde_json::Value;
use stepwell::Message;
use stepwell::model::{ModelCall, Opaque, Part, Role, Text, Usage};

use super::fault::{Failure, has_words};
use super::outgoing::{fresh, is_legal};
use crate::provider::{Answer, Delta, Ended, Request};

/// The longest answer id that is kept, in bytes. Real ones have a few dozen.
const MAX_ID: usize = 256;

/// A partial answer: its parts in the order of arrival.
#[derive(Debug, Default)]
pub(super) struct Draft {
    provider: String,
    pub(super) parts: Vec<Part>,
    /// The reason for its end, in the provider's words.
    pub(super) finish: Option<String>,
    /// Its tokens, if the provider reported them.
    pub(super) usage: Option<Usage>,
    /// Did the model say that it refuses, whatever the reason for the end?
    pub(super) refused: bool,
    response_id: Option<String>,
    /// The last event that is not a piece of an answer but has a message.
    stray: Option<Value>,
    /// The pieces since the driver last took them, for display.
    pub(super) news: Vec<Delta>,
}

impl Draft {
    pub(super) fn new(provider: &str) -> Self {
        Self { provider: provider.to_owned(), ..Self::default() }
    }

    /// Sets the provider's id for the answer; the first one wins.
    pub(super) fn name(&mut self, id: &Value) {
        if let (None, Some(id)) = (&self.response_id, id.as_str()) {
            self.response_id = Some(id.to_owned()).filter(|id| id.len() <= MAX_ID);
        }
    }

    pub(super) fn text(&mut self, chunk: &str) {
        if chunk.is_empty() {
            return;
        }
        match self.parts.last_mut() {
            // Signed text is complete.
            Some(Part::Text(text)) if text.opaque.is_none() => text.text.push_str(chunk),
            _ => self.parts.push(Part::text(chunk)),
        }
        self.news.push(Delta::Text(chunk.to_owned()));
    }

    /// Adds visible reasoning; `mark` says how it goes back to the provider.
    pub(super) fn thinking(&mut self, chunk: &str, mark: Option<&str>) {
        if chunk.is_empty() {
            return;
        }
        let own = |opaque: &Option<Opaque>| opaque.as_ref().map(|it| it.data.as_str()) == mark;
        match self.parts.last_mut() {
            Some(Part::Thinking(text)) if own(&text.opaque) => text.text.push_str(chunk),
            _ => {
                let opaque = mark.map(|mark| self.opaque(mark));
                self.parts.push(Part::Thinking(Text { text: chunk.to_owned(), opaque }));
            }
        }
        self.news.push(Delta::Thinking(chunk.to_owned()));
    }

    /// Adds a part that is only shown complete: a call, hidden thinking, a block of a server's own
    /// tool.
    pub(super) fn part(&mut self, part: Part) {
        self.parts.push(part);
        self.news.push(Delta::Call);
    }

    /// Reports progress on such a part.
    pub(super) fn more(&mut self) {
        self.news.push(Delta::Call);
    }

    /// If the answer is empty, says why.
    pub(super) fn explain(&mut self, why: &Value) {
        let silent = !self.parts.iter().any(|part| matches!(part, Part::Text(_)));
        if let Some(why) = why.as_str().filter(|_| silent) {
            self.text(why);
        }
    }

    pub(super) fn opaque(&self, data: &str) -> Opaque {
        Opaque { provider: self.provider.clone(), data: data.to_owned() }
    }

    fn has_calls(&self) -> bool {
        self.parts.iter().any(|part| matches!(part, Part::ToolCall(_)))
    }

    /// If the provider paused and wants another request with the message so far: returns that
    /// message. Whatever follows belongs to the same answer.
    pub(super) fn paused(&mut self, model: &str) -> Option<Message> {
        if self.finish.as_deref() != Some(PAUSED) || self.has_calls() {
            return None;
        }
        self.finish = None;
        let mut message = Message::new(Role::Assistant, self.parts.clone());
        message.model = Some(model.to_owned());
        Some(message)
    }

    /// Keeps an event that is not a piece of an answer: it may explain why the answer is missing.
    pub(super) fn stray(&mut self, event: &Value) {
        if has_words(event) {
            self.stray = Some(event.clone());
        }
    }

    /// Why the answer has no end, as far as the provider said.
    pub(super) fn unended(&self) -> Failure {
        self.stray.as_ref().map_or_else(Failure::truncated, Failure::in_stream)
    }

    /// The complete answer. Fails without an explicit end from the provider.
    pub(super) fn finish(mut self, request: Request<'_>) -> Result<Answer, Failure> {
        let word = self.finish.take().ok_or_else(|| self.unended())?;
        let ended = match if self.refused { Meaning::Refused } else { meaning(&word) } {
            Meaning::Refused => Ended::Refused,
            Meaning::Calls if !self.has_calls() => return Err(Failure::no_calls()),
            Meaning::Complete | Meaning::Calls => Ended::Complete,
            Meaning::Limit => Ended::OutputLimit,
            Meaning::Failed => return Err(Failure::failed(&word)),
            Meaning::Unknown => return Err(Failure::ended(&word)),
        };
        self.parts.retain(|part| match part {
            Part::Text(text) => !text.text.trim().is_empty(),
            Part::Thinking(text) => !text.text.is_empty() || text.opaque.is_some(),
            // It may be half a call, which must not run.
            Part::ToolCall(_) => ended != Ended::Refused,
            _ => true,
        });
        self.name_calls(request.messages);
        let mut message = Message::new(Role::Assistant, self.parts);
        message.model = Some(request.model.to_owned());
        message.call = Some(Box::new(ModelCall {
            response_id: self.response_id,
            finish_reason: Some(word),
            ..ModelCall::default()
        }));
        Ok(Answer { message, usage: self.usage, cost: None, ended })
    }

    /// Makes call ids unique in the conversation, since some providers count from zero in each
    /// answer. Empty arguments become an empty object.
    fn name_calls(&mut self, messages: &[Message]) {
        let calls = messages.iter().flat_map(Message::calls);
        let mut taken: HashSet<String> = calls.map(|call| call.id.clone()).collect();
        for part in &mut self.parts {
            let Part::ToolCall(call) = part else { continue };
            if !is_legal(&call.id) || !taken.insert(call.id.clone()) {
                call.id = fresh(&call.id, &mut taken);
            }
            if call.arguments.trim().is_empty() {
                "{}".clone_into(&mut call.arguments);
            }
        }
    }
}

/// Anthropic's reason for an answer that continues if it is sent back.
const PAUSED: &str = "pause_turn";

/// The meaning of a provider's reason for the end of an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Meaning {
    Complete,
    Calls,
    Limit,
    Refused,
    /// The provider failed; a retry may help.
    Failed,
    Unknown,
}

/// One table for all providers: OpenAI-compatible servers pass on the reasons of the models behind
/// them.
fn meaning(word: &str) -> Meaning {
    let word = word.to_lowercase().replace('-', "_");
    match word.as_str() {
        "stop" | "end_turn" | "stop_sequence" | "complete" | "completed" | "eos" | "eos_token"
        | PAUSED => Meaning::Complete,
        "tool_calls" | "tool_call" | "tool_use" | "function_call" => Meaning::Calls,
        "length"
        | "max_tokens"
        | "max_output_tokens"
        | "model_length"
        | "incomplete"
        | "model_context_window_exceeded" => Meaning::Limit,
        "refusal"
        | "safety"
        | "recitation"
        | "blocklist"
        | "prohibited_content"
        | "spii"
        | "language"
        | "sensitive"
        | "error_toxic"
        | "guardrail_intervened" => Meaning::Refused,
        _ if word.starts_with("content_filter") || word.starts_with("image_") => Meaning::Refused,
        "error"
        | "network_error"
        | "insufficient_system_resource"
        | "abort"
        | "aborted"
        | "malformed_function_call"
        | "malformed_response"
        | "unexpected_tool_call"
        | "too_many_tool_calls" => Meaning::Failed,
        _ => Meaning::Unknown,
    }
}
