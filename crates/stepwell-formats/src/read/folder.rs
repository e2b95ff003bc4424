//! What is in a folder of another system, within bounds.

use std::io;
use std::path::{Path, PathBuf};

use crate::{Error, Result};

/// The most entries of one folder that are looked at.
pub(crate) const MAX_ENTRIES: usize = 1_000_000;

/// The failure to read something.
pub(crate) fn unreadable(path: &Path, error: io::Error) -> Error {
    Error::Unreadable { path: path.to_owned(), error }
}

/// What is in a folder, sorted, without links. A folder that is not there is empty.
pub(crate) fn list(folder: &Path) -> Result<Vec<PathBuf>> {
    match folder.symlink_metadata() {
        Ok(found) if found.is_dir() => {}
        _ => return Ok(Vec::new()),
    }
    let mut paths = Vec::new();
    for entry in std::fs::read_dir(folder).map_err(|error| unreadable(folder, error))? {
        let entry = entry.map_err(|error| unreadable(folder, error))?;
        if entry.file_type().is_ok_and(|kind| !kind.is_symlink()) {
            paths.push(entry.path());
        }
        if paths.len() > MAX_ENTRIES {
            let why = format!("it has more than {MAX_ENTRIES} entries");
            return Err(Error::Foreign { path: folder.to_owned(), why });
        }
    }
    paths.sort();
    Ok(paths)
}
