//! Subagents' worktrees in this workspace: how they stand, and which of them can go.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use stepwell::{Error, Head, Origin, Query, Session, SessionId, Standing, Status};
use stepwell_agent::run::Charge;
use stepwell_agent::worktree::{Berth, State, Worktree, all};

use crate::app::{App, Go, Well, each_session};
use crate::failure::{Exit, Failure, Result};
use crate::git::repository;
use crate::output::note;
use crate::wire::is_final;

/// A subagent's worktree.
pub(crate) struct Site {
    pub(crate) id: SessionId,
    pub(crate) worktree: Worktree,
    /// Its session; absent, it was erased.
    pub(crate) session: Option<Standing>,
    /// A session that is at work in it, or that may go on there.
    pub(crate) used_by: Option<User>,
    /// The sessions that work in it: its subagent's and forks of that.
    lodgers: Vec<SessionId>,
    /// How it stands, or why git cannot say.
    pub(crate) state: Result<stepwell_agent::worktree::Standing, String>,
}

/// A session that needs a worktree.
pub(crate) struct User {
    pub(crate) id: SessionId,
    /// Who takes it up: its parent does, if it is a subagent that is not done.
    pub(crate) resumed: SessionId,
    /// Is it at work?
    pub(crate) at_work: bool,
}

/// Every worktree of this workspace's subagents.
pub(crate) fn sites(app: &App, well: &Well) -> Result<Vec<Site>> {
    let (root, store) = (resolved(&app.place.root), resolved(&app.place.store));
    let (mut found, names) = (Vec::new(), all(&root, &store));
    // Every session is looked at for forks, so only if it matters.
    let mut lodgers = if names.is_empty() { Lodgers::new() } else { lodgers(well)? };
    for id in names {
        let session = standing(well, &id)?;
        if let Some(session) = &session
            && elsewhere(well, &session.head, app)?.is_some()
        {
            continue;
        }
        let charge = session.as_ref().and_then(|it| Charge::of(&it.head));
        let worktree = Worktree::of(&root, &store, &id);
        let base = charge.as_ref().and_then(|charge| charge.base.clone());
        // Whoever likes the name may have a branch of it: one that no subagent's session made,
        // and that has no worktree in the store, is the user's own.
        if base.is_none() && !worktree.path.exists() {
            continue;
        }
        // If git cannot find it again, its state says so.
        let _ = worktree.find_again();
        let ended = charge.as_ref().and_then(|charge| charge.outcome.as_ref());
        let state = worktree.state(base.as_deref(), ended);
        let lodgers = lodgers.remove(&id).unwrap_or_default();
        let used_by = match &session {
            Some(session) => waited_for(well, session, charge.as_ref())?,
            None => None,
        };
        let used_by = used_by.or_else(|| lodgers.iter().find_map(goes_on));
        let lodgers = lodgers.into_iter().map(|it| it.head.id).collect();
        found.push(Site { id, worktree, session, used_by, lodgers, state });
    }
    Ok(found)
}

fn resolved(path: &Path) -> PathBuf {
    std::fs::canonicalize(path).unwrap_or_else(|_| path.to_owned())
}

/// The sessions that work in each worktree.
type Lodgers = BTreeMap<SessionId, Vec<Standing>>;

fn lodgers(well: &Well) -> Result<Lodgers> {
    let mut lodgers = Lodgers::new();
    each_session(well, Query::default(), |standing| {
        for berth in Charge::berths(&standing.head).unwrap_or_default() {
            lodgers.entry(berth.worktree).or_default().push(standing.clone());
        }
        Ok(Go::On)
    })?;
    Ok(lodgers)
}

/// Is a subagent's session not done, and does its parent wait for it?
fn waited_for(well: &Well, session: &Standing, charge: Option<&Charge>) -> Result<Option<User>> {
    let Some(parent) = session.head.origin.parent() else { return Ok(None) };
    if charge.is_some_and(|charge| charge.outcome.is_some()) {
        return Ok(None);
    }
    let waits = standing(well, parent)?.is_some_and(|parent| !is_final(parent.head.status));
    let at_work = session.held.is_some();
    Ok((waits || at_work).then(|| User {
        id: session.head.id.clone(),
        resumed: parent.clone(),
        at_work,
    }))
}

/// Is a session at work, or may it go on by itself? A subagent's does so only if someone took it
/// up after its end.
fn goes_on(session: &Standing) -> Option<User> {
    let (head, at_work) = (&session.head, session.held.is_some());
    let unfinished = match head.origin {
        Origin::Subagent { .. } => {
            let ended = Charge::of(head).is_some_and(|charge| charge.outcome.is_some());
            ended && matches!(head.status, Status::Interrupted | Status::Paused)
        }
        Origin::Root | Origin::Fork { .. } => !is_final(head.status),
    };
    let id = &head.id;
    (at_work || unfinished).then(|| User { id: id.clone(), resumed: id.clone(), at_work })
}

fn standing(well: &Well, id: &SessionId) -> Result<Option<Standing>> {
    match well.store().standing(id) {
        Ok(standing) => Ok(Some(standing)),
        Err(Error::NoSession(_)) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

impl Site {
    /// Can it go without anything being lost?
    pub(crate) fn is_done(&self) -> bool {
        self.used_by.is_none() && self.state.as_ref().is_ok_and(|it| it.state.is_done())
    }

    /// Is there nothing of it but a branch without commits of its own?
    pub(crate) fn is_gone(&self) -> bool {
        self.used_by.is_none() && self.state.as_ref().is_ok_and(|it| it.state == State::Gone)
    }

    /// Removes it, if nothing is lost by that.
    pub(crate) fn remove(&self) -> Result<(), String> {
        let tip = if self.worktree.has_branch() { self.worktree.tip()? } else { String::new() };
        self.worktree.remove(&tip)
    }
}

/// The workspace that a session's worktree grew out of, if that is in another repository than the
/// folder that the user is in: a store that lies in no workspace may serve several.
fn elsewhere(well: &Well, head: &Head, app: &App) -> Result<Option<PathBuf>> {
    let (root, store) = (resolved(&app.place.root), resolved(&app.place.store));
    if store.parent() == Some(&*root) {
        return Ok(None);
    }
    let mut top = head.clone();
    while let Some(parent) = top.origin.parent() {
        match standing(well, parent)? {
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
pub(crate) fn take_up(well: &Well, head: &Head, app: &App) -> Result<()> {
    let Some(charge) = Charge::of(head) else { return Ok(()) };
    let berths = Charge::berths(head).unwrap_or_default();
    let is_there = |berth: &&Berth| berth.folder(&app.place.store).is_some();
    let Some(berth) = berths.iter().find(is_there).or(berths.last()) else { return Ok(()) };
    let (root, store) = (resolved(&app.place.root), resolved(&app.place.store));
    let worktree = Worktree::of(&root, &store, &berth.worktree);
    let removed = !worktree.path.exists();
    if removed && let Some(there) = elsewhere(well, head, app)? {
        let (id, there) = (&head.id, there.display());
        let message = format!(
            "the worktree of {id} was removed, and is one of {there}, not of this folder's repository"
        );
        return Err(Failure::new(Exit::Failed, message).hint(format_args!(
            "stepwell -C {there} --store {} resume {id} brings it back there",
            store.display()
        )));
    }
    let brought = match charge.outcome.filter(|_| removed && !worktree.has_branch()) {
        Some(outcome) => worktree.make_again(&outcome),
        None => worktree.restore(),
    };
    brought.map_err(|why| {
        let message = format!("{} cannot go on: {why}", head.id);
        Failure::new(Exit::Failed, message).hint("stepwell worktrees lists what there is")
    })?;
    if removed {
        note(format_args!("Brought the worktree back that {} works in.", head.id));
    }
    Ok(())
}

/// Removes what nobody needs any more, and says so; not what the session works in that is about to
/// be taken up. Not being able to is no reason not to begin.
pub(crate) fn sweep(app: &App, well: &Well, taken_up: Option<&Head>) {
    // Where no subagent ever changed anything, git is not even asked.
    if !app.place.store.join(stepwell_agent::worktree::FOLDER).is_dir() {
        return;
    }
    let complain = |failure: &Failure| {
        note(format_args!("warning: subagents' worktrees were not looked at: {failure}"));
    };
    let sites = match sites(app, well) {
        Ok(sites) => sites,
        Err(failure) => return complain(&failure),
    };
    let needed = taken_up.and_then(Charge::berths).unwrap_or_default();
    let is_needed = |site: &Site| needed.iter().any(|berth| berth.worktree == site.id);
    for site in sites.iter().filter(|site| site.is_done() && !is_needed(site)) {
        // Whoever began to work in it meanwhile has a lease, and nobody begins while this has them.
        let leases: stepwell::Result<Vec<Session>> =
            site.lodgers.iter().map(|id| well.hold(id)).collect();
        if matches!(leases, Err(Error::Held { .. })) {
            continue;
        }
        match site.remove() {
            Ok(()) => note(format_args!(
                "Removed the worktree of subagent {}: nothing in it is left to merge.",
                site.id
            )),
            Err(why) => {
                note(format_args!("warning: the worktree of {} cannot be removed: {why}", site.id));
            }
        }
    }
}
