use stepwell::model::Owner;
use stepwell::sqlite::Access;
use stepwell::store::Liveness;
use stepwell_wire::StopAsked;
use stepwell_workspace::known_stores;

use crate::app::App;
use crate::failure::{Exit, Result};

/// Asks a running session to stop cleanly, on whichever machine it runs.
///
/// The request is recorded. Its runner sees it within seconds; on this machine it is also signalled.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The session: its id, a part of it, its label, or @last.
    session: String,
    /// Why, for whoever reads the session later.
    #[arg(long, value_name = "TEXT")]
    reason: Option<String>,
}

pub(crate) fn run(args: &Args, app: &mut App) -> Result<Exit> {
    known_stores::go_to_session(&mut app.workspace, &args.session)?;
    let (_, id) = app.workspace.open_session(&args.session, Access::Read)?;
    let stop = app.runtime().stop(&id, args.reason.clone())?;
    signal(&stop.holder, app);
    let asked = stop.holder.to_string();
    let line = format!("Asked {asked} to stop {id}");
    app.out.answer(&StopAsked { id, asked }, line)?;
    Ok(Exit::Done)
}

/// The fast way, on the same machine. Where it fails, the runner still sees the request.
fn signal(holder: &Owner, app: &App) {
    if app.workspace.host.processes.pulse(holder) != Liveness::Alive {
        return;
    }
    let pid = i32::try_from(holder.pid).ok().and_then(rustix::process::Pid::from_raw);
    if let Some(pid) = pid {
        let _ = rustix::process::kill_process(pid, rustix::process::Signal::TERM);
    }
}
