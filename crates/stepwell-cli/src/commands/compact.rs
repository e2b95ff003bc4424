use stepwell_runtime::Error;
use stepwell_runtime::command::{Command, SessionCommand, Shortening};

use crate::app::App;
use crate::failure::{Exit, Result};
use crate::runner;

/// Shortens a conversation: a summary replaces old messages.
///
/// The goal, instructions, pinned messages, the latest request and calls without results stay
/// as they are, and so does the newest (compaction.keep_tokens). The log keeps everything.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The session: its id, a part of it, its label, or @last.
    session: String,
    /// Leaves old messages out, without asking a model for a summary.
    #[arg(long)]
    truncate: bool,
    /// Shows what the model no longer sees, and what stands in its place.
    #[arg(long, conflicts_with = "truncate")]
    diff: bool,
    /// Undoes the last compaction: the model is shown the originals again.
    #[arg(long, conflicts_with_all = ["truncate", "diff"])]
    undo: bool,
}

pub(crate) fn run(args: &Args, app: &mut App) -> Result<Exit> {
    let what = match () {
        () if args.diff => SessionCommand::CompactionDiff,
        () if args.undo => SessionCommand::UndoCompaction,
        () if args.truncate => SessionCommand::Compact(Shortening::Truncation),
        () => SessionCommand::Compact(Shortening::Summary),
    };
    let command = Command::Session(args.session.clone(), what);
    match app.runtime().run(command, &runner::interrupt()) {
        Err(Error::Interrupted) => Ok(Exit::Interrupted),
        reply => app.answer(&reply?),
    }
}
