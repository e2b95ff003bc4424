//! Where a telling parts from what is known: does it tell something new, or only leave something
//! out? Agents of one session are told one after the other, so that one of them may end earlier
//! and the next one goes on as before.

use std::collections::VecDeque;
use std::hash::{DefaultHasher, Hash, Hasher};

use stepwell::model::{Node, Time};
use stepwell::{Event, Message, Recorded, Seq};

/// What was said from there on, as far as it was not told again: a digest of each.
#[derive(Debug, Default)]
pub(super) struct Gap {
    rest: VecDeque<u64>,
    skipped: bool,
}

impl Gap {
    /// Something that was said.
    pub(super) fn add(&mut self, known: &Event) {
        self.rest.push_back(digest(known));
    }

    /// Was this said, behind all that was told since? What lies before it is left out.
    pub(super) fn finds(&mut self, told: &Event) -> bool {
        let told = digest(told);
        let place = self.rest.iter().position(|known| *known == told);
        if let Some(place) = place {
            self.rest.drain(..=place);
            self.skipped |= place > 0;
        }
        place.is_some()
    }

    /// Was something left out of what was told until now?
    pub(super) fn leaves_out(&self) -> bool {
        self.skipped || !self.rest.is_empty()
    }
}

/// Of a message or a node, what it says: what it spent may be counted otherwise.
fn digest(event: &Event) -> u64 {
    let event = match event {
        Event::Message(message) => Message { usage: None, cost: None, ..message.clone() }.into(),
        Event::Node(node) => Node { usage: None, ..node.clone() }.into(),
        event => event.clone(),
    };
    let plain = Recorded { seq: Seq::FIRST, at: Time::from_micros(0), id: None, event };
    let mut hasher = DefaultHasher::new();
    serde_json::to_vec(&plain).unwrap_or_default().hash(&mut hasher);
    hasher.finish()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_left_out_is_passed_over_and_what_is_new_is_not_found() {
        let said = |text: &str| Event::from(Message::user(text));
        let mut gap = Gap::default();
        ["a3", "b1", "b2", "b1"].iter().for_each(|text| gap.add(&said(text)));
        assert!(gap.leaves_out());
        assert!(gap.finds(&said("b1")) && gap.finds(&said("b1")));
        assert!(gap.leaves_out(), "it was not told of a3");
        assert!(!gap.finds(&said("b2")), "it came before");
        assert!(!gap.finds(&said("c1")));
        let mut whole = Gap::default();
        whole.add(&said("a1"));
        assert!(whole.finds(&said("a1")) && !whole.leaves_out());
    }
}
