//! What an archive's events are laid against: a session of the store, or one that is being
//! written.

use std::collections::VecDeque;

use stepwell::model::{Restored, Rewound, Scope, Undone};
use stepwell::store::{Append, Expected, Lease, Span, Write, Written};
use stepwell::{
    Error as StoreError, ErrorKind, Event, NewEvent, Recorded, Seq, Session, SessionId, Stepwell,
};

use super::PAGE;
use crate::{Error, Result};

/// How much is written at a time: enough to share a flush, little enough to hold.
const CHUNK_EVENTS: usize = 256;
const CHUNK_BYTES: usize = 1 << 20;

/// A session of the store, read event by event.
#[derive(Debug)]
pub(super) struct Stored {
    pub(super) session: SessionId,
    /// The last event that was handed out.
    pub(super) last: Seq,
    page: VecDeque<Recorded>,
}

impl Stored {
    pub(super) fn new(session: &SessionId) -> Self {
        Self::after(session, Seq::ZERO)
    }

    pub(super) fn after(session: &SessionId, last: Seq) -> Self {
        Self { session: session.clone(), last, page: VecDeque::new() }
    }

    pub(super) fn next(&mut self, well: &Stepwell) -> Result<Option<Recorded>> {
        if self.page.is_empty() {
            let span = Span { limit: PAGE, ..Span::after(self.last) };
            let slice = well.store().events(&self.session, span)?;
            self.page = slice.intact(&self.session)?.into();
        }
        let next = self.page.pop_front();
        self.last = next.as_ref().map_or(self.last, |event| event.seq);
        Ok(next)
    }
}

/// A session that is being written, and what is not written yet.
#[derive(Debug)]
pub(super) struct Chunk {
    well: Stepwell,
    pub(super) session: Session,
    /// The last event that was written.
    last: Seq,
    events: Vec<NewEvent>,
    bytes: usize,
}

impl Chunk {
    pub(super) fn new(well: &Stepwell, lease: Lease, last: Seq) -> Self {
        let (well, session) = (well.clone(), well.adopt(lease));
        Self { well, session, last, events: Vec::new(), bytes: 0 }
    }

    pub(super) fn push(&mut self, event: Recorded, bytes: usize) -> Result<()> {
        self.events.push(NewEvent {
            id: event.id,
            at: Some(event.at),
            copied: true,
            ..NewEvent::from(event.event)
        });
        self.bytes += bytes;
        if self.events.len() < CHUNK_EVENTS && self.bytes < CHUNK_BYTES {
            return Ok(());
        }
        self.flush()
    }

    pub(super) fn flush(&mut self) -> Result<()> {
        let events = std::mem::take(&mut self.events);
        self.bytes = 0;
        if events.is_empty() {
            return Ok(());
        }
        match self.append(events.clone()) {
            // One by one, to name the event that is not taken.
            Err(error) if is_refusal(&error) => {
                for event in events {
                    let seq = self.last.next();
                    let written = self.append(vec![event]);
                    written.map_err(|source| refused(self.session.id(), seq, source))?;
                }
                Ok(())
            }
            written => Ok(written?),
        }
    }

    fn append(&mut self, events: Vec<NewEvent>) -> Result<(), StoreError> {
        let id = events.first().and_then(|event| event.id);
        let Lease { session, epoch, .. } = self.session.lease().clone();
        // An edit may come from anyone at any time; here it would take an event's place.
        let expected = Some(Expected::At(self.last));
        let append = Append {
            session: session.clone(),
            epoch: Some(epoch),
            expected,
            events: events.into(),
        };
        let Written { first, last, .. } = self.well.store().write(Write::Append(append))?;
        match id {
            // The store took it for an append that it had made before.
            Some(id) if first <= self.last => {
                Err(StoreError::EventIdReused { session, id, seq: first })
            }
            _ => {
                self.last = last;
                Ok(())
            }
        }
    }
}

/// Compares a session with its copy in another store, as far as both go: either may have
/// gone on meanwhile.
pub(crate) fn compare(from: &Stepwell, to: &Stepwell, id: &SessionId) -> Result<()> {
    let (mut original, mut copy) = (Stored::new(id), Stored::new(id));
    while let (Some(one), Some(other)) = (original.next(from)?, copy.next(to)?) {
        if !same(&one, &other) {
            return Err(Error::Differs { session: id.clone(), seq: one.seq });
        }
    }
    Ok(())
}

/// Is it what was to be written that the store does not take?
fn is_refusal(error: &StoreError) -> bool {
    matches!(error.kind(), ErrorKind::Invalid | ErrorKind::Conflict | ErrorKind::Absent)
}

pub(super) fn refused(session: &SessionId, seq: Seq, source: StoreError) -> Error {
    if is_refusal(&source) {
        Error::Refused { session: session.clone(), seq, source }
    } else {
        source.into()
    }
}

/// Do they record the same? What a move of the view brought back is the store's to
/// work out, and after a scrub it may find something else than it did before.
pub(super) fn same(one: &Recorded, other: &Recorded) -> bool {
    let asked = |event: &Event| match event {
        Event::Rewound(rewound) => {
            Event::from(Rewound { restored: Restored::default(), ..rewound.clone() })
        }
        Event::Undone(Undone::Rewind { of, .. }) => {
            Undone::Rewind { of: *of, scope: Scope::Both, restored: Restored::default() }.into()
        }
        other => other.clone(),
    };
    one == other
        || (one.seq, one.at, one.id) == (other.seq, other.at, other.id)
            && asked(&one.event) == asked(&other.event)
}
