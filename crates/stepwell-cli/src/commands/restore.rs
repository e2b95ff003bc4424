use std::path::PathBuf;

use stepwell::{Access, Filter, SqliteStore, Status};
use stepwell_wire::StoreRestored;

use crate::app::App;
use crate::failure::{Exit, Failure, Result};
use crate::output::note;
use crate::text::{count, visible};

/// Makes this workspace's store from a file that backup wrote.
///
/// The backup stays as it is. A store that is here already is replaced only if that is asked
/// for, and then kept beside the new one.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The backup.
    file: PathBuf,
    /// Moves the store that is here to another name first.
    #[arg(long)]
    replace: bool,
}

pub(crate) fn run(args: &Args, app: &mut App) -> Result<Exit> {
    if app.place.team.is_some() {
        let message = "a team's store is restored with its server";
        return Err(Failure::new(Exit::Failed, message)
            .hint("pg_restore, or stepwell store copy FOLDER postgres://…"));
    }
    if !args.file.is_file() {
        let message = format!("{}: there is no such file", args.file.display());
        return Err(Failure::new(Exit::Absent, message));
    }
    let store = app.place.store.clone();
    let replaced = match app.place.has_store() {
        true => Some(set_aside(args, app)?),
        false => None,
    };
    if let Err(error) = SqliteStore::restore_from(&args.file, &store) {
        // The user keeps what they had.
        if let Some(aside) = &replaced {
            let back = store.join("stepwell.db");
            std::fs::rename(aside, &back)
                .map_err(|error| Failure::file(aside, "moving it back", &error))?;
        }
        return Err(error.into());
    }
    let well = app.make()?;
    if let Err(error) = app.place.ignore() {
        note(format_args!("warning: .gitignore could not be changed: {error}"));
    }
    let sessions = well.store().count(&Filter::default())?.total();
    let path = |path: &std::path::Path| path.display().to_string();
    let shown = visible(&path(&store));
    let number = count(usize::try_from(sessions).unwrap_or(usize::MAX), "session");
    let answer =
        StoreRestored { store: path(&store), sessions, replaced: replaced.as_deref().map(path) };
    app.out.answer(&answer, format_args!("Restored {number} to {shown}"))?;
    if let Some(aside) = &replaced {
        note(format_args!("The store that was here is now {}", aside.display()));
    }
    Ok(Exit::Done)
}

/// Moves the present store out of the way, if nobody works in it.
fn set_aside(args: &Args, app: &App) -> Result<PathBuf> {
    let store = &app.place.store;
    if !args.replace {
        let message = format!("there is a store in {} already", store.display());
        return Err(Failure::new(Exit::Failed, message).hint(
            "--replace keeps it beside the restored one; --store FOLDER restores elsewhere",
        ));
    }
    // A store that cannot be opened is replaced all the more.
    if let Ok(well) = app.existing(Access::Read) {
        let running = Filter { status: vec![Status::Running], ..Filter::default() };
        let running = well.store().count(&running)?.total();
        if running > 0 {
            let number = count(usize::try_from(running).unwrap_or(usize::MAX), "session");
            let message = format!("{number} run in this store");
            return Err(Failure::new(Exit::Busy, message).hint("stepwell stop ID stops one"));
        }
    }
    Ok(SqliteStore::set_aside(store, app.now())?)
}
