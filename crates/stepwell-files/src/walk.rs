//! Walking a workspace as git sees it: what `.gitignore` names is left out.

use std::path::Path;

use ignore::{DirEntry, WalkBuilder};

use crate::safe_fs::is_scratch;
use crate::safe_path::is_hidden;

/// Links are not followed, so that nothing outside is reached and no loop is entered. The
/// user's own settings of git are left out: they are in their home folder, and a run should
/// see the same files wherever it runs.
#[must_use]
pub fn walker(start: &Path, store: Option<&Path>) -> WalkBuilder {
    let store = store.map(Path::to_owned);
    let is_ours = move |entry: &DirEntry| {
        is_hidden(entry.file_name())
            || is_scratch(entry.file_name())
            || store.as_deref() == Some(entry.path())
    };
    // A subagent's worktree lies in a store, which hides itself from git: that is no word about
    // what is in the worktree.
    let in_store = start.ancestors().skip(1).filter_map(Path::file_name).any(is_hidden);
    let mut walker = WalkBuilder::new(start);
    walker
        .parents(!in_store)
        .hidden(false)
        .ignore(false)
        .git_global(false)
        .require_git(false)
        .follow_links(false)
        .filter_entry(move |entry| !is_ours(entry));
    walker
}
