use stepwell::{Access, Processes, Pulse, SystemProcesses};
use stepwell_wire::StopAsked;

use crate::app::App;
use crate::failure::{Exit, Failure, Result};

/// Asks a running session to stop cleanly.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The session: its id, a part of it, its label, or @last.
    session: String,
}

pub(crate) fn run(args: &Args, app: &mut App) -> Result<Exit> {
    app.go_to_session(&args.session)?;
    let (well, id) = app.session(&args.session, Access::Read)?;
    let Some(held) = well.standing(&id)?.held else {
        let message = format!("{id} does not run");
        return Err(Failure::new(Exit::Failed, message).hint(format_args!("stepwell show {id}")));
    };
    let refuse = |why: String| Failure::new(Exit::Failed, format_args!("{id}: {why}"));
    if SystemProcesses.pulse(&held.holder) != Pulse::Alive {
        return Err(refuse(format!("{} cannot be reached from here", held.holder)));
    }
    let pid = i32::try_from(held.holder.pid).ok().and_then(rustix::process::Pid::from_raw);
    let pid = pid.ok_or_else(|| refuse(format!("{} has no number", held.holder)))?;
    rustix::process::kill_process(pid, rustix::process::Signal::TERM)
        .map_err(|error| refuse(format!("{} could not be asked: {error}", held.holder)))?;
    let asked = held.holder.to_string();
    let line = format!("Asked {asked} to stop {id}");
    app.out.answer(&StopAsked { id, asked }, line)?;
    Ok(Exit::Done)
}
