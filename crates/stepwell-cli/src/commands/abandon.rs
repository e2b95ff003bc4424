use stepwell::Status;
use stepwell::sqlite::Access;
use stepwell_files::rewind::Foreign;
use stepwell_runtime::files::finish_rewind;
use stepwell_wire::Abandoned;
use stepwell_workspace::housekeeping::tidy;

use crate::app::App;
use crate::failure::{Exit, Result};

/// Marks a session as abandoned: it is kept, but not resumed.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The session: its id, a part of it, its label, or @last.
    session: String,
}

pub(crate) fn run(args: &Args, app: &mut App) -> Result<Exit> {
    let (well, id) = app.workspace.open_session(&args.session, Access::Write)?;
    let mut session = well.lock(&id)?;
    finish_rewind(&mut session, Foreign::Refused, &app.runtime())?;
    session.abandon()?;
    let answer = Abandoned { id: id.clone(), status: Status::Abandoned };
    app.out.answer(&answer, format_args!("{id} is abandoned"))?;
    tidy(&app.workspace, &well);
    Ok(Exit::Done)
}
