//! Setting a workspace up, and making its store from a backup.

use std::path::Path;

use stepwell::error::Listing;
use stepwell::sqlite::{Access, SqliteStore};
use stepwell::store::query::Filter;
use stepwell::{Error as StoreError, Remedy, Status, Stepwell};
use stepwell_wire::{StoreMade, StoreRestored};

use crate::config::commented;
use crate::engine::team_store;
use crate::error::{Error, ErrorKind, Result};
use crate::location::CONFIG_FILE;
use crate::notice::Notice;
use crate::workspace::Workspace;
use crate::workspace_file::WorkspaceFile;

/// May a store that is here be replaced?
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Replace {
    /// An existing store is kept.
    Refused,
    /// Yes: it is kept under another name.
    SetAside,
}

/// Makes a store here, a configuration in which every setting is commented out below a header,
/// and an entry in `.gitignore`. What is there already stays.
///
/// # Errors
/// If one of them cannot be made.
pub fn set_up(workspace: &Workspace, header: &str) -> Result<StoreMade> {
    let made_store = workspace.place.team.is_none() && !workspace.place.has_store();
    let changed_gitignore = workspace.place.ignore()?;
    drop(workspace.open_or_create()?);
    let config = WorkspaceFile::below(&workspace.place.root, CONFIG_FILE)?;
    let made_config = !config.path().exists();
    if made_config {
        config.replace(&format!("{header}\n{}", commented()))?;
    }
    let team = workspace.place.team.as_ref().map(|team| team.shown().to_owned());
    let store = team.unwrap_or_else(|| workspace.place.store.clone()).display().to_string();
    Ok(StoreMade { store, made_store, made_config, changed_gitignore })
}

/// Makes this workspace's store from a backup. If that fails, the store that was here is here.
///
/// # Errors
/// If the store is a team's, one is here that may not be replaced or in which sessions run, or
/// the file is no backup.
pub fn restore_backup(
    workspace: &Workspace,
    file: &Path,
    replace: Replace,
) -> Result<StoreRestored> {
    if workspace.place.team.is_some() {
        let why = "a team's store is restored with its server: pg_restore";
        return Err(Error::invalid(why).helped_by(Remedy::CopyStore));
    }
    if !file.is_file() {
        let why = format!("{}: there is no such file", file.display());
        return Err(Error::refused(ErrorKind::Absent, why));
    }
    let store = &workspace.place.store;
    let restored = if workspace.place.has_store() {
        may_replace_store(workspace, replace)?;
        SqliteStore::restore_over(file, store, workspace.now()).map(Some)
    } else {
        SqliteStore::restore_from(file, store).map(|()| None)
    };
    let replaced = restored.map_err(|error| match error {
        StoreError::DamagedStore { path, what } if path == file => {
            let why = format!("the backup {} is damaged: {what}", path.display());
            Error::refused(ErrorKind::Damaged, why)
        }
        error => error.into(),
    })?;
    let well = workspace.open_or_create()?;
    if let Err(error) = workspace.place.ignore() {
        workspace.notices.tell(Notice::warning(".gitignore could not be changed", &error));
    }
    let shown = |path: &Path| path.display().to_string();
    Ok(StoreRestored {
        store: shown(store),
        sessions: well.store().count(&Filter::default())?.total(),
        replaced: replaced.as_deref().map(shown),
    })
}

/// Refuses to replace the present store unless that is wanted and nobody works in it.
fn may_replace_store(workspace: &Workspace, replace: Replace) -> Result<()> {
    let store = &workspace.place.store;
    if replace == Replace::Refused {
        let why = format!("there is a store in {} already", store.display());
        return Err(Error::invalid(why).helped_by(Remedy::Replace));
    }
    // A store that cannot be opened is replaced all the more.
    if let Ok(well) = workspace.open_existing(Access::Read) {
        let running = Filter { status: vec![Status::Running], ..Filter::default() };
        let sessions = well.store().count(&running)?.total();
        if sessions > 0 {
            let why = match sessions {
                1 => "1 session runs in this store; stop it first".to_owned(),
                n => format!("{n} sessions run in this store; stop them first"),
            };
            let kind = ErrorKind::Store(stepwell::ErrorKind::Busy);
            return Err(Error::refused(kind, why).helped_by(Remedy::List(Listing::Sessions)));
        }
    }
    Ok(())
}

/// Copies the whole store to a file, consistently, while it is in use.
///
/// # Errors
/// If it is a team's store, or the copy fails.
pub fn back_up(well: &Stepwell, to: &Path) -> Result<()> {
    match team_store(well) {
        Some(_) => {
            let why = "a team's store is backed up with its server: pg_dump --schema=stepwell";
            Err(Error::invalid(why).helped_by(Remedy::CopyStore))
        }
        None => Ok(well.store().maintain().backup(to)?),
    }
}
