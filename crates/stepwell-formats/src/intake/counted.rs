//! Tokens that were counted with messages which have left the view since: told again, they
//! are not counted again.

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};

use stepwell::model::{Time, Usage};
use stepwell::{Event, Message, Recorded};

/// What was counted and is not claimed by a message that is in the view, by who spoke when.
#[derive(Debug, Default)]
pub(super) struct Counted(HashMap<u64, Usage>);

impl Counted {
    /// Is there nothing to be taken off?
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Remembers an event that was taken out of the view: what it spent stays counted.
    pub(super) fn add(&mut self, gone: &Recorded) {
        if let Event::Message(message) = &gone.event
            && let Some(usage) = message.usage
        {
            *self.0.entry(key(message, gone.at)).or_default() += usage;
        }
    }

    /// Is what a message is said to have spent what is counted for it: by what is known of it,
    /// and by what of it was there before?
    pub(super) fn covers(&self, known: &Message, at: Time, told: &Message) -> bool {
        if known.usage == told.usage {
            return true;
        }
        let (Some(counted), Some(told)) = (self.0.get(&key(known, at)), told.usage) else {
            return false;
        };
        let rest = minus(told, known.usage.unwrap_or_default());
        minus(rest, *counted) == Usage::default()
    }

    /// A message that is known is in the view: what was counted for it is taken.
    pub(super) fn claim(&mut self, known: &Message, at: Time, told: &Message) {
        if let Some(counted) = self.0.get_mut(&key(known, at)) {
            let own = known.usage.unwrap_or_default();
            *counted = minus(*counted, minus(told.usage.unwrap_or_default(), own));
        }
    }

    /// The event with what of its tokens is not counted yet.
    pub(super) fn rest(&mut self, at: Option<Time>, event: Event) -> Event {
        let (Event::Message(message), Some(at)) = (&event, at) else { return event };
        let (Some(counted), Some(usage)) = (self.0.get_mut(&key(message, at)), message.usage)
        else {
            return event;
        };
        let rest = minus(usage, *counted);
        *counted = minus(*counted, usage);
        if rest == usage {
            return event;
        }
        let usage = (rest != Usage::default()).then_some(rest);
        Message { usage, cost: None, ..message.clone() }.into()
    }
}

/// A message by who said it when, which stays as it grows.
fn key(message: &Message, at: Time) -> u64 {
    let mut hasher = DefaultHasher::new();
    (&message.lane, message.role, at).hash(&mut hasher);
    hasher.finish()
}

fn minus(one: Usage, other: Usage) -> Usage {
    Usage {
        input: one.input.saturating_sub(other.input),
        output: one.output.saturating_sub(other.output),
        cached: one.cached.saturating_sub(other.cached),
        cache_written: one.cache_written.saturating_sub(other.cache_written),
        reasoning: one.reasoning.saturating_sub(other.reasoning),
    }
}

#[cfg(test)]
mod tests {
    use stepwell::model::{Part, Role};

    use super::*;

    fn answer(output: u64) -> Message {
        let mut message = Message::new(Role::Assistant, vec![Part::text("hm")]);
        message.usage = (output > 0).then(|| Usage { output, ..Usage::default() });
        message
    }

    fn usage(event: Event) -> u64 {
        match event {
            Event::Message(message) => message.usage.map_or(0, |usage| usage.output),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn what_was_counted_is_counted_once_and_more_is_added() {
        let at: Time = "2026-05-04T06:00:00Z".parse().unwrap();
        let mut counted = Counted::default();
        let told = |counted: &mut Counted, n| usage(counted.rest(Some(at), answer(n).into()));
        assert_eq!(told(&mut counted, 5), 5);
        let gone = |output| {
            let event = answer(output).into();
            Recorded { seq: stepwell::Seq::FIRST, at, id: None, event }
        };
        counted.add(&gone(5));
        counted.add(&gone(7));
        assert!(counted.covers(&answer(0), at, &answer(12)));
        assert!(!counted.covers(&answer(0), at, &answer(13)));
        assert!(counted.covers(&answer(3), at, &answer(15)));
        // Two that spoke in the same second share what was counted for both.
        assert_eq!(told(&mut counted, 5), 0);
        assert_eq!(told(&mut counted, 9), 2);
        assert_eq!(told(&mut counted, 9), 9);
    }
}
