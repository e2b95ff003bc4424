//! Setting a workspace up, and making its store from a backup.

use std::path::Path;

use stepwell::error::Listing;
use stepwell::sqlite::{Access, SqliteStore};
use stepwell::store::query::Filter;
use stepwell::{Error as StoreError, Remedy, Status};
use stepwell_wire::{StoreMade, StoreRestored};

use crate::config::commented;
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

impl Workspace {
    /// Makes a store here, a configuration in which every setting is commented out below a header,
    /// and an entry in `.gitignore`. What is there already stays.
    ///
    /// # Errors
    /// If one of them cannot be made.
    pub fn set_up(&self, header: &str) -> Result<StoreMade> {
        let made_store = self.place.team.is_none() && !self.place.has_store();
        let changed_gitignore = self.place.ignore()?;
        drop(self.make()?);
        let config = WorkspaceFile::below(&self.place.root, CONFIG_FILE)?;
        let made_config = !config.path().exists();
        if made_config {
            config.replace(&format!("{header}\n{}", commented()))?;
        }
        let team = self.place.team.as_ref().map(|team| team.shown().to_owned());
        let store = team.unwrap_or_else(|| self.place.store.clone()).display().to_string();
        Ok(StoreMade { store, made_store, made_config, changed_gitignore })
    }

    /// Makes this workspace's store from a backup. If that fails, the store that was here is here.
    ///
    /// # Errors
    /// If the store is a team's, one is here that may not be replaced or in which sessions run, or
    /// the file is no backup.
    pub fn restore_backup(&self, file: &Path, replace: Replace) -> Result<StoreRestored> {
        if self.place.team.is_some() {
            let why = "a team's store is restored with its server: pg_restore";
            return Err(Error::invalid(why).helped_by(Remedy::CopyStore));
        }
        if !file.is_file() {
            let why = format!("{}: there is no such file", file.display());
            return Err(Error::refused(ErrorKind::Absent, why));
        }
        let store = &self.place.store;
        let restored = if self.place.has_store() {
            self.may_replace_store(replace)?;
            SqliteStore::restore_over(file, store, self.now()).map(Some)
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
        let well = self.make()?;
        if let Err(error) = self.place.ignore() {
            self.notices.tell(Notice::warning(".gitignore could not be changed", &error));
        }
        let shown = |path: &Path| path.display().to_string();
        Ok(StoreRestored {
            store: shown(store),
            sessions: well.store().count(&Filter::default())?.total(),
            replaced: replaced.as_deref().map(shown),
        })
    }

    /// Refuses to replace the present store unless that is wanted and nobody works in it.
    fn may_replace_store(&self, replace: Replace) -> Result<()> {
        let store = &self.place.store;
        if replace == Replace::Refused {
            let why = format!("there is a store in {} already", store.display());
            return Err(Error::invalid(why).helped_by(Remedy::Replace));
        }
        // A store that cannot be opened is replaced all the more.
        if let Ok(well) = self.existing(Access::Read) {
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
}
