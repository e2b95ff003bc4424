//! Families: the sessions that grew out of a session, directly or indirectly.

use std::collections::BTreeMap;

use crate::error::Result;
use crate::model::{Origin, SessionId, Spent};
use crate::sessions::well::Stepwell;
use crate::store::query::{Family, Filter, Query, Sort, TrashScope};
use crate::store::{Order, SessionInfo};

/// Which descendants of a session are meant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kin {
    /// Those of subagents, which are deleted and restored with their parent.
    Subagents,
    /// Forks as well, which are independent.
    All,
}

/// A session of a family.
#[derive(Clone, Debug)]
pub struct Relative {
    /// The session.
    pub info: SessionInfo,
    /// Its parent.
    pub parent: SessionId,
    /// How many generations lie between it and the requested session.
    pub depth: usize,
}

impl Stepwell {
    /// A session's descendants: parents before their children, the oldest child first.
    pub fn family(&self, id: &SessionId, kin: Kin, place: TrashScope) -> Result<Vec<Relative>> {
        let mut found = Vec::new();
        let mut waiting = self.relatives(id, 0, kin, place)?;
        while let Some(relative) = waiting.pop() {
            let child = relative.info.head.id.clone();
            let depth = relative.depth + 1;
            found.push(relative);
            waiting.extend(self.relatives(&child, depth, kin, place)?);
        }
        Ok(found)
    }

    /// A session's children, the oldest first.
    pub fn children(
        &self,
        id: &SessionId,
        kin: Kin,
        place: TrashScope,
    ) -> Result<Vec<SessionInfo>> {
        let children = self.relatives(id, 0, kin, place)?;
        Ok(children.into_iter().rev().map(|relative| relative.info).collect())
    }

    /// The children of a session at a depth, the newest first.
    fn relatives(
        &self,
        parent: &SessionId,
        depth: usize,
        kin: Kin,
        place: TrashScope,
    ) -> Result<Vec<Relative>> {
        let filter =
            Filter { family: Family::ChildrenOf(parent.clone()), place, ..Filter::default() };
        let (sort, order) = (Sort::Created, Order::Newest);
        let mut children = Vec::new();
        for child in self.sessions(Query { filter, sort, order, ..Query::default() }) {
            let info = child?;
            if kin == Kin::All || matches!(info.head.origin, Origin::Subagent { .. }) {
                children.push(Relative { info, parent: parent.clone(), depth });
            }
        }
        Ok(children)
    }

    /// The sessions of a session's subagents, and of their subagents, in and out of the trash:
    /// parents before their children, the oldest child first.
    pub fn subagents(&self, id: &SessionId) -> Result<Vec<SessionInfo>> {
        Ok(self.subagents_of(std::slice::from_ref(id))?.all(id).into_iter().cloned().collect())
    }

    /// The session at the top of a family. A subagent is resumed through the session that started
    /// it.
    pub fn top_of(&self, id: &SessionId) -> Result<SessionId> {
        let mut id = id.clone();
        while let Origin::Subagent { parent } = self.info(&id)?.head.origin {
            id = parent;
        }
        Ok(id)
    }

    /// The subagents of several sessions, in one query.
    pub fn subagents_of(&self, ids: &[SessionId]) -> Result<Subagents> {
        let mut children: BTreeMap<SessionId, Vec<SessionInfo>> = BTreeMap::new();
        let below = if ids.is_empty() { Vec::new() } else { self.store().below(ids)? };
        for info in below {
            if let Origin::Subagent { parent } = &info.head.origin {
                children.entry(parent.clone()).or_default().push(info);
            }
        }
        Ok(Subagents { children })
    }

    /// A session and the sessions of its subagents.
    pub fn with_subagents(&self, id: &SessionId) -> Result<Vec<SessionInfo>> {
        let mut all = vec![self.info(id)?];
        all.extend(self.subagents(id)?);
        Ok(all)
    }
}

/// The sessions of subagents, by the session that started them.
#[derive(Clone, Debug, Default)]
pub struct Subagents {
    children: BTreeMap<SessionId, Vec<SessionInfo>>,
}

impl Subagents {
    /// The subagents that a session started itself, the oldest first.
    #[must_use]
    pub fn children(&self, id: &SessionId) -> &[SessionInfo] {
        self.children.get(id).map_or(&[], Vec::as_slice)
    }

    /// All subagents below a session: parents before their children, the oldest child first.
    #[must_use]
    pub fn all(&self, id: &SessionId) -> Vec<&SessionInfo> {
        let mut found = Vec::new();
        let mut waiting: Vec<&SessionInfo> = self.children(id).iter().rev().collect();
        while let Some(info) = waiting.pop() {
            found.push(info);
            waiting.extend(self.children(&info.head.id).iter().rev());
        }
        found
    }

    /// What all subagents below a session spent. A session's full cost is the sum of what each
    /// session spent itself, so a crash can neither lose nor repeat a part.
    #[must_use]
    pub fn spent(&self, id: &SessionId) -> Spent {
        let mut spent = Spent::default();
        self.all(id).iter().for_each(|info| spent += info.head.spent);
        spent
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sessions::session::Session;

    #[test]
    fn a_family_names_parents_before_children_and_the_oldest_first() {
        let well = Stepwell::in_memory();
        let spawn = |parent: &Session, task: &str| parent.spawn(well.draft(task)).unwrap();
        let root = well.create(well.draft("root")).unwrap();
        let first = spawn(&root, "first");
        let below = spawn(&first, "below");
        let second = spawn(&root, "second");
        let fork = well.fork(root.id(), None).unwrap();
        let named = |kin| -> Vec<(SessionId, usize)> {
            let family = well.family(root.id(), kin, TrashScope::Kept).unwrap();
            family.into_iter().map(|it| (it.info.head.id, it.depth)).collect()
        };
        let at = |session: &Session, depth| (session.id().clone(), depth);
        let subagents = vec![at(&first, 0), at(&below, 1), at(&second, 0)];
        assert_eq!(named(Kin::Subagents), subagents.clone());
        assert!(named(Kin::All).contains(&at(&fork, 0)));
        assert_eq!(well.with_subagents(root.id()).unwrap().len(), 4);
        let order: Vec<SessionId> =
            well.subagents(root.id()).unwrap().into_iter().map(|it| it.head.id).collect();
        assert_eq!(order, subagents.into_iter().map(|(id, _)| id).collect::<Vec<_>>());
    }
}
