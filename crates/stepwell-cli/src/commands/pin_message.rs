use stepwell::Seq;
use stepwell_runtime::command::SessionCommand;

use crate::app::App;
use crate::failure::{Exit, Result};

/// Keeps a message in the conversation, word for word, whatever is compacted.
///
/// A call stays with its results. stepwell show SESSION --view shows the seqs.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The session: its id, a part of it, its label, or @last.
    session: String,
    /// The message's seq.
    seq: u64,
}

/// Lets compaction take a message again.
#[derive(Debug, clap::Args)]
pub(crate) struct UnpinArgs {
    /// The session: its id, a part of it, its label, or @last.
    session: String,
    /// The message's seq.
    seq: u64,
}

pub(crate) fn pin(args: &Args, app: &mut App) -> Result<Exit> {
    app.do_to(&args.session, SessionCommand::PinMessage(Seq::new(args.seq)))
}

pub(crate) fn unpin(args: &UnpinArgs, app: &mut App) -> Result<Exit> {
    app.do_to(&args.session, SessionCommand::UnpinMessage(Seq::new(args.seq)))
}
