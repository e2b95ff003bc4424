use stepwell::SessionId;
use stepwell::model::counted;
use stepwell::sqlite::Access;
use stepwell::store::Removal;
use stepwell_terminal::note;

use stepwell_runtime::files::root;
use stepwell_wire::Deleted;
use stepwell_workspace::housekeeping::tidy;

use crate::app::App;
use crate::failure::{Exit, Failure, Result};

/// Moves sessions to the trash, with their subagents' sessions.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The sessions: ids, beginnings of ids, labels, or @last.
    #[arg(required = true, value_name = "SESSION")]
    sessions: Vec<String>,
}

pub(crate) fn run(args: &Args, app: &mut App) -> Result<Exit> {
    let (well, first) = app.workspace.open_session(&args.sessions[0], Access::Write)?;
    let mut ids = vec![first];
    // All names are understood before anything is done.
    for name in &args.sessions[1..] {
        let id = app.workspace.find_session(&well, name)?;
        if !ids.contains(&id) {
            ids.push(id);
        }
    }
    let removal = well.delete_all(&ids, &|head| root(head, &app.workspace).is_ok())?;
    for id in &removal.taken {
        app.out.answer(&Deleted { deleted: id.clone() }, format_args!("Deleted {id}"))?;
    }
    fail_if_left(removal)?;
    undo(&ids, app);
    tidy(&app.workspace, &well);
    Ok(Exit::Done)
}

/// Fails if something was left, saying what.
pub(crate) fn fail_if_left(removal: Removal) -> Result<()> {
    let mut left = removal.left.into_iter().map(|(_, error)| Failure::from(error));
    let Some(first) = left.next() else { return Ok(()) };
    for other in left {
        if let Failure::Said { message, .. } = other {
            note(format_args!("error: {message}"));
        }
    }
    Err(first)
}

/// How many sessions are named in a command to undo it; more would not fit one.
const NAMED: usize = 200;

/// Says how to bring these back. Their subagents' sessions come with them.
pub(crate) fn undo(ids: &[SessionId], app: &App) {
    let days = counted(app.workspace.config.settings.retention_days.get(), "day");
    if ids.is_empty() {
        return;
    }
    let names: Vec<&str> = ids.iter().map(SessionId::as_str).collect();
    if ids.len() > NAMED {
        note(format_args!("Undo within {days}: stepwell trash list --json names them"));
        return;
    }
    let names = names.join(" ");
    note(format_args!("Undo: stepwell trash restore {names} (within {days})"));
}
