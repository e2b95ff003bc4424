//! The points of a session to go back to.

use stepwell::log::Timeline;
use stepwell::sqlite::Access;
use stepwell::store::Span;
use stepwell::{Event, Lane, Seq};

use super::super::narrate::NOT_SAID;
use super::{Conversation, Result, first_line, listed};

/// How many points are listed.
const POINTS: usize = 20;

/// The points to go back to, the newest first.
pub(super) fn points(on: &Conversation) -> Result<String> {
    let well = on.runtime().workspace().open_existing(Access::Read)?;
    let head = well.info(on.id())?.head.seq;
    let events = well.store().events(on.id(), Span::ALL)?.intact(on.id())?;
    let timeline = Timeline::at(head, events.iter());
    let redactor = on.runtime().workspace().redactor().with_own_count();
    let point = |event: &stepwell::Recorded| match &event.event {
        // Going back to what was said takes it back, to be said otherwise.
        Event::Message(it) if it.is_from_user() && it.lane == Lane::main() => {
            let text = it.text();
            let is_said = !text.is_empty() && !NOT_SAID.contains(&text.as_str());
            let text = first_line(&redactor.redact(&text));
            is_said.then(|| (event.seq.prev(), format!("before you said: {text}")))
        }
        Event::Checkpoint(it) => {
            Some((event.seq, format!("checkpoint {}", redactor.redact(&it.name))))
        }
        Event::Phase(it) => Some((event.seq, format!("phase {}", it.to))),
        _ => None,
    };
    let counts = events.iter().rev().filter(|event| timeline.contains(event.seq));
    let line = |(seq, what): (Seq, String)| format!("- `/rewind {seq}`: {what}");
    let lines: Vec<String> = counts.filter_map(point).map(line).take(POINTS).collect();
    Ok(listed(&lines, "There is no point to go back to yet."))
}
