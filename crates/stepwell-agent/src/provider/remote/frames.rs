//! What the client library does not tell of a stream, read from its raw events.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use genai::chat::ChatOptions;
use stepwell::ToolCall;

use super::Protocol;
use super::calls::Calls;

/// Within how many microseconds a page comes whole; keep-alives are seconds apart.
const AT_ONCE_US: u64 = 2_000_000;

/// What was seen of one stream's raw events. Clones share it.
#[derive(Clone, Debug, Default)]
pub(super) struct Frames(Arc<Mutex<Seen>>);

#[derive(Debug, Default)]
struct Seen {
    /// Did an event bear data?
    data: bool,
    /// When something first and last came that is no event, in microseconds.
    other: Option<(u64, u64)>,
    calls: Calls,
    /// What is told beside the answer.
    told: ToldBeside,
}

/// What a stream's raw events tell beside the answer.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct ToldBeside {
    /// Anthropic's count of thinking tokens.
    pub(super) thinking_tokens: u64,
    /// The provider's name for the answer.
    pub(super) response_id: Option<String>,
}

/// The longest name of an answer that is kept, in bytes. Providers' own have some dozens.
const MAX_ID: usize = 256;

impl ToldBeside {
    /// Takes the answer's name from an event that has it: OpenAI's have it all, Gemini's too, and
    /// Anthropic's first one does.
    fn name(&mut self, event: &serde_json::Value) {
        let names = [&event["id"], &event["message"]["id"], &event["responseId"]];
        let name = names.into_iter().find_map(serde_json::Value::as_str);
        self.response_id = name.filter(|name| name.len() <= MAX_ID).map(str::to_owned);
    }
}

impl Frames {
    /// The same options, with what it takes to see a stream's raw events.
    pub(super) fn watching(&self, options: ChatOptions, protocol: Protocol) -> ChatOptions {
        let shared = self.clone();
        options.with_raw_frame_fn(move |_, frame| {
            let mut seen = shared.seen();
            // The first event names the answer, or none does.
            if !seen.data && !frame.data.is_empty() {
                seen.told.name(&frame.json().unwrap_or_default());
            }
            seen.data |= !frame.data.is_empty();
            if frame.data.is_empty() && frame.event.is_none() {
                let first = seen.other.map_or(frame.elapsed_us, |(first, _)| first);
                seen.other = Some((first, frame.elapsed_us));
            }
            match (protocol, frame.event) {
                (Protocol::OpenAi, _) if frame.data.contains("tool_calls") => {
                    seen.calls.event(&frame.json().unwrap_or_default());
                }
                (Protocol::Anthropic, Some("message_delta")) => {
                    let usage = frame.json().unwrap_or_default();
                    let tokens = &usage["usage"]["output_tokens_details"]["thinking_tokens"];
                    let known = seen.told.thinking_tokens;
                    seen.told.thinking_tokens = tokens.as_u64().unwrap_or(known);
                }
                _ => {}
            }
        })
    }

    /// Did something come that is no stream of events: a page, or an answer in one piece? Those
    /// come at once; comments that keep a connection alive come one after the other.
    pub(super) fn is_no_stream(&self) -> bool {
        let seen = self.seen();
        let at_once = |(first, last): (u64, u64)| last - first < AT_ONCE_US;
        !seen.data && seen.other.is_some_and(at_once)
    }

    /// The calls that were streamed in OpenAI's words.
    pub(super) fn calls(&self) -> Vec<ToolCall> {
        std::mem::take(&mut self.seen().calls).finish()
    }

    /// What was told beside the answer.
    pub(super) fn told(&self) -> ToldBeside {
        self.seen().told.clone()
    }

    fn seen(&self) -> MutexGuard<'_, Seen> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
