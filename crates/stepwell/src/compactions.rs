//! The compactions that count: those that no rewind left behind and nobody took back.

use std::collections::HashSet;

use crate::{Compacted, Edited, Event, Head, Kind, Recorded, Seq, Timeline, Undone};
use serde_json::Value;

/// The kinds of events that they are found in.
pub const KINDS: [Kind; 3] = [Kind::Compacted, Kind::Rewound, Kind::Undone];

/// The metadata key that says that old messages are left out.
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

/// How much of a conversation a session's metadata says that the model is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Extent {
    /// All of it, or a summary of what is not shown.
    Whole,
    /// Old messages are left out.
    Truncated,
}

impl Extent {
    /// How much is shown at a seq, given the session's events of [these kinds](KINDS) in order.
    #[must_use]
    pub fn at(facts: &[Recorded], at: Seq) -> Self {
        match live(facts, at).iter().any(|(_, it)| it.is_truncation()) {
            true => Self::Truncated,
            false => Self::Whole,
        }
    }

    /// What a session's metadata says.
    #[must_use]
    pub fn of(head: &Head) -> Self {
        if head.metadata.contains_key(TRUNCATED) { Self::Truncated } else { Self::Whole }
    }

    /// The change that makes a session's metadata say so.
    #[must_use]
    pub fn edited(self) -> Edited {
        let value = match self {
            Self::Whole => Value::Null,
            Self::Truncated => true.into(),
        };
        Edited { metadata: [(TRUNCATED.to_owned(), value)].into(), ..Edited::default() }
    }
}
