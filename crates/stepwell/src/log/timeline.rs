//! Which events count: the path through a log after rewinds and their undoing.
//!
//! Every event follows the one before it, with two exceptions. A rewind follows the event it
//! returns to. Undoing a rewind follows the event before that rewind. So a log is a tree whose live
//! branch ends at the head.

use crate::model::{Event, Recorded, Seq, Undone};

/// The live branch of a session's log at one seq, as ranges of seqs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Timeline {
    /// Both ends included, ascending, not touching.
    ranges: Vec<(Seq, Seq)>,
}

impl Timeline {
    /// The branch that ends at `at`, given the log's rewinds and their undoing in order. Events of
    /// other kinds are skipped.
    pub fn at<'a>(at: Seq, moves: impl DoubleEndedIterator<Item = &'a Recorded>) -> Self {
        let mut ranges: Vec<(Seq, Seq)> = Vec::new();
        let mut end = at;
        let jumps = moves.rev().filter_map(|event| Some((event.seq, follows(&event.event)?)));
        for (jump, target) in jumps {
            if jump <= end {
                ranges.push((jump, end));
                end = target;
            }
        }
        if end > Seq::ZERO {
            ranges.push((Seq::FIRST, end));
        }
        ranges.reverse();
        Self { ranges }
    }

    /// The last event that two branches share.
    #[must_use]
    pub fn shared_with(&self, other: &Self) -> Seq {
        let mut shared = Seq::ZERO;
        for (ours, theirs) in self.ranges.iter().zip(&other.ranges) {
            if ours.0 != theirs.0 {
                break;
            }
            shared = ours.1.min(theirs.1);
            if ours.1 != theirs.1 {
                break;
            }
        }
        shared
    }

    /// Is the event at `seq` on the branch?
    #[must_use]
    pub fn contains(&self, seq: Seq) -> bool {
        let after = self.ranges.partition_point(|(_, end)| *end < seq);
        self.ranges.get(after).is_some_and(|(start, _)| *start <= seq)
    }
}

/// The event that a rewind or its undoing follows, instead of the one before it.
pub(crate) fn follows(event: &Event) -> Option<Seq> {
    match event {
        Event::Rewound(rewound) if rewound.scope.moves_view() => Some(rewound.to),
        Event::Undone(Undone::Rewind { of, scope, .. }) if scope.moves_view() => Some(of.prev()),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{Restored, Rewound, Scope, Time};

    fn moved(seq: u64, event: impl Into<Event>) -> Recorded {
        Recorded { seq: Seq::new(seq), at: Time::EPOCH, id: None, event: event.into() }
    }

    fn rewind(seq: u64, to: u64, scope: Scope) -> Recorded {
        moved(seq, Rewound { to: Seq::new(to), scope, restored: Restored::default() })
    }

    fn undo(seq: u64, of: u64) -> Recorded {
        let of = Seq::new(of);
        moved(seq, Undone::Rewind { of, scope: Scope::Chat, restored: Restored::default() })
    }

    fn live(at: u64, moves: &[Recorded]) -> Vec<u64> {
        let timeline = Timeline::at(Seq::new(at), moves.iter());
        (0..=at + 2).filter(|n| timeline.contains(Seq::new(*n))).collect()
    }

    #[test]
    fn without_moves_everything_counts() {
        assert_eq!(live(3, &[]), [1, 2, 3]);
        assert!(live(0, &[]).is_empty());
    }

    #[test]
    fn a_rewind_drops_what_lies_between() {
        assert_eq!(live(7, &[rewind(5, 2, Scope::Both)]), [1, 2, 5, 6, 7]);
    }

    #[test]
    fn a_rewind_of_files_leaves_the_view() {
        assert_eq!(live(6, &[rewind(5, 2, Scope::Files)]), [1, 2, 3, 4, 5, 6]);
    }

    #[test]
    fn undoing_a_rewind_returns_to_just_before_it() {
        let moves = [rewind(5, 2, Scope::Chat), undo(8, 5)];
        assert_eq!(live(7, &moves[..1]), [1, 2, 5, 6, 7]);
        assert_eq!(live(9, &moves), [1, 2, 3, 4, 8, 9]);
    }

    #[test]
    fn undoing_an_undoing_returns_to_just_before_it() {
        let moves = [rewind(5, 2, Scope::Chat), undo(8, 5), undo(10, 8)];
        assert_eq!(live(10, &moves), [1, 2, 5, 6, 7, 10]);
    }

    #[test]
    fn branches_are_the_same_up_to_where_they_part() {
        let moves = [rewind(5, 2, Scope::Chat), rewind(8, 6, Scope::Chat)];
        let at = |seq| Timeline::at(Seq::new(seq), moves.iter());
        assert_eq!(at(4).shared_with(&at(7)), Seq::new(2));
        assert_eq!(at(7).shared_with(&at(9)), Seq::new(6));
        assert_eq!(at(9).shared_with(&at(9)), Seq::new(9));
        assert_eq!(at(0).shared_with(&at(9)), Seq::ZERO);
    }

    #[test]
    fn a_rewind_may_go_back_to_a_dead_branch() {
        let moves = [rewind(5, 2, Scope::Chat), rewind(8, 4, Scope::Chat)];
        assert_eq!(live(9, &moves), [1, 2, 3, 4, 8, 9]);
    }

    #[test]
    fn the_branch_at_an_earlier_seq_ignores_later_moves() {
        let moves = [rewind(5, 2, Scope::Chat), rewind(8, 1, Scope::Chat)];
        assert_eq!(live(6, &moves), [1, 2, 5, 6]);
    }
}
