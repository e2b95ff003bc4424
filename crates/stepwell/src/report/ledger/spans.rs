//! The times at which a session's tools ran.

use std::collections::BTreeMap;

use crate::error::Result;
use crate::model::{Effect, Event, Part, Recorded, SessionId, Time};
use crate::sessions::Stepwell;
use crate::store::Span;

/// The start and end of a tool's run.
pub type WorkSpan = (Time, Time);

impl Stepwell {
    /// When tools that may change something ran in a session and its subagents.
    pub fn work_spans(&self, id: &SessionId) -> Result<Vec<WorkSpan>> {
        let mut spans = Vec::new();
        let below = self.subagents(id)?.into_iter().map(|it| it.head.id);
        for id in std::iter::once(id.clone()).chain(below) {
            let mut at_work = AtWork::default();
            for event in self.log(&id, Span::ALL) {
                at_work.see(&event?);
            }
            spans.extend(at_work.ended());
        }
        Ok(spans)
    }
}

/// Calls that are running, and the spans of those that ended.
#[derive(Debug, Default)]
struct AtWork {
    begun: BTreeMap<String, Time>,
    spans: Vec<WorkSpan>,
    last: Option<Time>,
}

impl AtWork {
    fn see(&mut self, event: &Recorded) {
        let at = event.at;
        self.last = Some(at);
        match &event.event {
            // The run starts when the call was allowed, not when the model made it.
            Event::ToolStarted(started) if started.effect == Effect::Pure => {
                self.begun.remove(&started.call_id);
            }
            Event::ToolStarted(started) => drop(self.begun.insert(started.call_id.clone(), at)),
            Event::ToolFinished(finished) => self.end(&finished.call_id, at),
            Event::Message(message) => {
                for part in &message.parts {
                    match part {
                        Part::ToolCall(call) => drop(self.begun.insert(call.id.clone(), at)),
                        Part::ToolResult(result) => self.end(&result.call_id, at),
                        _ => {}
                    }
                }
            }
            // A change of status ends all running calls.
            Event::Status(_) => self.end_all(at),
            _ => {}
        }
    }

    fn end(&mut self, call: &str, at: Time) {
        self.spans.extend(self.begun.remove(call).map(|from| (from, at)));
    }

    fn end_all(&mut self, at: Time) {
        let begun = std::mem::take(&mut self.begun);
        self.spans.extend(begun.into_values().map(|from| (from, at)));
    }

    fn ended(mut self) -> Vec<WorkSpan> {
        if let Some(last) = self.last {
            self.end_all(last);
        }
        self.spans
    }
}
