//! Imported tool calls without a recorded result, which the other program may have run.

use crate::model::{Event, Recorded, Seq};

/// The imported tool calls of unknown outcome. Feed it a session's events in their order.
///
/// Imported events have ids. The program that made a call may have run it without recording the
/// result, so running it here could repeat its effects. A call that has or had a gate here did not
/// run: it waits.
#[derive(Clone, Debug, Default)]
pub struct ImportedCalls {
    /// Does the session, or the one it was forked from, come from another program?
    imported: bool,
    calls: Vec<(Seq, String)>,
}

impl ImportedCalls {
    /// The calls in a session's events.
    #[must_use]
    pub fn of(events: &[Recorded]) -> Self {
        let mut all = Self::default();
        events.iter().for_each(|event| all.apply(event));
        all
    }

    /// Adds the next event.
    pub fn apply(&mut self, recorded: &Recorded) {
        match &recorded.event {
            Event::Created(created) => self.imported |= created.source.is_some(),
            Event::Message(message) => {
                message.results().for_each(|result| self.forget(&result.call_id));
                if self.imported && recorded.id.is_some() {
                    let calls = message.calls().map(|call| (recorded.seq, call.id.clone()));
                    self.calls.extend(calls);
                }
            }
            Event::Gate(gate) => self.forget(&gate.id),
            Event::GateAnswered(answer) => self.forget(&answer.id),
            _ => {}
        }
    }

    /// Some providers reuse call ids in each step, so the newest call with the id is meant.
    fn forget(&mut self, id: &str) {
        if let Some(at) = self.calls.iter().rposition(|(_, call)| call == id) {
            self.calls.remove(at);
        }
    }

    /// May another program have run this call of the message at that seq?
    #[must_use]
    pub fn may_have_run(&self, message: Seq, call: &str) -> bool {
        self.made_at(message).any(|id| id == call)
    }

    /// The calls of the message at that seq that another program may have run.
    pub fn made_at(&self, message: Seq) -> impl Iterator<Item = &str> {
        let made = self.calls.iter().filter(move |(seq, _)| *seq == message);
        made.map(|(_, id)| id.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{Created, EventId, Gate, Message, Part, Role, Source, Time, ToolCall};

    fn recorded(seq: u64, id: Option<EventId>, event: impl Into<Event>) -> Recorded {
        Recorded { seq: Seq::new(seq), at: Time::from_micros(0), id, event: event.into() }
    }

    fn call(id: &str) -> Message {
        let (id, name, arguments) = (id.to_owned(), "run".to_owned(), "{}".to_owned());
        let call = ToolCall { id, name, arguments, opaque: None };
        Message::new(Role::Assistant, vec![Part::ToolCall(call)])
    }

    /// A session with a call `c` at 2 and, under the same id, at 3.
    fn session(source: Option<Source>) -> Vec<Recorded> {
        let created = Created { source, ..Created::new("a".parse().unwrap(), "t") };
        let id = || Some(EventId::derived(b"x"));
        vec![recorded(1, None, created), recorded(2, id(), call("c")), recorded(3, id(), call("c"))]
    }

    fn source() -> Option<Source> {
        Some(Source { system: "codex".to_owned(), id: "x".to_owned(), started_at: None })
    }

    fn open(events: &[Recorded]) -> [bool; 3] {
        let calls = ImportedCalls::of(events);
        [2, 3, 4].map(|seq| calls.may_have_run(Seq::new(seq), "c"))
    }

    #[test]
    fn only_calls_that_came_with_an_import_may_have_run_elsewhere() {
        assert_eq!(open(&session(None)), [false; 3]);
        let mut imported = session(source());
        imported.push(recorded(4, None, call("c")));
        assert_eq!(open(&imported), [true, true, false]);
    }

    #[test]
    fn a_result_and_a_question_are_about_the_last_call_of_their_name() {
        for about in [Event::from(Message::tool_result("c", "x")), Gate::new("c", "may it?").into()]
        {
            let mut events = session(source());
            events.push(recorded(4, None, about));
            assert_eq!(open(&events), [true, false, false]);
        }
    }
}
