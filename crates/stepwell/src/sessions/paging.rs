//! Sessions and events, read a page at a time, however many there are.

use std::collections::VecDeque;

use crate::error::{Error, Result};
use crate::model::{Recorded, SessionId};
use crate::sessions::well::Stepwell;
use crate::store::query::Query;
use crate::store::{Damage, Order, SessionInfo, Span};

/// How many sessions are read at a time.
const SESSIONS: usize = 1_000;

/// How many events are read at a time. One may have megabytes.
const EVENTS: usize = 256;

impl Stepwell {
    /// Every session that a query asks for. The query's limit bounds a page, not the whole.
    #[must_use]
    pub fn sessions(&self, mut query: Query) -> Sessions<'_> {
        // Whoever asks for a few is not made to wait for a whole page.
        query.limit = query.limit.min(SESSIONS);
        Sessions { well: self, query: Some(query), page: VecDeque::new() }
    }

    /// A session's events, in the order of the span and up to its limit. Damage ends them with
    /// [`Error::Damaged`].
    #[must_use]
    pub fn log(&self, id: &SessionId, span: Span) -> Log<'_> {
        Log { well: self, id: id.clone(), span: Some(span), page: VecDeque::new(), damage: None }
    }
}

/// The sessions that a query asks for, read as they are needed.
#[derive(Debug)]
pub struct Sessions<'a> {
    well: &'a Stepwell,
    /// Asks for the next page; none, if there is no other.
    query: Option<Query>,
    page: VecDeque<SessionInfo>,
}

impl Iterator for Sessions<'_> {
    type Item = Result<SessionInfo>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            if let Some(info) = self.page.pop_front() {
                return Some(Ok(info));
            }
            let query = self.query.take()?;
            let page = match self.well.list(&query) {
                Ok(page) => page,
                Err(error) => return Some(Err(error)),
            };
            self.page = page.sessions.into();
            self.query = page.next.map(|next| Query { after: Some(next), ..query });
        }
    }
}

/// A session's events, read as they are needed.
#[derive(Debug)]
pub struct Log<'a> {
    well: &'a Stepwell,
    id: SessionId,
    /// What is still to be read; none, if that is all.
    span: Option<Span>,
    page: VecDeque<Recorded>,
    damage: Option<Damage>,
}

impl Log<'_> {
    /// Looks at each event. The answer is the damage that ended it.
    ///
    /// # Errors
    /// If the store cannot be read, or whatever `look` says.
    pub fn each<E: From<Error>>(
        mut self,
        mut look: impl FnMut(Recorded) -> Result<(), E>,
    ) -> Result<Option<Damage>, E> {
        while let Some(event) = self.next_intact()? {
            look(event)?;
        }
        Ok(self.damage)
    }

    /// The next event before any damage.
    fn next_intact(&mut self) -> Result<Option<Recorded>> {
        loop {
            if let Some(event) = self.page.pop_front() {
                return Ok(Some(event));
            }
            let Some(span) = self.span.take() else { return Ok(None) };
            let limit = span.limit.min(EVENTS);
            let slice = self.well.store().events(&self.id, Span { limit, ..span })?;
            self.damage = slice.damage;
            self.page = slice.events.into();
            let Some(last) = self.page.back().map(|event| event.seq) else { return Ok(None) };
            let limit = span.limit - self.page.len().min(span.limit);
            let rest = match span.order {
                Order::Oldest => Span { from: last.next(), limit, ..span },
                Order::Newest => Span { to: last.prev(), limit, ..span },
            };
            let is_more = limit > 0 && rest.from <= rest.to && self.damage.is_none();
            self.span = is_more.then_some(rest);
        }
    }
}

impl Iterator for Log<'_> {
    type Item = Result<Recorded>;

    fn next(&mut self) -> Option<Self::Item> {
        match self.next_intact() {
            Ok(Some(event)) => Some(Ok(event)),
            Ok(None) => Some(Err(self.damage.take()?.into_error(&self.id))),
            Err(error) => Some(Err(error)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{Message, Seq};

    #[test]
    fn a_log_is_read_to_its_end_in_both_directions_and_up_to_a_limit() {
        let well = Stepwell::in_memory();
        let session = well.create(well.draft("count")).unwrap();
        let events: Vec<_> =
            (0..2 * EVENTS + 5).map(|n| Message::user(n.to_string()).into()).collect();
        session.append_all(events).unwrap();
        let last = session.info().unwrap().head.seq;
        let read = |span| -> Vec<Seq> {
            well.log(session.id(), span).map(|event| event.unwrap().seq).collect()
        };
        let all = read(Span::ALL);
        assert_eq!((all.len() as u64, all[0], all.last()), (last.get(), Seq::FIRST, Some(&last)));
        let mut back = read(Span { order: Order::Newest, ..Span::ALL });
        back.reverse();
        assert_eq!(back, all);
        assert_eq!(read(Span::last(EVENTS + 3)).len(), EVENTS + 3);
        assert_eq!(read(Span { from: last, ..Span::ALL }), [last]);
        assert!(read(Span::after(last)).is_empty());
    }
}
