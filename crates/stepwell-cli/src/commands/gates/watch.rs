//! The questions that wait, as they open and close.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::time::Duration;

use stepwell_runtime::inspect::{GateNews, GateWatch, WatchedStore};
use stepwell_terminal::note;
use stepwell_terminal::reply::gates_table;
use stepwell_terminal::text::one_line;
use stepwell_wire::{GateChange, GateChangeKind, OpenGate};
use stepwell_workspace::{NamedWell, Opening, known_stores};

use super::Args;
use crate::app::App;
use crate::failure::{Exit, Failure, Result};

/// How long to wait for news before looking whether the reader has gone.
const WAIT: Duration = Duration::from_millis(500);

/// Clears the screen and goes to its first line.
const CLEAR: &str = "\u{1b}[H\u{1b}[2J";

pub(super) fn run(args: &Args, app: &mut App) -> Result<Exit> {
    let mut known = BTreeSet::new();
    let mut watch = GateWatch::new(new_stores(args, &mut known, app)?)?;
    let redraws = app.terminal.output && !app.out.is_json();
    if redraws {
        draw(&watch, app)?;
    }
    if known.is_empty() {
        note("There is no store yet; what is asked in the first one is shown.");
    }
    loop {
        match watch.next(WAIT) {
            // Stores are made while this watches.
            None => {
                for store in new_stores(args, &mut known, app)? {
                    watch.add(store)?;
                }
            }
            Some(GateNews::Changed(_)) if redraws => draw(&watch, app)?,
            Some(GateNews::Changed(changes)) => {
                for change in &changes {
                    app.out.answer(change, line(change))?;
                }
            }
            Some(GateNews::Lost { store, session, error }) => {
                let of = session.map(|id| id.to_string()).or(store).unwrap_or_default();
                note(format_args!("warning: {of} is no longer watched: {error}"));
            }
        }
        app.out.flush()?;
        if app.out.is_abandoned() {
            return Err(Failure::ClosedPipe);
        }
    }
}

/// The stores to watch that were not there before.
fn new_stores(args: &Args, known: &mut BTreeSet<PathBuf>, app: &App) -> Result<Vec<WatchedStore>> {
    if args.everywhere {
        let new = known_stores::open_new(&app.workspace, known, Opening::Read).into_iter();
        let watched = new.map(|NamedWell { name, well }| {
            let name = Some(name.display().to_string());
            WatchedStore { name, well, session: None }
        });
        return Ok(watched.collect());
    }
    if !known.is_empty() {
        return Ok(Vec::new());
    }
    let Some(well) = app.workspace.open_if_present()? else { return Ok(Vec::new()) };
    known.insert(app.workspace.place.store.clone());
    let session =
        args.session.as_ref().map(|name| app.workspace.find_session(&well, name)).transpose()?;
    Ok(vec![WatchedStore { name: None, well, session }])
}

/// Draws the whole list anew.
fn draw(watch: &GateWatch, app: &mut App) -> Result<()> {
    let open: Vec<&OpenGate> = watch.open().collect();
    app.out.raw().write_all(CLEAR.as_bytes())?;
    match open.is_empty() {
        true => app.out.line("No question waits."),
        false => app.print(&gates_table(open, &app.style())),
    }
}

/// A change as a line.
fn line(change: &GateChange) -> String {
    let OpenGate { session_id, gate, .. } = &change.gate;
    match (change.change, &change.who, &change.answer) {
        (GateChangeKind::Opened, ..) => {
            format!("opened {session_id} {}: {}", gate.id, one_line(&gate.prompt))
        }
        (GateChangeKind::Closed, Some(who), Some(answer)) => {
            format!("closed {session_id} {}: {who} answered {}", gate.id, one_line(answer))
        }
        (GateChangeKind::Closed, ..) => {
            format!("closed {session_id} {}: it is no longer asked", gate.id)
        }
    }
}
