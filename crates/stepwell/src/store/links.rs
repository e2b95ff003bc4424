//! Symbolic and hard links in a workspace: Stepwell does not write through them.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use crate::error::{Error, Result};

/// The name of a store's folder in a workspace.
pub const STORE_FOLDER: &str = ".stepwell";

/// Refuses a path that is a symbolic link. A cloned project can contain a link to any of the user's
/// files.
///
/// # Errors
/// [`Error::Link`], with the link and its target.
pub fn refuse_link(path: &Path) -> Result<()> {
    match fs::read_link(path) {
        Ok(target) => Err(Error::Link { link: path.to_owned(), target }),
        // Not a link, or absent.
        Err(_) => Ok(()),
    }
}

/// How often a file's names are counted, since another process may add or remove one in between.
const COUNTS: usize = 3;

/// Refuses a file with another name outside its folder. An unpacked project can contain a hard link
/// to any of the user's files. Names in the same folder are the store's own: a new store has two
/// for a moment.
///
/// # Errors
/// [`Error::Shared`], with the file.
pub fn refuse_shared(path: &Path) -> Result<()> {
    let names_here = |meta: &fs::Metadata| {
        let folder = path.parent().and_then(|folder| fs::read_dir(folder).ok());
        let found = folder.into_iter().flatten().flatten().filter_map(|it| it.metadata().ok());
        let is_same = |it: &fs::Metadata| (it.dev(), it.ino()) == (meta.dev(), meta.ino());
        u64::try_from(found.filter(is_same).count()).unwrap_or_default()
    };
    let file = || fs::symlink_metadata(path).ok().filter(|it| it.is_file() && it.nlink() > 1);
    for _ in 0..COUNTS {
        let Some(meta) = file() else { return Ok(()) };
        if names_here(&meta) >= meta.nlink() {
            return Ok(());
        }
    }
    let names = file().map_or(0, |meta| meta.nlink());
    Err(Error::Shared { file: path.to_owned(), names })
}

/// Refuses a path with a symbolic link in it below a folder.
///
/// # Errors
/// [`Error::Link`], for the link nearest to the folder.
pub fn refuse_links_below(folder: &Path, path: &Path) -> Result<()> {
    let below: Vec<&Path> = path.ancestors().take_while(|part| *part != folder).collect();
    below.into_iter().rev().try_for_each(refuse_link)
}

/// Refuses a store's folder that is a symbolic link or contains one. A folder with another name
/// than the usual one was chosen by the user, who may have made it a link.
///
/// # Errors
/// [`Error::Link`].
pub fn refuse_links_in_store(folder: &Path) -> Result<()> {
    if folder.file_name().is_none_or(|name| name != STORE_FOLDER) {
        return Ok(());
    }
    refuse_link(folder)?;
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let is_link = |entry: &fs::DirEntry| entry.file_type().is_ok_and(|it| it.is_symlink());
    let mut links: Vec<_> = entries.filter(is_link).map(|entry| entry.path()).collect();
    links.sort();
    links.first().map_or(Ok(()), |link| refuse_link(link))
}
