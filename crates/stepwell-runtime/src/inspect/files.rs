//! A session's files: their versions, what they held, and what became of them.

use stepwell::error::Action;
use stepwell::model::{FileState, Kind};
use stepwell::{Seq, SessionId, Stepwell};
use stepwell_files::diff::Side;
use stepwell_files::history::{History, Version};
use stepwell_wire::{FileContent, FileDiff, FileVersion, FileVersionKind};

use crate::error::{Error, ErrorKind, Result};

/// The versions of the files that a session changed, in order; of one path, if it is named.
///
/// # Errors
/// If the session cannot be read.
pub fn versions(well: &Stepwell, id: &SessionId, path: Option<&str>) -> Result<Vec<FileVersion>> {
    let history = history(well, id)?;
    let wanted = |it: &&Version<'_>| path.is_none_or(|path| path == it.entry.change.path);
    Ok(history.versions().iter().filter(wanted).map(version).collect())
}

/// The session did not change this file.
#[must_use]
pub fn not_changed(session: &SessionId, path: &str) -> Error {
    Error::refused(ErrorKind::Absent, format!("{session} did not change {path:?}"))
        .helped(Action::ShowFiles, session)
}

/// What a file held at a point, as it was recorded.
///
/// # Errors
/// If the session did not change it, or what it held was not captured.
pub fn content(
    well: &Stepwell,
    id: &SessionId,
    path: &str,
    at: Seq,
) -> Result<(FileContent, Vec<u8>)> {
    let history = history(well, id)?;
    let no_content =
        |why: &str| Error::refused(ErrorKind::Absent, format!("{path} at seq {at}: {why}"));
    let unknown = || not_changed(id, path);
    let state = history.at(path, at).ok_or_else(unknown)?;
    let bytes = match side(well, state)? {
        Side::Absent => return Err(no_content("there was no such file")),
        Side::Unknown(why) => return Err(no_content(&format!("not captured: {why}"))),
        Side::File { bytes, .. } => bytes,
        Side::Link(target) => target.into_bytes(),
    };
    let text = String::from_utf8(bytes.clone()).ok();
    let (id, path, state) = (id.clone(), path.to_owned(), state.clone());
    Ok((FileContent { id, path, at, state, text }, bytes))
}

/// What a session did to files after one point and up to another.
///
/// # Errors
/// If the session or what a file held cannot be read.
pub fn patches(well: &Stepwell, id: &SessionId, from: Seq, to: Seq) -> Result<Vec<FileDiff>> {
    let patches = stepwell_files::session_diff::patches(&**well.store(), id, from, to)?;
    Ok(patches.collect::<stepwell::Result<_>>()?)
}

/// What a recorded state was, with its content.
///
/// # Errors
/// If its content cannot be read.
pub fn side(well: &Stepwell, state: &FileState) -> Result<Side> {
    Ok(Side::read(&**well.store(), state)?)
}

fn history(well: &Stepwell, id: &SessionId) -> Result<History> {
    Ok(History::of(well.store().keyed_events(id, &[Kind::File])?))
}

fn version(version: &Version<'_>) -> FileVersion {
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
