use stepwell_runtime::command::SessionCommand;

use crate::app::App;
use crate::failure::{Exit, Result};

/// Shows which phase a session's work is in, or moves it to another.
///
/// A session has the phases of its set, and moves as the set allows: see stepwell run
/// --phases, and stepwell agent. Whoever runs it is asked to move it.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The session: its id, a part of it, its label, or @last.
    session: String,
    /// The phase to move to.
    name: Option<String>,
}

pub(crate) fn run(args: &Args, app: &mut App) -> Result<Exit> {
    let what = args.name.clone().map_or(SessionCommand::Phase, SessionCommand::EnterPhase);
    app.do_to(&args.session, what)
}
