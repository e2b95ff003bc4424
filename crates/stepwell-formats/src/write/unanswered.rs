//! Calls without a result: what another agent is told in its place, so that its model neither
//! repeats a command that may have run nor trusts one that did not.

use stepwell::log::{INTERRUPTED, ImportedCalls, Timeline, ViewMessage};
use stepwell::model::{Part, Role, Time, ToolResult};
use stepwell::store::Span;
use stepwell::{Event, Lane, Message, Recorded, Seq, SessionId, Stepwell};

use crate::Result;

/// What stands in for the result of a call that never began.
pub const NOT_BEGUN: &str = "not run: the session stopped before this call began";

/// The calls of one lane that have no result, in the order in which they were made.
///
/// It is shown a session's events one after the other.
#[derive(Debug, Default)]
pub(crate) struct Unanswered {
    calls: Vec<Call>,
    /// Does whoever runs the session record when tools start? Without that, nothing is known
    /// of a call that has no record.
    starts_recorded: bool,
    /// Those that another program may have run.
    imported: ImportedCalls,
}

/// A call without a result.
#[derive(Debug)]
pub(crate) struct Call {
    /// The message that made it, and when.
    pub(crate) seq: Seq,
    pub(crate) at: Time,
    /// Which of the message's calls it is.
    nth: usize,
    id: String,
    begun: bool,
    /// Was somebody asked whether it may run?
    asked_for: bool,
    /// Does its result come after something else was said?
    late: bool,
}

impl Unanswered {
    /// A message of the lane that counts.
    pub(crate) fn said(&mut self, recorded: &Recorded, message: &Message) {
        for result in message.results() {
            // Some providers number their calls anew in each turn: the last one is meant.
            if let Some(at) = self.calls.iter().rposition(|call| call.id == result.call_id) {
                self.calls.remove(at);
            }
        }
        for (nth, call) in message.calls().enumerate() {
            self.calls.push(Call {
                seq: recorded.seq,
                at: recorded.at,
                nth,
                id: call.id.clone(),
                begun: false,
                asked_for: false,
                late: false,
            });
        }
    }

    /// Something else that was recorded, whether it still counts or not: a tool that started
    /// on a branch that was left may have done its work all the same.
    pub(crate) fn happened(&mut self, recorded: &Recorded) {
        self.imported.apply(recorded);
        match &recorded.event {
            Event::ToolStarted(started) if started.lane == Lane::main() => {
                self.starts_recorded = true;
                if let Some(call) = self.last(&started.call_id) {
                    call.begun = true;
                }
            }
            Event::Gate(gate) => {
                if let Some(call) = self.last(&gate.id) {
                    call.asked_for = true;
                    // The runner that asks before a call also records what it starts: the calls
                    // behind this one wait for it.
                    self.starts_recorded = true;
                }
            }
            _ => {}
        }
    }

    fn last(&mut self, id: &str) -> Option<&mut Call> {
        self.calls.iter_mut().rfind(|call| call.id == id)
    }

    /// Those of a whole session, by the message that made each and its place among the calls of
    /// that message.
    pub(crate) fn of(events: &[Recorded], timeline: &Timeline, lane: &Lane) -> Self {
        let mut all = Self::default();
        for recorded in events {
            all.happened(recorded);
            match &recorded.event {
                Event::Message(message)
                    if message.lane == *lane && timeline.contains(recorded.seq) =>
                {
                    all.said(recorded, message);
                }
                _ => {}
            }
        }
        all
    }

    /// Those that the last answer leaves open where a session stands after an event.
    pub(crate) fn after(well: &Stepwell, id: &SessionId, to: Seq) -> Result<Self> {
        let events = well.store().events(id, Span { to, ..Span::ALL })?.events;
        let timeline = Timeline::at(to, events.iter());
        let mut open = Self::of(&events, &timeline, &Lane::main());
        let last = events.iter().rev().find_map(|it| match &it.event {
            Event::Message(message)
                if message.lane == Lane::main()
                    && message.role != Role::Tool
                    && timeline.contains(it.seq) =>
            {
                Some(it.seq)
            }
            _ => None,
        });
        open.calls.retain(|call| Some(call.seq) == last);
        Ok(open)
    }

    /// What is said of the call at that place in place of its result.
    pub(crate) fn words_at(&self, seq: Seq, nth: usize) -> &'static str {
        let call = self.calls.iter().find(|call| (call.seq, call.nth) == (seq, nth));
        call.map_or(INTERRUPTED, |call| self.words_for(call))
    }

    /// Says in a view, where a result is missing, what is known of its call.
    pub(crate) fn explain(&self, view: &mut [ViewMessage]) {
        for ViewMessage { seq, answers, message, .. } in view {
            for (nth, (part, from)) in message.parts.iter_mut().zip(answers).enumerate() {
                if let (Part::ToolResult(result), None) = (part, from) {
                    self.words_at(*seq, nth).clone_into(&mut result.text);
                }
            }
        }
    }

    /// Takes out those that get no result: before the event at `before`, which goes on without
    /// it, or at the end. One whose result only comes late stays.
    pub(crate) fn due(
        &mut self,
        well: &Stepwell,
        id: &SessionId,
        before: Option<Seq>,
    ) -> Result<Vec<Call>> {
        if let Some(before) = before {
            for call in self.calls.iter_mut().filter(|call| !call.late) {
                call.late = is_answered_after(well, id, before, &call.id)?;
            }
        }
        Ok(self.calls.extract_if(.., |call| !call.late || before.is_none()).collect())
    }

    /// Forgets them all.
    pub(crate) fn clear(&mut self) {
        self.calls.clear();
    }

    /// What is said of a call in place of its result.
    fn words_for(&self, call: &Call) -> &'static str {
        let may_have_run = self.imported.may_have_run(call.seq, &call.id);
        let known = call.asked_for || self.starts_recorded && !may_have_run;
        match known && !call.begun {
            true => NOT_BEGUN,
            false => INTERRUPTED,
        }
    }

    /// The message that answers calls, as a tool's.
    pub(crate) fn answer(&self, calls: &[Call]) -> Message {
        let result = |call: &Call| {
            Part::ToolResult(ToolResult {
                call_id: call.id.clone(),
                text: self.words_for(call).to_owned(),
                is_error: true,
                ..ToolResult::default()
            })
        };
        Message::new(Role::Tool, calls.iter().map(result).collect())
    }
}

/// How many events are read at a time.
const PAGE: usize = 256;

/// Does a call get its result after an event, before the conversation is rewritten?
fn is_answered_after(well: &Stepwell, id: &SessionId, seq: Seq, call: &str) -> Result<bool> {
    let mut last = seq;
    loop {
        let page = well.store().events(id, Span { limit: PAGE, ..Span::after(last) })?.events;
        let Some(end) = page.last() else { return Ok(false) };
        last = end.seq;
        for event in page {
            match event.event {
                Event::Message(message) if message.lane == Lane::main() => {
                    if message.results().any(|result| result.call_id == call) {
                        return Ok(true);
                    }
                    if message.calls().any(|again| again.id == call) {
                        return Ok(false);
                    }
                }
                Event::Rewound(_) | Event::Undone(_) | Event::Compacted(_) => return Ok(false),
                _ => {}
            }
        }
    }
}

/// Is it what stands in for a result?
pub(crate) fn stands_in(text: &str) -> bool {
    text == INTERRUPTED || text == NOT_BEGUN
}
