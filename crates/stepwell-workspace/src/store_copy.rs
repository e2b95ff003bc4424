//! Copying sessions from one store to another.

use std::collections::BTreeSet;
use std::path::Path;

use stepwell::sqlite::Access;
use stepwell::store::query::{Filter, LedgerRows, Query, Sort, TrashScope};
use stepwell::store::{Damage, Order, Target};
use stepwell::{ErrorKind, SessionId, SessionInfo, Stepwell};
use stepwell_formats::Copied;
use stepwell_wire::CopyResult;

use crate::engine::open_team;
use crate::error::{Error, Result};
use crate::location::Location;
use crate::workspace::{Workspace, team_address};

/// Opens a store that is named by its folder or by a team's address.
///
/// # Errors
/// If there is none to read, or it cannot be opened.
pub fn open_named(workspace: &Workspace, named: &Path, access: Access) -> Result<Stepwell> {
    if let Some(address) = team_address(named, &workspace.host)? {
        return Ok(workspace.team_well(&address, open_team(&address, access, &workspace.host)?));
    }
    let folder = workspace.host.folder.clone().unwrap_or_default();
    let place = Location::named(&folder.join(named), &folder);
    if access == Access::Read && !place.has_store() {
        return Err(stepwell::Error::NoStore(place.store).into());
    }
    workspace.open(&place.store, access)
}

/// The sessions of a store that are to be copied, parents before children: those that are
/// named, or all, the trash included.
///
/// # Errors
/// If a name means none, or the store cannot be read.
pub fn sessions_to_copy(
    workspace: &Workspace,
    source: &Stepwell,
    named: &[String],
) -> Result<Vec<SessionInfo>> {
    if !named.is_empty() {
        let find = |name: &String| {
            let id = workspace.find_session_in(source, TrashScope::Anywhere, name)?;
            Ok(source.info(&id)?)
        };
        return named.iter().map(find).collect();
    }
    let (place, rows) = (TrashScope::Anywhere, LedgerRows::Included);
    let filter = Filter { place, rows, ..Filter::default() };
    let query = Query { filter, sort: Sort::Created, order: Order::Oldest, ..Query::default() };
    Ok(source.sessions(query).collect::<Result<_, _>>()?)
}

/// A copy from one store to another.
#[derive(Debug)]
pub struct StoreCopy<'a> {
    source: &'a Stepwell,
    target: &'a Stepwell,
    /// Those that came with another.
    seen: BTreeSet<SessionId>,
}

/// What a copy of one session did.
#[derive(Debug, Default)]
pub struct CopiedSession {
    /// The session and its subagents', as far as they were not told before.
    pub sessions: Vec<stepwell_wire::Copied>,
    /// Those that are damaged: what lies before that was copied.
    pub damaged: Vec<(SessionId, Damage)>,
    /// What is otherwise there than here.
    pub trash: Option<TrashRemark>,
}

/// How the trash of the one store and of the other differ after a copy.
#[derive(Debug)]
pub enum TrashRemark {
    /// It is in the trash here, and was there before: it stays out of the trash there.
    OnlyHere,
    /// It is in the trash there, and stays in it.
    OnlyThere,
    /// It was copied, and could not be moved to the trash.
    NotMoved(Vec<stepwell::Error>),
}

impl<'a> StoreCopy<'a> {
    /// A copy between two stores.
    #[must_use]
    pub const fn new(source: &'a Stepwell, target: &'a Stepwell) -> Self {
        Self { source, target, seen: BTreeSet::new() }
    }

    /// Copies one session, unless it came with another.
    ///
    /// # Errors
    /// If it is refused, or a store fails. [`can_go_on`] tells which.
    pub fn copy(&mut self, info: &SessionInfo) -> Result<CopiedSession> {
        let id = &info.head.id;
        // A subagent's session came with its parent's.
        if self.seen.contains(id) {
            return Ok(CopiedSession::default());
        }
        let copied = stepwell_formats::copy(self.source, self.target, id)?;
        let (trashed, trash) = self.trash(info, &copied)?;
        let groups = [
            (CopyResult::Made, &copied.imported.made),
            (CopyResult::Completed, &copied.imported.completed),
            (CopyResult::AlreadyThere, &copied.imported.already_there),
        ];
        let mut sessions = Vec::new();
        for (result, ids) in groups {
            for id in ids.iter().filter(|id| self.seen.insert((*id).clone())) {
                let (session, trashed) = (id.clone(), trashed.contains(id));
                sessions.push(stepwell_wire::Copied { session, copied: result, trashed });
            }
        }
        Ok(CopiedSession { sessions, damaged: copied.exported.damaged, trash })
    }

    /// What is in the trash goes into the trash there, but only as a part of being copied: a
    /// session that was there before is whose store it is in, and may be at work. Tells which went.
    fn trash(
        &self,
        info: &SessionInfo,
        copied: &Copied,
    ) -> Result<(Vec<SessionId>, Option<TrashRemark>)> {
        let id = &info.head.id;
        if !copied.imported.made.contains(id) {
            // So it is, too, if a copy was cut off before this.
            let there = self.target.info(id)?.trashed_at;
            let remark = match (info.trashed_at, there) {
                (Some(_), None) => Some(TrashRemark::OnlyHere),
                (None, Some(_)) => Some(TrashRemark::OnlyThere),
                _ => None,
            };
            return Ok((Vec::new(), remark));
        }
        if info.trashed_at.is_none() {
            return Ok((Vec::new(), None));
        }
        let removal = self.target.store().maintain().trash(&[Target::from(id.clone())])?;
        let left: Vec<_> = removal.left.into_iter().map(|(_, error)| error).collect();
        let remark = (!left.is_empty()).then_some(TrashRemark::NotMoved(left));
        Ok((removal.taken, remark))
    }
}

/// Can a copy go on with other sessions? One that is refused hides no other; a store that is gone
/// ends it all.
#[must_use]
pub fn can_go_on(error: &Error) -> bool {
    let Error::Formats(error) = error else { return false };
    matches!(
        error.kind(),
        ErrorKind::Conflict | ErrorKind::Invalid | ErrorKind::Damaged | ErrorKind::Busy
    )
}
