use stepwell_runtime::command::{Reply, SessionCommand};
use stepwell_terminal::wording::POINT_FORMS;

use crate::app::App;
use crate::failure::{Exit, Result};

/// Shows what a session did to files, as a unified diff.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The session: its id, a part of it, its label, or @last.
    session: String,
    /// From where: a seq, a checkpoint's name, or -N for N steps back (default: its beginning).
    #[arg(long, value_name = POINT_FORMS, allow_hyphen_values = true)]
    from: Option<String>,
    /// Up to where (default: its end).
    #[arg(long, value_name = POINT_FORMS, allow_hyphen_values = true)]
    to: Option<String>,
}

pub(crate) fn run(args: &Args, app: &mut App) -> Result<Exit> {
    let (from, to) = (args.from.clone(), args.to.clone());
    let reply = app.of_session(&args.session, SessionCommand::Diff { from, to })?;
    match &reply {
        // In a pipe it is for `git apply`, byte for byte.
        Reply::Diff(patches) if !app.terminal.output && !app.out.is_json() => {
            for patch in patches {
                app.out.raw().write_all(patch.diff.as_bytes())?;
            }
            Ok(Exit::Done)
        }
        reply => app.answer(reply),
    }
}
