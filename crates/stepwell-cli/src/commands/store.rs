use std::path::{Path, PathBuf};

use stepwell::SessionId;
use stepwell::model::counted;
use stepwell::sqlite::Access;
use stepwell_terminal::note;
use stepwell_terminal::text::visible;
use stepwell_wire::{CopyResult, Durability, RoleScript, StoreInfo, StoreRetention, StoreStandby};
use stepwell_workspace::{
    CleanupChange, CopiedSession, Error, RetentionChange, StoreCopy, TrashRemark, can_go_on,
    store_copy, store_info,
};

use crate::app::App;
use crate::failure::{Exit, Failure, Result};
use crate::progress::progress;
use crate::reach::Reach;

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

impl Args {
    pub(super) fn reach(&self) -> Reach {
        match &self.action {
            Some(Action::Copy { .. }) => Reach::Writes,
            Some(Action::Retention(wanted)) if wanted.changes_something() => Reach::Erases,
            None | Some(Action::Status | Action::Retention(_)) => Reach::Reads,
            Some(Action::Role { .. }) => Reach::Widens,
        }
    }
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
    let well = app.workspace.open_existing(Access::Read)?;
    let shown = store_info::describe(&app.workspace, &well)?;
    print(&shown, app)?;
    if shown.durability == Durability::None {
        note(format_args!("warning: what is acknowledged may be lost: {}", shown.because));
    }
    Ok(Exit::Done)
}

impl Retention {
    fn changes_something(&self) -> bool {
        self.days.is_some() || self.cleanup_after.is_some() || self.no_cleanup
    }

    fn change(&self) -> RetentionChange {
        let after = self.cleanup_after.map(CleanupChange::After);
        let cleanup = after.or(self.no_cleanup.then_some(CleanupChange::Never));
        RetentionChange { days: self.days, cleanup }
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
    let well = app.workspace.open_existing(access)?;
    if wanted.changes_something() {
        store_info::change_retention(&well, wanted.change())
            .map_err(|error| refused(error, wanted))?;
    }
    show_retention(&store_info::retention(&well, &app.workspace.config.settings)?, app)
}

/// Who may change it, and how.
fn refused(error: Error, wanted: &Retention) -> Failure {
    let hint = match &error {
        Error::NotStoreOwner { role } => format!("as role {}: {}", visible(role), wanted.typed()),
        Error::RetentionIsSetting => {
            let days = wanted.days.unwrap_or(30);
            format!("stepwell config set --user sessions.retention_days {days}")
        }
        _ => return error.into(),
    };
    Failure::from(error).hint(hint)
}

fn show_retention(shown: &StoreRetention, app: &mut App) -> Result<Exit> {
    if app.out.is_json() {
        app.out.object(shown)?;
        return Ok(Exit::Done);
    }
    let cleanup = match shown.cleanup_after_days {
        Some(days) => {
            format!("sessions move there after {} without activity", counted(days, "day"))
        }
        None => "sessions move there only when somebody deletes them".to_owned(),
    };
    app.out.line(format_args!(
        "Trash        sessions are erased after {}",
        counted(shown.retention_days, "day")
    ))?;
    app.out.line(format_args!("Cleanup      {cleanup}"))?;
    if let Some(owner) = &shown.owner {
        app.out.line(format_args!("Owner        {}", visible(owner)))?;
    }
    Ok(Exit::Done)
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
        Durability::Replicated => "survives the loss of the primary",
        Durability::Local => "survives a crash of its machine, not the loss of its disk",
        Durability::Unknown => "not known here",
        Durability::None => "not durable",
    };
    say("Durability", format!("{survives}: {}", shown.because))?;
    for standby in &shown.standbys {
        let StoreStandby { name, state, sync, behind_bytes } = standby;
        let behind = counted(*behind_bytes, "byte");
        say("Standby", format!("{name}: {state}, {sync}, {behind} behind"))?;
    }
    Ok(())
}

fn copy(from: &Path, to: &Path, named: &[String], app: &mut App) -> Result<Exit> {
    let source = store_copy::open_named(&app.workspace, from, Access::Read)?;
    let target = store_copy::open_named(&app.workspace, to, Access::Write)?;
    let wanted = store_copy::sessions_to_copy(&app.workspace, &source, named)?;
    let (mut copy, mut worst) = (StoreCopy::new(&source, &target), Exit::Done);
    for (n, info) in wanted.iter().enumerate() {
        progress(app, "session", n, wanted.len());
        match copy.copy(info) {
            Ok(copied) => {
                if !copied.damaged.is_empty() {
                    worst = Exit::Damaged;
                }
                told(&info.head.id, &copied, app)?;
            }
            Err(error) if can_go_on(&error) => {
                note(format_args!("error: {error}"));
                worst = if worst == Exit::Damaged { worst } else { Exit::Failed };
            }
            Err(error) => return Err(error.into()),
        }
    }
    progress(app, "session", wanted.len(), wanted.len());
    if wanted.is_empty() {
        note("There is nothing to copy.");
    }
    Ok(worst)
}

/// Says what became of a session and its subagents'.
fn told(id: &SessionId, copied: &CopiedSession, app: &mut App) -> Result<()> {
    match &copied.trash {
        Some(TrashRemark::OnlyHere) => note(format_args!(
            "{id} is in the trash here, and stays out of it there; \
             stepwell delete {id} --store TO moves it"
        )),
        Some(TrashRemark::OnlyThere) => note(format_args!(
            "{id} is in the trash there, and stays in it; \
             stepwell trash restore {id} --store TO brings it back"
        )),
        Some(TrashRemark::NotMoved(errors)) => errors.iter().for_each(|error| {
            note(format_args!("warning: it was copied, but not into the trash: {error}"));
        }),
        None => {}
    }
    for answer in &copied.sessions {
        let says = match answer.copied {
            CopyResult::Made => "Copied",
            CopyResult::Completed => "Copied the rest of",
            CopyResult::AlreadyThere => "Already there:",
        };
        let place = if answer.trashed { " into the trash" } else { "" };
        app.out.answer(answer, format_args!("{says} {}{place}", answer.session))?;
    }
    for (id, damage) in &copied.damaged {
        let seq = damage.seq;
        note(format_args!("{id} is damaged at seq {seq}; what lies before was copied"));
    }
    Ok(())
}
