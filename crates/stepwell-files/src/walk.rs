//! Walks a workspace as git sees it, without the files that `.gitignore` excludes.

use std::path::Path;

use ignore::{DirEntry, WalkBuilder};

use crate::safe_fs::is_scratch;
use crate::safe_path::is_hidden;

/// Links are not followed, so that the walk stays inside and cannot loop. The user's global git
/// settings are ignored, so that a run sees the same files everywhere.
#[must_use]
pub fn walker(start: &Path, store: Option<&Path>) -> WalkBuilder {
    let store = store.map(Path::to_owned);
    let is_ours = move |entry: &DirEntry| {
        is_hidden(entry.file_name())
            || is_scratch(entry.file_name())
            || store.as_deref() == Some(entry.path())
    };
    // A subagent's worktree lies in a store, which hides itself from git. That rule must not hide
    // the worktree's files.
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
