//! What a session that comes back shares with the one that it was written from: it was
//! counted there, and is not counted again.

use std::collections::HashSet;
use std::path::Path;

use stepwell::model::{Mark, NodeState, Time};
use stepwell::store::Span;
use stepwell::{Event, Message, SessionId, Stepwell};

use super::compare_session::hear;
use crate::read::neutral::Item;
use crate::registry::Format;
use crate::{Error, Result};

/// How many events are read at a time.
const PAGE: usize = 256;

/// What happened in a session until it was written for another system.
#[derive(Debug)]
pub(super) struct Shared {
    mark: Mark,
    /// When things happened, sorted, to the millisecond: some formats that bear a mark are no finer.
    times: Vec<i64>,
    /// Nodes that were done and questions that were asked, which bear no times elsewhere.
    keys: HashSet<String>,
}

impl Shared {
    /// What was shared, if the session that a mark names is here and is the one that is meant.
    pub(super) fn of(well: &Stepwell, mark: Mark) -> Result<Option<Self>> {
        match well.store().info(&mark.session) {
            Ok(_) => {}
            Err(stepwell::Error::NoSession(_)) => return Ok(None),
            Err(error) => return Err(error.into()),
        }
        let (mut last, mut last_at) = (stepwell::Seq::ZERO, None);
        let (mut times, mut keys) = (Vec::new(), HashSet::new());
        while last < mark.seq {
            let span = Span { to: mark.seq, limit: PAGE, ..Span::after(last) };
            let page = well.store().events(&mark.session, span)?.events;
            if page.is_empty() {
                break;
            }
            for event in page {
                (last, last_at) = (event.seq, Some(event.at));
                if times.last() != Some(&millisecond(event.at)) {
                    times.push(millisecond(event.at));
                }
                keys.extend(key(&event.event).map(str::to_owned));
            }
        }
        times.sort_unstable();
        times.dedup();
        let meant = last == mark.seq && last_at == Some(mark.at);
        Ok(meant.then_some(Self { mark, times, keys }))
    }

    /// The session that was written.
    pub(super) fn with(&self) -> &SessionId {
        &self.mark.session
    }

    /// The mark that names it.
    pub(super) fn mark(&self) -> &Mark {
        &self.mark
    }

    /// Does the session in a file go on from what is shared?
    pub(super) fn goes_on(&self, format: Format, path: &Path, id: &str) -> Result<bool> {
        let mut news = false;
        match hear(format, path, id, &mut |item| news |= self.is_new(item)) {
            Ok(()) => Ok(news),
            // Whoever reads it in says what is wrong with it.
            Err(Error::Unreadable { .. } | Error::Foreign { .. }) => Ok(true),
            Err(error) => Err(error),
        }
    }

    /// The same without what it spent, if that was counted where it is shared from.
    pub(super) fn uncounted(&self, item: Item) -> Item {
        match item {
            Item { at, event: Event::Message(said) } if said.usage.is_some() && self.knows(at) => {
                Item::new(at, Message { usage: None, cost: None, ..said })
            }
            item => item,
        }
    }

    fn is_new(&self, item: &Item) -> bool {
        match (&item.event, key(&item.event)) {
            (_, Some(key)) => !self.keys.contains(key),
            // How it stands, and what only the other system knows of it.
            (
                Event::Status(_)
                | Event::Edited(_)
                | Event::Foreign(_)
                | Event::Step(_)
                | Event::Node(_)
                | Event::GateAnswered(_),
                None,
            ) => false,
            (_, None) => !self.knows(item.at),
        }
    }

    fn knows(&self, at: Option<Time>) -> bool {
        at.is_some_and(|at| self.times.binary_search(&millisecond(at)).is_ok())
    }
}

fn millisecond(at: Time) -> i64 {
    at.as_micros().div_euclid(1_000)
}

/// What a node that is done, or a question, is known by.
fn key(event: &Event) -> Option<&str> {
    match event {
        Event::Node(node) if node.state == NodeState::Done => Some(&node.key),
        Event::Gate(gate) => Some(&gate.id),
        _ => None,
    }
}
