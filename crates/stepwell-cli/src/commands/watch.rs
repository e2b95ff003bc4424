use std::num::NonZeroU64;
use std::path::PathBuf;
use std::time::Duration;

use stepwell_formats::Format;
use stepwell_runtime::command::ImportedPlace;
use stepwell_terminal::note;
use stepwell_terminal::reply::Verbosity;
use stepwell_terminal::text::count;
use stepwell_workspace::{WatchNews, WatchedPlace, ownership, watch};

use super::import::report_import;
use crate::app::App;
use crate::failure::{Exit, Failure, Result};

/// Keeps importing what other agents record, as they record it.
///
/// Looks where the agents of this machine keep their sessions, or in the folders that are
/// named, again and again until it is stopped. It can be killed at any time.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Files and folders; without any, where agents keep their sessions.
    #[arg(value_name = "PATH")]
    paths: Vec<PathBuf>,
    /// Reads only this format.
    #[arg(long, value_name = "FORMAT")]
    from: Option<Format>,
    /// How long to wait between two looks, in seconds.
    #[arg(long, value_name = "SECONDS", default_value = "2")]
    every: NonZeroU64,
}

pub(crate) fn run(args: &Args, app: &mut App) -> Result<Exit> {
    let places = watch::places(&app.workspace, &args.paths, args.from);
    if places.is_empty() {
        let message = "there is nothing to watch: no agent keeps sessions here";
        let hint = "name a folder; stepwell formats says where was looked";
        return Err(Failure::new(Exit::Absent, message).hint(hint));
    }
    if let Some(WatchedPlace { path, .. }) = places.iter().find(|place| !place.path.exists()) {
        let message = format!("there is nothing to watch: {} is not there", path.display());
        return Err(Failure::new(Exit::Absent, message).hint("make it, or name another folder"));
    }
    let well = app.workspace.open_or_create()?;
    let Some(mut watch) = watch::start(&app.workspace)? else {
        let message = "another stepwell watch is at work for this store";
        return Err(Failure::new(Exit::Busy, message));
    };
    note(format_args!("Watching {}; Ctrl+C stops it", count(places.len(), "place")));
    loop {
        // A place may come to be while we watch.
        for place in watch::places(&app.workspace, &args.paths, args.from) {
            watch.look(&well, &place, |news| {
                // What the user named may be anybody's.
                if let (WatchNews::Read { path, report, .. }, true) = (&news, args.paths.is_empty())
                {
                    ownership::mark_imported(
                        &app.workspace,
                        path,
                        report.sessions.iter().map(|taken| taken.id.clone()),
                    );
                }
                say(news, app)
            })?;
        }
        app.out.flush()?;
        if app.out.is_abandoned() {
            return Err(Failure::ClosedPipe);
        }
        pause(args.every);
    }
}

/// A signal ends it early, and the process with it.
#[expect(clippy::disallowed_methods, reason = "other agents tell nobody when they write a file")]
fn pause(seconds: NonZeroU64) {
    std::thread::sleep(Duration::from_secs(seconds.get()));
}

fn say(news: WatchNews, app: &mut App) -> Result<()> {
    match news {
        WatchNews::Fault(why) => note(format_args!("warning: {why}")),
        WatchNews::Read { path, format, report } => {
            report_import(&ImportedPlace { path, format, report }, app, Verbosity::OnlyNews)?;
        }
    }
    Ok(())
}
