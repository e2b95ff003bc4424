//! Families: the sessions that grew out of a session, and out of those.

use crate::{
    Family, Filter, Order, Origin, Place, Query, Result, SessionId, Sort, Standing, Stepwell,
};

/// Which sessions of a family are meant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kin {
    /// Those of subagents, which go where their parent goes.
    Subagents,
    /// Forks as well, which stand on their own.
    All,
}

/// A session of a family.
#[derive(Clone, Debug)]
pub struct Relative {
    /// The session.
    pub standing: Standing,
    /// The session that it grew out of.
    pub parent: SessionId,
    /// How many sessions lie between it and the one that was asked about.
    pub depth: usize,
}

impl Stepwell {
    /// The sessions that grew out of a session: parents before their children, the oldest child
    /// first.
    pub fn family(&self, id: &SessionId, kin: Kin, place: Place) -> Result<Vec<Relative>> {
        let mut found = Vec::new();
        let mut waiting = self.relatives(id, 0, kin, place)?;
        while let Some(relative) = waiting.pop() {
            let child = relative.standing.head.id.clone();
            let depth = relative.depth + 1;
            found.push(relative);
            waiting.extend(self.relatives(&child, depth, kin, place)?);
        }
        Ok(found)
    }

    /// The sessions that grew out of a session directly, the oldest first.
    pub fn children(&self, id: &SessionId, kin: Kin, place: Place) -> Result<Vec<Standing>> {
        let children = self.relatives(id, 0, kin, place)?;
        Ok(children.into_iter().rev().map(|relative| relative.standing).collect())
    }

    /// The children of a session at a depth, the newest first.
    fn relatives(
        &self,
        parent: &SessionId,
        depth: usize,
        kin: Kin,
        place: Place,
    ) -> Result<Vec<Relative>> {
        let filter =
            Filter { family: Family::ChildrenOf(parent.clone()), place, ..Filter::default() };
        let (sort, order) = (Sort::Created, Order::Newest);
        let mut children = Vec::new();
        for child in self.sessions(Query { filter, sort, order, ..Query::default() }) {
            let standing = child?;
            if kin == Kin::All || matches!(standing.head.origin, Origin::Subagent { .. }) {
                children.push(Relative { standing, parent: parent.clone(), depth });
            }
        }
        Ok(children)
    }

    /// The sessions of a session's subagents, and of theirs, wherever they are kept. What a
    /// session cost with all that it started is the sum of what each of them spent itself, so
    /// that nothing is counted twice or forgotten, whenever a process died.
    pub fn subagents(&self, id: &SessionId) -> Result<Vec<Standing>> {
        let family = self.family(id, Kin::Subagents, Place::Anywhere)?;
        Ok(family.into_iter().map(|relative| relative.standing).collect())
    }

    /// A session and the sessions of its subagents, which go where it goes.
    pub fn with_subagents(&self, id: &SessionId) -> Result<Vec<Standing>> {
        let mut all = vec![self.standing(id)?];
        all.extend(self.subagents(id)?);
        Ok(all)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Session;

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
            let family = well.family(root.id(), kin, Place::Kept).unwrap();
            family.into_iter().map(|it| (it.standing.head.id, it.depth)).collect()
        };
        let at = |session: &Session, depth| (session.id().clone(), depth);
        let subagents = vec![at(&first, 0), at(&below, 1), at(&second, 0)];
        assert_eq!(named(Kin::Subagents), subagents);
        assert!(named(Kin::All).contains(&at(&fork, 0)));
        assert_eq!(well.with_subagents(root.id()).unwrap().len(), 4);
    }
}
