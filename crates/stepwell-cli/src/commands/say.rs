use stepwell::Lane;
use stepwell::sqlite::Access;
use stepwell_runtime::SayRequest;
use stepwell_terminal::wording::heard;
use stepwell_wire::SaidTo;
use stepwell_workspace::known_stores;

use crate::app::App;
use crate::failure::{Exit, Result};

/// Says something to a session while it runs: its model hears it before its next call.
///
/// A session that does not run keeps it for its next run.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The session: its id, a part of it, its label, or @last.
    session: String,
    /// What to say; - reads it from stdin.
    text: String,
    /// Ends the model's current call, so that it hears it at once.
    #[arg(long)]
    now: bool,
    /// Which conversation of a flow hears it.
    #[arg(long, value_name = "LANE")]
    lane: Option<Lane>,
}

pub(crate) fn run(args: &Args, app: &mut App) -> Result<Exit> {
    let text = crate::typed::text("message", args.text.clone())?;
    known_stores::go_to_session(&mut app.workspace, &args.session)?;
    let (_, id) = app.workspace.open_session(&args.session, Access::Write)?;
    let words = SayRequest { text, lane: args.lane.clone(), now: args.now };
    let hears = app.runtime().say(&id, words)?;
    let line = heard(&id, hears);
    app.out.answer(&SaidTo { id, running: hears.is_running() }, line)?;
    Ok(Exit::Done)
}
