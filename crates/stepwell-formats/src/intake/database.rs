//! Databases that look as they did are not read again. A database changes as a whole, and no row says
//! when it changed. So one of the sessions that came from it bears the stamp of all of it, once it was
//! read to its end.

use std::collections::BTreeMap;

use stepwell::SessionId;
use stepwell::model::Provenance;
use stepwell::store::query::{Family, Filter, Query, TrashScope};

use super::claim::told_by;
use super::name::wanted;
use super::track::Track;
use super::{Became, ImportedSession, Intake, Mode, Origins};
use crate::Result;
use crate::read::seen::Seen;

/// A database that is read.
pub(super) struct DatabaseReading<'a> {
    /// How it looked before that.
    seen: Seen,
    /// Its sessions by their names there, if it looks as it did when it was read to its end.
    known: BTreeMap<String, SessionId>,
    /// The session that was told last.
    last: Option<(Track<'a>, Origins)>,
}

impl<'a> Intake<'a> {
    /// Does a database look as it did, and is that session of it here?
    pub(super) fn is_in_known_database(&mut self, id: &str, seen: &Seen) -> Result<bool> {
        if self.database.is_none() {
            let known = self.known_sessions(seen)?;
            self.database = Some(DatabaseReading { seen: seen.clone(), known, last: None });
        }
        let known = self.database.as_ref().and_then(|it| it.known.get(id).cloned());
        let Some(session) = known.filter(|it| !self.taboo.contains(it)) else { return Ok(false) };
        self.names.insert(id.to_owned(), session.clone());
        let wanted = wanted(id);
        let instead_of = (session != wanted).then_some(wanted);
        let (became, continues) = (Became::Unchanged, None);
        self.note(ImportedSession { id: session, became, instead_of, continues }, false);
        Ok(true)
    }

    fn known_sessions(&self, seen: &Seen) -> Result<BTreeMap<String, SessionId>> {
        let system = Some(self.format.as_str().to_owned());
        let (family, place) = (Family::Any, TrashScope::Anywhere);
        let filter = Filter { system, family, place, ..Filter::default() };
        let (mut known, mut is_known) = (BTreeMap::new(), false);
        for info in self.well.sessions(Query { filter, ..Query::default() }) {
            let head = info?.head;
            if told_by(&head).as_deref() != Some(self.input.root()) {
                continue;
            }
            let stamp = head.facts.provenance.as_ref().and_then(|it| it.stamp.as_ref());
            is_known |= stamp.is_some_and(|stamp| seen.is(stamp));
            known.extend(head.source.map(|source| (source.id, head.id)));
        }
        if !is_known {
            known.clear();
        }
        Ok(known)
    }

    /// A session was told to its end. The last one of a database bears its stamp.
    pub(super) fn was_told(&mut self, track: Track<'a>, origins: Origins) {
        let Some(database) = &mut self.database else { return };
        let is_here = self
            .well
            .store()
            .info(track.id())
            .is_ok_and(|info| told_by(&info.head).as_deref() == Some(self.input.root()));
        if track.is_as_told() && is_here {
            database.last = Some((track, origins));
        }
    }

    /// The database was read to its end.
    pub(super) fn stamp_database(&mut self) -> Result<()> {
        let Some(DatabaseReading { seen, last, .. }) = self.database.take() else { return Ok(()) };
        let (Some((mut track, origins)), Mode::Write) = (last, self.mode) else { return Ok(()) };
        let Some(stamp) = seen.settled(self.well.now()) else { return Ok(()) };
        let stamp = Some(stamp.to_owned());
        track.note_origin(Provenance { stamp, ..self.provenance(&origins) })
    }
}
