//! Moving sessions to the trash, bringing them back, and erasing them, with their families.

use crate::{Error, Head, Removal, Result, SessionId, SessionInfo, Stepwell, Target};

/// What a removal has to know of a session's files: can a rewind that was cut off still be
/// finished? Where the files are gone, nobody can, and nothing is lost with the session.
pub type CanFinish<'a> = &'a dyn Fn(&Head) -> bool;

impl Stepwell {
    /// The sessions that go if these go: each with its subagents' sessions.
    ///
    /// # Errors
    /// [`Error::HalfRewound`], if one of them alone knows how its files get whole again. A family
    /// is refused as a whole.
    pub fn removable(
        &self,
        ids: &[SessionId],
        can_finish: CanFinish<'_>,
    ) -> Result<Vec<SessionInfo>> {
        let mut all = Vec::new();
        for id in ids {
            for info in self.with_subagents(id)? {
                // Of a damaged log nobody can finish anything.
                if info.damage.is_none() && can_finish(&info.head) {
                    info.refuse_half_rewound()?;
                }
                all.push(info);
            }
        }
        Ok(all)
    }

    /// Moves a session to the trash, with its subagents' sessions.
    pub fn delete(&self, id: &SessionId) -> Result<Vec<SessionId>> {
        all_or_error(self.delete_all(std::slice::from_ref(id), &|_| true)?)
    }

    /// Moves sessions to the trash, with their subagents' sessions; none, if one of them must not
    /// go. Those that run are left.
    pub fn delete_all(&self, ids: &[SessionId], can_finish: CanFinish<'_>) -> Result<Removal> {
        self.removable(ids, can_finish)?;
        let targets: Vec<Target> = ids.iter().cloned().map(Target::from).collect();
        let removal = self.store().trash(&targets)?;
        for id in &removal.taken {
            tracing::info!(session = %id, "session_deleted");
        }
        Ok(removal)
    }

    /// Brings a session back from the trash.
    pub fn restore(&self, id: &SessionId) -> Result<Vec<SessionId>> {
        all_or_error(self.restore_all(std::slice::from_ref(id))?)
    }

    /// Brings sessions back from the trash, with the subagents' sessions that went with them.
    pub fn restore_all(&self, ids: &[SessionId]) -> Result<Removal> {
        let removal = self.store().restore(ids)?;
        for id in &removal.taken {
            tracing::info!(session = %id, "session_restored");
        }
        Ok(removal)
    }

    /// Erases a session for good, with its subagents' sessions.
    pub fn purge(&self, id: &SessionId) -> Result<Vec<SessionId>> {
        self.purge_unless(id, &|_| true)
    }

    /// Erases a session for good, unless a rewind of it or below it can still be finished.
    pub fn purge_unless(
        &self,
        id: &SessionId,
        can_finish: CanFinish<'_>,
    ) -> Result<Vec<SessionId>> {
        self.removable(std::slice::from_ref(id), can_finish)?;
        let erased = all_or_error(self.store().purge(&[Target::from(id.clone())])?)?;
        tracing::info!(session = %id, "session_purged");
        Ok(erased)
    }
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
    use crate::{Rewinding, Scope, Seq};

    /// A session with a subagent whose rewind was cut off.
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
    fn where_the_files_are_gone_a_session_goes_too() {
        let well = Stepwell::in_memory();
        let (parent, child) = cut_off(&well);
        let gone = well.delete_all(std::slice::from_ref(&parent), &|_| false).unwrap().taken;
        assert!(gone.contains(&parent) && gone.contains(&child));
        let back = well.restore(&parent).unwrap();
        assert_eq!(back.len(), 2);
    }
}
