//! Finding sessions of a workspace by their names.

use stepwell::sqlite::Access;
use stepwell::store::query::TrashScope;
use stepwell::{SessionId, Stepwell};

use crate::error::{Error, Lies, Result};
use crate::known_stores::store_elsewhere;
use crate::workspace::Workspace;

impl Workspace {
    /// The session that a name means.
    ///
    /// # Errors
    /// If it means none, or several.
    pub fn find_session(&self, well: &Stepwell, name: &str) -> Result<SessionId> {
        self.find_session_in(well, TrashScope::Kept, name)
    }

    /// The session that a name means, in the trash or not.
    ///
    /// # Errors
    /// If it means none there, or several.
    pub fn find_session_in(
        &self,
        well: &Stepwell,
        place: TrashScope,
        name: &str,
    ) -> Result<SessionId> {
        well.find_in(place, name).map_err(|error| match error {
            stepwell::Error::NoMatch(_) => no_match(self, well, place, name),
            error => error.into(),
        })
    }

    /// Opens the store and finds a session in it. Where there is no store there is no
    /// such session.
    ///
    /// # Errors
    /// If there is no such session, or the store cannot be opened.
    pub fn open_session(&self, name: &str, access: Access) -> Result<(Stepwell, SessionId)> {
        self.open_session_in(TrashScope::Kept, name, access)
    }

    /// Opens the store and finds a session in it, in the trash or not.
    ///
    /// # Errors
    /// If there is no such session there, or the store cannot be opened.
    pub fn open_session_in(
        &self,
        place: TrashScope,
        name: &str,
        access: Access,
    ) -> Result<(Stepwell, SessionId)> {
        if !self.place.has_store() {
            return Err(Error::NoMatch { name: name.to_owned(), lies: Lies::NoStoreHere });
        }
        let well = self.open_existing(access)?;
        let id = self.find_session_in(&well, place, name)?;
        Ok((well, id))
    }
}

/// Why a name means nothing here, and where it may mean something.
fn no_match(workspace: &Workspace, well: &Stepwell, place: TrashScope, name: &str) -> Error {
    let other = match place {
        TrashScope::Trash => TrashScope::Kept,
        _ => TrashScope::Trash,
    };
    let lies = match (well.try_find(other, name), place) {
        (Ok(id), TrashScope::Trash) => {
            match well.info(&id).is_ok_and(|info| info.head.is_ledger_row()) {
                true => Lies::Erased(id),
                false => Lies::NotInTrash(id),
            }
        }
        (Ok(id), _) if name != "@last" => Lies::InTrash(id),
        _ => store_elsewhere(workspace, name).map_or(Lies::Nowhere, Lies::InStore),
    };
    Error::NoMatch { name: name.to_owned(), lies }
}
