use stepwell::model::Edited;
use stepwell::sqlite::Access;
use stepwell_wire::Pin;
use stepwell_workspace::housekeeping::tidy;

use crate::app::App;
use crate::failure::{Exit, Result};

/// Protects a session from cleanup.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The session: its id, a part of it, its label, or @last.
    session: String,
}

/// Lets cleanup remove a session again.
#[derive(Debug, clap::Args)]
pub(crate) struct UnpinArgs {
    /// The session: its id, a part of it, its label, or @last.
    session: String,
}

pub(crate) fn pin(args: &Args, app: &mut App) -> Result<Exit> {
    edit(&args.session, app, true, "is pinned")
}

pub(crate) fn unpin(args: &UnpinArgs, app: &mut App) -> Result<Exit> {
    edit(&args.session, app, false, "is not pinned")
}

fn edit(session: &str, app: &mut App, pinned: bool, says: &str) -> Result<Exit> {
    let (well, id) = app.workspace.open_session(session, Access::Write)?;
    well.edit(&id, Edited { pinned: Some(pinned), ..Edited::default() })?;
    app.out.answer(&Pin { id: id.clone(), pinned }, format_args!("{id} {says}"))?;
    tidy(&app.workspace, &well);
    Ok(Exit::Done)
}
