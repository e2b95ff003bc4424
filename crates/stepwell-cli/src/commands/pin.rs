use stepwell_runtime::command::SessionCommand;

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
    app.do_to(&args.session, SessionCommand::Pin)
}

pub(crate) fn unpin(args: &UnpinArgs, app: &mut App) -> Result<Exit> {
    app.do_to(&args.session, SessionCommand::Unpin)
}
