use stepwell::store::Removal;
use stepwell_runtime::command::Command;
use stepwell_terminal::note;

use crate::app::App;
use crate::failure::{Exit, Failure, Result};

/// Moves sessions to the trash, with their subagents' sessions.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The sessions: ids, beginnings of ids, labels, or @last.
    #[arg(required = true, value_name = "SESSION")]
    sessions: Vec<String>,
}

pub(crate) fn run(args: &Args, app: &mut App) -> Result<Exit> {
    let reply = app.carry_out(Command::Delete(args.sessions.clone()))?;
    app.answer(&reply)
}

/// Fails if something was left, saying what.
pub(crate) fn fail_if_left(removal: Removal) -> Result<()> {
    let mut left = removal.left.into_iter().map(|(_, error)| Failure::from(error));
    let Some(first) = left.next() else { return Ok(()) };
    for other in left {
        if let Failure::Said { message, .. } = other {
            note(format_args!("error: {message}"));
        }
    }
    Err(first)
}
