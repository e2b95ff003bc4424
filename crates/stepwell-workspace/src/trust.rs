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
pub struct OwnSessions {
    folder: PathBuf,
}

impl OwnSessions {
    /// Those that the user's state folder names.
    #[must_use]
    pub fn below(state: &Path) -> Self {
        Self { folder: state.join("own") }
    }

    /// Is it the user's own?
    #[must_use]
    pub fn has(&self, id: &SessionId) -> bool {
        self.folder.join(id.as_str()).exists()
    }

    /// Marks a session as the user's own.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn add(&self, id: &SessionId) -> io::Result<()> {
        fs::create_dir_all(&self.folder)?;
        fs::File::create(self.folder.join(id.as_str())).map(drop)
    }
}
