//! Git commands for worktrees.

use std::path::Path;

use crate::git::{SafeGit, refuse};

/// Runs git in a folder, and returns its output without the final line break. The error is its
/// stderr.
pub(super) fn git(folder: &Path, args: &[&str]) -> Result<String, String> {
    SafeGit::new(folder).text(args)
}

/// Does git exit with success?
pub(super) fn holds(folder: &Path, args: &[&str]) -> bool {
    git(folder, args).is_ok()
}

/// The names in NUL-separated output.
pub(super) fn names(text: &str) -> Vec<String> {
    text.split('\0').filter(|name| !name.is_empty()).map(str::to_owned).collect()
}

/// Fails if a filter applies to a file of a commit: git would write the unfiltered content.
pub(super) fn without_filters_at(folder: &Path, commit: &str) -> Result<(), String> {
    let git = SafeGit::new(folder);
    let filters = git.drivers()?.filters;
    if filters.is_empty() {
        return Ok(());
    }
    let files = git.text(&["ls-tree", "-r", "-z", "--name-only", "--full-tree", commit])?;
    let top = SafeGit::new(Path::new(&git.text(&["rev-parse", "--show-toplevel"])?));
    let source = format!("--source={commit}");
    let asked = ["check-attr", &source, "-z", "--stdin", "filter"];
    let answer = top.text_with_input(&asked, &files);
    // Older versions of git only know the attributes of the checked-out files.
    let answer = answer
        .or_else(|_| top.text_with_input(&["check-attr", "-z", "--stdin", "filter"], &files))?;
    refuse(&answer, &filters, "filter")
}

/// Fails if a filter applies to a file in a worktree: git would consider every such file changed,
/// and commit a different content.
pub(super) fn without_filters_in(folder: &Path) -> Result<(), String> {
    let git = SafeGit::new(folder);
    let filters = git.drivers()?.filters;
    if filters.is_empty() {
        return Ok(());
    }
    let listed = ["ls-files", "-z", "--cached", "--others", "--exclude-standard"];
    git.without_filters(&names(&git.text(&listed)?))
}

/// Fails if a merge driver applies to one of these files. They are relative to the top of the
/// worktree.
pub(super) fn without_merge_drivers(top: &Path, files: &[String]) -> Result<(), String> {
    let git = SafeGit::new(top);
    let drivers = git.drivers()?.merges;
    if drivers.is_empty() || files.is_empty() {
        return Ok(());
    }
    let files = files.join("\0") + "\0";
    let answer = git.text_with_input(&["check-attr", "-z", "--stdin", "merge"], &files)?;
    refuse(&answer, &drivers, "merge driver")
}
