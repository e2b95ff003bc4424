//! The stores that tools read: this workspace's, or all of the user's.

use std::sync::Arc;

use parking_lot::Mutex;
use stepwell::log::Redactor;
use stepwell::model::Who;
use stepwell::sqlite::Access;
use stepwell::{Acting, SessionId, Stepwell};
use stepwell_workspace::{NamedWell, Opening, Workspace, known_stores};

use crate::error::{Error, Result};
use crate::options::Scope;

/// The stores that tools read.
#[derive(Clone, Debug)]
pub(crate) struct Stores {
    /// The workspace that the server was started in.
    pub(crate) workspace: Workspace,
    scope: Scope,
    /// Removes secrets from everything that leaves.
    pub(crate) redactor: Redactor,
    /// This workspace's store, once it was opened: for reading, for searching, for writing.
    open: Arc<Mutex<[Option<Stepwell>; 3]>>,
    /// For whom it is written, as the log names them; absent, this process's user.
    who: Option<Who>,
}

/// The reason for opening a store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Purpose {
    /// For reading only.
    Read,
    /// For searching; the index is updated if possible.
    Search,
    /// For writing; a missing store is created.
    Write,
}

/// An open store.
#[derive(Clone, Debug)]
pub(crate) struct OpenStore {
    /// Its name, if there are several.
    pub(crate) name: Option<String>,
    /// The store.
    pub(crate) well: Stepwell,
}

/// A session and its store.
#[derive(Debug)]
pub(crate) struct Located {
    /// Its store.
    pub(crate) well: Stepwell,
    /// Its id.
    pub(crate) id: SessionId,
}

impl Stores {
    /// The stores of a workspace, or all of the user's.
    pub(crate) fn new(workspace: Workspace, scope: Scope) -> Self {
        let redactor = workspace.redactor().with_own_count();
        Self { workspace, scope, redactor, open: Arc::default(), who: None }
    }

    /// The same stores, with another author of changes.
    pub(crate) fn acting_as(&self, who: Who) -> Self {
        Self { who: Some(who), ..self.clone() }
    }

    /// A store for a tool, with the author of its changes.
    fn given(&self, well: &Stepwell) -> Stepwell {
        match &self.who {
            Some(who) => well.acting(Acting { who: Some(who.clone()), event: None }),
            None => well.clone(),
        }
    }

    /// This workspace's store; `None` if there is none and `purpose` is not writing.
    pub(crate) fn here(&self, purpose: Purpose) -> Result<Option<Stepwell>> {
        let place = &self.workspace.place;
        let mut open = self.open.lock();
        if !place.has_store() {
            // An open store was removed.
            *open = Default::default();
            if purpose != Purpose::Write {
                return Ok(None);
            }
        }
        let slot = &mut open[purpose as usize];
        if let Some(well) = slot {
            return Ok(Some(self.given(well)));
        }
        let well = match purpose {
            Purpose::Read => self.workspace.open_existing(Access::Read)?,
            Purpose::Search => self.workspace.open_writable_if_possible(&place.store)?,
            Purpose::Write => self.workspace.open_or_create()?,
        };
        Ok(Some(self.given(slot.insert(well))))
    }

    /// Every store in scope, this workspace's first.
    pub(crate) fn all(&self, purpose: Purpose) -> Result<Vec<OpenStore>> {
        match self.scope {
            Scope::Workspace => {
                let here = self.here(purpose)?;
                Ok(here.map(|well| OpenStore { name: None, well }).into_iter().collect())
            }
            Scope::Everywhere => {
                let opening = match purpose {
                    Purpose::Read => Opening::Read,
                    Purpose::Search => Opening::WriteIfPossible,
                    Purpose::Write => Opening::Write,
                };
                let wells = known_stores::open_all(&self.workspace, opening);
                let open = |NamedWell { name, well }| {
                    let name = Some(name.display().to_string());
                    OpenStore { name, well: self.given(&well) }
                };
                Ok(wells.into_iter().map(open).collect())
            }
        }
    }

    /// Finds a session by id, part of an id, label or `@last`. Without a store's name, this
    /// workspace's sessions come first.
    pub(crate) fn session(&self, named: &Named, purpose: Purpose) -> Result<Located> {
        let Named { session: name, store } = named;
        if store.is_none()
            && let Some(well) = self.here(if_there(purpose, self))?
        {
            match well.find(name) {
                Ok(id) => return Ok(Located { well, id }),
                Err(stepwell::Error::NoMatch(_)) if self.scope == Scope::Everywhere => {}
                Err(error) => return Err(error.into()),
            }
        }
        let stores = self.all(if_there(purpose, self))?;
        if stores.is_empty() {
            return Err(Error::NoStore);
        }
        let wanted = |open: &OpenStore| store.is_none() || open.name == *store;
        let mut wanted = stores.into_iter().filter(wanted).peekable();
        if let (None, Some(store)) = (wanted.peek(), store) {
            return Err(Error::UnknownStore(store.clone()));
        }
        for OpenStore { well, .. } in wanted {
            match well.find(name) {
                Ok(id) => return Ok(Located { well, id }),
                Err(stepwell::Error::NoMatch(_)) => {}
                Err(error) => return Err(error.into()),
            }
        }
        Err(stepwell::Error::NoMatch(name.clone()).into())
    }
}

/// Looking for a session creates no store.
fn if_there(purpose: Purpose, stores: &Stores) -> Purpose {
    match purpose {
        Purpose::Write if !stores.workspace.place.has_store() => Purpose::Read,
        purpose => purpose,
    }
}

/// A session's name, as a tool's argument.
#[derive(Clone, Debug)]
pub(crate) struct Named {
    /// Its id, a part of it, its label, or `@last`.
    pub(crate) session: String,
    /// Its store; any, if absent.
    pub(crate) store: Option<String>,
}

impl From<String> for Named {
    fn from(session: String) -> Self {
        Self { session, store: None }
    }
}
