//! Places and seqs: where a reader says that something stands, and where it stands here.

use stepwell::model::{Compacted, Edited, Rewinding, Rewound, Undone};
use stepwell::{Event, Seq};

/// Which seq each place has. They differ once somebody here has labelled the session.
#[derive(Debug, Default)]
pub(super) struct Places {
    /// The first place of each run of places that follow each other, and its seq.
    runs: Vec<(Seq, Seq)>,
    last: Seq,
}

impl Places {
    /// The next place has this seq.
    pub(super) fn push(&mut self, seq: Seq) -> Seq {
        let place = self.last.next();
        if self.seq(place) != seq {
            self.runs.push((place, seq));
        }
        self.last = place;
        place
    }

    /// The seq of a place that was given out; of one that was not, that of the nearest.
    pub(super) fn seq(&self, place: Seq) -> Seq {
        let run = self.runs.partition_point(|(first, _)| *first <= place);
        match run.checked_sub(1).and_then(|run| self.runs.get(run)) {
            Some((first, seq)) => Seq::new(seq.get() + (place.get() - first.get())),
            None => place,
        }
    }

    /// Does an event name places?
    pub(super) fn concern(event: &Event) -> bool {
        matches!(
            event,
            Event::Compacted(_)
                | Event::Rewound(_)
                | Event::Undone(_)
                | Event::Rewinding(_)
                | Event::Edited(_)
        )
    }

    /// The event with seqs in place of places.
    pub(super) fn translate(&self, event: Event) -> Event {
        let seq = |place: Seq| self.seq(place);
        match event {
            Event::Compacted(it) => {
                let pinned = it.pinned.into_iter().map(seq).collect();
                Compacted { from: seq(it.from), to: seq(it.to), pinned, ..it }.into()
            }
            Event::Rewound(it) => Rewound { to: seq(it.to), ..it }.into(),
            Event::Undone(Undone::Compaction { of }) => Undone::Compaction { of: seq(of) }.into(),
            Event::Undone(Undone::Rewind { of, scope, restored }) => {
                Undone::Rewind { of: seq(of), scope, restored }.into()
            }
            Event::Rewinding(Rewinding::Begun { to, scope, undoes, files }) => {
                Rewinding::Begun { to: seq(to), scope, undoes: undoes.map(seq), files }.into()
            }
            Event::Edited(it) => {
                let pin_messages = it.pin_messages.into_iter().map(seq).collect();
                let unpin_messages = it.unpin_messages.into_iter().map(seq).collect();
                Edited { pin_messages, unpin_messages, ..it }.into()
            }
            other => other,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_follow_seqs_over_gaps() {
        let mut places = Places::default();
        for seq in [1, 2, 3, 6, 7, 10] {
            places.push(Seq::new(seq));
        }
        let seqs: Vec<u64> = (1..=6).map(|place| places.seq(Seq::new(place)).get()).collect();
        assert_eq!(seqs, [1, 2, 3, 6, 7, 10]);
        assert_eq!(places.runs.len(), 2);
    }
}
