use stepwell_runtime::command::SessionCommand;
use stepwell_terminal::wording::POINT_FORMS;

use crate::app::App;
use crate::failure::{Exit, Result};

/// Makes a session that shares another one's past, and prints its id.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The session: its id, a part of it, its label, or @last.
    session: String,
    /// The last event that is shared: a seq, a checkpoint's name, or -N for N steps back.
    #[arg(long, value_name = POINT_FORMS, allow_hyphen_values = true)]
    at: Option<String>,
    /// Gives the fork a label, which names it from then on.
    #[arg(long, value_name = "LABEL")]
    label: Option<String>,
}

pub(crate) fn run(args: &Args, app: &mut App) -> Result<Exit> {
    let (at, label) = (args.at.clone(), args.label.clone());
    app.do_to(&args.session, SessionCommand::Fork { at, label })
}
