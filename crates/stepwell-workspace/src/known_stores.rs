//! The user's known stores: opened together, and looked through for a session.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use stepwell::Stepwell;
use stepwell::sqlite::Access;
use stepwell::store::query::TrashScope;

use crate::error::Result;
use crate::location::Found;
use crate::notice::Notice;
use crate::registry::Registry;
use crate::workspace::Workspace;

/// A store of the user's, and what it is called.
#[derive(Debug)]
pub struct NamedWell {
    /// Its folder, or its address as it may be shown.
    pub name: PathBuf,
    /// The open store.
    pub well: Stepwell,
}

/// How known stores are opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Opening {
    /// For reading.
    Read,
    /// For writing.
    Write,
    /// For writing where that is possible, and else for reading.
    WriteIfPossible,
}

impl Opening {
    fn open(self, workspace: &Workspace, folder: &Path) -> Result<Stepwell> {
        match self {
            Self::Read => workspace.open(folder, Access::Read),
            Self::Write => workspace.open(folder, Access::Write),
            Self::WriteIfPossible => workspace.open_writable_if_possible(folder),
        }
    }
}

/// Every known store that is there, this one first. Those that cannot be opened are
/// notices.
pub fn open_all(workspace: &Workspace, opening: Opening) -> Vec<NamedWell> {
    let mut wells = Vec::new();
    for (name, store) in named_stores(workspace) {
        match opening.open(workspace, &store) {
            Ok(well) => wells.push(NamedWell { name, well }),
            Err(error) => {
                workspace.notices.tell(Notice::warning("one of your stores is left out", &error));
            }
        }
    }
    wells
}

/// Those known stores that were not there before, by the names of those that were. One that
/// cannot be opened yet, because it is just being made, is not there yet.
pub fn open_new(
    workspace: &Workspace,
    before: &mut BTreeSet<PathBuf>,
    opening: Opening,
) -> Vec<NamedWell> {
    let mut wells = Vec::new();
    for (name, store) in named_stores(workspace) {
        if !before.contains(&name)
            && let Ok(well) = opening.open(workspace, &store)
        {
            before.insert(name.clone());
            wells.push(NamedWell { name, well });
        }
    }
    wells
}

/// The known stores that are there, this one first, each with what it is called.
fn named_stores(workspace: &Workspace) -> Vec<(PathBuf, PathBuf)> {
    let here = workspace.place.has_store().then(|| workspace.place.store.clone());
    let here_canonical = here.as_deref().and_then(|here| std::fs::canonicalize(here).ok());
    let known = registered(workspace).into_iter();
    let others = known.filter(|store| Some(store) != here_canonical.as_ref());
    let named = here.into_iter().chain(others).filter_map(|store| {
        // A project that was moved or removed stays registered until somebody forgets it.
        let team = workspace.place.team.as_ref().filter(|_| store == workspace.place.store);
        let is_there = team.is_some() || store.join("stepwell.db").exists();
        let name = team.map_or_else(|| store.clone(), |team| team.shown().to_owned());
        is_there.then_some((name, store))
    });
    named.collect()
}

fn registered(workspace: &Workspace) -> Vec<PathBuf> {
    match Registry::of(&workspace.host).map(|registry| registry.all()) {
        Some(Ok(known)) => known,
        Some(Err(error)) => {
            workspace
                .notices
                .tell(Notice::warning("the list of known stores cannot be read", &error));
            Vec::new()
        }
        None => Vec::new(),
    }
}

/// Goes to the workspace of a session that is not of this one, if the name means one of
/// another store of the user's: a session can be resumed from any folder.
///
/// # Errors
/// If that workspace's configuration is wrong.
pub fn go_to_session(workspace: &mut Workspace, name: &str) -> Result<()> {
    let is_known_here = match workspace.open_if_present() {
        Ok(Some(well)) => {
            let found = well.try_find(TrashScope::Anywhere, name);
            !matches!(found, Err(stepwell::Error::NoMatch(_)))
        }
        Ok(None) => false,
        // Whoever opens it says what is wrong with it.
        Err(_) => true,
    };
    if workspace.place.found == Found::Named || is_known_here {
        return Ok(());
    }
    let Some(store) = store_elsewhere(workspace, name) else { return Ok(()) };
    workspace.go_to_store(&store)?;
    let (name, root) = (name.to_owned(), workspace.place.root.clone());
    workspace.notices.tell(Notice::SessionElsewhere { name, root });
    Ok(())
}

/// Another store of the user's in which a name means a session.
pub(crate) fn store_elsewhere(workspace: &Workspace, name: &str) -> Option<PathBuf> {
    let known =
        Registry::of(&workspace.host).and_then(|registry| registry.all().ok()).unwrap_or_default();
    known.into_iter().find(|store| {
        let found = workspace.open(store, Access::Read).ok();
        let found = found.map(|well| well.try_find(TrashScope::Kept, name));
        name != "@last" && *store != workspace.place.store && matches!(found, Some(Ok(_)))
    })
}
