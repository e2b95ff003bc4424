//! The history of rewinds: which of them hold, and what `--undo` and `--redo` would do. Pure.
//!
//! A rewind goes back, its undo goes forward, and the redo goes back again. A move holds until
//! another one that holds undoes it. So `--undo` undoes the newest move back, and `--redo` the
//! newest move forward.

use std::collections::{HashMap, HashSet};
use std::ops::RangeInclusive;

use stepwell::log::Timeline;
use stepwell::model::{Kind, Rewinding, Scope, Undone};
use stepwell::{Event, Recorded, Seq};

use crate::plan::Others;

/// The kinds of events that record moves.
pub const MOVES: [Kind; 3] = [Kind::Rewinding, Kind::Rewound, Kind::Undone];

/// A requested move.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Asked {
    /// The event whose files are restored.
    pub to: Seq,
    /// Conversation, files, or both.
    pub scope: Scope,
    /// The move that this one undoes.
    pub undoes: Option<Seq>,
    /// How to treat conflicts: files that someone else changed, and, for an undo, later work.
    pub others: Others,
}

impl Asked {
    /// The last event in the view before the move's own.
    #[must_use]
    pub const fn follows(&self) -> Seq {
        match self.undoes {
            Some(of) => of.prev(),
            None => self.to,
        }
    }
}

/// The direction of a move.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// Back: a rewind or a redo.
    Back,
    /// Forward: an undo.
    Forth,
}

impl Direction {
    const fn other(self) -> Self {
        match self {
            Self::Back => Self::Forth,
            Self::Forth => Self::Back,
        }
    }
}

/// A recorded move.
#[derive(Clone, Copy, Debug)]
struct RewindMove {
    seq: Seq,
    scope: Scope,
    way: Direction,
    /// The move that it undid.
    undoes: Option<Seq>,
}

/// The move that undoes the newest one in a direction; `None` if there is none. After another
/// rewind, earlier moves forward can no longer be undone.
#[must_use]
pub fn taking_back(facts: &[Recorded], head: Seq, way: Direction, others: Others) -> Option<Asked> {
    let holding = holding(facts, head);
    let newest = holding.iter().rfind(|made| made.way == way)?;
    let rewound_since = |made: &RewindMove| made.undoes.is_none() && made.seq > newest.seq;
    if way == Direction::Forth && holding.iter().any(rewound_since) {
        return None;
    }
    let RewindMove { seq, scope, .. } = *newest;
    let to = begun_for(facts, seq).map_or(seq.prev(), Seq::prev);
    Some(Asked { to, scope, undoes: Some(seq), others })
}

/// The moves that hold, oldest first.
fn holding(facts: &[Recorded], head: Seq) -> Vec<RewindMove> {
    let timeline = Timeline::at(head, facts.iter());
    let mut ways: HashMap<Seq, Direction> = HashMap::new();
    let mut made = Vec::new();
    for fact in facts {
        let (scope, undoes) = match &fact.event {
            Event::Rewound(rewound) => (rewound.scope, None),
            Event::Undone(Undone::Rewind { of, scope, .. }) => (*scope, Some(*of)),
            _ => continue,
        };
        let taken = |of: Seq| ways.get(&of).map_or(Direction::Forth, |way| way.other());
        let way = undoes.map_or(Direction::Back, taken);
        ways.insert(fact.seq, way);
        if timeline.contains(fact.seq) {
            made.push(RewindMove { seq: fact.seq, scope, way, undoes });
        }
    }
    let mut taken_back: HashSet<Seq> = HashSet::new();
    let mut holding: Vec<RewindMove> = Vec::new();
    for one in made.into_iter().rev().filter(|one| one.seq <= head) {
        if !taken_back.contains(&one.seq) {
            taken_back.extend(one.undoes);
            holding.push(one);
        }
    }
    holding.reverse();
    holding
}

/// The branches of a log that repeated `--undo` and `--redo` can reach.
#[must_use]
pub fn within_reach(facts: &[Recorded], head: Seq) -> Vec<Timeline> {
    let mut found = vec![Timeline::at(head, facts.iter())];
    for way in [Direction::Back, Direction::Forth] {
        let (mut facts, mut at) = (facts.to_vec(), head);
        while let Some(asked) = taking_back(&facts, at, way, Others::Respected) {
            // As if it were done.
            at = at.next();
            let Some(of) = asked.undoes else { break };
            let (scope, restored) = (asked.scope, stepwell::model::Restored::default());
            let event = Undone::Rewind { of, scope, restored }.into();
            facts.push(Recorded { seq: at, at: stepwell::model::Time::EPOCH, id: None, event });
            found.push(Timeline::at(at, facts.iter()));
        }
    }
    found
}

/// The file events that moves recorded.
#[must_use]
pub fn recorded_by(facts: &[Recorded]) -> Vec<RangeInclusive<Seq>> {
    let range = |fact: &Recorded| match fact.event {
        Event::Rewinding(Rewinding::Begun { files, .. }) => {
            Some(fact.seq..=Seq::new(fact.seq.get().saturating_add(files)))
        }
        _ => None,
    };
    facts.iter().filter_map(range).collect()
}

/// An unfinished move: its seq, the request, and its number of files.
pub(crate) fn unfinished(facts: &[Recorded]) -> Option<(Seq, Asked, u64)> {
    let last = facts.iter().rev().find(|fact| is_move(&fact.event))?;
    match last.event {
        Event::Rewinding(Rewinding::Begun { to, scope, undoes, files }) => {
            let others = Others::Respected;
            Some((last.seq, Asked { to, scope, undoes, others }, files))
        }
        _ => None,
    }
}

/// The beginning of the file move that this event ended.
fn begun_for(facts: &[Recorded], end: Seq) -> Option<Seq> {
    let last = facts.iter().rev().find(|fact| fact.seq < end && is_move(&fact.event))?;
    matches!(last.event, Event::Rewinding(Rewinding::Begun { .. })).then_some(last.seq)
}

fn is_move(event: &Event) -> bool {
    !matches!(event, Event::Undone(Undone::Compaction { .. }))
}

#[cfg(test)]
mod tests {
    use stepwell::model::{Restored, Rewound, Time};

    use super::*;

    fn at(seq: u64, event: impl Into<Event>) -> Recorded {
        Recorded { seq: Seq::new(seq), at: Time::EPOCH, id: None, event: event.into() }
    }

    fn rewind(seq: u64, to: u64, scope: Scope) -> Recorded {
        at(seq, Rewound { to: Seq::new(to), scope, restored: Restored::default() })
    }

    fn undo(seq: u64, of: u64, scope: Scope) -> Recorded {
        at(seq, Undone::Rewind { of: Seq::new(of), scope, restored: Restored::default() })
    }

    fn next(facts: &[Recorded], way: Direction) -> Option<u64> {
        let head = facts.last().map_or(Seq::new(9), |fact| fact.seq);
        let asked = taking_back(facts, head, way, Others::Respected)?;
        asked.undoes.map(Seq::get)
    }

    #[test]
    fn whatever_is_moved_back_and_forth_can_be_taken_back() {
        for scope in [Scope::Both, Scope::Chat, Scope::Files] {
            let mut facts = Vec::new();
            assert_eq!(
                (next(&facts, Direction::Back), next(&facts, Direction::Forth)),
                (None, None)
            );
            facts.extend([rewind(10, 6, scope), rewind(20, 3, scope)]);
            assert_eq!(
                (next(&facts, Direction::Back), next(&facts, Direction::Forth)),
                (Some(20), None)
            );
            facts.push(undo(30, 20, scope));
            assert_eq!(
                (next(&facts, Direction::Back), next(&facts, Direction::Forth)),
                (Some(10), Some(30))
            );
            facts.push(undo(40, 10, scope));
            assert_eq!(
                (next(&facts, Direction::Back), next(&facts, Direction::Forth)),
                (None, Some(40))
            );
            facts.push(undo(50, 40, scope));
            // Undoing a redo undoes the redo itself, not the rewind.
            assert_eq!(
                (next(&facts, Direction::Back), next(&facts, Direction::Forth)),
                (Some(50), Some(30))
            );
            facts.push(undo(60, 50, scope));
            assert_eq!(
                (next(&facts, Direction::Back), next(&facts, Direction::Forth)),
                (None, Some(60))
            );
            facts.push(rewind(70, 2, scope));
            assert_eq!(
                (next(&facts, Direction::Back), next(&facts, Direction::Forth)),
                (Some(70), None)
            );
        }
    }

    #[test]
    fn all_that_undo_and_redo_lead_to_is_within_reach() {
        // Work at 11..19 after the first rewind, at 21..29 after the second.
        let scope = Scope::Both;
        let facts =
            [rewind(10, 6, scope), rewind(20, 3, scope), undo(30, 20, scope), undo(40, 10, scope)];
        let reach = within_reach(&facts, Seq::new(41));
        for seq in [8, 15, 25] {
            assert!(reach.iter().any(|branch| branch.contains(Seq::new(seq))), "{seq}");
        }
        // After another rewind the undone one cannot be redone.
        let facts = [facts.as_slice(), &[rewind(50, 2, scope)]].concat();
        let reach = within_reach(&facts, Seq::new(50));
        let has = |seq| reach.iter().any(|branch| branch.contains(Seq::new(seq)));
        assert_eq!((has(8), has(15), has(25)), (true, false, false));
    }
}
