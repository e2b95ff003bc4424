//! Iterators over sessions and events, which read a page at a time.

use std::collections::VecDeque;

use crate::error::{Error, Result};
use crate::model::{Recorded, SessionId};
use crate::sessions::well::Stepwell;
use crate::store::query::Query;
use crate::store::{Damage, Order, SessionInfo, Span};

/// Sessions per page.
const SESSIONS: usize = 1_000;

/// Events per page. One event may have megabytes.
const EVENTS: usize = 256;

impl Stepwell {
    /// Every session that a query matches. The query's limit bounds a page, not the result.
    #[must_use]
    pub fn sessions(&self, mut query: Query) -> Sessions<'_> {
        // A caller that wants a few sessions does not wait for a full page.
        query.limit = query.limit.min(SESSIONS);
        Sessions { well: self, query: Some(query), page: VecDeque::new() }
    }

    /// A session's events, in the span's order and up to its limit. Damage ends them with
    /// [`Error::Damaged`].
    #[must_use]
    pub fn log(&self, id: &SessionId, span: Span) -> Log<'_> {
        Log { well: self, id: id.clone(), span: Some(span), page: VecDeque::new(), damage: None }
    }
}

/// The sessions that a query matches, read as needed.
#[derive(Debug)]
pub struct Sessions<'a> {
    well: &'a Stepwell,
    /// The query for the next page; `None` after the last.
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

/// A session's events, read as needed.
#[derive(Debug)]
pub struct Log<'a> {
    well: &'a Stepwell,
    id: SessionId,
    /// The span still to read; `None` at the end.
    span: Option<Span>,
    page: VecDeque<Recorded>,
    damage: Option<Damage>,
}

impl Log<'_> {
    /// Passes each event to `look`. Returns the damage that ended the log early, if any.
    ///
    /// # Errors
    /// Errors of the store, and errors that `look` returns.
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
