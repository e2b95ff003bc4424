use stepwell::{Access, Removal, SessionId, Target};

use crate::app::App;
use crate::failure::{Exit, Failure, Result};
use crate::housekeeping::tidy;
use crate::output::note;
use crate::text::count;

/// Moves sessions to the trash, with their subagents' sessions.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The sessions: ids, beginnings of ids, labels, or @last.
    #[arg(required = true, value_name = "SESSION")]
    sessions: Vec<String>,
}

#[derive(serde::Serialize)]
struct Line<'a> {
    deleted: &'a str,
}

pub(crate) fn run(args: Args, app: &mut App) -> Result<Exit> {
    let (well, first) = app.session(&args.sessions[0], Access::Write)?;
    let mut ids = vec![first];
    // All names are understood before anything is done.
    for name in &args.sessions[1..] {
        let id = app.find(&well, name)?;
        if !ids.contains(&id) {
            ids.push(id);
        }
    }
    let targets: Vec<Target> = ids.into_iter().map(Target::from).collect();
    let removal = well.store().trash(&targets)?;
    for id in &removal.taken {
        tracing::info!(session = %id, "session_deleted");
        app.out.answer(&Line { deleted: id.as_str() }, format_args!("Deleted {id}"))?;
    }
    let taken = removal.taken.clone();
    left(removal)?;
    undo(&taken, app);
    tidy(app, &well)?;
    Ok(Exit::Done)
}

/// Fails if something was left, saying what.
pub(crate) fn left(removal: Removal) -> Result<()> {
    let mut left = removal.left.into_iter().map(|(_, error)| Failure::from(error));
    let Some(first) = left.next() else { return Ok(()) };
    for other in left {
        if let Failure::Said { message, .. } = other {
            note(format_args!("error: {message}"));
        }
    }
    Err(first)
}

/// Says how to undo it.
pub(crate) fn undo(taken: &[SessionId], app: &App) {
    let days = app.config.settings.retention_days.get();
    match taken {
        // A trash that keeps nothing gives nothing back.
        _ if days == 0 => {}
        [] => {}
        [id] => note(format_args!("Undo: stepwell trash restore {id} (within {days} days)")),
        _ => {
            let n = count(taken.len(), "session");
            note(format_args!("Undo: stepwell trash restore ID, for any of the {n}, within {days} days"));
        }
    }
}
