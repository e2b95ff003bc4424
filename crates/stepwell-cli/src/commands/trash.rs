use std::time::Duration;

use stepwell::sqlite::Access;
use stepwell::store::Order;
use stepwell::store::query::{Filter, LedgerRows, Query, TrashScope};
use stepwell::{SessionId, SessionInfo};
use stepwell_runtime::command::Command;
use stepwell_terminal::note;
use stepwell_terminal::reply::status_cell;
use stepwell_terminal::table::{Column, Table, left};
use stepwell_terminal::text::{bytes, count, moment};
use stepwell_wire::{Erased, Session};
use stepwell_workspace::housekeeping::{Whose, empty_trash, of_others, retention};

use super::delete::fail_if_left;
use super::sessions::task;
use crate::app::App;
use crate::ask::{Consent, Unasked};
use crate::failure::{Exit, Result};
use crate::reach::Reach;

/// Lists, restores and erases what was deleted.
///
/// Sessions are erased from the trash after sessions.retention_days (30); those of a team's store
/// as `stepwell store retention` shows.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(subcommand)]
    action: Option<Action>,
}

#[derive(Debug, clap::Subcommand)]
enum Action {
    /// Lists what is in the trash.
    List,
    /// Brings sessions back, with the subagents' sessions that went with them.
    Restore {
        /// The sessions: ids, parts of ids, or labels.
        #[arg(required = true, value_name = "SESSION")]
        sessions: Vec<String>,
    },
    /// Erases everything in the trash, for good; of a team's, what your own role began.
    Empty {
        /// Erases also what other roles of a team's store began.
        #[arg(long)]
        everyone: bool,
        #[command(flatten)]
        consent: Consent,
    },
}

const COLUMNS: &[Column] =
    &[left("ID"), left("STATUS"), left("DELETED"), left("ERASED AFTER"), left("TASK")];

impl Args {
    pub(super) fn reach(&self) -> Reach {
        match self.action {
            None | Some(Action::List) => Reach::Reads,
            Some(Action::Restore { .. }) => Reach::Writes,
            Some(Action::Empty { .. }) => Reach::Erases,
        }
    }
}

pub(crate) fn run(args: &Args, app: &mut App) -> Result<Exit> {
    match args.action.as_ref().unwrap_or(&Action::List) {
        Action::List => list(app),
        Action::Restore { sessions } => restore(sessions, app),
        Action::Empty { everyone, consent } => {
            empty(if *everyone { Whose::Everyones } else { Whose::Mine }, *consent, app)
        }
    }
}

/// What is in the trash, newest first.
fn in_trash() -> Query {
    let (place, rows) = (TrashScope::Trash, LedgerRows::Included);
    let filter = Filter { place, rows, ..Filter::default() };
    Query { filter, order: Order::Newest, ..Query::default() }
}

fn list(app: &mut App) -> Result<Exit> {
    let mut table = Table::new(COLUMNS);
    let mut found = 0;
    if let Some(well) = app.workspace.open_if_present()? {
        let retention = retention(&app.workspace, &well)?;
        for info in well.sessions(in_trash()) {
            let info = info?;
            found += 1;
            if app.out.is_json() {
                app.out.object(&Session::from(&info))?;
            }
            let at = info.trashed_at.unwrap_or(info.head.updated_at);
            table.push(vec![
                info.head.id.to_string().into(),
                status_cell(&info),
                moment(at).into(),
                moment(at.plus(retention)).into(),
                task(&info).into(),
            ]);
        }
    }
    if app.out.is_json() {
        return Ok(Exit::Done);
    }
    if found == 0 {
        app.out.line("The trash is empty.")?;
        return Ok(Exit::Done);
    }
    app.print(&table)?;
    Ok(Exit::Done)
}

fn restore(sessions: &[String], app: &mut App) -> Result<Exit> {
    let reply = app.carry_out(Command::Restore(sessions.to_vec()))?;
    app.answer(&reply)
}

fn empty(whose: Whose, consent: Consent, app: &mut App) -> Result<Exit> {
    let (mut sessions, mut size, mut others) = (0, 0, 0);
    if let Some(well) = app.workspace.open_if_present()? {
        let all: Vec<SessionInfo> = well.sessions(in_trash()).collect::<Result<_, _>>()?;
        let ids: Vec<SessionId> = all.iter().map(|info| info.head.id.clone()).collect();
        let stay = of_others(&well, &ids, whose)?;
        for info in all.iter().filter(|info| !stay.contains(&info.head.id)) {
            sessions += 1;
            size += info.bytes;
        }
        others = stay.len();
    }
    if others > 0 {
        let n = count(others, "session");
        let verb = if others == 1 { "stays" } else { "stay" };
        note(format_args!("{n} of other roles {verb}; --everyone erases them too"));
    }
    if sessions == 0 {
        if !app.out.is_json() {
            app.out.line(if others == 0 { "The trash is empty." } else { "Nothing to erase." })?;
        }
        return Ok(Exit::Done);
    }
    let question = format!("Erase {} ({}) for good?", count(sessions, "session"), bytes(size));
    consent.ask(app.terminal, &question, Unasked::Refuse)?;
    let well = app.workspace.open_existing(Access::Write)?;
    let removal = empty_trash(&app.workspace, &well, Duration::ZERO, whose)?;
    for id in &removal.taken {
        app.out.answer(&Erased { erased: id.clone() }, format_args!("Erased {id}"))?;
    }
    let erased = !removal.taken.is_empty();
    fail_if_left(removal)?;
    if erased {
        note("This cannot be undone.");
    }
    Ok(Exit::Done)
}
