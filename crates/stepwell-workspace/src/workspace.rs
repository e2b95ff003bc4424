//! A workspace: a folder, the store of its sessions, the settings that hold in it, and whose
//! machine it is on.

use std::collections::BTreeSet;
use std::ops::Deref;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use stepwell::error::Action;
use stepwell::log::{Head, Redactor};
use stepwell::model::IdFormat;
use stepwell::sessions::Deps;
use stepwell::sqlite::Access;
use stepwell::store::query::{Filter, TrashScope as Whereabouts};
use stepwell::{Remedy, SessionId, Stepwell};
use stepwell_files::worktree::{WorktreeRef, worktrees_of};
use stepwell_postgres::Address;

use crate::calibrations::Calibrations;
use crate::config::{Config, IdStyle, Override};
use crate::engine::Engine;
use crate::error::{Error, ErrorKind, Lies, Result};
use crate::host::Host;
use crate::location::{Found, Location};
use crate::notice::{Notice, Notices};
use crate::price_list::PriceListFile;
use crate::recent_models::RecentModelsFile;
use crate::registry::Registry;
use crate::trust::OwnSessions;

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

/// An open store: a well, and what is behind it.
#[derive(Debug)]
pub struct Well {
    well: Stepwell,
    /// The store behind it.
    pub engine: Engine,
}

impl Deref for Well {
    type Target = Stepwell;

    fn deref(&self) -> &Stepwell {
        &self.well
    }
}

/// A store of the user's, and what it is called.
#[derive(Debug)]
pub struct NamedWell {
    /// Its folder, or its address as it may be shown.
    pub name: PathBuf,
    /// The open store.
    pub well: Well,
}

impl Workspace {
    /// Finds the workspace that is meant. There may be no store in it yet.
    ///
    /// # Errors
    /// If the folder is gone, an address is none, or the configuration is wrong.
    pub fn find(host: Host, wanted: Wanted, notices: Notices) -> Result<Self> {
        let is_absolute = |store: &PathBuf| store.is_absolute();
        // A store that is named in full needs no folder to be found from.
        if wanted.folder.is_none() && !wanted.store.as_ref().is_some_and(is_absolute) {
            return Err(no_folder());
        }
        match Self::find_anyway(host, wanted, notices)? {
            (workspace, None) => Ok(workspace),
            (_, Some(fault)) => Err(fault),
        }
    }

    /// Like [`Self::find`], for whoever helps where everything else is wrong: a configuration
    /// that cannot be read is an answer, and the defaults hold.
    ///
    /// # Errors
    /// If an address is none.
    pub fn find_anyway(
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
    pub fn answering_soon(&self) -> Self {
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
    pub fn look(&self) -> Result<Option<Well>> {
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
    pub fn existing(&self, access: Access) -> Result<Well> {
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
    pub fn make(&self) -> Result<Well> {
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
    pub fn open(&self, folder: &Path, access: Access) -> Result<Well> {
        let engine = match self.place.team.as_ref().filter(|_| folder == self.place.store) {
            Some(team) => {
                let engine = Engine::team(team, access, &self.host)?;
                if access == Access::Write {
                    self.make_folder();
                }
                engine
            }
            None => {
                let engine = Engine::folder(folder, access, &self.host)?;
                if access == Access::Write {
                    self.register(folder);
                }
                engine
            }
        };
        if access == Access::Write && folder == self.place.store {
            self.written.store(true, Ordering::Relaxed);
        }
        Ok(self.well_at(folder, engine))
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
    pub fn open_at_best(&self, folder: &Path) -> Result<Well> {
        self.open(folder, Access::Write).or_else(|_| self.open(folder, Access::Read))
    }

    /// A well over an open store.
    #[must_use]
    pub fn well(&self, engine: Engine) -> Well {
        self.well_at(&self.place.store, engine)
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

    fn well_at(&self, folder: &Path, engine: Engine) -> Well {
        let settings = &self.config.settings;
        let id_format = self.id_format();
        let (clock, processes) = (Arc::clone(&self.host.clock), Arc::clone(&self.host.processes));
        let redactor = self.redactor.clone();
        let mut surroundings = Deps { id_format, clock, processes, redactor, ..Deps::default() };
        surroundings.answers_from = settings.talk_from.into();
        if let Some(own) = self.own_sessions_of(&self.store_name(folder, &engine)) {
            surroundings.notes = Arc::new(own);
        }
        Well { well: Stepwell::with(engine.store(), surroundings), engine }
    }

    /// What takes secrets out of what is written, and out of what is shown of imports.
    #[must_use]
    pub const fn redactor(&self) -> &Redactor {
        &self.redactor
    }

    /// Did something that was to be written hold what looks like a secret? It was written without.
    #[must_use]
    pub fn has_redacted(&self) -> bool {
        self.redactor.taken() > 0
    }

    /// The user's known stores.
    #[must_use]
    pub fn registry(&self) -> Option<Registry> {
        self.host.state.as_deref().map(Registry::below)
    }

    /// The user's recent models and favourites.
    #[must_use]
    pub fn recent_models(&self) -> Option<RecentModelsFile> {
        self.host.state.as_deref().map(RecentModelsFile::below)
    }

    /// The list of prices that the user took.
    #[must_use]
    pub fn price_list(&self) -> Option<PriceListFile> {
        self.host.state.as_deref().map(PriceListFile::below)
    }

    /// What was learned of how providers count tokens.
    #[must_use]
    pub fn calibrations(&self) -> Option<Calibrations> {
        self.host.state.as_deref().map(Calibrations::below)
    }

    fn own_sessions(&self) -> Option<OwnSessions> {
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

    /// What tells a store from all others of the user's.
    fn store_name(&self, folder: &Path, engine: &Engine) -> String {
        match engine {
            Engine::Sqlite(_) => folder_name(folder),
            Engine::Postgres(store) => self.team_name(store.address()),
        }
    }

    /// In a team's store another folder is another workspace.
    fn team_name(&self, team: &Address) -> String {
        format!("{team} {}", folder_name(&self.place.root))
    }

    /// Is a session the user's own, so that what was allowed in it counts?
    #[must_use]
    pub fn is_own(&self, id: &SessionId) -> bool {
        self.own_sessions().is_some_and(|own| own.has(id))
    }

    /// Did this user begin a session? A team's server says which role did; of a folder's sessions
    /// only those with the user's own mark count.
    ///
    /// # Errors
    /// If a team's server cannot be asked.
    pub fn began(&self, well: &Well, head: &Head) -> Result<bool> {
        match &well.engine {
            Engine::Postgres(store) => {
                Ok(store.begun_by_others(std::slice::from_ref(&head.id))?.is_empty())
            }
            Engine::Sqlite(_) => Ok(self.is_own(&head.id)),
        }
    }

    /// A filter narrowed to sessions of this workspace. A store in its workspace has no others,
    /// and moves with it.
    #[must_use]
    pub fn narrowed(&self, filter: Filter) -> Filter {
        let usual =
            self.place.store.file_name().is_some_and(|name| name == stepwell::store::STORE_FOLDER);
        match self.place.team.is_some() || !usual {
            // As a session notes where it works.
            true => Filter { workspace: Some(self.place.root.display().to_string()), ..filter },
            false => filter,
        }
    }

    /// Remembers that sessions came from where an agent of the user's own keeps them. Such a session
    /// of this workspace is theirs to resume; nothing that was allowed in it counts. A folder below the
    /// workspace may have come with it from somebody else, and is not such a place.
    pub fn own_import(&self, from: &Path, ids: impl IntoIterator<Item = SessionId>) {
        let is_projects = match (from.canonicalize(), self.place.root.canonicalize()) {
            (Ok(from), Ok(root)) => from.starts_with(root),
            _ => true,
        };
        let Some(own) = self.own_sessions().filter(|_| !is_projects) else { return };
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
    pub fn is_to_resume(&self, well: &Well, head: &Head) -> Result<bool> {
        let is_imported = self.own_sessions().is_some_and(|own| own.has_from_agent(&head.id));
        let here = || self.place.root.canonicalize().ok();
        match is_imported {
            true => Ok(here().is_some_and(|root| {
                Path::new(&head.workspace).canonicalize().is_ok_and(|it| it == root)
            })),
            false => {
                Ok((head.source.is_none() || self.is_own(&head.id)) && self.began(well, head)?)
            }
        }
    }

    /// Remembers that a session is the user's own. Forgetting to means to be asked again.
    pub fn own(&self, id: &SessionId) {
        if let Some(Err(error)) = self.own_sessions().map(|own| own.add(id)) {
            tracing::warn!(%error, "session_not_remembered");
        }
    }

    /// Takes back that a session is the user's own: it was not made.
    pub fn disown(&self, id: &SessionId) {
        if let Some(Err(error)) = self.own_sessions().map(|own| own.remove(id)) {
            tracing::warn!(%error, "session_still_remembered");
        }
    }

    /// Remembers a store among the user's. Forgetting to is no reason to fail.
    fn register(&self, store: &Path) {
        if let Some(Err(error)) = self.registry().map(|registry| registry.add(store)) {
            tracing::warn!(%error, "store_not_registered");
        }
    }

    /// Every known store that is there, this one first. Those that cannot be opened are
    /// notices.
    pub fn everywhere(&self, open: impl Fn(&Self, &Path) -> Result<Well>) -> Vec<NamedWell> {
        let mut wells = Vec::new();
        for (name, store) in self.named_stores() {
            match open(self, &store) {
                Ok(well) => wells.push(NamedWell { name, well }),
                Err(error) => {
                    self.notices.tell(Notice::warning("one of your stores is left out", &error));
                }
            }
        }
        wells
    }

    /// Those known stores that were not there before, by the names of those that were. One that
    /// cannot be opened yet, because it is just being made, is not there yet.
    pub fn new_stores(
        &self,
        before: &mut BTreeSet<PathBuf>,
        open: impl Fn(&Self, &Path) -> Result<Well>,
    ) -> Vec<NamedWell> {
        let mut wells = Vec::new();
        for (name, store) in self.named_stores() {
            if !before.contains(&name)
                && let Ok(well) = open(self, &store)
            {
                before.insert(name.clone());
                wells.push(NamedWell { name, well });
            }
        }
        wells
    }

    /// The known stores that are there, this one first, each with what it is called.
    fn named_stores(&self) -> Vec<(PathBuf, PathBuf)> {
        let here = self.place.has_store().then(|| self.place.store.clone());
        let here_canonical = here.as_deref().and_then(|here| std::fs::canonicalize(here).ok());
        let known = self.known_stores().into_iter();
        let others = known.filter(|store| Some(store) != here_canonical.as_ref());
        let named = here.into_iter().chain(others).filter_map(|store| {
            // A project that was moved or removed stays registered until somebody forgets it.
            let team = self.place.team.as_ref().filter(|_| store == self.place.store);
            let is_there = team.is_some() || store.join("stepwell.db").exists();
            let name = team.map_or_else(|| store.clone(), |team| team.shown().to_owned());
            is_there.then_some((name, store))
        });
        named.collect()
    }

    fn known_stores(&self) -> Vec<PathBuf> {
        match self.registry().map(|registry| registry.all()) {
            Some(Ok(known)) => known,
            Some(Err(error)) => {
                self.notices
                    .tell(Notice::warning("the list of known stores cannot be read", &error));
                Vec::new()
            }
            None => Vec::new(),
        }
    }

    /// The session that a name means.
    ///
    /// # Errors
    /// If it means none, or several.
    pub fn find_session(&self, well: &Stepwell, name: &str) -> Result<SessionId> {
        self.find_session_in(well, Whereabouts::Kept, name)
    }

    /// The session that a name means, in the trash or not.
    ///
    /// # Errors
    /// If it means none there, or several.
    pub fn find_session_in(
        &self,
        well: &Stepwell,
        place: Whereabouts,
        name: &str,
    ) -> Result<SessionId> {
        well.find_in(place, name).map_err(|error| match error {
            stepwell::Error::NoMatch(_) => self.no_match(well, place, name),
            error => error.into(),
        })
    }

    /// Opens the store and finds a session in it. Where there is no store there is no
    /// such session.
    ///
    /// # Errors
    /// If there is no such session, or the store cannot be opened.
    pub fn session(&self, name: &str, access: Access) -> Result<(Well, SessionId)> {
        self.session_in(Whereabouts::Kept, name, access)
    }

    /// Opens the store and finds a session in it, in the trash or not.
    ///
    /// # Errors
    /// If there is no such session there, or the store cannot be opened.
    pub fn session_in(
        &self,
        place: Whereabouts,
        name: &str,
        access: Access,
    ) -> Result<(Well, SessionId)> {
        if !self.place.has_store() {
            return Err(Error::NoMatch { name: name.to_owned(), lies: Lies::NoStoreHere });
        }
        let well = self.existing(access)?;
        let id = self.find_session_in(&well, place, name)?;
        Ok((well, id))
    }

    /// Goes to the workspace of a session that is not of this one, if the name means one of
    /// another store of the user's: a session can be resumed from any folder.
    ///
    /// # Errors
    /// If that workspace's configuration is wrong.
    pub fn go_to_session(&mut self, name: &str) -> Result<()> {
        let is_known_here = match self.look() {
            Ok(Some(well)) => {
                let found = well.try_find(Whereabouts::Anywhere, name);
                !matches!(found, Err(stepwell::Error::NoMatch(_)))
            }
            Ok(None) => false,
            // Whoever opens it says what is wrong with it.
            Err(_) => true,
        };
        if self.place.found == Found::Named || is_known_here {
            return Ok(());
        }
        let Some(store) = self.store_elsewhere(name) else { return Ok(()) };
        self.go_to_store(&store)?;
        let (name, root) = (name.to_owned(), self.place.root.clone());
        self.notices.tell(Notice::SessionElsewhere { name, root });
        Ok(())
    }

    /// Goes to the workspace of another store of the user's, by its folder.
    ///
    /// # Errors
    /// If that workspace's configuration is wrong.
    pub fn go_to_store(&mut self, store: &Path) -> Result<()> {
        self.place = Location::named(store, &self.place.root);
        self.read_config()
    }

    /// Reads the configuration again.
    ///
    /// # Errors
    /// If it is wrong.
    pub fn read_config(&mut self) -> Result<()> {
        self.config = Config::load(&self.host, &self.place.root, &self.overrides)?;
        Ok(())
    }

    /// What this workspace's store is called among the user's: its folder, or its address as it
    /// may be shown.
    #[must_use]
    pub fn shown_store(&self) -> PathBuf {
        let place = &self.place;
        place.team.as_ref().map_or_else(|| place.store.clone(), |team| team.shown().to_owned())
    }

    /// Another store of the user's in which a name means a session.
    fn store_elsewhere(&self, name: &str) -> Option<PathBuf> {
        let known = self.registry().and_then(|registry| registry.all().ok()).unwrap_or_default();
        known.into_iter().find(|store| {
            let found = self.open(store, Access::Read).ok();
            let found = found.map(|well| well.try_find(Whereabouts::Kept, name));
            name != "@last" && *store != self.place.store && matches!(found, Some(Ok(_)))
        })
    }

    /// Remembers damage that a reader came upon, so that lists show it. A store that cannot be
    /// written stays as it is.
    pub fn remember_damage(&self, id: &SessionId) {
        if let Ok(well) = self.existing(Access::Write) {
            // Reading it again is what marks it; what it finds was told already.
            let _ = well.store().maintain().verify(id);
        }
    }

    /// Why a name means nothing here, and where it may mean something.
    fn no_match(&self, well: &Stepwell, place: Whereabouts, name: &str) -> Error {
        let other = match place {
            Whereabouts::Trash => Whereabouts::Kept,
            _ => Whereabouts::Trash,
        };
        let lies = match (well.try_find(other, name), place) {
            (Ok(id), Whereabouts::Trash) => {
                match well.info(&id).is_ok_and(|info| info.head.is_ledger_row()) {
                    true => Lies::Erased(id),
                    false => Lies::NotInTrash(id),
                }
            }
            (Ok(id), _) if name != "@last" => Lies::InTrash(id),
            _ => self.store_elsewhere(name).map_or(Lies::Nowhere, Lies::InStore),
        };
        Error::NoMatch { name: name.to_owned(), lies }
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
