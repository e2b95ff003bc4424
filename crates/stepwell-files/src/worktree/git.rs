//! What worktrees ask git.

use std::path::Path;

use crate::git::{SafeGit, refuse};

/// Runs git in a folder, and returns what it says without the line's end. An error is what it
/// complains about.
pub(super) fn git(folder: &Path, args: &[&str]) -> Result<String, String> {
    SafeGit::new(folder).text(args)
}

/// Does git say yes?
pub(super) fn holds(folder: &Path, args: &[&str]) -> bool {
    git(folder, args).is_ok()
}

/// The names in an answer that NUL characters part.
pub(super) fn names(text: &str) -> Vec<String> {
    text.split('\0').filter(|name| !name.is_empty()).map(str::to_owned).collect()
}

/// Refuses, if a file of a commit can be checked out only through a filter: git would write the
/// filter's input in place of the file.
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
    // Older gits know the attributes of what is checked out alone.
    let answer = answer
        .or_else(|_| top.text_with_input(&["check-attr", "-z", "--stdin", "filter"], &files))?;
    refuse(&answer, &filters, "filter")
}

/// Refuses, if a file in a worktree needs a filter: git would take every such file for changed,
/// and commit it in another form.
pub(super) fn without_filters_in(folder: &Path) -> Result<(), String> {
    let git = SafeGit::new(folder);
    let filters = git.drivers()?.filters;
    if filters.is_empty() {
        return Ok(());
    }
    let listed = ["ls-files", "-z", "--cached", "--others", "--exclude-standard"];
    git.without_filters(&names(&git.text(&listed)?))
}

/// Refuses, if one of these files can be merged only by a merge driver. They are relative to the
/// top of the worktree.
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
