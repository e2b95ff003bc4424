use stepwell::sqlite::Access;
use stepwell_runtime::ForkRequest;
use stepwell_terminal::wording::POINT_FORMS;
use stepwell_wire::Forked;

use stepwell_workspace::housekeeping::tidy;

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
    let (well, parent) = app.workspace.open_session(&args.session, Access::Write)?;
    let at = args.at.as_ref().map(|text| well.point(&parent, text)).transpose()?;
    let request = ForkRequest { session: parent.clone(), at, label: args.label.clone() };
    let stepwell_runtime::Forked { session: id, at } = app.runtime().fork(&request)?;
    let answer = Forked { id: id.clone(), parent, at };
    app.out.answer(&answer, &id)?;
    tidy(&app.workspace, &well);
    Ok(Exit::Done)
}
