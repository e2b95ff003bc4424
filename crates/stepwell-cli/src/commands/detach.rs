//! Runs in the background: a process of its own that survives its terminal.

use std::path::PathBuf;

use stepwell_runtime::detached::{DetachedAnswer, Launcher, Program, Work};
use stepwell_terminal::{Explained, note};
use stepwell_wire::Detached;
use stepwell_workspace::{Found, Location, RunLogs};

use crate::app::App;
use crate::failure::{Exit, Failure, Result, exit_of_run};
use crate::global::Global;

/// Has a process in the background do it, and says in which session.
pub(crate) fn start(work: Work, app: &mut App) -> Result<Exit> {
    // Made now: what goes wrong with it is told here.
    drop(app.workspace.open_or_create()?);
    let failed = |error: std::io::Error| Failure::new(Exit::Failed, error);
    let launcher = Launcher {
        program: program(app).map_err(failed)?,
        // What was typed is meant from there.
        folder: PathBuf::from("."),
        logs: RunLogs::of(&app.workspace.place.store).folder().to_owned(),
    };
    match launcher.start(&work.into()).map_err(failed)? {
        DetachedAnswer::Started { session } => {
            let log = launcher.log_of(&session).display().to_string();
            app.out.answer(&Detached { session_id: session.clone(), log }, &session)?;
            note(format_args!(
                "hint: stepwell attach {session} shows it; stepwell stop {session} stops it"
            ));
        }
        DetachedAnswer::GoesOnElsewhere { session } => goes_on_elsewhere(&session),
        DetachedAnswer::Done(_) => return Err(Failure::new(Exit::Failed, "nothing was started")),
        DetachedAnswer::Failed { message, hint, kind } => {
            return Err(Failure::explained(Explained { message, hint }, exit_of_run(kind)));
        }
    }
    Ok(Exit::Done)
}

/// A session got its answer where it runs.
pub(crate) fn goes_on_elsewhere(session: &stepwell::SessionId) {
    note(format_args!("{session} runs elsewhere, and goes on there with the answer"));
}

/// This program, in the same workspace and with the same settings.
pub(crate) fn program(app: &App) -> std::io::Result<Program> {
    program_at(&app.workspace.place, &app.global)
}

/// This program, in a workspace and with settings that were typed.
pub(crate) fn program_at(place: &Location, global: &Global) -> std::io::Result<Program> {
    let store = match (&global.store, place.found) {
        // A session that was found elsewhere is there.
        (_, Found::Named) if place.team.is_none() => Some(&place.store),
        // What was typed may be an address, with a password. What a variable says, the process
        // finds by itself.
        (typed, _) => typed.as_ref(),
    };
    let store = store.map(|store| vec!["--store".into(), store.clone().into_os_string()]);
    let mut arguments = global.settings_as_typed();
    arguments.push("__detached".into());
    Ok(Program { path: std::env::current_exe()?, store: store.unwrap_or_default(), arguments })
}
