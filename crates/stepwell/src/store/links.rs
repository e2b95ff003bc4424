//! Links that come with a project: nothing is written through them.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use crate::error::{Error, Result};

/// The name of the folder, in a workspace, that holds its store.
pub const STORE_FOLDER: &str = ".stepwell";

/// Refuses a path that is itself a symbolic link. A cloned project can hold a link of any name that
/// leads to any file of the user's.
///
/// # Errors
/// [`Error::Link`], which names the link and where it leads.
pub fn refuse_link(path: &Path) -> Result<()> {
    match fs::read_link(path) {
        Ok(target) => Err(Error::Link { link: path.to_owned(), target }),
        // It is no link, or it is not there.
        Err(_) => Ok(()),
    }
}

/// How often the names of a file are counted, while another process gives it a name or takes one away.
const COUNTS: usize = 3;

/// Refuses a file that has another name outside of its folder. A project that was unpacked can hold a
/// hard link to any file of the user's. Names in the same folder are the store's own: a new store has
/// two for a moment.
///
/// # Errors
/// [`Error::Shared`], which names the file.
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

/// Refuses a path of which a part below a folder is a symbolic link.
///
/// # Errors
/// [`Error::Link`], for the part that is nearest to the folder.
pub fn refuse_links_below(folder: &Path, path: &Path) -> Result<()> {
    let below: Vec<&Path> = path.ancestors().take_while(|part| *part != folder).collect();
    below.into_iter().rev().try_for_each(refuse_link)
}

/// Refuses a store's folder that is a link, or that holds one. A folder of another name than the usual
/// one was named by the user, who may have made it a link.
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
