//! Sessions in lists: with what their subagents spent, as a tree, and from several stores at once.

use std::cmp::Reverse;
use std::ops::Range;
use std::path::{Path, PathBuf};

use stepwell::log::Head;
use stepwell::model::{Estimate, Spent, Time};
use stepwell::sessions::Subagents;
use stepwell::store::query::{Query, Sort};
use stepwell::{SessionId, SessionInfo, Stepwell};
use stepwell_wire::{Session, SessionItem};

use crate::error::Result;

/// Which sessions are listed.
pub struct ListWanted<'a> {
    /// Those that a store is asked for.
    pub query: Query,
    /// Those of them that are wanted.
    pub takes: &'a dyn Fn(&SessionInfo) -> bool,
    /// How many at the most.
    pub limit: usize,
    /// Do subagents' sessions stand below their parents?
    pub tree: bool,
}

/// A session in a list.
#[derive(Clone, Debug)]
pub struct ListedSession {
    /// How it stands.
    pub info: SessionInfo,
    /// What it spent with its subagents.
    pub spent: Spent,
    /// Has it subagents?
    pub has_subagents: bool,
    /// The heads of its subagents that made calls of unknown price, each with its own model.
    pub unpriced_below: Vec<Head>,
    /// How deep it stands in a tree.
    pub depth: usize,
    /// Its store, where several are listed.
    pub store: Option<PathBuf>,
    /// Now, by the store's clock.
    pub now: Time,
    /// The part of its id that suffices to name it, if that was asked for.
    pub part: Option<Range<usize>>,
}

/// Sessions that are listed, and whether there are more.
#[derive(Debug, Default)]
pub struct SessionList {
    /// The sessions. In a tree, each stands behind its parent.
    pub sessions: Vec<ListedSession>,
    /// Are there more?
    pub more: bool,
}

/// What is known of all sessions that are listed from one store.
struct Of<'a> {
    store: Option<&'a Path>,
    now: Time,
    below: Subagents,
}

impl ListedSession {
    fn new(info: SessionInfo, of: &Of<'_>, depth: usize) -> Self {
        let id = &info.head.id;
        let mut spent = info.head.spent;
        spent += of.below.spent(id);
        let has_subagents = !of.below.children(id).is_empty();
        let below = of.below.all(id).into_iter().map(|it| &it.head);
        let unpriced_below = below.filter(|head| head.spent.unpriced > 0).cloned().collect();
        let (store, now) = (of.store.map(Path::to_owned), of.now);
        Self { info, spent, has_subagents, unpriced_below, depth, store, now, part: None }
    }

    /// What programs get to read of it, with what it may have cost where nobody said it.
    #[must_use]
    pub fn item(&self, estimate: Option<Estimate>) -> SessionItem {
        SessionItem {
            session: Session::from(&self.info).listed(),
            with_subagents: self.has_subagents.then(|| (&self.spent).into()),
            flow: self.info.head.flow.as_ref().map(Into::into),
            estimate: estimate.map(|it| it.cost.into()),
            store: self.store.as_deref().map(|store| store.display().to_string()),
        }
    }
}

impl SessionList {
    /// Adds the sessions of a store, which is named where several are listed.
    ///
    /// # Errors
    /// If the store cannot be read.
    pub fn collect(
        &mut self,
        well: &Stepwell,
        store: Option<&Path>,
        wanted: &ListWanted<'_>,
    ) -> Result<()> {
        // One more than asked for tells whether there is more.
        let limit = wanted.limit.saturating_add(1);
        let mut roots = Vec::new();
        for info in well.sessions(Query { limit, ..wanted.query.clone() }) {
            let info = info?;
            if !(wanted.takes)(&info) {
                continue;
            }
            if roots.len() == wanted.limit {
                self.more = true;
                break;
            }
            roots.push(info);
        }
        let ids: Vec<SessionId> = roots.iter().map(|info| info.head.id.clone()).collect();
        let of = Of { store, now: well.now(), below: well.subagents_of(&ids)? };
        for root in roots {
            let root = ListedSession::new(root, &of, 0);
            if wanted.tree { self.descend(root, &of) } else { self.sessions.push(root) }
        }
        Ok(())
    }

    /// Adds a session and the kept sessions of its subagents, oldest first.
    fn descend(&mut self, root: ListedSession, of: &Of<'_>) {
        let mut waiting = vec![root];
        while let Some(session) = waiting.pop() {
            let depth = session.depth + 1;
            let children = of.below.children(&session.info.head.id).iter().rev();
            let kept = children.filter(|child| child.trashed_at.is_none()).cloned();
            waiting.extend(kept.map(|child| ListedSession::new(child, of, depth)));
            self.sessions.push(session);
        }
    }

    /// Says which parts of ids suffice, from one place in the list on: those of one store.
    ///
    /// # Errors
    /// If the store cannot be read.
    pub fn add_parts(&mut self, from: usize, well: &Stepwell) -> Result<()> {
        let sessions = &mut self.sessions[from..];
        let ids: Vec<_> = sessions.iter().map(|it| it.info.head.id.clone()).collect();
        for (session, part) in sessions.iter_mut().zip(well.sufficient_parts(&ids)?) {
            session.part = Some(part);
        }
        Ok(())
    }

    /// Brings what several stores hold into one order, and keeps so many of it. A parent keeps its
    /// subagents.
    pub fn merge(&mut self, sort: Sort, limit: usize) {
        let mut families: Vec<Vec<ListedSession>> = Vec::new();
        for session in self.sessions.drain(..) {
            match families.last_mut() {
                Some(family) if session.depth > 0 => family.push(session),
                _ => families.push(vec![session]),
            }
        }
        families.sort_by_key(|family| {
            let (head, spent) = (&family[0].info.head, &family[0].spent);
            Reverse(match sort {
                Sort::Updated => i128::from(head.updated_at.as_micros()),
                Sort::Created => i128::from(head.created_at.as_micros()),
                Sort::Cost => spent.cost.as_picos(),
                Sort::Steps => i128::from(head.steps),
            })
        });
        self.more |= families.len() > limit;
        families.truncate(limit);
        self.sessions = families.into_iter().flatten().collect();
    }
}
