use stepwell::sqlite::Access;
use stepwell_runtime::command::SessionCommand;
use stepwell_runtime::inspect;
use stepwell_terminal::wording::POINT_FORMS;

use crate::app::App;
use crate::failure::{Exit, Result};

/// Lists the versions of the files that a session changed, or prints one.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The session: its id, a part of it, its label, or @last.
    session: String,
    /// Only this file, relative to the workspace.
    path: Option<String>,
    /// Prints what the file held there: a seq, a checkpoint's name, or -N for N steps back.
    #[arg(long, value_name = POINT_FORMS, allow_hyphen_values = true, requires = "path")]
    at: Option<String>,
}

pub(crate) fn run(args: &Args, app: &mut App) -> Result<Exit> {
    let (Some(path), Some(at)) = (&args.path, &args.at) else {
        return app.do_to(&args.session, SessionCommand::Files(args.path.clone()));
    };
    let (well, id) = app.workspace.open_session(&args.session, Access::Read)?;
    let path = path.trim_start_matches("./");
    let (answer, bytes) = inspect::content(&well, &id, path, well.point(&id, at)?)?;
    match app.out.is_json() {
        true => app.out.object(&answer)?,
        false => app.out.raw().write_all(&bytes)?,
    }
    Ok(Exit::Done)
}
