use stepwell::SessionInfo;
use stepwell::store::query::{Filter, LedgerRows, Query, TrashScope};
use stepwell_terminal::table::{Column, Table, left, right};
use stepwell_terminal::text::bytes;
use stepwell_wire::{DiskUseOfSession, DiskUseTotal};

use super::sessions::task;
use crate::app::App;
use crate::failure::{Exit, Result};

/// Shows how much disk space sessions use, largest first.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Lists at most this many sessions.
    #[arg(long, short = 'n', value_name = "N", default_value_t = 20)]
    limit: usize,
    /// Lists all of them.
    #[arg(long, conflicts_with = "limit")]
    all: bool,
}

const COLUMNS: &[Column] = &[right("SIZE"), left("ID"), left("WHERE"), left("TASK")];

pub(crate) fn run(args: &Args, app: &mut App) -> Result<Exit> {
    let Some(well) = app.workspace.open_if_present()? else {
        let nothing = DiskUseTotal { total: 0, events: 0, blobs: 0, sessions: 0 };
        app.out.answer(&nothing, "No sessions yet.")?;
        return Ok(Exit::Done);
    };
    let (place, rows) = (TrashScope::Anywhere, LedgerRows::Included);
    let filter = Filter { place, rows, ..Filter::default() };
    let sessions = well.sessions(Query { filter, ..Query::default() });
    let mut sessions = sessions.collect::<Result<Vec<SessionInfo>, _>>()?;
    sessions.sort_by_key(|info| std::cmp::Reverse(info.bytes));
    let count = sessions.len();
    sessions.truncate(if args.all { usize::MAX } else { args.limit });
    let used = well.store().maintain().disk_use()?;
    if app.out.is_json() {
        for info in &sessions {
            let (id, trashed) = (info.head.id.clone(), info.trashed_at.is_some());
            app.out.object(&DiskUseOfSession { id, bytes: info.bytes, trashed })?;
        }
        app.out.object(&DiskUseTotal::new(&used, count))?;
        return Ok(Exit::Done);
    }
    let mut table = Table::new(COLUMNS);
    for info in &sessions {
        let place = if info.trashed_at.is_some() { "trash" } else { "" };
        let id = info.head.id.to_string();
        table.push(vec![bytes(info.bytes).into(), id.into(), place.into(), task(info).into()]);
    }
    app.print(&table)?;
    app.out.line(format_args!(
        "In all {}: {} in events, {} in blobs, the rest in indexes and free pages.",
        bytes(used.total),
        bytes(used.events),
        bytes(used.blobs)
    ))?;
    Ok(Exit::Done)
}
