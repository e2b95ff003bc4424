//! Resolves the recorded folder of a session that works in a worktree.
//!
//! A recorded folder is a name, not a place: the workspace may have been moved or copied since, or
//! the session may come from another person. Only the worktree's id and the path inside it are
//! trusted, and only within the store that holds the session.

use std::path::{Component, Path, PathBuf};

use stepwell::SessionId;

use super::FOLDER;

/// A worktree, and a session's folder in it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WorktreeRef {
    /// The session that the worktree was created for.
    pub worktree: SessionId,
    /// The workspace's folder in the repository.
    within: PathBuf,
}

impl WorktreeRef {
    /// The worktrees that a recorded folder may refer to. Several only if folders above or below it
    /// have matching names.
    #[must_use]
    pub fn named(recorded: &Path) -> Vec<Self> {
        let parts: Vec<Component<'_>> = recorded.components().collect();
        let named = parts.windows(2).enumerate().filter_map(|(at, pair)| {
            let name = pair[1].as_os_str().to_str()?;
            let within = &parts[at + 2..];
            let plain = within.iter().all(|it| matches!(it, Component::Normal(_)));
            let is_one = plain && pair[0].as_os_str() == FOLDER;
            let worktree = is_one.then(|| name.parse().ok()).flatten()?;
            Some(Self { worktree, within: within.iter().collect() })
        });
        named.collect()
    }

    /// Its folder in a store, with links resolved; `None` if it does not exist, or if a link leads
    /// out of the worktree.
    #[must_use]
    pub fn folder(&self, store: &Path) -> Option<PathBuf> {
        let top = std::fs::canonicalize(store).ok()?.join(FOLDER).join(self.worktree.as_str());
        let folder = std::fs::canonicalize(top.join(&self.within)).ok()?;
        (folder.is_dir() && folder.starts_with(&top)).then_some(folder)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ids(recorded: &str) -> Vec<String> {
        WorktreeRef::named(Path::new(recorded)).iter().map(|it| it.worktree.to_string()).collect()
    }

    #[test]
    fn only_a_worktrees_name_is_taken_from_a_recorded_folder() {
        assert_eq!(ids("/a/.stepwell/worktrees/C1"), ["C1"]);
        assert_eq!(ids("/a/.stepwell/worktrees/C1/sub/deep"), ["C1"]);
        assert_eq!(ids("/a/worktrees/b/.stepwell/worktrees/C1"), ["b", "C1"]);
        for wrong in ["", "/etc", "/a/worktrees", "/a/worktrees/..", "/a/worktrees/C1/../../.."] {
            assert!(ids(wrong).is_empty(), "{wrong}");
        }
    }

    #[test]
    fn a_worktree_lies_in_the_store_or_nowhere() {
        let top = tempfile::tempdir().unwrap();
        let store = std::fs::canonicalize(top.path()).unwrap();
        let reference =
            |recorded: &str| WorktreeRef::named(Path::new(recorded)).remove(0).folder(&store);
        let made = store.join("worktrees/C1/sub");
        std::fs::create_dir_all(&made).unwrap();
        assert_eq!(reference("/gone/worktrees/C1/sub"), Some(made.clone()));
        assert_eq!(reference("/gone/worktrees/C2"), None);
        assert_eq!(reference("/gone/worktrees/C1/other"), None);
        std::os::unix::fs::symlink("/", made.join("out")).unwrap();
        std::os::unix::fs::symlink("/", store.join("worktrees/C3")).unwrap();
        assert_eq!(reference("/gone/worktrees/C1/sub/out"), None);
        assert_eq!(reference("/gone/worktrees/C3"), None);
    }
}
