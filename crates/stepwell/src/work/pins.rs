//! Pinned messages, which no compaction may remove from the view.

use std::collections::BTreeSet;

use crate::error::{Error, Result};
use crate::log::View;
use crate::model::{Edited, Event, Kind, Message, Recorded, Seq, SessionId};
use crate::sessions::Session;
use crate::sessions::Stepwell;
use crate::store::Span;

/// The messages of a session that its user pinned. A rewind does not change them: a pin belongs to
/// the message, not to the view.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Pins(BTreeSet<Seq>);

impl Pins {
    /// The pins after these events: a session's `edited` events in order. Other kinds are skipped.
    pub fn of<'a>(events: impl IntoIterator<Item = &'a Recorded>) -> Self {
        let mut pins = Self::default();
        events.into_iter().for_each(|event| pins.apply(&event.event));
        pins
    }

    /// Applies the next event.
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

    /// The pinned seqs, in order.
    pub fn iter(&self) -> impl Iterator<Item = Seq> {
        self.0.iter().copied()
    }
}

/// The result of pinning a message.
#[derive(Clone, Debug, PartialEq)]
pub struct PinnedMessage {
    /// The message.
    pub message: Message,
    /// Is it in the view now? A compacted or rewound message is not.
    pub is_shown: bool,
}

impl Session {
    /// The pinned messages.
    pub fn pins(&self) -> Result<Pins> {
        Ok(Pins::of(&self.keyed_events(&[Kind::Edited])?))
    }
}

impl Stepwell {
    /// A session's pinned messages.
    pub fn pins(&self, id: &SessionId) -> Result<Pins> {
        Ok(Pins::of(&self.store().keyed_events(id, &[Kind::Edited])?))
    }

    /// Pins a message, so that no compaction removes it from the view, also while the session runs.
    ///
    /// # Errors
    /// If that seq has no message, or the session's files are half moved.
    pub fn pin_message(&self, id: &SessionId, seq: Seq) -> Result<PinnedMessage> {
        let message = self.message_to_pin(id, seq)?;
        self.edit(id, Edited { pin_messages: BTreeSet::from([seq]), ..Edited::default() })?;
        let events = self.store().events(id, Span::ALL)?.intact(id)?;
        let view = View::of(&message.lane, events).messages;
        let is_shown = view.iter().any(|it| it.seq == seq || it.answers.contains(&Some(seq)));
        Ok(PinnedMessage { message, is_shown })
    }

    /// Unpins a message.
    ///
    /// # Errors
    /// If that seq has no message, or the session's files are half moved.
    pub fn unpin_message(&self, id: &SessionId, seq: Seq) -> Result<()> {
        self.message_to_pin(id, seq)?;
        self.edit(id, Edited { unpin_messages: BTreeSet::from([seq]), ..Edited::default() })?;
        Ok(())
    }

    fn message_to_pin(&self, id: &SessionId, seq: Seq) -> Result<Message> {
        let info = self.info(id)?;
        info.refuse_half_rewound()?;
        let last = info.head.seq;
        let none = || Error::NoEvent { session: id.clone(), seq, last };
        if seq < Seq::FIRST || seq > last {
            return Err(none());
        }
        let span = Span { from: seq, to: seq, ..Span::ALL };
        let events = self.store().events(id, span)?.intact(id)?;
        match events.into_iter().next().map(|event| event.event) {
            Some(Event::Message(message)) => Ok(message),
            Some(other) => {
                let kind = other.kind().to_owned();
                Err(Error::NotAMessage { session: id.clone(), seq, kind })
            }
            None => Err(none()),
        }
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
    use crate::model::{Edited, Message, Time};

    #[test]
    fn a_pin_holds_until_it_is_removed() {
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

    #[test]
    fn only_a_message_can_be_pinned() {
        let well = Stepwell::in_memory();
        let session = well.create(well.draft("tidy up")).unwrap();
        let id = session.id().clone();
        let said = session.append(Message::user("first")).unwrap();
        session.append(Message::assistant("second")).unwrap();
        let pinned = well.pin_message(&id, said).unwrap();
        assert!(pinned.is_shown && pinned.message.text() == "first");
        assert!(well.pins(&id).unwrap().contains(said));
        well.unpin_message(&id, said).unwrap();
        assert!(!well.pins(&id).unwrap().contains(said));
        assert!(matches!(well.pin_message(&id, Seq::FIRST), Err(Error::NotAMessage { .. })));
        assert!(matches!(well.pin_message(&id, Seq::new(99)), Err(Error::NoEvent { .. })));
    }
}
