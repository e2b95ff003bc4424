//! Moving sessions to the trash, restoring and purging them, with their families.

use std::collections::BTreeSet;

use crate::error::{Error, Result};
use crate::log::Head;
use crate::model::{Edited, SessionId};
use crate::sessions::{Acting, EmptyTrash, Stepwell};
use crate::store::query::{Filter, LedgerRows, Query, TrashScope};
use crate::store::{Order, Removal, SessionInfo, Target};

/// Can an interrupted rewind of a session still be finished? If the files are gone, it cannot, so
/// nothing is lost with the session.
pub type CanFinish<'a> = &'a dyn Fn(&Head) -> bool;

impl Stepwell {
    /// The sessions that are removed with these: each with its subagents' sessions.
    ///
    /// # Errors
    /// [`Error::HalfRewound`] if one of them is needed to finish a rewind of files. The whole
    /// family is then refused.
    pub fn removable(
        &self,
        ids: &[SessionId],
        can_finish: CanFinish<'_>,
    ) -> Result<Vec<SessionInfo>> {
        let mut all = Vec::new();
        for id in ids {
            for info in self.with_subagents(id)? {
                // A rewind cannot be finished from a damaged log.
                if info.damage.is_none() && can_finish(&info.head) {
                    info.refuse_half_rewound()?;
                }
                all.push(info);
            }
        }
        Ok(all)
    }

    /// Purges sessions that have been in the trash for the given time. A session that has ended
    /// leaves its [row](crate::report::LedgerRow).
    pub fn empty_trash(&self, which: impl Into<EmptyTrash>) -> Result<Removal> {
        let EmptyTrash { older_than, keep, commits } = which.into();
        let (place, rows) = (TrashScope::Trash, LedgerRows::Included);
        let filter = Filter { place, rows, ..Filter::default() };
        let query = Query { filter, order: Order::Oldest, ..Query::default() };
        let limit = self.now().minus(older_than);
        let sessions = self.store().list(&query)?.sessions.into_iter();
        let due = sessions.filter(|s| s.trashed_at.is_some_and(|when| when <= limit));
        let due = due.map(|s| s.head.id).filter(|id| !keep.contains(id));
        let due: BTreeSet<SessionId> = due.collect();
        self.leave_rows(&due, &commits)?;
        let target = |id: SessionId| Target { place: TrashScope::Trash, ..Target::from(id) };
        let targets: Vec<Target> = due.into_iter().map(target).collect();
        let mut removal = self.store().maintain().purge(&targets)?;
        // A subagent's session was purged with its parent, before its own turn.
        removal.left.retain(|(_, error)| !matches!(error, Error::NoSession(_)));
        for id in &removal.taken {
            tracing::info!(session = %id, "session_purged");
        }
        Ok(removal)
    }

    /// Moves a session to the trash, with its subagents' sessions.
    pub fn delete(&self, id: &SessionId) -> Result<Vec<SessionId>> {
        all_or_error(self.delete_all(std::slice::from_ref(id), &|_| true)?)
    }

    /// Moves sessions to the trash, with their subagents' sessions; none, if one of them must not
    /// be removed. Running sessions are left. If a front end acts for a person, the logs record
    /// them.
    pub fn delete_all(&self, ids: &[SessionId], can_finish: CanFinish<'_>) -> Result<Removal> {
        let going = self.removable(ids, can_finish)?;
        let named = |info: &&SessionInfo| ids.contains(&info.head.id) && self.is_noted(info);
        let noted: Vec<&SessionId> = going.iter().filter(named).map(|info| &info.head.id).collect();
        // A session in the trash accepts no events, so this comes first.
        for id in &noted {
            self.note(id, to_trash())?;
        }
        let targets: Vec<Target> = ids.iter().cloned().map(Target::from).collect();
        let removal = self.store().maintain().trash(&targets)?;
        for id in noted.into_iter().filter(|id| !removal.taken.contains(id)) {
            self.note(id, out_of_trash())?;
        }
        for id in &removal.taken {
            tracing::info!(session = %id, "session_deleted");
        }
        Ok(removal)
    }

    /// Does the log record who moves the session to the trash? A damaged session accepts no events,
    /// and a running one is left.
    fn is_noted(&self, info: &SessionInfo) -> bool {
        let is_going = info.held.is_none() && info.trashed_at.is_none();
        self.acting_who().is_some() && info.damage.is_none() && is_going
    }

    /// Records an action on a session, and for whom it was done.
    fn note(&self, id: &SessionId, done: Edited) -> Result<()> {
        // The request's event id is not used here: repeated, the request may act again.
        let acting = self.acting(Acting { who: self.acting_who().cloned(), event: None });
        acting.edit(id, done)?;
        Ok(())
    }

    /// Restores a session from the trash.
    pub fn restore(&self, id: &SessionId) -> Result<Vec<SessionId>> {
        all_or_error(self.restore_all(std::slice::from_ref(id))?)
    }

    /// Restores sessions from the trash, with the subagents' sessions that were moved there
    /// together with them.
    pub fn restore_all(&self, ids: &[SessionId]) -> Result<Removal> {
        let removal = self.store().maintain().restore(ids)?;
        let is_named = |id: &&SessionId| self.acting_who().is_some() && ids.contains(id);
        for id in removal.taken.iter().filter(is_named) {
            // The session is restored, even if its log accepts no event.
            if let Err(error) = self.note(id, out_of_trash()) {
                tracing::warn!(session = %id, %error, "restore_not_noted");
            }
        }
        for id in &removal.taken {
            tracing::info!(session = %id, "session_restored");
        }
        Ok(removal)
    }

    /// Purges a session, with its subagents' sessions.
    pub fn purge(&self, id: &SessionId) -> Result<Vec<SessionId>> {
        self.purge_unless(id, &|_| true)
    }

    /// Purges a session, unless an interrupted rewind in its family can still be finished.
    pub fn purge_unless(
        &self,
        id: &SessionId,
        can_finish: CanFinish<'_>,
    ) -> Result<Vec<SessionId>> {
        self.removable(std::slice::from_ref(id), can_finish)?;
        let erased = all_or_error(self.store().maintain().purge(&[Target::from(id.clone())])?)?;
        for gone in &erased {
            self.forget_seen(gone);
            self.erase_row_of(gone)?;
        }
        tracing::info!(session = %id, "session_purged");
        Ok(erased)
    }
}

fn to_trash() -> Edited {
    Edited { trashed: Some(true), ..Edited::default() }
}

fn out_of_trash() -> Edited {
    Edited { trashed: Some(false), ..Edited::default() }
}

fn all_or_error(removal: Removal) -> Result<Vec<SessionId>, Error> {
    match removal.left.into_iter().next() {
        Some((_, error)) => Err(error),
        None => Ok(removal.taken),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{Rewinding, Scope, Seq};

    /// A session with a subagent whose rewind was interrupted.
    fn cut_off(well: &Stepwell) -> (SessionId, SessionId) {
        let parent = well.create(well.draft("parent")).unwrap();
        let child = parent.spawn(well.draft("child")).unwrap();
        let begun =
            Rewinding::Begun { to: Seq::FIRST, scope: Scope::Files, undoes: None, files: 0 };
        child.append(begun).unwrap();
        (parent.id().clone(), child.id().clone())
    }

    #[test]
    fn a_family_with_half_moved_files_is_refused_as_a_whole() {
        let well = Stepwell::in_memory();
        let (parent, child) = cut_off(&well);
        for refused in [well.delete(&parent), well.purge(&parent)] {
            let Err(Error::HalfRewound { session, .. }) = refused else { panic!("{refused:?}") };
            assert_eq!(session, child);
        }
        assert!(well.info(&parent).unwrap().trashed_at.is_none());
        assert!(matches!(well.hold_whole(&child), Err(Error::HalfRewound { .. })));
    }

    #[test]
    fn a_session_whose_files_are_gone_can_be_deleted() {
        let well = Stepwell::in_memory();
        let (parent, child) = cut_off(&well);
        let gone = well.delete_all(std::slice::from_ref(&parent), &|_| false).unwrap().taken;
        assert!(gone.contains(&parent) && gone.contains(&child));
        let back = well.restore(&parent).unwrap();
        assert_eq!(back.len(), 2);
    }

    /// What a log records about the trash, and by whom.
    fn noted(well: &Stepwell, id: &SessionId) -> Vec<(bool, Option<String>)> {
        let events = well.store().events(id, crate::store::Span::ALL).unwrap().events;
        let noted = events.into_iter().filter_map(|it| match it.event {
            crate::model::Event::Edited(Edited { trashed: Some(trashed), who, .. }) => {
                Some((trashed, who.map(|who| who.name)))
            }
            _ => None,
        });
        noted.collect()
    }

    #[test]
    fn a_log_records_who_deleted_and_restored_its_session() {
        let well = Stepwell::in_memory();
        let new = || {
            let session = well.create(well.draft("parent")).unwrap();
            let child = session.spawn(well.draft("child")).unwrap();
            (session.id().clone(), child.id().clone())
        };
        let (id, child) = new();
        let ann = Some(crate::model::Who::from("web: ann".to_owned()));
        let acting = well.acting(Acting { who: ann, event: None });
        assert_eq!(acting.delete(&id).unwrap().len(), 2);
        assert_eq!(acting.restore(&id).unwrap().len(), 2);
        let name = || Some("web: ann".to_owned());
        assert_eq!(noted(&well, &id), [(true, name()), (false, name())]);
        assert!(noted(&well, &child).is_empty());
        // The user's own commands record nothing.
        let (other, _) = new();
        well.delete(&other).unwrap();
        well.restore(&other).unwrap();
        assert!(noted(&well, &other).is_empty());
    }

    #[test]
    fn a_session_that_could_not_be_deleted_is_not_recorded_as_deleted() {
        let well = Stepwell::in_memory();
        let parent = well.create(well.draft("parent")).unwrap();
        let id = parent.id().clone();
        let child = parent.spawn(well.draft("child")).unwrap();
        drop(parent);
        let acting = well.acting(Acting { who: Some("web: ann".to_owned().into()), event: None });
        assert!(acting.delete(&id).is_err(), "its subagent runs");
        let last = noted(&well, &id).last().map(|(trashed, _)| *trashed);
        assert_ne!(last, Some(true));
        drop(child);
        assert!(acting.delete(&id).is_ok());
    }
}
