//! Symbolic links that come with a project: nothing is written through them.

use std::fs;
use std::path::Path;

use crate::{Error, Result};

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
    if folder.file_name().is_none_or(|name| name != crate::STORE_FOLDER) {
        return Ok(());
    }
    refuse_link(folder)?;
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let is_link = |entry: &fs::DirEntry| entry.file_type().is_ok_and(|it| it.is_symlink());
    let mut links: Vec<_> = entries.filter(is_link).map(|entry| entry.path()).collect();
    links.sort();
    links.first().map_or(Ok(()), |link| refuse_link(link))
}
