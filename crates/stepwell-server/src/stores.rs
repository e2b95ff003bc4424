//! The served stores: this workspace's, and the user's others.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use parking_lot::Mutex;
use stepwell::model::Digest;
use stepwell::{SessionId, Stepwell};
use stepwell_runtime::Runtime;
use stepwell_runtime::detached::{Launcher, Program};
use stepwell_wire::ServedStore;
use stepwell_workspace::{Host, Notices, Registry, RunLogs, Wanted, Workspace};

use crate::live::{Live, Outlet};
use crate::problem::{Problem, Result};
use crate::security::Caller;

/// The served workspaces, and the program that starts runs in them.
#[derive(Clone, Debug)]
pub struct Workspaces {
    /// The default workspace.
    pub home: Workspace,
    /// Serve the user's other stores, too?
    pub others: bool,
    /// The program for longer work; `None` to start nothing.
    pub program: Option<Program>,
}

/// An open store with its workspace.
#[derive(Debug)]
pub(crate) struct OpenStore {
    pub(crate) key: String,
    pub(crate) name: String,
    pub(crate) runtime: Runtime,
    pub(crate) well: Stepwell,
    pub(crate) live: Arc<Live>,
}

/// The open stores.
#[derive(Debug)]
pub(crate) struct Stores {
    workspaces: Workspaces,
    hearing: Hearing,
    home: Arc<OpenStore>,
    others: Mutex<HashMap<String, Arc<OpenStore>>>,
}

/// Are live pieces of the user's runs streamed?
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Hearing {
    /// Those of the user's own stores.
    Own,
    /// None: pieces are not redacted, and the server is reachable from other machines.
    None,
}

/// The length of a store's key, in digits of a digest.
const KEY_LENGTH: usize = 12;

impl Stores {
    /// Opens the home store, and creates it if it does not exist.
    pub(crate) fn open(
        workspaces: Workspaces,
        hearing: Hearing,
    ) -> stepwell_workspace::Result<Self> {
        let well = workspaces.home.open_or_create()?;
        let place = &workspaces.home.place;
        let shown = place.team.as_ref().map(|team| team.shown().to_owned());
        let name = shown.unwrap_or_else(|| place.store.clone());
        let home = Arc::new(opened(workspaces.home.clone(), well, &name, hearing));
        Ok(Self { workspaces, hearing, home, others: Mutex::default() })
    }

    /// The store with a key. Stores other than the home store are only for the user.
    pub(crate) fn get(&self, key: Option<&str>, caller: &Caller) -> Result<Arc<OpenStore>> {
        match key {
            None => Ok(Arc::clone(&self.home)),
            Some(key) if key == self.home.key => Ok(Arc::clone(&self.home)),
            Some(key) if caller.is_user => self.other(key),
            Some(_) => Err(no_store()),
        }
    }

    /// Sends changes of all current stores.
    pub(crate) fn tell_changes(&self, caller: &Caller, to: &Outlet) -> Result<()> {
        self.home.live.tell_changes(to.clone())?;
        for path in self.known_to(caller) {
            // A store that cannot be opened does not hide the others.
            let _ = self.other(&key(&path)).and_then(|store| store.live.tell_changes(to.clone()));
        }
        Ok(())
    }

    /// All stores that the caller may see, the home store first.
    pub(crate) fn list(&self, caller: &Caller) -> Vec<ServedStore> {
        let served = |store: &OpenStore, home| ServedStore {
            key: store.key.clone(),
            name: store.name.clone(),
            workspace: store.runtime.workspace().place.root.display().to_string(),
            home,
            problem: None,
        };
        let mut list = vec![served(&self.home, true)];
        for path in self.known_to(caller) {
            let key = key(&path);
            list.push(match self.other(&key) {
                Ok(store) => served(&store, false),
                // Listed all the same, so that it does not seem to be gone.
                Err(problem) => ServedStore {
                    key,
                    name: path.display().to_string(),
                    workspace: path.parent().unwrap_or(&path).display().to_string(),
                    home: false,
                    problem: Some(problem.title().to_owned()),
                },
            });
        }
        list
    }

    fn known_to(&self, caller: &Caller) -> Vec<PathBuf> {
        if caller.is_user { self.known() } else { Vec::new() }
    }

    /// The folders of the user's other stores.
    fn known(&self) -> Vec<PathBuf> {
        let home = &self.workspaces.home;
        let known = match (self.workspaces.others, Registry::of(&home.host)) {
            (true, Some(registry)) => registry.all().unwrap_or_default(),
            _ => Vec::new(),
        };
        let here = home.place.store.canonicalize().unwrap_or_else(|_| home.place.store.clone());
        let is_there = |store: &PathBuf| *store != here && store.join("stepwell.db").exists();
        known.into_iter().filter(is_there).collect()
    }

    fn other(&self, wanted: &str) -> Result<Arc<OpenStore>> {
        let mut others = self.others.lock();
        if let Some(store) = others.get(wanted) {
            return Ok(Arc::clone(store));
        }
        let found = self.known().into_iter().find(|path| key(path) == wanted);
        let path = found.ok_or_else(no_store)?;
        let host: Host = self.workspaces.home.host.clone();
        let wanted_store = Wanted { store: Some(path.clone()), ..Wanted::default() };
        let workspace = Workspace::locate(host, wanted_store, Notices::to_nobody())?;
        let well = workspace.open_writable_if_possible(&path)?;
        let store = Arc::new(opened(workspace, well, &path, self.hearing));
        others.insert(wanted.to_owned(), Arc::clone(&store));
        Ok(store)
    }

    /// The launcher of runs in a store.
    pub(crate) fn launcher(&self, store: &OpenStore) -> Option<Launcher> {
        let mut program = self.workspaces.program.clone()?;
        let place = &store.runtime.workspace().place;
        // The home store is the one that the program finds by itself, as this one did.
        if store.key != self.home.key {
            program.store = vec!["--store".into(), place.store.clone().into_os_string()];
        }
        let logs = RunLogs::of(&place.store).folder().to_owned();
        let folder = place.root.clone();
        Some(Launcher { program, folder, logs })
    }
}

fn no_store() -> Problem {
    Problem::absent("there is no such store").at("store")
}

impl OpenStore {
    /// An existing session.
    pub(crate) fn session(&self, id: &str) -> Result<SessionId> {
        let id: SessionId = id.parse().map_err(|error: stepwell::model::InvalidName| {
            Problem::invalid(error.to_string()).at("id")
        })?;
        match self.well.store().exists(&id)? {
            true => Ok(id),
            false => Err(Problem::absent(format!("there is no session {id}")).at("id")),
        }
    }
}

fn opened(workspace: Workspace, well: Stepwell, name: &Path, hearing: Hearing) -> OpenStore {
    // A team's members see what is on record, like everybody.
    let is_heard = hearing == Hearing::Own && workspace.place.team.is_none();
    let heard = is_heard.then(|| workspace.clone());
    let name = name.display().to_string();
    let key = key(Path::new(&name));
    let live = Arc::new(Live::new(key.clone(), well.clone(), heard));
    OpenStore { key, name, runtime: Runtime::new(workspace), well, live }
}

/// A short key of a store that does not reveal its path.
fn key(path: &Path) -> String {
    let digest = Digest::of(path.as_os_str().as_encoded_bytes()).to_string();
    let hex = digest.rsplit(':').next().unwrap_or_default();
    hex.chars().take(KEY_LENGTH).collect()
}
