//! The stores that a workspace can open, and what only a team's store has.

use std::any::Any;
use std::path::Path;
use std::sync::Arc;

use stepwell::sqlite::{Access, SqliteOptions, SqliteStore};
use stepwell::{Stepwell, Store};
use stepwell_postgres::{Address, PostgresOptions, PostgresStore};

use crate::error::{Error, Result};
use crate::host::Host;

/// Opens the store of a folder.
pub(crate) fn open_folder(folder: &Path, access: Access, host: &Host) -> Result<Arc<dyn Store>> {
    let (clock, processes) = (Arc::clone(&host.clock), Arc::clone(&host.processes));
    let options = SqliteOptions { access, clock, processes };
    Ok(Arc::new(SqliteStore::open_with(folder, options)?))
}

/// Opens a team's store. Its server's clock counts, not this machine's.
pub(crate) fn open_team(address: &Address, access: Access, host: &Host) -> Result<Arc<dyn Store>> {
    let processes = Arc::clone(&host.processes);
    let servers = host.state.as_ref().map(|state| state.join("servers"));
    let options = PostgresOptions { access, clock: None, processes, servers };
    let opened = PostgresStore::open_with(address.clone(), options);
    let store = opened.map_err(|error| match error {
        stepwell::Error::NoStore(_) => Error::TeamStoreNotSetUp(error),
        error => error.into(),
    })?;
    Ok(Arc::new(store))
}

/// The team's store that a well writes to; none, if its store lies in a folder.
pub(crate) fn team_store(well: &Stepwell) -> Option<&PostgresStore> {
    let server: &dyn Any = well.store().server()?;
    server.downcast_ref()
}
