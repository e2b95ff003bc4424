//! Which messages are pinned: those that no compaction may take out of the view.

use std::collections::BTreeSet;

use crate::{Event, Recorded, Seq};

/// The messages of a session that its user pinned. A rewind does not change them: a pin is
/// a wish about a message, wherever the view stands.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Pins(BTreeSet<Seq>);

impl Pins {
    /// The pins after these events, which are a session's `edited` events in order; others
    /// among them are passed over.
    pub fn of<'a>(events: impl IntoIterator<Item = &'a Recorded>) -> Self {
        let mut pins = Self::default();
        events.into_iter().for_each(|event| pins.apply(&event.event));
        pins
    }

    /// Takes the next event in.
    pub fn apply(&mut self, event: &Event) {
        if let Event::Edited(edited) = event {
            self.0.extend(&edited.pin_messages);
            self.0.retain(|seq| !edited.unpin_messages.contains(seq));
        }
    }

    /// Is the message at `seq` pinned?
    #[must_use]
    pub fn contains(&self, seq: Seq) -> bool {
        self.0.contains(&seq)
    }

    /// In order.
    pub fn iter(&self) -> impl Iterator<Item = Seq> {
        self.0.iter().copied()
    }
}

impl FromIterator<Seq> for Pins {
    fn from_iter<I: IntoIterator<Item = Seq>>(seqs: I) -> Self {
        Self(seqs.into_iter().collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Edited, Message, Time};

    #[test]
    fn a_pin_holds_until_it_is_taken_back() {
        let set = |seqs: &[u64]| seqs.iter().copied().map(Seq::new).collect::<BTreeSet<_>>();
        let edit = |pin: &[u64], unpin: &[u64]| Recorded {
            seq: Seq::new(9),
            at: Time::EPOCH,
            id: None,
            event: Edited {
                pin_messages: set(pin),
                unpin_messages: set(unpin),
                ..Edited::default()
            }
            .into(),
        };
        let said = Recorded { event: Message::user("x").into(), ..edit(&[], &[]) };
        let log = [edit(&[2, 3], &[]), said, edit(&[4], &[3, 7])];
        assert_eq!(Pins::of(&log).iter().map(Seq::get).collect::<Vec<_>>(), [2, 4]);
        assert!(Pins::of(&log).contains(Seq::new(4)) && !Pins::of(&log).contains(Seq::new(3)));
        assert_eq!(log[0].event.key().as_deref(), Some("pins"));
    }
}
