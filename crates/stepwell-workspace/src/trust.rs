//! The user's own sessions: those that they began, or took up with a mode of their choice.
//!
//! What was allowed in a session stands in its store, and a store can come with a folder that
//! someone else made. Only what the user's own folder says is theirs counts as allowed. It names
//! the store as well as the session: a copy of a session in another folder is another one.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use stepwell::{Digest, SessionId};

/// The user's own sessions: an empty file for each, so that no two processes ever write the
/// same one differently.
#[derive(Clone, Debug)]
pub struct OwnSessions {
    folder: PathBuf,
    /// What the names of a store's sessions end with.
    store: String,
}

impl OwnSessions {
    /// Those of a store that the user's state folder names. `store` is where it is, so that no
    /// other store is taken for it.
    #[must_use]
    pub fn below(state: &Path, store: &str) -> Self {
        let digest = Digest::of(store.as_bytes()).to_string();
        Self { folder: state.join("own"), store: digest[..16].to_owned() }
    }

    /// Is it the user's own?
    #[must_use]
    pub fn has(&self, id: &SessionId) -> bool {
        self.mark(id).exists()
    }

    /// Marks a session as the user's own.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn add(&self, id: &SessionId) -> io::Result<()> {
        fs::create_dir_all(&self.folder)?;
        fs::File::create(self.mark(id)).map(drop)
    }

    /// No id holds an `@`.
    fn mark(&self, id: &SessionId) -> PathBuf {
        self.folder.join(format!("{id}@{}", self.store))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_session_is_the_users_own_in_its_store_only() {
        let state = tempfile::tempdir().unwrap();
        let id: SessionId = "20260101-000000-aaaaaa".parse().unwrap();
        OwnSessions::below(state.path(), "/work/a/.stepwell").add(&id).unwrap();
        assert!(OwnSessions::below(state.path(), "/work/a/.stepwell").has(&id));
        assert!(!OwnSessions::below(state.path(), "/work/copy/.stepwell").has(&id));
    }
}
