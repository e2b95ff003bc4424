use std::path::Path;

use stepwell::store::query::{Family, Filter, Query};
use stepwell::{SessionInfo, Stepwell};
use stepwell_terminal::note;
use stepwell_terminal::table::{Column, Table, left, right};
use stepwell_terminal::text::{cost_or, moment, one_line, took};
use stepwell_wire::LedgerEntry;
use stepwell_workspace::{
    LedgerLine, LedgerLines, LedgerWanted, Location, NamedWell, Opening, known_stores, ledger,
    ledger_markdown,
};

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

const COLUMNS: &[Column] = &[
    left("SESSION"),
    left("ENDED"),
    left("PROJECT"),
    right("TASKS"),
    right("FAILED"),
    right("SKIPPED"),
    right("COST"),
    right("TOOK"),
    right("COMMITS"),
    left("MODEL"),
];

pub(crate) fn run(args: &Args, app: &mut App) -> Result<Exit> {
    let mut ledger = LedgerLines::default();
    if args.everywhere {
        for NamedWell { name, well } in known_stores::open_all(&app.workspace, Opening::Read) {
            let root = Location::named(&name, &app.workspace.place.root).root;
            ledger.extend(collect(args, &well, &root, app)?);
        }
    } else if let Some(well) = app.workspace.open_if_present()? {
        ledger = collect(args, &well, &app.workspace.place.root, app)?;
    }
    for (id, error) in &ledger.left_out {
        note(format_args!("warning: {id} is left out: {error}"));
    }
    let lines = ledger.lines;
    if args.markdown {
        app.out.line(ledger_markdown(&lines).trim_end())?;
    } else if app.out.is_json() {
        lines.iter().try_for_each(|line| app.out.object(&LedgerEntry::from(line)))?;
    } else if lines.is_empty() {
        app.out.line("No sessions that have ended.")?;
        note("hint: stepwell sessions lists all that there are");
    } else {
        show(&lines, app)?;
    }
    Ok(Exit::Done)
}

/// The lines of one store, the last that ended first.
fn collect(args: &Args, well: &Stepwell, root: &Path, app: &App) -> Result<LedgerLines> {
    let filter = Filter { family: Family::Roots, ..args.selection.filter(well.now()) };
    let query = Query { filter, ..Query::default() };
    let takes = |info: &SessionInfo| args.selection.takes(info);
    Ok(ledger::read(&app.workspace, well, LedgerWanted { root, query, takes: &takes })?)
}

fn show(lines: &[LedgerLine], app: &mut App) -> Result<()> {
    let mut all = Table::new(COLUMNS);
    for line in lines {
        let LedgerLine { came, estimate, .. } = line;
        all.push(vec![
            one_line(line.about()).into(),
            moment(came.ended).into(),
            one_line(&came.project_type).into(),
            came.tasks.to_string().into(),
            came.failed.to_string().into(),
            came.skipped.to_string().into(),
            cost_or(*estimate, &came.spent).into(),
            took(line.took()).into(),
            line.shown_commits().into(),
            one_line(&line.model()).into(),
        ]);
    }
    app.print(&all)
}
