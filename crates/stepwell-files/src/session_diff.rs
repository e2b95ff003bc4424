//! A session's file changes between two points, as patches.

use stepwell::model::{FileState, Kind};
use stepwell::{Result, Seq, SessionId, Store};
use stepwell_wire::FileDiff;

use crate::diff::{Side, file_diff};
use crate::history::History;

impl Side {
    /// A recorded state, with its content.
    ///
    /// # Errors
    /// If its content cannot be read.
    pub fn read(store: &dyn Store, state: &FileState) -> Result<Self> {
        Ok(match state {
            FileState::Absent => Self::Absent,
            FileState::File { blob, mode } => Self::File { bytes: store.blob(blob)?, mode: *mode },
            FileState::Symlink { target } => Self::Link(target.clone()),
            FileState::NotCaptured { why, .. } => Self::Unknown(why.clone()),
        })
    }
}

/// The net change of each file after `from`, up to and including `to`, by path. Contents are read
/// when the patches are consumed.
///
/// # Errors
/// If the store cannot be read.
pub fn patches<'a>(
    store: &'a dyn Store,
    id: &SessionId,
    from: Seq,
    to: Seq,
) -> Result<impl Iterator<Item = Result<FileDiff>> + 'a> {
    let net = History::of(store.keyed_events(id, &[Kind::File])?).net(from, to);
    // A moved file appears at its new path only.
    let moved: Vec<String> = net.values().filter_map(|it| it.renamed_from.clone()).collect();
    let mut changes = Vec::new();
    for (path, change) in net.iter().filter(|(path, _)| !moved.contains(path)) {
        let origin = change.renamed_from.as_ref().and_then(|old| net.get(old));
        let before = origin.map_or(&change.before, |old| &old.before).clone();
        changes.push((path.clone(), change.renamed_from.clone(), before, change.after.clone()));
    }
    Ok(changes.into_iter().map(move |(path, renamed_from, before, after)| {
        let (before, after) = (Side::read(store, &before)?, Side::read(store, &after)?);
        Ok(file_diff(&path, renamed_from.as_deref(), &before, &after))
    }))
}
