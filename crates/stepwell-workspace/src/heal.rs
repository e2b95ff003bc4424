//! Contents that a store holds damaged, brought back from where they are whole.
//!
//! Bytes are known by their digest, so it does not matter where they come from: the file that
//! they were captured from, or another store of the user's.

use std::collections::BTreeMap;

use stepwell::model::{Digest, FileState, Kind};
use stepwell::{Error as StoreError, Event, SessionId, Stepwell, Store};
use stepwell_files::safe_fs::Content;
use stepwell_files::safe_path::{Exact, Root, SafePath};

use crate::error::Result;
use crate::known_stores::{self, Opening};
use crate::workspace::Workspace;

/// Puts whole contents in the place of those that a session's files name and that are damaged or
/// gone. What is whole nowhere stays as it is.
///
/// # Errors
/// If the store cannot be read or written.
pub(crate) fn heal(well: &Stepwell, session: &SessionId, workspace: &Workspace) -> Result<()> {
    let store = well.store();
    let mut others = None;
    for (digest, path) in damaged(&**store, session)? {
        let whole = in_folder(well, session, &path, workspace).filter(|it| digest.matches(it));
        let whole = whole.or_else(|| {
            let others =
                others.get_or_insert_with(|| known_stores::open_all(workspace, Opening::Read));
            others.iter().find_map(|other| other.well.store().blob(&digest).ok())
        });
        if let Some(bytes) = whole {
            store.keep_blobs(&[(digest, &bytes)])?;
        }
    }
    Ok(())
}

/// The contents of a session's files that are damaged or gone, each with a path that had it.
fn damaged(store: &dyn Store, session: &SessionId) -> Result<BTreeMap<Digest, String>> {
    let mut contents = BTreeMap::new();
    for recorded in store.keyed_events(session, &[Kind::File])? {
        let Event::File(change) = recorded.event else { continue };
        for state in [change.before, change.after] {
            if let FileState::File { blob, .. } = state {
                contents.insert(blob, change.path.clone());
            }
        }
    }
    contents.retain(|digest, _| {
        matches!(store.blob(digest), Err(StoreError::DamagedBlob { .. } | StoreError::NoBlob(_)))
    });
    Ok(contents)
}

/// What stands at a path in the folder that a session works in.
fn in_folder(
    well: &Stepwell,
    session: &SessionId,
    path: &str,
    workspace: &Workspace,
) -> Option<Vec<u8>> {
    let head = well.info(session).ok()?.head;
    let root = Root::new(workspace.session_folder(Some(&head)).ok()?);
    let Ok(Exact::Found(spot)) = SafePath::exact(&root, path) else { return None };
    match spot.content() {
        Ok(Content::File { bytes, .. }) => Some(bytes),
        _ => None,
    }
}
