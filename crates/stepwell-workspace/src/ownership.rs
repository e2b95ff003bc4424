//! Which sessions are the user's own: what was allowed in them counts, and they are resumed unasked.

use std::path::Path;

use stepwell::log::Head;
use stepwell::{SessionId, Stepwell};

use crate::engine::team_store;
use crate::error::Result;
use crate::workspace::Workspace;

/// Is a session the user's own, so that what was allowed in it counts?
#[must_use]
pub fn is_own(workspace: &Workspace, id: &SessionId) -> bool {
    workspace.own_sessions().is_some_and(|own| own.has(id))
}

/// Did this user begin a session? A team's server says which role did; of a folder's sessions
/// only those with the user's own mark count.
///
/// # Errors
/// If a team's server cannot be asked.
pub fn began_by_user(workspace: &Workspace, well: &Stepwell, head: &Head) -> Result<bool> {
    match team_store(well) {
        Some(store) => Ok(store.begun_by_others(std::slice::from_ref(&head.id))?.is_empty()),
        None => Ok(is_own(workspace, &head.id)),
    }
}

/// Remembers that sessions came from where an agent of the user's own keeps them. Such a session
/// of this workspace is theirs to resume; nothing that was allowed in it counts. A folder below the
/// workspace may have come with it from somebody else, and is not such a place.
pub fn mark_imported(workspace: &Workspace, from: &Path, ids: impl IntoIterator<Item = SessionId>) {
    let is_projects = match (from.canonicalize(), workspace.place.root.canonicalize()) {
        (Ok(from), Ok(root)) => from.starts_with(root),
        _ => true,
    };
    let Some(own) = workspace.own_sessions().filter(|_| !is_projects) else { return };
    for id in ids {
        if let Err(error) = own.add_from_agent(&id) {
            tracing::warn!(%error, "import_not_remembered");
        }
    }
}

/// Is a session the user's to resume: one that they began, or that an agent of their own recorded
/// in this workspace?
///
/// # Errors
/// If a team's server cannot be asked.
pub fn may_resume(workspace: &Workspace, well: &Stepwell, head: &Head) -> Result<bool> {
    let is_imported = workspace.own_sessions().is_some_and(|own| own.has_from_agent(&head.id));
    let here = || workspace.place.root.canonicalize().ok();
    match is_imported {
        true => Ok(here().is_some_and(|root| {
            Path::new(&head.workspace).canonicalize().is_ok_and(|it| it == root)
        })),
        false => Ok((head.source.is_none() || is_own(workspace, &head.id))
            && began_by_user(workspace, well, head)?),
    }
}

/// Remembers that a session is the user's own. Forgetting to means to be asked again.
pub fn mark(workspace: &Workspace, id: &SessionId) {
    if let Some(Err(error)) = workspace.own_sessions().map(|own| own.add(id)) {
        tracing::warn!(%error, "session_not_remembered");
    }
}

/// Takes back that a session is the user's own: it was not made.
pub fn unmark(workspace: &Workspace, id: &SessionId) {
    if let Some(Err(error)) = workspace.own_sessions().map(|own| own.remove(id)) {
        tracing::warn!(%error, "session_still_remembered");
    }
}
