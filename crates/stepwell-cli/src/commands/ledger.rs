use stepwell_runtime::command::{Command, LedgerWanted, Reply};
use stepwell_workspace::ledger_markdown;

use crate::app::App;
use crate::failure::{Exit, Result};
use crate::selection::Selection;

/// Lists what came of sessions that have ended, newest first.
///
/// One row for each: its tasks, its cost, how long it took, and the commits that its own commands
/// made in the workspace's local branches. A subagent counts for the session that started it. A row
/// outlives cleanup and the trash; purge erases it.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    selection: Selection,
    /// Answers with a table in Markdown, as in M31A's LEDGER.md: durations in minutes. stepwell
    /// import reads it in again.
    #[arg(long, conflicts_with = "json")]
    markdown: bool,
    /// Of all of your known stores.
    #[arg(long)]
    everywhere: bool,
}

pub(crate) fn run(args: &Args, app: &mut App) -> Result<Exit> {
    let (filter, statuses) =
        (args.selection.filter(app.workspace.now()), args.selection.statuses());
    let everywhere = args.everywhere;
    let reply = app.carry_out(Command::Ledger(LedgerWanted { filter, statuses, everywhere }))?;
    match &reply {
        Reply::Ledger(ledger) if args.markdown => {
            app.out.line(ledger_markdown(&ledger.lines).trim_end())?;
            Ok(Exit::Done)
        }
        reply => app.answer(reply),
    }
}
