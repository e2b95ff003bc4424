use stepwell::Seq;
use stepwell::sqlite::Access;
use stepwell::work::Gates;
use stepwell_terminal::gates::tell_waiting;
use stepwell_terminal::note;
use stepwell_workspace::known_stores;

use super::chat;
use crate::app::App;
use crate::failure::{Exit, Result};
use crate::runner::Flags;

/// Shows a session that runs elsewhere, to answer it, speak to it or stop it.
///
/// What you type is said to its model. /stop stops it; Ctrl+C twice or Ctrl+D leaves it running.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The session: its id, a part of it, its label, or @last.
    session: String,
    /// Begins with this event; without it, with what comes from now on.
    #[arg(long, value_name = "SEQ")]
    from: Option<u64>,
    /// Prints every event as JSON, one per line, as it is recorded.
    #[arg(long, conflicts_with = "json")]
    events: bool,
    /// Writes lines and redraws nothing, for screen readers.
    #[arg(long)]
    plain: bool,
}

pub(crate) fn run(args: &Args, app: &mut App) -> Result<Exit> {
    known_stores::go_to_session(&mut app.workspace, &args.session)?;
    let as_lines = args.plain || args.events || args.from.is_some();
    if !as_lines && chat::has_screen(app) && !app.workspace.host.environment.is_in_run() {
        return chat::watch(&args.session, app);
    }
    let (well, id) = app.workspace.open_session(&args.session, Access::Read)?;
    well.refuse_altered(&id)?;
    let info = well.info(&id)?;
    let (runtime, waiting) = (app.runtime(), Gates::waiting(&**well.store(), &id)?);
    let from = match args.from {
        Some(seq) => Seq::new(seq.max(1)),
        // What it waits with is shown, though it was asked before.
        None => waiting.open().next().map_or(info.head.seq.next(), |asked| asked.seq),
    };
    drop(well);
    if info.held.is_some() {
        let how = if app.terminal.can_ask { "Ctrl+D leaves it running" } else { "until it ends" };
        note(format_args!("Attached to {id}; {how}"));
    } else {
        waiting.open().for_each(|asked| tell_waiting(&id, &asked.gate));
    }
    let attached = runtime.attach(&id, from)?;
    let flags = Flags { events: args.events, ..Flags::default() };
    app.run_view().show_attached(&runtime, &attached, &flags)
}
