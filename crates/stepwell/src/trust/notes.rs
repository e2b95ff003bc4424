//! This machine's notes of what its user gives.

use std::collections::HashMap;
use std::fmt;

use parking_lot::{Mutex, MutexGuard};

use super::{Given, Note};
use crate::model::{Digest, Seq, SessionId};
use crate::store::Place;

/// Notes, on this machine, of what its user gave in sessions. A store cannot prove
/// that: its writers can claim any name.
pub trait Notes: fmt::Debug + Send + Sync {
    /// Opens a session's notes for writing. Until it is dropped, no other process opens or reads
    /// them, so a process that sees an event also sees its note.
    fn open(&self, session: &SessionId) -> Box<dyn Notebook + '_>;

    /// The notes on a session.
    fn given(&self, session: &SessionId) -> Given;

    /// How far the user has seen a session's log.
    fn seen(&self, session: &SessionId) -> Option<Place>;

    /// Notes how far the user has seen it; `None` for a purged session. A failure is not an error:
    /// later changes are detected all the same.
    fn see(&self, session: &SessionId, end: Option<Place>);
}

/// The notes on one session, open for writing.
pub trait Notebook {
    /// Announces grants that are about to be written, in a log that ends at `end`. They count even
    /// if the process dies before it can note their seqs.
    fn announce(&mut self, end: Seq, digests: &[Digest]);

    /// Adds notes. A failure is not an error: the user is asked again.
    fn add(&mut self, notes: &[Note]);

    /// Removes everything added since it was opened, because the write failed.
    fn take_back(&mut self);
}

/// Notes that last as long as the process.
#[derive(Debug, Default)]
pub struct MemoryNotes {
    given: Mutex<HashMap<SessionId, Given>>,
    seen: Mutex<HashMap<SessionId, Place>>,
}

impl Notes for MemoryNotes {
    fn open(&self, session: &SessionId) -> Box<dyn Notebook + '_> {
        let all = self.given.lock();
        let before = all.get(session).cloned().unwrap_or_default();
        Box::new(InMemory { all, session: session.clone(), before })
    }

    fn given(&self, session: &SessionId) -> Given {
        let all = self.given.lock();
        all.get(session).cloned().unwrap_or_default()
    }

    fn seen(&self, session: &SessionId) -> Option<Place> {
        self.seen.lock().get(session).copied()
    }

    fn see(&self, session: &SessionId, end: Option<Place>) {
        let mut all = self.seen.lock();
        match end {
            Some(end) => drop(all.insert(session.clone(), end)),
            None => drop(all.remove(session)),
        }
    }
}

struct InMemory<'a> {
    all: MutexGuard<'a, HashMap<SessionId, Given>>,
    session: SessionId,
    /// The notes at the time of opening.
    before: Given,
}

impl Notebook for InMemory<'_> {
    fn announce(&mut self, end: Seq, digests: &[Digest]) {
        let given = self.all.entry(self.session.clone()).or_default();
        digests.iter().for_each(|digest| given.announce(end, *digest));
    }

    fn add(&mut self, notes: &[Note]) {
        let given = self.all.entry(self.session.clone()).or_default();
        notes.iter().for_each(|note| given.add(*note));
    }

    fn take_back(&mut self) {
        self.all.insert(self.session.clone(), self.before.clone());
    }
}
