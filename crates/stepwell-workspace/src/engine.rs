//! The store behind a well, whichever it is, for what the trait does not promise.

use std::path::Path;
use std::sync::Arc;

use stepwell::model::Owner;
use stepwell::sqlite::{Access, SqliteOptions, SqliteStore};
use stepwell::store::{Indexed, Maintain as _};
use stepwell::{Remedy, SessionId, Store};
use stepwell_postgres::{Address, PostgresOptions, PostgresStore};

use crate::error::{Error, Result};
use crate::host::Host;

/// The store behind a well.
#[derive(Clone, Debug)]
pub enum Engine {
    /// A file in the workspace.
    Sqlite(Arc<SqliteStore>),
    /// A team's server.
    Postgres(Arc<PostgresStore>),
}

impl Engine {
    /// Opens the store of a folder.
    pub fn folder(folder: &Path, access: Access, host: &Host) -> Result<Self> {
        let (clock, processes) = (Arc::clone(&host.clock), Arc::clone(&host.processes));
        let options = SqliteOptions { access, clock, processes };
        Ok(Self::Sqlite(Arc::new(SqliteStore::open_with(folder, options)?)))
    }

    /// Opens a team's store. Its server's clock counts, not this machine's.
    pub fn team(address: &Address, access: Access, host: &Host) -> Result<Self> {
        let processes = Arc::clone(&host.processes);
        let servers = host.state.as_ref().map(|state| state.join("servers"));
        let options = PostgresOptions { access, clock: None, processes, servers };
        let opened = PostgresStore::open_with(address.clone(), options);
        let store = opened.map_err(|error| match error {
            stepwell::Error::NoStore(_) => Error::TeamStoreNotSetUp(error),
            error => error.into(),
        })?;
        Ok(Self::Postgres(Arc::new(store)))
    }

    /// The store, as everybody uses it.
    #[must_use]
    pub fn store(&self) -> Arc<dyn Store> {
        match self {
            Self::Sqlite(store) => Arc::clone(store) as Arc<dyn Store>,
            Self::Postgres(store) => Arc::clone(store) as Arc<dyn Store>,
        }
    }

    /// What is wrong with the store itself. A server looks after its own files.
    pub fn integrity(&self) -> stepwell::Result<Vec<String>> {
        self.store().maintain().integrity()
    }

    /// Leases that their holders never gave back.
    pub fn stale_leases(&self) -> stepwell::Result<Vec<(SessionId, Owner)>> {
        self.store().maintain().stale_leases()
    }

    /// Builds the search index anew.
    pub fn rebuild_search(&self) -> stepwell::Result<()> {
        self.store().maintain().rebuild_search()
    }

    /// Brings the search index up to date, and tells now and then how far it is.
    pub fn catch_up(&self, told: &dyn Fn(Indexed)) -> stepwell::Result<()> {
        self.store().maintain().catch_up(told)
    }

    /// Gives the space of what was erased back to the disk; a server does that by itself.
    pub fn shrink(&self) -> stepwell::Result<()> {
        self.store().maintain().shrink()
    }

    /// Copies the whole store to a file.
    pub fn backup(&self, to: &Path) -> Result<()> {
        match self {
            Self::Sqlite(store) => Ok(store.backup(to)?),
            Self::Postgres(_) => {
                let why = "a team's store is backed up with its server: pg_dump --schema=stepwell";
                Err(Error::invalid(why).helped_by(Remedy::CopyStore))
            }
        }
    }
}
