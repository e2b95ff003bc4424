//! What every command works with: the configuration, the store, the answer.

use std::cell::Cell;
use std::ops::Deref;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use stepwell::{
    Access, Error, Head, IdFormat, Place as Whereabouts, Query, SessionId, Span, Standing,
    Stepwell, Surroundings, Time,
};
use stepwell_agent::run::Charge;
use stepwell_agent::worktree::Berth;
use stepwell_postgres::Address;

use crate::config::{Config, IdStyle};
use crate::engine::Engine;
use crate::failure::{Exit, Failure, Result};
use crate::global::{Colour, Global};
use crate::known::Known;
use crate::models::Shelf;
use crate::output::{Form, Output, Paint, note};
use crate::place::{Found, Place};
use crate::registry::Registry;
use crate::table::Table;
use crate::text;
use crate::world::World;

/// What every command works with.
pub(crate) struct App {
    pub(crate) world: World,
    pub(crate) config: Config,
    /// Why the configuration is not the user's, for those who go on without it.
    pub(crate) config_fault: Option<String>,
    pub(crate) place: Place,
    /// Settings that were typed.
    typed: Vec<String>,
    pub(crate) out: Output,
    /// All that can be typed, for completions and man pages.
    pub(crate) definition: fn() -> clap::Command,
    /// Was this workspace's store opened for writing?
    written: Cell<bool>,
}

/// What a command needs before it can begin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Needs {
    /// A folder that is there, and a configuration without faults.
    Place,
    /// Nothing: it helps where everything else is wrong.
    Nothing,
}

/// An open store: a well, and what is behind it.
#[derive(Debug)]
pub(crate) struct Well {
    well: Stepwell,
    pub(crate) engine: Engine,
}

impl Deref for Well {
    type Target = Stepwell;

    fn deref(&self) -> &Stepwell {
        &self.well
    }
}

/// How many sessions or events are read at a time where all are looked at.
const PAGE: usize = 1_000;

impl App {
    pub(crate) fn new(
        global: &Global,
        world: World,
        needs: Needs,
        definition: fn() -> clap::Command,
    ) -> Result<Self> {
        let lost = || Failure::new(Exit::Absent, "the current folder is gone");
        let absolute = |path: &PathBuf| path.is_absolute();
        let folder = match &global.folder {
            Some(folder) => go_to(folder).map_err(|error| {
                let message = format!("-C {}: {error}", folder.display());
                Failure::new(Exit::Absent, message)
            })?,
            None => world.folder.clone().unwrap_or_default(),
        };
        let named = global.store.clone();
        let named = named.or_else(|| world.variable("STEPWELL_STORE").map(PathBuf::from));
        let team = named.as_ref().map(|named| team(named, &world)).transpose()?.flatten();
        let named = named.filter(|_| team.is_none());
        // A store that is named in full needs no folder to be found from.
        let homeless = folder.as_os_str().is_empty() && !named.as_ref().is_some_and(absolute);
        if homeless && needs == Needs::Place {
            return Err(lost());
        }
        let place = match named {
            Some(store) => Place::named(&folder.join(store), &folder),
            None => Place::around(&folder),
        };
        let place = match team {
            Some(team) => place.shared(team),
            None => place,
        };
        let (config, config_fault) = match Config::load(&world, &place, &global.settings) {
            Ok(config) => (config, None),
            Err(failure) if needs == Needs::Place => return Err(failure),
            Err(failure) => (Config::default(), Some(failure.to_string())),
        };
        let configured =
            config.settings.store_url.address().filter(|_| place.found == Found::Around);
        let place = match configured.cloned() {
            Some(team) => place.shared(with_password(team, &world)),
            None => place,
        };
        let colour = match global.color {
            Colour::Always => true,
            Colour::Never => false,
            Colour::Auto => world.terminal.output && !world.terminal.plain,
        };
        let paint = if colour { Paint::Colour } else { Paint::Plain };
        let form = if global.json { Form::Json } else { Form::Text };
        let out = Output::new(form, paint, world.terminal);
        let (typed, written) = (global.settings.clone(), Cell::new(false));
        Ok(Self { world, config, config_fault, place, typed, out, definition, written })
    }

    /// Another one of the same settings, for what goes on beside a command.
    pub(crate) fn twin(&self) -> Self {
        Self {
            world: self.world.clone(),
            config: self.config.clone(),
            config_fault: self.config_fault.clone(),
            place: self.place.clone(),
            typed: self.typed.clone(),
            out: Output::new(self.out.form, self.out.paint, self.world.terminal),
            definition: self.definition,
            written: Cell::new(false),
        }
    }

    /// May something in this workspace's store have changed?
    pub(crate) fn has_written(&self) -> bool {
        self.written.get()
    }

    /// Now.
    pub(crate) fn now(&self) -> Time {
        self.world.clock.now()
    }

    /// A line, no wider than the terminal.
    pub(crate) fn cut(&self, line: &str) -> String {
        match self.world.terminal.width {
            Some(columns) => text::cut(line, columns),
            None => line.to_owned(),
        }
    }

    /// The folder that a session works in, without links. A store that lies elsewhere says
    /// where its sessions work; one that lies in its workspace moves with it. A subagent's
    /// worktree lies in the store, wherever that is now.
    pub(crate) fn workspace(&self, session: Option<&Head>) -> Result<PathBuf> {
        if let Some(head) = session
            && let Some(berths) = Charge::berths(head)
        {
            let folder = berths.iter().find_map(|berth| berth.folder(&self.place.store));
            return folder.ok_or_else(|| without_worktree(head, &berths));
        }
        let usual = self.place.store.file_name().is_some_and(|name| name == stepwell::STORE_FOLDER);
        let root = match session.map(|head| head.workspace.as_str()) {
            Some(recorded) if !usual && !recorded.is_empty() => PathBuf::from(recorded),
            _ => self.place.root.clone(),
        };
        std::fs::canonicalize(&root)
            .map_err(|error| Failure::file(&root, "looking for the workspace", &error))
    }

    /// Prints a table, as wide as the terminal.
    pub(crate) fn print(&mut self, table: &Table) -> Result<()> {
        let lines = table.lines(self.out.paint, self.world.terminal.width);
        lines.into_iter().try_for_each(|line| self.out.line(line))
    }

    /// Opens the store for reading, if there is one.
    pub(crate) fn look(&self) -> Result<Option<Well>> {
        match (self.place.has_store(), self.place.found) {
            (true, _) => self.open(&self.place.store, Access::Read).map(Some),
            (false, Found::Around) => Ok(None),
            (false, Found::Named) => Err(Error::NoStore(self.place.store.clone()).into()),
        }
    }

    /// Opens a store that is there.
    pub(crate) fn existing(&self, access: Access) -> Result<Well> {
        if !self.place.has_store() {
            return Err(Error::NoStore(self.place.store.clone()).into());
        }
        self.open(&self.place.store, access)
    }

    /// Opens the store for writing, and makes it if there is none.
    pub(crate) fn make(&self) -> Result<Well> {
        let fresh = !self.place.has_store();
        let well = self.open(&self.place.store, Access::Write)?;
        if fresh && let Err(error) = self.place.ignore() {
            note(format_args!("warning: .gitignore could not be changed: {error}"));
        }
        Ok(well)
    }

    /// Opens the store of a folder: the team's, if this workspace's sessions are there.
    pub(crate) fn open(&self, folder: &Path, access: Access) -> Result<Well> {
        let engine = match self.place.team.as_ref().filter(|_| folder == self.place.store) {
            Some(team) => {
                let engine = Engine::team(team, access, &self.world)?;
                if access == Access::Write {
                    self.make_folder();
                }
                engine
            }
            None => {
                let engine = Engine::folder(folder, access, &self.world)?;
                if access == Access::Write {
                    self.register(folder);
                }
                engine
            }
        };
        if access == Access::Write {
            self.written.set(self.written.get() || folder == self.place.store);
        }
        Ok(self.well(engine))
    }

    /// The folder for what belongs to this machine, beside a team's store.
    fn make_folder(&self) {
        use std::os::unix::fs::DirBuilderExt;
        let made = std::fs::DirBuilder::new().mode(0o700).create(&self.place.store);
        if made.is_ok()
            && let Err(error) = self.place.ignore()
        {
            note(format_args!("warning: .gitignore could not be changed: {error}"));
        }
    }

    /// A well over an open store.
    pub(crate) fn well(&self, engine: Engine) -> Well {
        let sessions = &self.config.settings;
        let id_format = match sessions.id_format {
            IdStyle::Timestamp => IdFormat::Timestamp,
            IdStyle::Hex => {
                IdFormat::Hex(u8::try_from(sessions.id_length.get()).unwrap_or(u8::MAX))
            }
            IdStyle::Uuid => IdFormat::Uuid,
        };
        let (clock, processes) = (Arc::clone(&self.world.clock), Arc::clone(&self.world.processes));
        let surroundings = Surroundings { id_format, clock, processes, ..Surroundings::default() };
        Well { well: Stepwell::with(engine.store(), surroundings), engine }
    }

    /// The user's known stores.
    pub(crate) fn registry(&self) -> Option<Registry> {
        self.world.state.as_deref().map(Registry::below)
    }

    /// The user's recent models and favourites.
    pub(crate) fn shelf(&self) -> Option<Shelf> {
        self.world.state.as_deref().map(Shelf::below)
    }

    /// The sessions that are the user's own.
    pub(crate) fn known(&self) -> Option<Known> {
        self.world.state.as_deref().map(Known::below)
    }

    /// Remembers that a session is the user's own. Forgetting to means to be asked again.
    pub(crate) fn own(&self, id: &SessionId) {
        if let Some(Err(error)) = self.known().map(|known| known.add(id)) {
            tracing::warn!(%error, "session_not_remembered");
        }
    }

    /// Remembers a store for `--everywhere`. Forgetting to is no reason to fail.
    fn register(&self, store: &Path) {
        if let Some(Err(error)) = self.registry().map(|registry| registry.add(store)) {
            tracing::warn!(%error, "store_not_registered");
        }
    }

    /// Opens a store for writing, or where that is not possible, for reading.
    pub(crate) fn open_at_best(&self, folder: &Path) -> Result<Well> {
        match self.open(folder, Access::Write) {
            Err(Failure::Said { .. }) => self.open(folder, Access::Read),
            opened => opened,
        }
    }

    /// Every known store that is there, this one first. Those that cannot be opened are
    /// told of.
    pub(crate) fn everywhere(
        &self,
        open: impl Fn(&Self, &Path) -> Result<Well>,
    ) -> Result<Vec<(PathBuf, Well)>> {
        let mut wells = Vec::new();
        let here = self.place.has_store().then(|| self.place.store.clone());
        let known = match self.registry().map(|registry| registry.all()) {
            Some(Ok(known)) => known,
            Some(Err(error)) => {
                note(format_args!("warning: the list of known stores cannot be read: {error}"));
                Vec::new()
            }
            None => Vec::new(),
        };
        let here_canonical = here.as_deref().and_then(|here| std::fs::canonicalize(here).ok());
        let others = known.into_iter().filter(|store| Some(store) != here_canonical.as_ref());
        for store in here.into_iter().chain(others) {
            // A project that was moved or removed; doctor forgets it.
            let team = self.place.team.as_ref().filter(|_| store == self.place.store);
            if team.is_none() && !store.join("stepwell.db").exists() {
                continue;
            }
            let shown = team.map_or_else(|| store.clone(), |team| team.shown().to_owned());
            match open(self, &store) {
                Ok(well) => wells.push((shown, well)),
                Err(Failure::Said { message, .. }) => note(format_args!("warning: {message}")),
                Err(closed) => return Err(closed),
            }
        }
        Ok(wells)
    }

    /// The session that a name means.
    pub(crate) fn find(&self, well: &Well, name: &str) -> Result<SessionId> {
        self.find_in(well, Whereabouts::Kept, name)
    }

    /// The session that a name means, in the trash or not.
    pub(crate) fn find_in(&self, well: &Well, place: Whereabouts, name: &str) -> Result<SessionId> {
        well.find_in(place, name).map_err(|error| match error {
            Error::NoMatch(_) => self.absent(well, place, name),
            error => error.into(),
        })
    }

    /// Opens the store and finds a session in it. Where there is no store there is no
    /// such session.
    pub(crate) fn session(&self, name: &str, access: Access) -> Result<(Well, SessionId)> {
        self.session_in(Whereabouts::Kept, name, access)
    }

    /// Opens the store and finds a session in it, in the trash or not.
    pub(crate) fn session_in(
        &self,
        place: Whereabouts,
        name: &str,
        access: Access,
    ) -> Result<(Well, SessionId)> {
        if !self.place.has_store() {
            let hint = "there is no store here; stepwell init makes one";
            return Err(Failure::from(Error::NoMatch(name.to_owned())).hint(hint));
        }
        let well = self.existing(access)?;
        let id = self.find_in(&well, place, name)?;
        Ok((well, id))
    }

    /// Goes to the workspace of a session that is not of this one, if the name means one of
    /// another store of the user's: a session can be taken up from any folder.
    pub(crate) fn go_to_session(&mut self, name: &str) -> Result<()> {
        let is_known_here = match self.look() {
            Ok(Some(well)) => {
                let found = well.look_up(Whereabouts::Anywhere, name);
                !matches!(found, Err(Error::NoMatch(_)))
            }
            Ok(None) => false,
            // Whoever opens it says what is wrong with it.
            Err(_) => true,
        };
        if self.place.found == Found::Named || is_known_here {
            return Ok(());
        }
        let Some(store) = self.elsewhere(name) else { return Ok(()) };
        self.place = Place::named(&store, &self.place.root);
        self.config = Config::load(&self.world, &self.place, &self.typed)?;
        note(format_args!("{name} is in {}", self.place.root.display()));
        Ok(())
    }

    /// Another store of the user's in which a name means a session.
    fn elsewhere(&self, name: &str) -> Option<PathBuf> {
        let known = self.registry().and_then(|registry| registry.all().ok()).unwrap_or_default();
        known.into_iter().find(|store| {
            let found = self.open(store, Access::Read).ok();
            let found = found.map(|well| well.look_up(Whereabouts::Kept, name));
            name != "@last" && *store != self.place.store && matches!(found, Some(Ok(_)))
        })
    }

    /// Remembers damage that a reading command came upon, so that lists show it. A store
    /// that cannot be written stays as it is.
    pub(crate) fn remember_damage(&self, id: &SessionId) {
        if let Ok(well) = self.existing(Access::Write) {
            // Reading it again is what marks it; what it finds was told already.
            let _ = well.store().verify(id);
        }
    }

    /// Why a name means nothing here, and where it may mean something.
    fn absent(&self, well: &Well, place: Whereabouts, name: &str) -> Failure {
        let failure = Failure::from(Error::NoMatch(name.to_owned()));
        let other = match place {
            Whereabouts::Trash => Whereabouts::Kept,
            _ => Whereabouts::Trash,
        };
        match (well.look_up(other, name), place) {
            (Ok(id), Whereabouts::Trash) => {
                return failure.hint(format_args!("{id} is not in the trash"));
            }
            (Ok(id), _) if name != "@last" => {
                let hint = format!("{id} is in the trash; stepwell trash restore {id}");
                return failure.hint(hint);
            }
            _ => {}
        }
        match self.elsewhere(name) {
            Some(store) => {
                failure.hint(format_args!("it is elsewhere; add --store {}", store.display()))
            }
            None => failure,
        }
    }
}

/// Refuses to answer in JSON what is no JSON.
pub(crate) fn refuse_json(app: &App) -> Result<()> {
    match app.out.is_json() {
        true => Err(Failure::new(Exit::Usage, "this answer has no form in JSON")),
        false => Ok(()),
    }
}

/// The address of a team's store, if that is what was typed for a store.
pub(crate) fn team(named: &Path, world: &World) -> Result<Option<Address>> {
    let address = Address::of_store(&named.to_string_lossy()).map_err(|error| {
        Failure::new(Exit::Usage, error).hint("postgres://user@host:port/database?namespace=team")
    })?;
    Ok(address.map(|address| with_password(address, world)))
}

/// An address without a password takes the one that PostgreSQL's own clients would.
fn with_password(address: Address, world: &World) -> Address {
    match world.key("PGPASSWORD") {
        Some(password) => address.or_password(&password),
        None => address,
    }
}

/// Goes to a folder, so that every path that was typed is meant from there.
fn go_to(folder: &Path) -> std::io::Result<PathBuf> {
    std::env::set_current_dir(folder)?;
    std::fs::canonicalize(".")
}

/// Looks at every session that a query asks for, page by page, until told to stop.
pub(crate) fn each_session(
    well: &Stepwell,
    mut query: Query,
    mut look: impl FnMut(Standing) -> Result<Go>,
) -> Result<()> {
    // Whoever asks for a few is not made to wait for a whole page.
    query.limit = query.limit.min(PAGE);
    loop {
        let page = well.list(&query)?;
        for standing in page.sessions {
            if look(standing)? == Go::Stop {
                return Ok(());
            }
        }
        match page.next {
            Some(next) => query.after = Some(next),
            None => return Ok(()),
        }
    }
}

/// Looks at a session's events from a span on, page by page. The answer is the damage
/// that ended it.
pub(crate) fn each_event(
    well: &Stepwell,
    id: &SessionId,
    mut span: Span,
    mut look: impl FnMut(stepwell::Recorded) -> Result<()>,
) -> Result<Option<stepwell::Damage>> {
    let mut left = span.limit;
    loop {
        span.limit = left.min(PAGE);
        let slice = well.store().events(id, span)?;
        let Some(last) = slice.events.last().map(|event| event.seq) else {
            return Ok(slice.damage);
        };
        left -= slice.events.len().min(left);
        slice.events.into_iter().try_for_each(&mut look)?;
        if slice.damage.is_some() || left == 0 {
            return Ok(slice.damage);
        }
        match span.order {
            stepwell::Order::Oldest => span.from = last.next(),
            stepwell::Order::Newest if last <= span.from => return Ok(None),
            stepwell::Order::Newest => span.to = last.prev(),
        }
    }
}

/// Whether to look on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Go {
    On,
    Stop,
}

/// Why a session that works in a worktree has none here.
fn without_worktree(head: &Head, berths: &[Berth]) -> Failure {
    let (id, recorded) = (&head.id, &head.workspace);
    if berths.is_empty() {
        let message = format!("{id} works in {recorded}, which is no worktree of this store");
        return Failure::new(Exit::Failed, message)
            .hint(format_args!("stepwell rewind {id} --chat leaves files alone"));
    }
    Failure::new(Exit::Failed, format_args!("the worktree of {id} is gone: {recorded}")).hint(
        format_args!(
            "stepwell run \"TASK\" --session {id} brings it back; stepwell rewind {id} --chat \
             leaves files alone"
        ),
    )
}
