//! The user's own sessions: those that they began, or took up with a mode of their choice.
//!
//! What was allowed in a session stands in its store, and a store can come with a folder that
//! someone else made. Only what the user's own folder says is theirs counts as allowed.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use stepwell::SessionId;

/// The user's own sessions: an empty file for each, so that no two processes ever write the
/// same one differently.
#[derive(Clone, Debug)]
pub(crate) struct Known {
    folder: PathBuf,
}

impl Known {
    /// Those that are remembered below the folder in which we remember things for the user.
    pub(crate) fn below(state: &Path) -> Self {
        Self { folder: state.join("own") }
    }

    /// Is it the user's own?
    pub(crate) fn has(&self, id: &SessionId) -> bool {
        self.folder.join(id.as_str()).exists()
    }

    /// It is, from now on.
    pub(crate) fn add(&self, id: &SessionId) -> io::Result<()> {
        fs::create_dir_all(&self.folder)?;
        fs::File::create(self.folder.join(id.as_str())).map(drop)
    }
}
