//! The compactions that count: those that no rewind removed and that were not undone.

use std::collections::HashSet;

use serde_json::Value;

use crate::error::Result;
use crate::log::{Head, MessageOrigin, Timeline, View, ViewMessage};
use crate::model::{
    Compacted, Edited, Event, Kind, Lane, NewEvent, Recorded, Seq, SessionId, Undone,
};
use crate::sessions::{Session, Stepwell};
use crate::store::Span;

/// The kinds of events needed to find them.
pub const KINDS: [Kind; 3] = [Kind::Compacted, Kind::Rewound, Kind::Undone];

/// The metadata key that says that old messages left the view without a summary.
const TRUNCATED: &str = "truncated";

/// The compactions that count at a seq, in order, given the session's events of [these
/// kinds](KINDS) in order.
#[must_use]
pub fn live(facts: &[Recorded], at: Seq) -> Vec<(Seq, &Compacted)> {
    let timeline = Timeline::at(at, facts.iter());
    let counts = |fact: &&Recorded| timeline.contains(fact.seq);
    let undone: HashSet<Seq> = facts
        .iter()
        .filter(counts)
        .filter_map(|fact| match &fact.event {
            Event::Undone(Undone::Compaction { of }) => Some(*of),
            _ => None,
        })
        .collect();
    let live = facts.iter().filter(counts).filter(|fact| !undone.contains(&fact.seq));
    live.filter_map(|fact| match &fact.event {
        Event::Compacted(compacted) => Some((fact.seq, compacted)),
        _ => None,
    })
    .collect()
}

/// A message of a conversation, and what compactions did to it.
#[derive(Clone, Debug, PartialEq)]
pub enum ViewChange {
    /// It is in the view.
    Kept(ViewMessage),
    /// A compaction removed it from the view.
    Hidden(ViewMessage),
    /// A summary that replaced hidden messages.
    Summary(ViewMessage),
}

impl Stepwell {
    /// The effect of compactions on a session's main lane, in the order of the log, with each
    /// summary at its place in the view.
    pub fn compaction_changes(&self, id: &SessionId) -> Result<Vec<ViewChange>> {
        let events = self.store().events(id, Span::ALL)?.intact(id)?;
        let lane = Lane::main();
        let is_compaction = |event: &Recorded| {
            matches!(event.event, Event::Compacted(_) | Event::Undone(Undone::Compaction { .. }))
        };
        let originals = events.iter().filter(|event| !is_compaction(event)).cloned().collect();
        let (whole, now) = (View::of(&lane, originals).messages, View::of(&lane, events).messages);
        Ok(changes(whole, now))
    }
}

/// Merges the view without compactions and the present one.
fn changes(whole: Vec<ViewMessage>, now: Vec<ViewMessage>) -> Vec<ViewChange> {
    let key = |shown: &ViewMessage| (shown.seq, shown.made == MessageOrigin::Results);
    let is_summary = |shown: &ViewMessage| shown.made == MessageOrigin::Summary;
    let kept: HashSet<_> = now.iter().map(key).collect();
    let mut changes = Vec::new();
    let mut rest = now.into_iter().peekable();
    for original in whole {
        while let Some(summary) = rest.next_if(is_summary) {
            changes.push(ViewChange::Summary(summary));
        }
        if kept.contains(&key(&original)) {
            rest.next_if(|it| key(it) == key(&original));
            changes.push(ViewChange::Kept(original));
        } else {
            changes.push(ViewChange::Hidden(original));
        }
    }
    changes.extend(rest.filter(is_summary).map(ViewChange::Summary));
    changes
}

/// How much of a conversation is in the view, by the session's metadata.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Extent {
    /// All of it, or summaries of the rest.
    Whole,
    /// Old messages left the view without a summary.
    Truncated,
}

impl Extent {
    /// How much is in the view at a seq, given the session's events of [these kinds](KINDS) in
    /// order.
    #[must_use]
    pub fn at(facts: &[Recorded], at: Seq) -> Self {
        match live(facts, at).iter().any(|(_, it)| it.is_truncation()) {
            true => Self::Truncated,
            false => Self::Whole,
        }
    }

    /// What the metadata says.
    #[must_use]
    pub fn of(head: &Head) -> Self {
        if head.metadata.contains_key(TRUNCATED) { Self::Truncated } else { Self::Whole }
    }

    /// The change that sets the metadata.
    #[must_use]
    pub fn edited(self) -> Edited {
        let value = match self {
            Self::Whole => Value::Null,
            Self::Truncated => true.into(),
        };
        Edited { metadata: [(TRUNCATED.to_owned(), value)].into(), ..Edited::default() }
    }
}

impl Session {
    /// Undoes the last compaction: its messages are in the view again. The metadata is updated with
    /// it. Returns the compaction; `None` if there was none.
    pub fn undo_last_compaction(&self) -> Result<Option<Seq>> {
        let (facts, head) = (self.keyed_events(&KINDS)?, self.info()?.head);
        let Some((of, _)) = live(&facts, head.seq).pop() else { return Ok(None) };
        self.undo_compaction(of)?;
        Ok(Some(of))
    }

    /// Undoes a compaction, and updates the metadata.
    pub fn undo_compaction(&self, of: Seq) -> Result<Seq> {
        let (facts, head) = (self.keyed_events(&KINDS)?, self.info()?.head);
        let well = self.well();
        let undone = NewEvent { id: well.event_name(), ..Undone::Compaction { of }.into() };
        let mut events = vec![undone];
        let still = live(&facts, head.seq);
        let still = still.iter().any(|(seq, it)| *seq != of && it.is_truncation());
        if Extent::of(&head) == Extent::Truncated && !still {
            events.push(Extent::Whole.edited().into());
        } else {
            events.extend(well.signature());
        }
        Ok(self.append_all(events)?.first)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{Lane, Message};
    use crate::sessions::Stepwell;

    #[test]
    fn undoing_the_last_truncation_clears_the_metadata() {
        let well = Stepwell::in_memory();
        let session = well.create(well.draft("talk")).unwrap();
        for n in 0..4 {
            session.append(Message::user(n.to_string())).unwrap();
        }
        let truncate = |from: u64, to: u64| {
            let compacted = Compacted::new(Lane::main(), Seq::new(from), Seq::new(to));
            let said = vec![compacted.into(), Extent::Truncated.edited().into()];
            session.append_all(said).unwrap().first
        };
        let (first, second) = (truncate(2, 3), truncate(2, 4));
        let extent = || Extent::of(&session.info().unwrap().head);
        assert_eq!(session.undo_last_compaction().unwrap(), Some(second));
        assert_eq!(extent(), Extent::Truncated);
        assert_eq!(session.undo_last_compaction().unwrap(), Some(first));
        assert_eq!(extent(), Extent::Whole);
        assert_eq!(session.undo_last_compaction().unwrap(), None);
    }
}
