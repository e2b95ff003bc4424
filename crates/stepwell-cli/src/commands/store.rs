use std::io::Write as _;
use std::path::PathBuf;

use stepwell::{
    Access, ErrorKind, Filter, Order, Query, SessionId, SessionInfo, Sort, SqliteStore, Target,
    TrashScope,
};
use stepwell_formats::{Copied, Error as Formats};
use stepwell_postgres::{Address, Durability, Role, Standby, Status};
use stepwell_wire::{CopyResult, RoleScript, StoreInfo, StoreRetention, StoreStandby};
use stepwell_workspace::Location as Spot;
use stepwell_workspace::{Engine, team_address};

use crate::app::{App, Well};
use crate::failure::{Exit, Failure, Result};
use crate::output::note;
use crate::text::{count, visible};

/// Shows what the store is, and copies sessions from one store to another.
///
/// A store is a folder (usually .stepwell in a workspace), or the address of a team's:
/// postgres://user@host/database?namespace=team.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(subcommand)]
    action: Option<Action>,
}

#[derive(Debug, clap::Subcommand)]
enum Action {
    /// Shows the engine, its version, its replication, and what an acknowledged step survives.
    Status,
    /// Copies sessions to another store and reads them back; again, it copies what is new.
    ///
    /// Sessions keep their ids, events, times and forks; what is in the trash goes into the
    /// trash there. A session of the same id that differs is left, and told of.
    Copy {
        /// Where they are: a folder, or postgres://…
        from: PathBuf,
        /// Where they go.
        to: PathBuf,
        /// Only these, with their subagents: ids, parts of ids, or labels.
        #[arg(value_name = "SESSION")]
        sessions: Vec<String>,
    },
    /// Shows how long a store keeps what was deleted; for a team's store, its owner sets that here.
    ///
    /// Sessions in the trash are erased after --days (30), and, with --cleanup-after, sessions
    /// without activity are moved to the trash. The server's clock decides. Both happen by the way
    /// when a command changes something, and only to sessions that the role which runs the
    /// command began. For a store in a folder, settings of your own decide: sessions.retention_days
    /// and sessions.auto_cleanup.
    Retention(Retention),
    /// Prints the SQL that lets a role use one namespace of a team's store, for its owner to run.
    Role {
        /// The team's namespace; it is made if there is none.
        namespace: String,
        /// The role, which must be there.
        role: String,
    },
}

#[derive(Debug, clap::Args)]
struct Retention {
    /// Erases sessions that have been in the trash for so many days.
    #[arg(long, value_name = "DAYS", value_parser = clap::value_parser!(u32).range(1..=36_500))]
    days: Option<u32>,
    /// Moves sessions without activity for so many days to the trash.
    #[arg(long, value_name = "DAYS", value_parser = clap::value_parser!(u32).range(1..=36_500))]
    cleanup_after: Option<u32>,
    /// Moves no session to the trash by itself.
    #[arg(long, conflicts_with = "cleanup_after")]
    no_cleanup: bool,
}

pub(crate) fn run(args: &Args, app: &mut App) -> Result<Exit> {
    match args.action.as_ref().unwrap_or(&Action::Status) {
        Action::Status => status(app),
        Action::Copy { from, to, sessions } => copy(from, to, sessions, app),
        Action::Retention(wanted) => retention(wanted, app),
        Action::Role { namespace, role } => {
            let script = stepwell_postgres::script(namespace, role)
                .map_err(|error| Failure::new(Exit::Usage, error))?;
            let shown = script.trim_end().to_owned();
            app.out.answer(&RoleScript { sql: script }, shown)?;
            Ok(Exit::Done)
        }
    }
}

fn status(app: &mut App) -> Result<Exit> {
    let well = app.existing(Access::Read)?;
    match &well.engine {
        Engine::Sqlite(store) => {
            let sessions = well.store().count(&Filter::default())?.total();
            let shown = StoreInfo {
                engine: "SQLite".to_owned(),
                version: SqliteStore::engine_version().to_owned(),
                store: store.path().display().to_string(),
                namespace: None,
                schema: None,
                role: None,
                sessions,
                durability: stepwell_wire::Durability::Local,
                because: "each step is flushed to this disk before it is acknowledged".to_owned(),
                standbys: Vec::new(),
            };
            print(&shown, app)?;
        }
        Engine::Postgres(store) => {
            let found = store.status()?;
            print(&of_server(&found, store.address()), app)?;
            if let Durability::None(why) = found.durability() {
                note(format_args!("warning: what is acknowledged may be lost: {why}"));
            }
        }
    }
    Ok(Exit::Done)
}

impl Retention {
    fn changes_something(&self) -> bool {
        self.days.is_some() || self.cleanup_after.is_some() || self.no_cleanup
    }

    /// What was typed, to be typed again by who may.
    fn typed(&self) -> String {
        let days = self.days.map(|days| format!(" --days {days}"));
        let cleanup = self.cleanup_after.map(|days| format!(" --cleanup-after {days}"));
        let none = self.no_cleanup.then(|| " --no-cleanup".to_owned());
        let flags = [days, cleanup, none].into_iter().flatten().collect::<String>();
        format!("stepwell store retention{flags}")
    }
}

fn retention(wanted: &Retention, app: &mut App) -> Result<Exit> {
    let access = if wanted.changes_something() { Access::Write } else { Access::Read };
    let well = app.existing(access)?;
    let Engine::Postgres(store) = &well.engine else { return own_retention(wanted, app) };
    let owner = store.owner()?;
    let mut kept = store.retention()?;
    if wanted.changes_something() {
        if !owner.may_change {
            let role = visible(&owner.role);
            let message = format!("only the store's owner, role {role}, can change its retention");
            let hint = format!("as role {role}: {}", wanted.typed());
            return Err(Failure::new(Exit::Failed, message).hint(hint));
        }
        kept.days = wanted.days.unwrap_or(kept.days);
        kept.cleanup_after_days = match wanted.no_cleanup {
            true => None,
            false => wanted.cleanup_after.or(kept.cleanup_after_days),
        };
        store.set_retention(kept)?;
    }
    let shown = StoreRetention {
        retention_days: kept.days,
        cleanup_after_days: kept.cleanup_after_days,
        owner: Some(owner.role),
    };
    show_retention(&shown, app)
}

/// The retention of a store in a folder is its user's setting.
fn own_retention(wanted: &Retention, app: &mut App) -> Result<Exit> {
    if wanted.changes_something() {
        let message = "this store is in a folder, and settings of your own decide";
        let days = wanted.days.unwrap_or(30);
        let hint = format!("stepwell config set --user sessions.retention_days {days}");
        return Err(Failure::new(Exit::Usage, message).hint(hint));
    }
    let settings = &app.config.settings;
    let cleanup = settings.auto_cleanup.then(|| settings.cleanup_after_days.get());
    let shown = StoreRetention {
        retention_days: settings.retention_days.get(),
        cleanup_after_days: cleanup,
        owner: None,
    };
    show_retention(&shown, app)
}

fn show_retention(shown: &StoreRetention, app: &mut App) -> Result<Exit> {
    if app.out.is_json() {
        app.out.object(shown)?;
        return Ok(Exit::Done);
    }
    let cleanup = match shown.cleanup_after_days {
        Some(days) => format!("sessions move there after {days} days without activity"),
        None => "sessions move there only when somebody deletes them".to_owned(),
    };
    app.out.line(format_args!(
        "Trash        sessions are erased after {} days",
        shown.retention_days
    ))?;
    app.out.line(format_args!("Cleanup      {cleanup}"))?;
    if let Some(owner) = &shown.owner {
        app.out.line(format_args!("Owner        {}", visible(owner)))?;
    }
    Ok(Exit::Done)
}

fn of_server(found: &Status, address: &Address) -> StoreInfo {
    use stepwell_wire::Durability as Survives;
    let (durability, because) = match found.durability() {
        Durability::None(why) => (Survives::None, why),
        Durability::Local(why) => (Survives::Local, why),
        Durability::Replicated(why) => (Survives::Replicated, why),
        Durability::Unknown(why) => (Survives::Unknown, why),
    };
    let line = |standby: &Standby| StoreStandby {
        name: standby.name.clone(),
        state: standby.state.clone(),
        sync: standby.sync.clone(),
        behind_bytes: standby.behind,
    };
    StoreInfo {
        engine: "PostgreSQL".to_owned(),
        version: found.server.clone(),
        store: address.to_string(),
        namespace: Some(address.namespace().to_owned()),
        schema: Some(found.schema),
        role: Some(match found.role {
            Role::Primary => "primary".to_owned(),
            Role::Standby => "standby".to_owned(),
        }),
        sessions: found.sessions,
        durability,
        because,
        standbys: found.standbys.iter().map(line).collect(),
    }
}

fn print(shown: &StoreInfo, app: &mut App) -> Result<()> {
    if app.out.is_json() {
        return app.out.object(shown);
    }
    let mut say =
        |name: &str, value: String| app.out.line(format_args!("{name:<12} {}", visible(&value)));
    say("Engine", format!("{} {}", shown.engine, shown.version))?;
    say("Store", shown.store.clone())?;
    if let Some(namespace) = &shown.namespace {
        say("Namespace", namespace.clone())?;
    }
    if let (Some(schema), Some(role)) = (shown.schema, &shown.role) {
        say("Schema", schema.to_string())?;
        say("Server", role.clone())?;
    }
    say("Sessions", shown.sessions.to_string())?;
    let survives = match shown.durability {
        stepwell_wire::Durability::Replicated => "survives the loss of the primary",
        stepwell_wire::Durability::Local => {
            "survives a crash of its machine, not the loss of its disk"
        }
        stepwell_wire::Durability::Unknown => "not known here",
        stepwell_wire::Durability::None => "not durable",
    };
    say("Durability", format!("{survives}: {}", shown.because))?;
    for standby in &shown.standbys {
        let StoreStandby { name, state, sync, behind_bytes } = standby;
        say("Standby", format!("{name}: {state}, {sync}, {behind_bytes} bytes behind"))?;
    }
    Ok(())
}

/// Opens one of the stores that a copy is between.
fn open(named: &std::path::Path, access: Access, app: &App) -> Result<Well> {
    if let Some(address) = team_address(named, &app.host)? {
        return Ok(app.well(Engine::team(&address, access, &app.host)?));
    }
    let folder = app.host.folder.clone().unwrap_or_default();
    let place = Spot::named(&folder.join(named), &folder);
    if access == Access::Read && !place.has_store() {
        return Err(stepwell::Error::NoStore(place.store).into());
    }
    Ok(app.open(&place.store, access)?)
}

fn copy(
    from: &std::path::Path,
    to: &std::path::Path,
    named: &[String],
    app: &mut App,
) -> Result<Exit> {
    let source = open(from, Access::Read, app)?;
    let target = open(to, Access::Write, app)?;
    let wanted = wanted(&source, named, app)?;
    let (mut seen, mut worst) = (std::collections::BTreeSet::<SessionId>::new(), Exit::Done);
    for (n, standing) in wanted.iter().enumerate() {
        let id = &standing.head.id;
        progress(app, n, wanted.len());
        // A subagent's session came with its parent's.
        if seen.contains(id) {
            continue;
        }
        match stepwell_formats::copy(&source, &target, id) {
            Ok(copied) => {
                let trashed = to_trash(&target, standing, &copied)?;
                told(&copied, &trashed, &mut seen, app)?;
                for (id, damage) in &copied.exported.damaged {
                    note(format_args!(
                        "{id} is damaged at seq {}; what lies before was copied",
                        damage.seq
                    ));
                    worst = Exit::Damaged;
                }
            }
            // One that is refused hides no other; a store that is gone ends it all.
            Err(error) if can_go_on(&error) => {
                note(format_args!("error: {error}"));
                worst = if worst == Exit::Damaged { worst } else { Exit::Failed };
            }
            Err(error) => return Err(error.into()),
        }
    }
    progress(app, wanted.len(), wanted.len());
    if wanted.is_empty() {
        note("There is nothing to copy.");
    }
    Ok(worst)
}

/// What is in the trash goes into the trash there, but only as a part of being copied: a
/// session that was there before is whose store it is in, and may be at work.
fn to_trash(target: &Well, standing: &SessionInfo, copied: &Copied) -> Result<Vec<SessionId>> {
    let id = &standing.head.id;
    if !copied.imported.made.contains(id) {
        // So it is, too, if a copy was cut off before this.
        match (standing.trashed_at, target.info(id)?.trashed_at) {
            (Some(_), None) => note(format_args!(
                "{id} is in the trash here, and stays out of it there; \
                 stepwell delete {id} --store TO moves it"
            )),
            (None, Some(_)) => note(format_args!(
                "{id} is in the trash there, and stays in it; \
                 stepwell trash restore {id} --store TO brings it back"
            )),
            _ => {}
        }
        return Ok(Vec::new());
    }
    if standing.trashed_at.is_none() {
        return Ok(Vec::new());
    }
    let removal = target.store().trash(&[Target::from(id.clone())])?;
    for (_, error) in &removal.left {
        note(format_args!("warning: it was copied, but not into the trash: {error}"));
    }
    Ok(removal.taken)
}

fn can_go_on(error: &Formats) -> bool {
    matches!(
        error.kind(),
        ErrorKind::Conflict | ErrorKind::Invalid | ErrorKind::Damaged | ErrorKind::Busy
    )
}

/// The sessions to copy, parents before children.
fn wanted(source: &Well, named: &[String], app: &App) -> Result<Vec<SessionInfo>> {
    if !named.is_empty() {
        let find = |name: &String| {
            let id = app.find_session_in(source, TrashScope::Anywhere, name)?;
            Ok(source.info(&id)?)
        };
        return named.iter().map(find).collect();
    }
    let filter = Filter { place: TrashScope::Anywhere, ..Filter::default() };
    let query = Query { filter, sort: Sort::Created, order: Order::Oldest, ..Query::default() };
    Ok(source.sessions(query).collect::<Result<_, _>>()?)
}

fn told(
    copied: &Copied,
    trashed: &[SessionId],
    seen: &mut std::collections::BTreeSet<SessionId>,
    app: &mut App,
) -> Result<()> {
    let groups = [
        ("Copied", CopyResult::Made, &copied.imported.made),
        ("Copied the rest of", CopyResult::Completed, &copied.imported.completed),
        ("Already there:", CopyResult::AlreadyThere, &copied.imported.already_there),
    ];
    for (says, result, ids) in groups {
        for id in ids {
            if seen.insert(id.clone()) {
                let trashed = trashed.contains(id);
                let answer = stepwell_wire::Copied { session: id.clone(), copied: result, trashed };
                let place = if trashed { " into the trash" } else { "" };
                app.out.answer(&answer, format_args!("{says} {id}{place}"))?;
            }
        }
    }
    Ok(())
}

/// How far it is, for a person who waits; silent in a pipe.
fn progress(app: &App, done: usize, all: usize) {
    if app.terminal.output && app.terminal.can_ask {
        let end = if done == all { "\r\u{1b}[K" } else { "" };
        let text = format!("\r\u{1b}[K{done} of {}{end}", count(all, "session"));
        // Nobody is left to tell if stderr is closed.
        let _ = std::io::stderr().write_all(text.as_bytes());
    }
}
