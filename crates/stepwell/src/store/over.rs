//! Methods that are the same for every [`Store`], written once over it.

use std::time::{Duration, Instant};

use super::query::{Family, Newest, NewestQuery, Query, RecordQuery, Sort, TrashScope};
use super::rows::Facts;
use super::{Order, Selection, SessionInfo, Slice, Span, Store, Wait, Write, Written};
use crate::error::{Error, Result};
use crate::log::codec::Login;
use crate::model::{Digest, EventId, Kind, Recorded, Seq, SessionId, Time};

impl dyn Store + '_ {
    /// Applies one write.
    pub fn write(&self, write: Write) -> Result<Written> {
        let mut written = self.batch(vec![write])?;
        Ok(written.pop().expect("a batch answers each of its writes"))
    }

    /// Does the session exist, in the trash or not?
    pub fn exists(&self, id: &SessionId) -> Result<bool> {
        match self.info(id) {
            Ok(_) | Err(Error::Damaged { .. }) => Ok(true),
            Err(Error::NoSession(_)) => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// A range of a session's events, up to the first damaged one.
    pub fn events(&self, id: &SessionId, span: Span) -> Result<Slice> {
        self.select(id, Selection::Span(span))
    }

    /// Keyed events, in order: of some kinds, with one key or any, from a seq on.
    pub fn keyed(&self, id: &SessionId, facts: Facts<'_>) -> Result<Vec<Recorded>> {
        Ok(self.select(id, Selection::Keyed(facts))?.events)
    }

    /// The keyed events of these kinds, in order.
    pub fn keyed_events(&self, id: &SessionId, kinds: &[Kind]) -> Result<Vec<Recorded>> {
        self.keyed(id, Facts::of(kinds))
    }

    /// Records by their keys.
    pub fn records(&self, id: &SessionId, query: &RecordQuery) -> Result<Vec<Recorded>> {
        Ok(self.select(id, Selection::Records(query))?.events)
    }

    /// The record with the largest key in a range, and the records that belong to it.
    pub fn newest_record(&self, id: &SessionId, query: NewestQuery<'_>) -> Result<Newest> {
        let Slice { events, chain, .. } = self.select(id, Selection::Newest(query))?;
        if chain.is_some() && chain == query.known {
            return Ok(Newest::Unchanged);
        }
        let mut events = events.into_iter();
        let Some(record) = events.next() else { return Ok(Newest::Absent) };
        Ok(Newest::Found { chain, record: Box::new(record), beside: events.collect() })
    }

    /// A session's event with a client's id, own or shared.
    pub fn event(&self, id: &SessionId, event: &EventId) -> Result<Option<Recorded>> {
        Ok(self.select(id, Selection::Named(event))?.events.pop())
    }

    /// Stores bytes under their BLAKE3 digest.
    pub fn put_blob(&self, bytes: &[u8]) -> Result<Digest> {
        let digest = Digest::of(bytes);
        self.keep_blobs(&[(digest, bytes)])?;
        Ok(digest)
    }

    /// The bytes of a blob.
    pub fn blob(&self, digest: &Digest) -> Result<Vec<u8>> {
        self.blobs(std::slice::from_ref(digest))?.pop().ok_or(Error::NoBlob(*digest))
    }

    /// The sessions of these sessions' subagents, and of their subagents, in and out of the trash,
    /// the oldest first.
    pub fn below(&self, ids: &[SessionId]) -> Result<Vec<SessionInfo>> {
        let (family, place) = (Family::Below(ids.to_vec()), TrashScope::Anywhere);
        let filter = super::Filter { family, place, ..super::Filter::default() };
        let (sort, order) = (Sort::Created, Order::Oldest);
        Ok(self.list(&Query { filter, sort, order, ..Query::default() })?.sessions)
    }

    /// Waits until a session has an event after `seq`, or `timeout` has passed. Returns its last
    /// seq.
    #[expect(clippy::disallowed_methods, reason = "a wait is bounded in real time")]
    pub fn wait_after(&self, id: &SessionId, seq: Seq, timeout: Duration) -> Result<Seq> {
        let started = Instant::now();
        // Taken before the first read, so that no change is missed.
        let mut cursor = self.changes(None, Wait::NONE)?.cursor;
        loop {
            let last = self.info(id)?.head.seq;
            let left = || timeout.saturating_sub(started.elapsed());
            if last > seq || left().is_zero() {
                return Ok(last);
            }
            loop {
                let found = self.changes(Some(&cursor), Wait::up_to(left()))?;
                cursor = found.cursor;
                let named = found.changes.iter().any(|change| change.session == *id);
                if named || found.gap || left().is_zero() {
                    break;
                }
            }
        }
    }

    /// The present moment, by the clock of the store's server, if it has one.
    #[must_use]
    pub fn now(&self) -> Option<Time> {
        self.server().map(super::Server::now)
    }

    /// This process's login at the store's server, if it has one.
    pub fn login(&self) -> Result<Option<String>> {
        self.server().map_or(Ok(None), super::Server::login)
    }

    /// An event's author, as far as the store's server knows.
    pub fn written_by(&self, id: &SessionId, seq: Seq) -> Result<Login> {
        self.server().map_or(Ok(Login::Unknown), |server| server.written_by(id, seq))
    }
}
