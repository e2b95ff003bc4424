//! Sessions that stand in for what a fork grew out of, while the fork is made.
//!
//! A fork is made from its parent, but an archive holds the fork alone. Where the store
//! has no such parent, one is made of the events that the fork shares with it, and purged
//! once the fork is there: the purge hands the shared events over. Each stand-in is made
//! together with a mark, a subagent's session that goes with it, so that one that a crash
//! left behind is known for what it is.

use stepwell::model::{Digest, Origin, Time};
use stepwell::store::{Create, Lease, Target, Write};
use stepwell::{Created, Error as StoreError, Result, SessionId, Stepwell};

/// The stand-ins of one import.
#[derive(Debug)]
pub(super) struct Scaffold {
    well: Stepwell,
    /// In the order in which they were made.
    standing: Vec<SessionId>,
}

/// The session that marks another one as a stand-in.
pub(super) fn mark_of(id: &SessionId) -> SessionId {
    let digest = Digest::of(format!("stand-in for {id}").as_bytes()).to_string();
    format!("import-{}", &digest[..32]).parse().expect("hex digits and a dash make a valid id")
}

impl Scaffold {
    pub(super) fn new(well: &Stepwell) -> Self {
        Self { well: well.clone(), standing: Vec::new() }
    }

    /// Is there a session of that name? What an earlier import left behind is cleared
    /// away, unless somebody has worked on it since: then it counts.
    pub(super) fn finds(&self, id: &SessionId) -> Result<bool> {
        let store = self.well.store();
        if self.standing.contains(id) {
            return Ok(true);
        }
        if !store.exists(id)? {
            return Ok(false);
        }
        let mark = match store.info(&mark_of(id)) {
            Ok(standing) => standing.head,
            Err(StoreError::NoSession(_)) => return Ok(true),
            Err(error) => return Err(error),
        };
        // All that an import records happened before it, and so before the mark.
        let touched = store.info(id)?.head.updated_at >= mark.created_at;
        if touched || mark.origin.parent() != Some(id) {
            return Ok(true);
        }
        self.purge(id)?;
        Ok(false)
    }

    /// Makes a stand-in and its mark, both or none.
    pub(super) fn put(&mut self, create: Create) -> Result<Option<Lease>> {
        let id = create.created.id.clone();
        let origin = Origin::Subagent { parent: id.clone() };
        let task = format!("marks {id} as a part of an import that was cut off");
        let mark = Created { origin, ..Created::new(mark_of(&id), task) };
        let mark = Create { created: mark, event_id: None, at: None, claim: None };
        let written = self.well.store().batch(vec![Write::Create(create), Write::Create(mark)])?;
        self.standing.push(id);
        Ok(written.into_iter().next().and_then(|written| written.lease))
    }

    /// Makes an empty stand-in, for a parent that is only named.
    pub(super) fn put_named(&mut self, id: &SessionId, origin: Origin) -> Result<()> {
        let created = Created { origin, ..Created::new(id.clone(), "") };
        // Before any mark, like all that an import records.
        let at = Some(Time::EPOCH);
        self.put(Create { created, event_id: None, at, claim: None }).map(drop)
    }

    /// Takes down all stand-ins but one, newest first.
    pub(super) fn take_down(&mut self, but: Option<&SessionId>) -> Result<()> {
        while let Some(at) = self.standing.iter().rposition(|id| Some(id) != but) {
            self.purge(&self.standing[at])?;
            self.standing.remove(at);
        }
        Ok(())
    }

    fn purge(&self, id: &SessionId) -> Result<()> {
        let removal = self.well.store().maintain().purge(&[Target::from(id.clone())])?;
        match removal.left.into_iter().next() {
            None | Some((_, StoreError::NoSession(_))) => Ok(()),
            Some((_, error)) => Err(error),
        }
    }
}
