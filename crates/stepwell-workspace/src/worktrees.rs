//! Subagents' worktrees in this workspace: how they stand, and which of them can go.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use stepwell::error::Listing;
use stepwell::log::Head;
use stepwell::model::{Origin, Subagent};
use stepwell::store::query::Query;
use stepwell::{Remedy, Session, SessionId, SessionInfo, Status, Stepwell};
use stepwell_files::worktree::{Worktree, WorktreeRef, all, worktrees_of};
use stepwell_wire::WorktreeState;

use crate::error::{Error, Result};
use crate::git::repository;
use crate::notice::Notice;
use crate::workspace::Workspace;

/// A subagent's worktree.
#[derive(Debug)]
pub struct SubagentWorktree {
    /// The session that it was made for.
    pub id: SessionId,
    /// The worktree itself.
    pub worktree: Worktree,
    /// Its session; absent, it was erased.
    pub session: Option<SessionInfo>,
    /// A session that is at work in it, or that may go on there.
    pub used_by: Option<WorktreeUser>,
    /// The sessions that work in it: its subagent's and forks of that.
    lodgers: Vec<SessionId>,
    /// How it stands, or why git cannot say.
    pub state: Result<stepwell_files::worktree::WorktreeInfo, String>,
}

/// A session that needs a worktree.
#[derive(Debug)]
pub struct WorktreeUser {
    /// The session.
    pub id: SessionId,
    /// Who takes it up: its parent does, if it is a subagent that is not done.
    pub resumed: SessionId,
    /// Is it at work?
    pub at_work: bool,
}

/// May work be lost that is not merged?
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Loss {
    /// Work that is not merged is kept.
    Refused,
    /// Work that is not merged may be lost.
    Accepted,
}

/// Why a worktree stays.
#[derive(Debug)]
pub enum WorktreeStays<'a> {
    /// A session is at work in it.
    AtWork(&'a WorktreeUser),
    /// A session works in it and is not done.
    NotDone(&'a WorktreeUser),
    /// Its [state](SubagentWorktree::state) says what would be lost, or in the way.
    Holds,
    /// Git could not remove it.
    Git(String),
}

/// The worktrees that a name could mean: one, if it is the id of one or a unique part of one.
#[must_use]
pub fn worktrees_named<'a>(all: &'a [SubagentWorktree], name: &str) -> Vec<&'a SubagentWorktree> {
    if let Some(site) = all.iter().find(|site| site.id.as_str() == name) {
        return vec![site];
    }
    // Every id has nothing in it, which so means none.
    if name.is_empty() {
        return Vec::new();
    }
    let ends = |site: &&SubagentWorktree| site.id.ending().starts_with(name);
    let named: Vec<_> = all.iter().filter(ends).collect();
    match named.is_empty() {
        true => all.iter().filter(|site| site.id.as_str().contains(name)).collect(),
        false => named,
    }
}

/// Every worktree of a workspace's subagents.
///
/// # Errors
/// If the store cannot be read.
pub fn subagent_worktrees(workspace: &Workspace, well: &Stepwell) -> Result<Vec<SubagentWorktree>> {
    let (root, store) = (resolved(&workspace.place.root), resolved(&workspace.place.store));
    let (mut found, names) = (Vec::new(), all(&root, &store));
    // Every session is looked at for forks, so only if it matters.
    let mut lodgers = if names.is_empty() { Lodgers::new() } else { lodgers(well)? };
    for id in names {
        let session = info(well, &id)?;
        if let Some(session) = &session
            && elsewhere(well, &session.head, workspace)?.is_some()
        {
            continue;
        }
        let record = session.as_ref().and_then(|it| it.head.facts.subagent.as_deref());
        let worktree = Worktree::of(&root, &store, &id);
        let base = record.and_then(|record| record.base.clone());
        // Whoever likes the name may have a branch of it: one that no subagent's session made,
        // and that has no worktree in the store, is the user's own.
        if base.is_none() && !worktree.path.exists() {
            continue;
        }
        // If git cannot find it again, its state says so.
        let _ = worktree.find_again();
        let ended = record.and_then(|record| record.outcome.as_ref());
        let state = worktree.state(base.as_deref(), ended);
        let lodgers = lodgers.remove(&id).unwrap_or_default();
        let used_by = match &session {
            Some(session) => waited_for(well, session, record)?,
            None => None,
        };
        let used_by = used_by.or_else(|| lodgers.iter().find_map(goes_on));
        let lodgers = lodgers.into_iter().map(|it| it.head.id).collect();
        found.push(SubagentWorktree { id, worktree, session, used_by, lodgers, state });
    }
    Ok(found)
}

fn resolved(path: &Path) -> PathBuf {
    std::fs::canonicalize(path).unwrap_or_else(|_| path.to_owned())
}

/// The sessions that work in each worktree.
type Lodgers = BTreeMap<SessionId, Vec<SessionInfo>>;

fn lodgers(well: &Stepwell) -> Result<Lodgers> {
    let mut lodgers = Lodgers::new();
    for info in well.sessions(Query::default()) {
        let info = info?;
        for worktree in worktrees_of(&info.head).unwrap_or_default() {
            lodgers.entry(worktree.worktree).or_default().push(info.clone());
        }
    }
    Ok(lodgers)
}

/// Is a subagent's session not done, and does its parent wait for it?
fn waited_for(
    well: &Stepwell,
    session: &SessionInfo,
    record: Option<&Subagent>,
) -> Result<Option<WorktreeUser>> {
    let Some(parent) = session.head.origin.parent() else { return Ok(None) };
    if record.is_some_and(|record| record.outcome.is_some()) {
        return Ok(None);
    }
    let waits = info(well, parent)?.is_some_and(|parent| !has_ended(parent.head.status));
    let at_work = session.held.is_some();
    Ok((waits || at_work).then(|| WorktreeUser {
        id: session.head.id.clone(),
        resumed: parent.clone(),
        at_work,
    }))
}

/// Is a session at work, or may it go on by itself? A subagent's does so only if someone took it
/// up after its end.
fn goes_on(session: &SessionInfo) -> Option<WorktreeUser> {
    let (head, at_work) = (&session.head, session.held.is_some());
    let unfinished = match head.origin {
        Origin::Subagent { .. } => {
            let ended = head.facts.subagent.as_ref().is_some_and(|record| record.outcome.is_some());
            ended && matches!(head.status, Status::Interrupted | Status::Paused)
        }
        Origin::Root | Origin::Fork { .. } => !has_ended(head.status),
    };
    let id = &head.id;
    (at_work || unfinished).then(|| WorktreeUser { id: id.clone(), resumed: id.clone(), at_work })
}

fn info(well: &Stepwell, id: &SessionId) -> Result<Option<SessionInfo>> {
    match well.store().info(id) {
        Ok(info) => Ok(Some(info)),
        Err(stepwell::Error::NoSession(_)) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

impl SubagentWorktree {
    /// Can it go without anything being lost?
    #[must_use]
    pub fn is_done(&self) -> bool {
        self.used_by.is_none() && self.state.as_ref().is_ok_and(|it| it.state.is_done())
    }

    /// Is there nothing of it but a branch without commits of its own?
    #[must_use]
    pub fn is_gone(&self) -> bool {
        self.used_by.is_none()
            && self.state.as_ref().is_ok_and(|it| it.state == WorktreeState::Gone)
    }

    /// Removes it because somebody asks for it.
    ///
    /// # Errors
    /// Why it stays.
    pub fn remove_asked(&self, loss: Loss) -> Result<(), WorktreeStays<'_>> {
        if let Some(user) = self.used_by.as_ref().filter(|user| user.at_work) {
            return Err(WorktreeStays::AtWork(user));
        }
        if self.state.as_ref().is_ok_and(|it| it.state == WorktreeState::CheckedOut) {
            return Err(WorktreeStays::Holds);
        }
        let removed = match (loss, &self.used_by) {
            (Loss::Accepted, _) => self.worktree.remove_by_force(),
            (Loss::Refused, Some(user)) => return Err(WorktreeStays::NotDone(user)),
            (Loss::Refused, None) if self.is_done() || self.is_gone() => self.remove(),
            (Loss::Refused, None) => return Err(WorktreeStays::Holds),
        };
        removed.map_err(WorktreeStays::Git)
    }

    /// Removes it, if nothing is lost by that.
    ///
    /// # Errors
    /// What git said.
    pub fn remove(&self) -> Result<(), String> {
        let tip = if self.worktree.has_branch() { self.worktree.tip()? } else { String::new() };
        self.worktree.remove(&tip)
    }
}

/// The workspace that a session's worktree grew out of, if that is in another repository than the
/// folder that the user is in: a store that lies in no workspace may serve several.
fn elsewhere(well: &Stepwell, head: &Head, workspace: &Workspace) -> Result<Option<PathBuf>> {
    let (root, store) = (resolved(&workspace.place.root), resolved(&workspace.place.store));
    if store.parent() == Some(&*root) {
        return Ok(None);
    }
    let mut top = head.clone();
    while let Some(parent) = top.origin.parent() {
        match info(well, parent)? {
            Some(above) => top = above.head,
            None => break,
        }
    }
    let there = PathBuf::from(&top.workspace);
    // Of one that was moved away or erased, nobody can say.
    let is_other = repository(&there).is_some_and(|it| repository(&root) != Some(it));
    Ok(is_other.then_some(there))
}

/// Sees to it that a session that works in a worktree finds it whole: one that was removed is
/// brought back, and one that was moved with its workspace is mended.
///
/// # Errors
/// If it cannot be brought back here.
pub fn restore_worktree(well: &Stepwell, head: &Head, workspace: &Workspace) -> Result<()> {
    let Some(record) = head.facts.subagent.as_deref() else { return Ok(()) };
    let worktrees = worktrees_of(head).unwrap_or_default();
    let is_there = |worktree: &&WorktreeRef| worktree.folder(&workspace.place.store).is_some();
    let Some(worktree) = worktrees.iter().find(is_there).or(worktrees.last()) else {
        return Ok(());
    };
    let (root, store) = (resolved(&workspace.place.root), resolved(&workspace.place.store));
    let worktree = Worktree::of(&root, &store, &worktree.worktree);
    let removed = !worktree.path.exists();
    if removed && let Some(there) = elsewhere(well, head, workspace)? {
        let why = format!(
            "the worktree of {} was removed, and is one of {}, not of this folder's repository",
            head.id,
            there.display()
        );
        let session = head.id.clone();
        let remedy = Remedy::ResumeThere { session, root: there, store };
        return Err(Error::invalid(why).helped_by(remedy));
    }
    let brought = match record.outcome.as_ref().filter(|_| removed && !worktree.has_branch()) {
        Some(outcome) => worktree.make_again(outcome),
        None => worktree.restore(),
    };
    brought.map_err(|why| {
        let why = format!("{} cannot continue: {why}", head.id);
        Error::invalid(why).helped_by(Remedy::List(Listing::Worktrees))
    })?;
    if removed {
        workspace.notices.tell(Notice::WorktreeRestored { session: head.id.clone() });
    }
    Ok(())
}

/// Removes the worktrees that nobody needs any more, and says so; not the one of the session that
/// is about to be resumed. Not being able to is no reason not to begin.
pub fn remove_finished_worktrees(workspace: &Workspace, well: &Stepwell, resumed: Option<&Head>) {
    // Where no subagent ever changed anything, git is not even asked.
    if !workspace.place.store.join(stepwell_files::worktree::FOLDER).is_dir() {
        return;
    }
    let sites = match subagent_worktrees(workspace, well) {
        Ok(sites) => sites,
        Err(error) => {
            let what = "subagents' worktrees were not looked at";
            return workspace.notices.tell(Notice::warning(what, &error));
        }
    };
    let needed = resumed.and_then(worktrees_of).unwrap_or_default();
    let is_needed =
        |site: &SubagentWorktree| needed.iter().any(|worktree| worktree.worktree == site.id);
    for site in sites.iter().filter(|site| site.is_done() && !is_needed(site)) {
        // Whoever began to work in it meanwhile has a lease, and nobody begins while this has them.
        let leases: stepwell::Result<Vec<Session>> =
            site.lodgers.iter().map(|id| well.lock(id)).collect();
        if matches!(leases, Err(stepwell::Error::Held { .. })) {
            continue;
        }
        let session = site.id.clone();
        workspace.notices.tell(match site.remove() {
            Ok(()) => Notice::WorktreeRemoved { session },
            Err(why) => {
                Notice::warning(format!("the worktree of {session} cannot be removed"), &why)
            }
        });
    }
}

/// Does a session with this status need its folder no more?
fn has_ended(status: Status) -> bool {
    use Status::{Interrupted, Partial, Paused, Running};
    !matches!(status, Running | Paused | Interrupted | Partial)
}
