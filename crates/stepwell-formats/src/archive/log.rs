//! One session's log on its way from an archive into a store.

use stepwell::model::Origin;
use stepwell::store::{Create, Write};
use stepwell::{Created, Error as StoreError, Event, Recorded, Seq, SessionId, Stepwell};

use super::Opening;
use super::scaffold::Scaffold;
use super::track::{Chunk, Stored, refused, same};
use crate::{Error, Result};

/// A session's log. Each event is compared with what the store has of it, or written.
#[derive(Debug)]
pub(super) struct Log {
    well: Stepwell,
    opening: Opening,
    /// The seq that comes next.
    next: Seq,
    track: Track,
    scaffold: Scaffold,
    /// The sessions that it grew out of.
    ancestors: Vec<SessionId>,
    /// Did this import make the session?
    made: bool,
}

/// What the archive's events are laid against.
#[derive(Debug)]
enum Track {
    /// Nothing: the first event makes a session.
    Nothing,
    /// A session that the store has.
    Stored(Stored),
    /// A session that is being written.
    Written(Chunk),
}

/// What became of a log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Outcome {
    /// The session is new.
    Made,
    /// The store had its front; the rest was added.
    Completed,
    /// The store had all of it.
    AlreadyThere,
}

impl Log {
    /// A session begins. Nothing is written yet.
    pub(super) fn open(well: &Stepwell, opening: Opening) -> Result<Self> {
        let scaffold = Scaffold::new(well);
        let track = match &opening.origin {
            _ if scaffold.finds(&opening.id)? => Track::stored(&opening.id),
            Origin::Subagent { parent } if !scaffold.finds(parent)? => {
                let (session, parent) = (opening.id, parent.clone());
                return Err(Error::NoParent { session, parent });
            }
            Origin::Fork { parent, .. } if scaffold.finds(parent)? => Track::stored(parent),
            _ => Track::Nothing,
        };
        let (well, next) = (well.clone(), Seq::FIRST);
        Ok(Self { well, opening, next, track, scaffold, ancestors: Vec::new(), made: false })
    }

    pub(super) fn id(&self) -> &SessionId {
        &self.opening.id
    }

    /// Takes the next event, which takes so many bytes in the archive.
    pub(super) fn append(&mut self, event: Recorded, bytes: usize) -> Result<()> {
        check(&self.opening, self.next, &event).map_err(|why| self.unfit(self.next, why))?;
        self.next = event.seq.next();
        if let Event::Created(created) = &event.event {
            let own = Some(&created.id).filter(|id| **id != self.opening.id);
            let from = created.origin.parent().filter(|_| self.opening.own_from() > Seq::FIRST);
            self.ancestors.extend(own.into_iter().chain(from).cloned());
        }
        match event.event {
            Event::Created(ref created) if self.branches(event.seq) => {
                self.begin((**created).clone(), event)
            }
            _ => self.lay(event, bytes),
        }
    }

    /// The log ends here, after so many events, if the archive says how many.
    pub(super) fn close(&mut self, events: Option<u64>) -> Result<(Outcome, Seq)> {
        let last = self.next.prev();
        if events.is_some_and(|events| events != last.get()) {
            return Err(self.unfit(last, "it ends at another event than it says".to_owned()));
        }
        if last < self.opening.own_from() {
            return Err(self.unfit(last, "it ends before its own first event".to_owned()));
        }
        let outcome = match &mut self.track {
            // It may have gone on since it was exported: nothing of the archive is missing.
            Track::Stored(_) => Outcome::AlreadyThere,
            Track::Written(chunk) => {
                chunk.flush()?;
                if self.made { Outcome::Made } else { Outcome::Completed }
            }
            Track::Nothing => return Err(self.unfit(last, "it has no events".to_owned())),
        };
        // A crash may have come between the fork and the end of its stand-ins.
        for ancestor in &self.ancestors {
            self.scaffold.finds(ancestor)?;
        }
        Ok((outcome, last))
    }

    /// Takes back what was made of it. What cannot be taken back stays, marked or as a
    /// front that a repeated import completes.
    pub(super) fn undo(self) {
        let Self { well, opening, track, mut scaffold, made, .. } = self;
        // A session that is held is not purged.
        drop(track);
        if made {
            well.purge(&opening.id).ok();
        }
        scaffold.take_down(None).ok();
    }

    /// Does a session begin at this `created` event, or is it only compared?
    fn branches(&self, seq: Seq) -> bool {
        match &self.track {
            Track::Stored(stored) if stored.session == self.opening.id => false,
            Track::Stored(stored) if Some(&stored.session) == self.opening.origin.parent() => {
                seq == self.opening.own_from()
            }
            _ => true,
        }
    }

    /// A session begins: the archive's own, or one that it grew out of.
    fn begin(&mut self, created: Created, event: Recorded) -> Result<()> {
        let id = created.id.clone();
        let own = event.seq == self.opening.own_from();
        let base = match &mut self.track {
            Track::Nothing => None,
            Track::Stored(stored) => Some(stored.session.clone()),
            Track::Written(chunk) => {
                chunk.flush()?;
                Some(chunk.session.id().clone())
            }
        };
        let forks = base.is_some();
        if !own && self.scaffold.finds(&id)? {
            if let Some(base) = &base {
                self.compare(&id, base, event.seq.prev())?;
            }
            self.track = Track::Stored(Stored::after(&id, event.seq.prev()));
            self.lay(event, 0)?;
        } else {
            self.provide_parent(&created, base)?;
            let claim = Some(self.well.claim());
            let create = Create { created, event_id: event.id, at: Some(event.at), claim };
            let lease = if own {
                self.well.store().write(Write::Create(create)).map(|written| written.lease)
            } else {
                self.scaffold.put(create)
            };
            let refused = |source| refused(&self.opening.id, event.seq, source);
            let lease = lease.map_err(refused)?.ok_or(StoreError::Exists(id.clone()))?;
            self.made |= own;
            self.track = Track::Written(Chunk::new(&self.well, lease, event.seq));
        }
        // What it grew out of has handed its events over, or can.
        if forks {
            self.scaffold.take_down(Some(&id).filter(|_| !own))?;
        }
        Ok(())
    }

    /// Sees to it that a session's parent is in the store, with the events that the
    /// session shares with it: those that `base` has.
    fn provide_parent(&mut self, created: &Created, base: Option<SessionId>) -> Result<()> {
        match (&created.origin, base) {
            (Origin::Subagent { parent }, _) if !self.scaffold.finds(parent)? => {
                self.scaffold.put_named(parent, Origin::Root)?;
            }
            (Origin::Fork { parent, at }, Some(base)) if *parent != base => {
                if self.scaffold.finds(parent)? {
                    self.compare(parent, &base, *at)?;
                } else {
                    let origin = Origin::Fork { parent: base, at: *at };
                    self.scaffold.put_named(parent, origin)?;
                }
            }
            _ => {}
        }
        Ok(())
    }

    /// Compares a session of the store with another up to a seq.
    fn compare(&self, session: &SessionId, with: &SessionId, to: Seq) -> Result<()> {
        let (mut one, mut other) = (Stored::new(session), Stored::new(with));
        while other.last < to {
            let seq = other.last.next();
            match (one.next(&self.well)?, other.next(&self.well)?) {
                (Some(one), Some(other)) if same(&one, &other) => {}
                (None, Some(_)) => return Err(Error::NotWhole { session: session.clone(), seq }),
                _ => return Err(Error::Differs { session: session.clone(), seq }),
            }
        }
        Ok(())
    }

    /// Compares an event with what the store has, or writes it.
    fn lay(&mut self, event: Recorded, bytes: usize) -> Result<()> {
        let stored = match &mut self.track {
            Track::Nothing => unreachable!("a log's first event is `created`, which begins it"),
            Track::Written(chunk) => return chunk.push(event, bytes),
            Track::Stored(stored) => stored,
        };
        match stored.next(&self.well)? {
            Some(found) if same(&found, &event) => Ok(()),
            // An import that was cut off left the front of it.
            None if stored.session == self.opening.id => {
                let lease = self.well.store().acquire(&stored.session, &self.well.claim())?;
                let mut chunk = Chunk::new(&self.well, lease, event.seq.prev());
                chunk.push(event, bytes)?;
                self.track = Track::Written(chunk);
                Ok(())
            }
            None => Err(Error::NotWhole { session: stored.session.clone(), seq: event.seq }),
            Some(_) => Err(Error::Differs { session: stored.session.clone(), seq: event.seq }),
        }
    }

    fn unfit(&self, seq: Seq, why: String) -> Error {
        Error::Unfit { session: self.opening.id.clone(), seq, why }
    }
}

/// Can this event stand here? What it says is the store's to judge.
fn check(opening: &Opening, next: Seq, event: &Recorded) -> Result<(), String> {
    if event.seq != next {
        return Err(format!("event {} stands there", event.seq));
    }
    let own_from = opening.own_from();
    match &event.event {
        Event::Created(created) if next == own_from => {
            if created.id != opening.id {
                return Err(format!("it begins session {}", created.id));
            }
            if created.origin != opening.origin {
                return Err("its origin is not the one that the session's opening tells".to_owned());
            }
            Ok(())
        }
        Event::Created(created) if next < own_from => match &created.origin {
            Origin::Fork { at, .. } if at.next() == next && *at != Seq::ZERO => Ok(()),
            Origin::Root | Origin::Subagent { .. } if next == Seq::FIRST => Ok(()),
            _ => Err("a session begins there that does not fork at that point".to_owned()),
        },
        Event::Created(_) => Err("a session begins there again".to_owned()),
        other if next == own_from || next == Seq::FIRST => {
            Err(format!("a session begins with `created`, not with `{}`", other.kind()))
        }
        _ => Ok(()),
    }
}

impl Track {
    fn stored(session: &SessionId) -> Self {
        Self::Stored(Stored::new(session))
    }
}
