//! Files that Stepwell writes in a workspace: never through a link.
//!
//! A project can come with a link of any name that leads to any file of the user's. Every file that is
//! written below a workspace's root, or below its store, is written by way of this type.

use std::fs::{self, File, OpenOptions};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use rustix::fs::OFlags;
use stepwell::store::refuse_links_below;

use crate::atomic_file::replace_users_file;
use crate::error::{Error, Result};

/// A file in a workspace whose path leads over no link.
#[derive(Debug)]
pub struct WorkspaceFile(PathBuf);

impl WorkspaceFile {
    /// A file below a folder of the workspace.
    ///
    /// # Errors
    /// If a part of the path below the folder is a link.
    pub fn below(folder: &Path, name: impl AsRef<Path>) -> Result<Self> {
        let path = folder.join(name);
        refuse_links_below(folder, &path)?;
        Ok(Self(path))
    }

    /// Where it is.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.0
    }

    /// Opens it to write at its end. It is made with this mode if it is not there. If it has other names,
    /// a copy takes its place first: the file of the other names stays as it is.
    ///
    /// # Errors
    /// If it cannot be opened, or became a link.
    pub fn append(&self, mode: u32) -> Result<File> {
        if fs::symlink_metadata(&self.0).is_ok_and(|meta| meta.is_file() && meta.nlink() > 1) {
            let text = fs::read_to_string(&self.0).map_err(Error::file(&self.0, "reading it"))?;
            self.replace(&text)?;
        }
        let no_links = i32::try_from(OFlags::NOFOLLOW.bits()).unwrap_or_default();
        let mut options = OpenOptions::new();
        let opened = options.create(true).append(true).mode(mode).custom_flags(no_links);
        opened.open(&self.0).map_err(Error::file(&self.0, "opening it"))
    }

    /// Replaces it as a whole, in a folder that is made if it is not there. The mode stays as it was.
    ///
    /// # Errors
    /// If it cannot be written. It is then as it was.
    pub fn replace(&self, text: &str) -> Result<()> {
        let folder = self.0.parent().map_or(Ok(()), fs::create_dir_all);
        let written = folder.and_then(|()| replace_users_file(&self.0, text));
        written.map_err(Error::file(&self.0, "writing it"))
    }
}
