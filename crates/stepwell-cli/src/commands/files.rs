use stepwell::{Access, FileState, Kind, Seq, SessionId};
use stepwell_files::diff::Side;
use stepwell_files::history::{History, Version};
use stepwell_wire::{FileContent, FileVersion, FileVersionKind};

use crate::app::{App, Well};
use crate::failure::{Exit, Failure, Result};
use crate::files::{side, tell_of_half};
use crate::output::note;
use crate::point::FORMS;
use crate::table::{Align, Column, Table};
use crate::text::{count, one_line, second};
use crate::wire::word;

/// Lists the versions of the files that a session changed, or prints one.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The session: its id, a part of it, its label, or @last.
    session: String,
    /// Only this file, relative to the workspace.
    path: Option<String>,
    /// Prints what the file held there: a seq, a checkpoint's name, or -N for N steps back.
    #[arg(long, value_name = FORMS, allow_hyphen_values = true, requires = "path")]
    at: Option<String>,
}

const COLUMNS: &[Column] = &[
    Column { name: "SEQ", align: Align::Right },
    Column { name: "WHEN", align: Align::Left },
    Column { name: "CHANGE", align: Align::Left },
    Column { name: "CONTENT", align: Align::Left },
    Column { name: "PATH", align: Align::Left },
];

pub(crate) fn run(args: &Args, app: &mut App) -> Result<Exit> {
    let (well, id) = app.session(&args.session, Access::Read)?;
    let wanted_path = args.path.as_deref().map(|path| path.trim_start_matches("./"));
    let history = History::of(well.store().facts(&id, &[Kind::File])?);
    if let (Some(path), Some(at)) = (wanted_path, &args.at) {
        let at = well.point(&id, at)?;
        return print(&well, &id, &history, path, at, app);
    }
    let wanted = |it: &Version<'_>| wanted_path.is_none_or(|path| path == it.entry.change.path);
    let mut versions = history.versions();
    versions.retain(wanted);
    tell_of_half(&well.standing(&id)?);
    if app.out.is_json() {
        versions.iter().try_for_each(|version| app.out.object(&line(version)))?;
        return Ok(Exit::Done);
    }
    let Some(path) = wanted_path.filter(|_| versions.is_empty()) else {
        return list(&id, &versions, app);
    };
    Err(unknown(&id, path))
}

fn list(id: &SessionId, versions: &[Version<'_>], app: &mut App) -> Result<Exit> {
    if versions.is_empty() {
        note(format_args!("{id} changed no files."));
        return Ok(Exit::Done);
    }
    let mut table = Table::new(COLUMNS);
    for version in versions {
        let version = line(version);
        let from = version.renamed_from.map(|from| format!(" (was {})", one_line(&from)));
        table.push(vec![
            version.seq.to_string().into(),
            second(version.at).into(),
            word(version.change).into(),
            content(&version.after).into(),
            format!("{}{}", one_line(&version.path), from.unwrap_or_default()).into(),
        ]);
    }
    app.print(&table)?;
    note(format_args!(
        "{}; stepwell files {id} PATH --at SEQ prints one",
        count(versions.len(), "version")
    ));
    Ok(Exit::Done)
}

fn line(version: &Version<'_>) -> FileVersion {
    let change = &version.entry.change;
    let found = version.is_found();
    let what = match (&change.before, &change.after, &change.renamed_from) {
        _ if found => FileVersionKind::Found,
        (_, _, Some(_)) => FileVersionKind::Renamed,
        (FileState::Absent, ..) => FileVersionKind::Created,
        (_, FileState::Absent, _) => FileVersionKind::Deleted,
        _ => FileVersionKind::Changed,
    };
    FileVersion {
        path: change.path.clone(),
        seq: version.seq,
        at: version.entry.at,
        change: what,
        renamed_from: change.renamed_from.clone().filter(|_| !found),
        before: (!found).then(|| change.before.clone()),
        after: version.state.clone(),
    }
}

/// What stands there, in a few words.
fn content(state: &FileState) -> String {
    match state {
        FileState::Absent => "-".to_owned(),
        FileState::File { blob, mode } => format!("{:.12} {mode:o}", blob.to_string()),
        FileState::Symlink { target } => format!("-> {}", one_line(target)),
        FileState::NotCaptured { why, .. } => format!("not captured: {}", one_line(why)),
    }
}

/// Prints what a file held.
fn print(
    well: &Well,
    id: &SessionId,
    history: &History,
    path: &str,
    at: Seq,
    app: &mut App,
) -> Result<Exit> {
    let state = history.at(path, at).ok_or_else(|| unknown(id, path))?;
    let failed =
        |why: String| Failure::new(Exit::Failed, format_args!("{path} at seq {at}: {why}"));
    let bytes = match side(well, state)? {
        Side::Absent => return Err(failed("there was no such file".to_owned())),
        Side::Unknown(why) => return Err(failed(format!("not captured: {why}"))),
        Side::File { bytes, .. } => bytes,
        Side::Link(target) => target.into_bytes(),
    };
    if app.out.is_json() {
        let (id, path) = (id.clone(), path.to_owned());
        let (state, text) = (state.clone(), String::from_utf8(bytes).ok());
        app.out.object(&FileContent { id, path, at, state, text })?;
    } else {
        app.out.raw().write_all(&bytes)?;
    }
    Ok(Exit::Done)
}

fn unknown(id: &SessionId, path: &str) -> Failure {
    Failure::new(Exit::Failed, format_args!("{id} did not change {path:?}"))
        .hint(format_args!("stepwell files {id} lists what it changed"))
}
