//! An answer as it is read from a stream.

use std::collections::HashSet;

use genai::chat::{ContentPart, MessageContent, StopReason, StreamEnd};
use serde_json::Value;
use stepwell::{Message, ModelCall, Opaque, Part, Role, Text, ToolCall, Usage};

use super::Protocol;
use super::fault::Failure;
use super::frames::ToldBeside;
use super::openai::REASONING_CONTENT;
use super::outgoing::{fresh, is_legal};
use crate::provider::{Answer, Ended, Request};

/// Collects the pieces of one answer, in the order in which they come.
pub(super) struct Reading<'a> {
    protocol: Protocol,
    provider: &'a str,
    parts: Vec<Part>,
    /// The last thinking was signed: what follows is another block.
    closed: bool,
}

impl<'a> Reading<'a> {
    pub(super) fn new(protocol: Protocol, provider: &'a str) -> Self {
        Self { protocol, provider, parts: Vec::new(), closed: false }
    }

    pub(super) fn text(&mut self, chunk: &str) {
        if let Some(Part::Text(text)) = self.parts.last_mut() {
            text.text.push_str(chunk);
        } else {
            self.parts.push(Part::text(chunk));
        }
    }

    pub(super) fn thinking(&mut self, chunk: &str) {
        match self.parts.last_mut() {
            Some(Part::Thinking(text)) if !self.closed => text.text.push_str(chunk),
            _ => {
                let text = Text { text: chunk.to_owned(), opaque: None };
                self.parts.push(Part::Thinking(text));
                self.closed = false;
            }
        }
    }

    pub(super) fn signed(&mut self) {
        self.closed = matches!(self.parts.last(), Some(Part::Thinking(_)));
    }

    /// A call as far as it has come: its arguments are those of all its chunks so far. The
    /// library parses them at the end of the stream, so their text is taken here.
    pub(super) fn call(&mut self, call: genai::chat::ToolCall) {
        let arguments = match call.fn_arguments {
            Value::String(text) => text,
            Value::Null => String::new(),
            other => other.to_string(),
        };
        let opaque = call.thought_signatures.and_then(|signatures| signatures.into_iter().next());
        let opaque = opaque.map(|data| self.opaque(data));
        // Gemini sends calls whole, and the library gives some of them the same id.
        let goes_on = |earlier: &ToolCall| {
            self.protocol != Protocol::Gemini
                && earlier.id == call.call_id
                && (earlier.name == call.fn_name || earlier.name.is_empty())
                && arguments.starts_with(&earlier.arguments)
        };
        let earlier = self.parts.iter_mut().rev().find_map(|part| match part {
            Part::ToolCall(earlier) if goes_on(earlier) => Some(earlier),
            _ => None,
        });
        match earlier {
            Some(earlier) => {
                earlier.name = call.fn_name;
                earlier.arguments = arguments;
            }
            _ => self.parts.push(Part::ToolCall(ToolCall {
                id: call.call_id,
                name: call.fn_name,
                arguments,
                opaque,
            })),
        }
    }

    /// Calls that came whole, behind the rest.
    pub(super) fn calls(&mut self, calls: Vec<ToolCall>) {
        self.parts.extend(calls.into_iter().map(Part::ToolCall));
    }

    /// The answer, unless it has no end: the library reports an end for streams that just
    /// stop, too, but only a vendor gives a reason for it.
    pub(super) fn finish(
        mut self,
        end: StreamEnd,
        request: Request<'_>,
        told: ToldBeside,
    ) -> Result<Answer, Failure> {
        let reason = end.captured_stop_reason.ok_or_else(Failure::truncated)?;
        let finish_reason = Some(reason.raw().to_owned());
        let has_calls = self.parts.iter().any(|part| matches!(part, Part::ToolCall(_)));
        let ended = match reason {
            StopReason::ToolCall(_) if !has_calls => return Err(Failure::no_calls()),
            StopReason::MaxTokens(_) => Ended::OutputLimit,
            StopReason::ContentFilter(_) => Ended::Filtered,
            // Gemini's model wrote a call that Gemini itself could not read.
            StopReason::Other(reason) if reason == "MALFORMED_FUNCTION_CALL" => {
                return Err(Failure::truncated());
            }
            _ => Ended::Complete,
        };
        let captured = end.captured_content.map(MessageContent::into_parts).unwrap_or_default();
        match self.protocol {
            Protocol::OpenAi => self.mark_reasoning(),
            Protocol::Anthropic => self.restore_thinking(captured),
            Protocol::Gemini => self.sign_text(captured),
        }
        self.name_calls(request.messages);
        self.parts.retain(|part| match part {
            Part::Text(text) => !text.text.trim().is_empty(),
            Part::Thinking(text) => !text.text.is_empty() || text.opaque.is_some(),
            _ => true,
        });
        let mut message = Message::new(Role::Assistant, self.parts);
        message.model = Some(request.model.to_owned());
        let response_id = told.response_id.or(end.captured_response_id);
        let call = ModelCall { response_id, finish_reason, ..ModelCall::default() };
        message.call = Some(Box::new(call));
        let usage = end.captured_usage.and_then(|usage| counted(&usage, told.thinking_tokens));
        Ok(Answer { message, usage, cost: None, ended })
    }

    fn opaque(&self, data: String) -> Opaque {
        Opaque { provider: self.provider.to_owned(), data }
    }

    fn mark_reasoning(&mut self) {
        let opaque = self.opaque(REASONING_CONTENT.to_owned());
        for part in &mut self.parts {
            if let Part::Thinking(text) = part {
                text.opaque = Some(opaque.clone());
            }
        }
    }

    /// Gives thinking its signatures, and puts hidden thinking, of which the stream tells
    /// nothing, in its place among the rest.
    fn restore_thinking(&mut self, captured: Vec<ContentPart>) {
        let blocks = self.thinking_blocks(captured);
        let signed = blocks.iter().filter(|block| !block.text.is_empty()).count();
        let seen = self.parts.iter().filter(|part| matches!(part, Part::Thinking(_))).count();
        if blocks.is_empty() {
            return;
        }
        let mut blocks = blocks.into_iter();
        let mut parts = Vec::with_capacity(self.parts.len());
        if signed != seen {
            parts.extend(blocks.by_ref().map(Part::Thinking));
        }
        for part in std::mem::take(&mut self.parts) {
            if !matches!(part, Part::Thinking(_)) {
                // Hidden thinking at the very front has no visible thinking to lead it.
                if parts.is_empty() && seen == 0 {
                    parts.extend(blocks.by_ref().map(Part::Thinking));
                }
                parts.push(part);
                continue;
            }
            if signed != seen {
                continue;
            }
            for block in blocks.by_ref() {
                let visible = !block.text.is_empty();
                parts.push(Part::Thinking(block));
                if visible {
                    break;
                }
            }
            // What is left and hidden stands behind the last visible one.
            if blocks.as_slice().iter().all(|block| block.text.is_empty()) {
                parts.extend(blocks.by_ref().map(Part::Thinking));
            }
        }
        parts.extend(blocks.map(Part::Thinking));
        self.parts = parts;
    }

    /// The library gives a signature and then what it signs; hidden thinking as its block.
    fn thinking_blocks(&self, captured: Vec<ContentPart>) -> Vec<Text> {
        let mut blocks: Vec<Text> = Vec::new();
        for part in captured {
            match part {
                ContentPart::ThoughtSignature(signature) => {
                    blocks.push(Text { text: String::new(), opaque: Some(self.opaque(signature)) });
                }
                ContentPart::ReasoningContent(text) => {
                    if let Some(block) = blocks.last_mut() {
                        block.text = text;
                    }
                }
                ContentPart::Custom(custom) => {
                    let opaque = self.opaque(custom.data.to_string());
                    blocks.push(Text { text: String::new(), opaque: Some(opaque) });
                }
                _ => {}
            }
        }
        blocks
    }

    /// Gemini signs calls, and sometimes the text.
    fn sign_text(&mut self, captured: Vec<ContentPart>) {
        let on_calls: HashSet<&str> = self
            .parts
            .iter()
            .filter_map(|part| match part {
                Part::ToolCall(call) => call.opaque.as_ref().map(|opaque| opaque.data.as_str()),
                _ => None,
            })
            .collect();
        let signature = captured.into_iter().rev().find_map(|part| match part {
            ContentPart::ThoughtSignature(s) if !on_calls.contains(s.as_str()) => Some(s),
            _ => None,
        });
        let Some(signature) = signature else { return };
        let opaque = self.opaque(signature);
        let text = self.parts.iter_mut().rev().find_map(|part| match part {
            Part::Text(text) => Some(text),
            _ => None,
        });
        if let Some(text) = text {
            text.opaque = Some(opaque);
        }
    }

    /// Ids are used once in a conversation, but some providers count anew in each answer.
    /// A call without arguments may come without text: that is an empty object.
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

/// What a provider counted, if it counted anything.
fn counted(usage: &genai::chat::Usage, thinking_tokens: u64) -> Option<Usage> {
    let count = |tokens: Option<i32>| tokens.and_then(|n| u64::try_from(n).ok()).unwrap_or(0);
    if usage.prompt_tokens.is_none() && usage.completion_tokens.is_none() {
        return None;
    }
    let details = usage.prompt_tokens_details.as_ref();
    let cached = details.and_then(|details| details.cached_tokens);
    let written = details.and_then(|details| details.cache_creation_tokens);
    let reasoned =
        usage.completion_tokens_details.as_ref().and_then(|details| details.reasoning_tokens);
    let reasoning = count(reasoned).max(thinking_tokens);
    let input = count(usage.prompt_tokens);
    // Gemini leaves the output away when there was nothing but thinking.
    let output = usage.completion_tokens.map_or(reasoning, |n| count(Some(n)));
    Some(Usage {
        input,
        output,
        cached: count(cached).min(input),
        cache_written: count(written).min(input),
        reasoning: reasoning.min(output),
    })
}
