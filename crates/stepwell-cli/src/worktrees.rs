//! Subagents' worktrees in this workspace: how they stand, and which of them can go.

use std::path::{Path, PathBuf};

use stepwell::{Error, Head, SessionId, Standing};
use stepwell_agent::run::Charge;
use stepwell_agent::worktree::{Berth, State, Worktree, all};

use crate::app::{App, Well};
use crate::failure::{Exit, Failure, Result};
use crate::output::note;
use crate::wire::is_final;

/// A subagent's worktree.
pub(crate) struct Site {
    pub(crate) id: SessionId,
    pub(crate) worktree: Worktree,
    /// Its session; absent, it was erased.
    pub(crate) session: Option<Standing>,
    /// Is its subagent at work, or may it be taken up by its parent?
    pub(crate) in_use: bool,
    /// How it stands, or why git cannot say.
    pub(crate) state: Result<stepwell_agent::worktree::Standing, String>,
}

/// Every worktree of this workspace's subagents.
pub(crate) fn sites(app: &App, well: &Well) -> Result<Vec<Site>> {
    let (root, store) = (resolved(&app.place.root), resolved(&app.place.store));
    let mut found = Vec::new();
    for id in all(&root, &store) {
        let session = standing(well, &id)?;
        let charge = session.as_ref().and_then(|it| Charge::of(&it.head));
        let worktree = Worktree::of(&root, &store, &id);
        let base = charge.as_ref().and_then(|charge| charge.base.clone());
        // Whoever likes the name may have a branch of it: one that no subagent's session made,
        // and that has no worktree in the store, is the user's own.
        if base.is_none() && !worktree.path.exists() {
            continue;
        }
        let ended = charge.as_ref().and_then(|charge| charge.outcome.as_ref());
        let state = worktree.state(base.as_deref(), ended);
        let in_use = match &session {
            Some(session) => in_use(well, session, charge.as_ref())?,
            None => false,
        };
        found.push(Site { id, worktree, session, in_use, state });
    }
    Ok(found)
}

fn resolved(path: &Path) -> PathBuf {
    std::fs::canonicalize(path).unwrap_or_else(|_| path.to_owned())
}

/// Is a subagent at work, or does its parent still wait for it?
fn in_use(well: &Well, session: &Standing, charge: Option<&Charge>) -> Result<bool> {
    if session.held.is_some() {
        return Ok(true);
    }
    if charge.is_some_and(|charge| charge.outcome.is_some()) {
        return Ok(false);
    }
    let parent = match session.head.origin.parent() {
        Some(parent) => standing(well, parent)?,
        None => None,
    };
    Ok(parent.is_some_and(|parent| !is_final(parent.head.status)))
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
        !self.in_use && self.state.as_ref().is_ok_and(|it| it.state.is_done())
    }

    /// Is there nothing of it but a branch without commits of its own?
    pub(crate) fn is_gone(&self) -> bool {
        !self.in_use && self.state.as_ref().is_ok_and(|it| it.state == State::Gone)
    }

    /// Removes it, if nothing is lost by that.
    pub(crate) fn remove(&self) -> Result<(), String> {
        let tip = if self.worktree.has_branch() { self.worktree.tip()? } else { String::new() };
        self.worktree.remove(&tip)
    }
}

/// Sees to it that a session that works in a worktree finds it whole: one whose folder was
/// removed is brought back, and one that was moved with its workspace is mended.
pub(crate) fn take_up(head: &Head, app: &App) -> Result<()> {
    let Some(berths) = Charge::berths(head) else { return Ok(()) };
    let is_there = |berth: &&Berth| berth.folder(&app.place.store).is_some();
    let Some(berth) = berths.iter().find(is_there).or(berths.last()) else { return Ok(()) };
    let (root, store) = (resolved(&app.place.root), resolved(&app.place.store));
    Worktree::of(&root, &store, &berth.worktree).restore().map_err(|why| {
        let message = format!("{} cannot go on: {why}", head.id);
        Failure::new(Exit::Failed, message).hint("stepwell worktrees lists what there is")
    })
}

/// Removes what nobody needs any more, and says so. Not being able to is no reason not to
/// begin.
pub(crate) fn sweep(app: &App, well: &Well) {
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
    for site in sites.iter().filter(|site| site.is_done()) {
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
