//! When a session's tools were at work.

use std::collections::BTreeMap;

use crate::error::Result;
use crate::model::{Effect, Event, Part, Recorded, SessionId, Time};
use crate::sessions::Stepwell;
use crate::store::Span;

/// From when to when a tool was at work.
pub type WorkSpan = (Time, Time);

impl Stepwell {
    /// When tools of a session and of its subagents were at work that may change something.
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

/// Calls on their way, and those that ended.
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
            // It began when it was allowed, not when it was asked for.
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
            // Whatever was on its way was cut off.
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
