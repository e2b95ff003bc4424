//! What this machine notes of what its user gives.

use std::collections::HashMap;
use std::fmt;

use parking_lot::{Mutex, MutexGuard};

use super::{Given, Note};
use crate::model::{Digest, Seq, SessionId};
use crate::store::Place;

/// Keeps, on this machine, what its user gave in sessions. A store cannot be asked for that: who
/// can write to it can write that they are somebody else.
pub trait Notes: fmt::Debug + Send + Sync {
    /// Opens what is noted of a session, to add to it. Until it is dropped, nobody else opens or
    /// reads it: so whoever sees an event sees the note on it, too.
    fn open(&self, session: &SessionId) -> Box<dyn Notebook + '_>;

    /// What is noted of a session.
    fn given(&self, session: &SessionId) -> Given;

    /// How far the user saw a session's log.
    fn seen(&self, session: &SessionId) -> Option<Place>;

    /// Notes how far the user saw it; nothing, once the session is erased. Not being able to is no
    /// error: what happens to the log from then on is not missed.
    fn see(&self, session: &SessionId, end: Option<Place>);
}

/// What is noted of one session.
pub trait Notebook {
    /// Adds what is about to be given, in a log that ends with a seq: whoever dies before they can
    /// note where it stands has given it all the same.
    fn announce(&mut self, end: Seq, digests: &[Digest]);

    /// Adds notes. Not being able to is no error: then the user is asked again.
    fn add(&mut self, notes: &[Note]);

    /// Takes back what was added since it was opened: it was not given after all.
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
    /// What was noted when it was opened.
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
