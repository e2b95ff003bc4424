//! A workspace: a folder, the store of its sessions, the settings that hold in it, and whose
//! machine it is on.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use stepwell::error::Action;
use stepwell::log::{Head, Redactor};
use stepwell::model::IdFormat;
use stepwell::sessions::Deps;
use stepwell::sqlite::Access;
use stepwell::{Remedy, Stepwell, Store};
use stepwell_files::worktree::{WorktreeRef, worktrees_of};
use stepwell_postgres::Address;

use crate::config::{Config, IdStyle, Override};
use crate::engine::{open_folder, open_team};
use crate::error::{Error, ErrorKind, Result};
use crate::host::Host;
use crate::location::{Found, Location};
use crate::notice::{Notice, Notices};
use crate::own_sessions::OwnSessions;
use crate::registry::Registry;

/// How long a team's store is waited for by whoever has a caller who waits: a connection that is
/// refused for a moment does not count, and nobody takes the caller for hung.
const SOON: Duration = Duration::from_secs(3);

/// A workspace: a folder, the store of its sessions, the settings that hold in it, and whose
/// machine it is on.
#[derive(Clone, Debug)]
pub struct Workspace {
    /// What surrounds the process.
    pub host: Host,
    /// The settings in force.
    pub config: Config,
    /// Where the folder and the store are.
    pub place: Location,
    /// Where notices go.
    pub notices: Notices,
    /// Settings that were given for this one time.
    overrides: Vec<Override>,
    /// Was this workspace's store opened for writing?
    written: Arc<AtomicBool>,
    /// Takes secrets out of what is written, the user's own included.
    redactor: Redactor,
    /// Is what is given here the user's own?
    is_own: bool,
}

/// Which workspace is meant.
#[derive(Clone, Debug, Default)]
pub struct Wanted {
    /// The folder that it is looked for from; none, if that is gone.
    pub folder: Option<PathBuf>,
    /// The store's folder, its database or a team's address, where it is named.
    pub store: Option<PathBuf>,
    /// Settings that are given for this one time.
    pub overrides: Vec<Override>,
}

impl Workspace {
    /// Finds the workspace that is meant. There may be no store in it yet.
    ///
    /// # Errors
    /// If the folder is gone, an address is none, or the configuration is wrong.
    pub fn locate(host: Host, wanted: Wanted, notices: Notices) -> Result<Self> {
        let is_absolute = |store: &PathBuf| store.is_absolute();
        // A store that is named in full needs no folder to be found from.
        if wanted.folder.is_none() && !wanted.store.as_ref().is_some_and(is_absolute) {
            return Err(no_folder());
        }
        match Self::locate_or_defaults(host, wanted, notices)? {
            (workspace, None) => Ok(workspace),
            (_, Some(fault)) => Err(fault),
        }
    }

    /// Like [`Self::locate`], for whoever helps where everything else is wrong: a configuration
    /// that cannot be read is an answer, and the defaults hold.
    ///
    /// # Errors
    /// If an address is none.
    pub fn locate_or_defaults(
        host: Host,
        wanted: Wanted,
        notices: Notices,
    ) -> Result<(Self, Option<Error>)> {
        let Wanted { folder, store, overrides } = wanted;
        let folder = folder.unwrap_or_default();
        let team = store.as_deref().map(|named| team_address(named, &host)).transpose()?.flatten();
        let place = match (team, store) {
            (Some(team), _) => Location::around(&folder).shared(team),
            (None, Some(store)) => Location::named(&folder.join(store), &folder),
            (None, None) => Location::around(&folder),
        };
        let (config, fault) = match Config::load(&host, &place.root, &overrides) {
            Ok(config) => (config, None),
            Err(fault) => (Config::default(), Some(fault)),
        };
        let configured = config.settings.store_url.address();
        let place = match configured.filter(|_| place.found == Found::Around).cloned() {
            Some(team) => place.shared(with_password(team, &host)),
            None => place,
        };
        let fault = fault.or_else(|| place.refuse_links().err());
        let written = Arc::new(AtomicBool::new(false));
        let password = place.team.as_ref().and_then(Address::password);
        let redactor = Redactor::with_environment(password, host.secrets());
        Ok((
            Self { host, config, place, notices, overrides, written, redactor, is_own: true },
            fault,
        ))
    }

    /// The same workspace with other settings, for what goes on beside it.
    #[must_use]
    pub fn with_config(&self, config: Config) -> Self {
        Self {
            host: self.host.clone(),
            config,
            place: self.place.clone(),
            notices: self.notices.clone(),
            overrides: self.overrides.clone(),
            written: Arc::clone(&self.written),
            redactor: self.redactor.clone(),
            is_own: self.is_own,
        }
    }

    /// The same for somebody else whom a front end speaks for: what they allow is not noted as the
    /// user's own, and counts as `talk.from` says.
    #[must_use]
    pub fn for_others(&self) -> Self {
        Self { is_own: false, ..self.clone() }
    }

    /// The same for a front end whose callers wait: if a team's store cannot be reached, they learn
    /// of it within seconds. Runs have more patience, because a failover takes its time.
    #[must_use]
    pub fn with_short_timeout(&self) -> Self {
        let mut soon = self.clone();
        soon.place.team = soon.place.team.map(|team| team.waited_for(SOON));
        soon
    }

    /// May something in this workspace's store have changed?
    #[must_use]
    pub fn has_written(&self) -> bool {
        self.written.load(Ordering::Relaxed)
    }

    /// Now.
    #[must_use]
    pub fn now(&self) -> stepwell::model::Time {
        self.host.now()
    }

    /// The folder that a session works in, without links. A store that lies elsewhere says
    /// where its sessions work; one that lies in its workspace moves with it. A subagent's
    /// worktree lies in the store, wherever that is now.
    ///
    /// # Errors
    /// If there is no such folder.
    pub fn session_folder(&self, session: Option<&Head>) -> Result<PathBuf> {
        if let Some(head) = session
            && let Some(worktrees) = worktrees_of(head)
        {
            let folder = worktrees.iter().find_map(|worktree| worktree.folder(&self.place.store));
            return folder.ok_or_else(|| without_worktree(head, &worktrees));
        }
        let usual =
            self.place.store.file_name().is_some_and(|name| name == stepwell::store::STORE_FOLDER);
        let root = match session.map(|head| head.workspace.as_str()) {
            Some(recorded) if !usual && !recorded.is_empty() => PathBuf::from(recorded),
            _ => self.place.root.clone(),
        };
        std::fs::canonicalize(&root).map_err(Error::file(&root, "looking for the workspace"))
    }

    /// Opens the store for reading, if there is one.
    ///
    /// # Errors
    /// If it cannot be opened, or was named and is not there.
    pub fn open_if_present(&self) -> Result<Option<Stepwell>> {
        match (self.place.has_store(), self.place.found) {
            (true, _) => self.open(&self.place.store, Access::Read).map(Some),
            (false, Found::Around) => Ok(None),
            (false, Found::Named) => Err(self.no_store()),
        }
    }

    /// Opens a store that is there.
    ///
    /// # Errors
    /// If it is not there, or cannot be opened.
    pub fn open_existing(&self, access: Access) -> Result<Stepwell> {
        match self.place.has_store() {
            true => self.open(&self.place.store, access),
            false => Err(self.no_store()),
        }
    }

    fn no_store(&self) -> Error {
        stepwell::Error::NoStore(self.place.store.clone()).into()
    }

    /// Opens the store for writing, and makes it if there is none.
    ///
    /// # Errors
    /// If it cannot be made or opened.
    pub fn open_or_create(&self) -> Result<Stepwell> {
        let fresh = !self.place.has_store();
        let well = self.open(&self.place.store, Access::Write)?;
        if fresh {
            self.hide_from_git();
        }
        Ok(well)
    }

    fn hide_from_git(&self) {
        if let Err(error) = self.place.ignore() {
            self.notices.tell(Notice::warning(".gitignore could not be changed", &error));
        }
    }

    /// Opens the store of a folder: the team's, if this workspace's sessions are there.
    ///
    /// # Errors
    /// If it cannot be opened.
    pub fn open(&self, folder: &Path, access: Access) -> Result<Stepwell> {
        let team = self.place.team.as_ref().filter(|_| folder == self.place.store);
        let well = match team {
            Some(team) => self.team_well(team, open_team(team, access, &self.host)?),
            None => {
                // Opening may have made the folder, and only then its name is known.
                let store = open_folder(folder, access, &self.host)?;
                self.well_over(&folder_name(folder), store)
            }
        };
        if access == Access::Write {
            match team {
                Some(_) => self.make_folder(),
                None => self.register(folder),
            }
            if folder == self.place.store {
                self.written.store(true, Ordering::Relaxed);
            }
        }
        Ok(well)
    }

    /// The folder for what belongs to this machine, beside a team's store.
    fn make_folder(&self) {
        use std::os::unix::fs::DirBuilderExt;
        // A link of that name makes this fail, and nothing is written below it.
        if std::fs::DirBuilder::new().mode(0o700).create(&self.place.store).is_ok() {
            if let Err(error) = stepwell::sqlite::hide_from_git(&self.place.store) {
                self.notices.tell(Notice::warning(".gitignore could not be changed", &error));
            }
            self.hide_from_git();
        }
    }

    /// Opens a store for writing, or where that is not possible, for reading.
    ///
    /// # Errors
    /// If it cannot even be read.
    pub fn open_writable_if_possible(&self, folder: &Path) -> Result<Stepwell> {
        self.open(folder, Access::Write).or_else(|_| self.open(folder, Access::Read))
    }

    /// A well over a team's open store.
    pub(crate) fn team_well(&self, team: &Address, store: Arc<dyn Store>) -> Stepwell {
        self.well_over(&self.team_name(team), store)
    }

    /// How the names of new sessions look.
    #[must_use]
    pub fn id_format(&self) -> IdFormat {
        let settings = &self.config.settings;
        match settings.id_format {
            IdStyle::Timestamp => IdFormat::Timestamp,
            IdStyle::Hex => {
                IdFormat::Hex(u8::try_from(settings.id_length.get()).unwrap_or(u8::MAX))
            }
            IdStyle::Uuid => IdFormat::Uuid,
        }
    }

    /// A well over an open store, which the user's own sessions know by a name.
    fn well_over(&self, name: &str, store: Arc<dyn Store>) -> Stepwell {
        let settings = &self.config.settings;
        let id_format = self.id_format();
        let (clock, processes) = (Arc::clone(&self.host.clock), Arc::clone(&self.host.processes));
        let redactor = self.redactor.clone();
        let mut surroundings = Deps { id_format, clock, processes, redactor, ..Deps::default() };
        surroundings.answers_from = settings.talk_from.into();
        if let Some(own) = self.own_sessions_of(name) {
            surroundings.notes = Arc::new(own);
        }
        Stepwell::with(store, surroundings)
    }

    /// What takes secrets out of what is written, and out of what is shown of imports.
    #[must_use]
    pub const fn redactor(&self) -> &Redactor {
        &self.redactor
    }

    /// The user's own sessions in this workspace's store; none, if nothing is remembered here.
    pub(crate) fn own_sessions(&self) -> Option<OwnSessions> {
        let store = match &self.place.team {
            Some(team) => self.team_name(team),
            None => folder_name(&self.place.store),
        };
        self.own_sessions_of(&store)
    }

    fn own_sessions_of(&self, store: &str) -> Option<OwnSessions> {
        let state = self.host.state.as_deref().filter(|_| self.is_own);
        state.map(|state| OwnSessions::below(state, store))
    }

    /// In a team's store another folder is another workspace.
    fn team_name(&self, team: &Address) -> String {
        format!("{team} {}", folder_name(&self.place.root))
    }

    /// Remembers a store among the user's. Forgetting to is no reason to fail.
    fn register(&self, store: &Path) {
        if let Some(Err(error)) = Registry::of(&self.host).map(|registry| registry.add(store)) {
            tracing::warn!(%error, "store_not_registered");
        }
    }

    /// Goes to the workspace of another store of the user's, by its folder.
    ///
    /// # Errors
    /// If that workspace's configuration is wrong.
    pub fn go_to_store(&mut self, store: &Path) -> Result<()> {
        self.place = Location::named(store, &self.place.root);
        self.reload_config()
    }

    /// Reads the configuration again.
    ///
    /// # Errors
    /// If it is wrong.
    pub fn reload_config(&mut self) -> Result<()> {
        self.config = Config::load(&self.host, &self.place.root, &self.overrides)?;
        Ok(())
    }
}

/// A folder without links.
fn folder_name(path: &Path) -> String {
    path.canonicalize().unwrap_or_else(|_| path.to_owned()).display().to_string()
}

/// A folder that is needed is gone, or nobody says which it is.
pub(crate) fn no_folder() -> Error {
    Error::refused(ErrorKind::Absent, "the current folder is gone")
}

/// Why a session that works in a worktree has none here.
fn without_worktree(head: &Head, worktrees: &[WorktreeRef]) -> Error {
    let (id, folder) = (&head.id, &head.workspace);
    let chat = Remedy::Session(Action::RewindChat, id.clone());
    match worktrees.is_empty() {
        true => {
            let why = format!("{id} works in {folder}, which is no worktree of this store");
            Error::invalid(why).helped_by(chat)
        }
        false => Error::invalid(format!(
            "the worktree of {id} is gone, and its next run restores it: {folder}"
        ))
        .helped_by(Remedy::Session(Action::Say, id.clone()))
        .helped_by(chat),
    }
}

/// The address of a team's store, if that is what names a store.
///
/// # Errors
/// If it looks like an address and is none.
pub fn team_address(named: &Path, host: &Host) -> Result<Option<Address>> {
    let address = Address::of_store(&named.to_string_lossy()).map_err(Error::Address)?;
    Ok(address.map(|address| with_password(address, host)))
}

/// An address without a password takes the one that PostgreSQL's own clients would.
fn with_password(address: Address, host: &Host) -> Address {
    match host.variable("PGPASSWORD") {
        Some(password) => address.or_password(&password),
        None => address,
    }
}
