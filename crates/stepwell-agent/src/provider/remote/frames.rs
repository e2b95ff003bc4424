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
    /// Anthropic's count of thinking tokens.
    thinking: u64,
}

impl Frames {
    /// The same options, with what it takes to see a stream's raw events.
    pub(super) fn watching(&self, options: ChatOptions, protocol: Protocol) -> ChatOptions {
        let shared = self.clone();
        options.with_raw_frame_fn(move |_, frame| {
            let mut seen = shared.seen();
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
                    seen.thinking = tokens.as_u64().unwrap_or(seen.thinking);
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

    /// How many tokens Anthropic's model thought.
    pub(super) fn thinking(&self) -> u64 {
        self.seen().thinking
    }

    fn seen(&self) -> MutexGuard<'_, Seen> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
