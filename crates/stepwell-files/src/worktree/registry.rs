//! Git's list of a repository's worktrees, including those whose folder is gone.

use std::path::{Path, PathBuf};

use super::Worktree;
use super::git::{git, holds};

/// A worktree in git's list, or the repository's main one.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Entry {
    pub(super) path: PathBuf,
    /// Its checked-out commit.
    head: Option<String>,
    /// Its checked-out branch, by full name.
    branch: Option<String>,
}

/// Every worktree of a repository.
pub(super) fn entries(workspace: &Path) -> Result<Vec<Entry>, String> {
    Ok(parse(&git(workspace, &["worktree", "list", "--porcelain"])?))
}

fn parse(listed: &str) -> Vec<Entry> {
    let mut found: Vec<Entry> = Vec::new();
    for line in listed.lines() {
        let (key, value) = line.split_once(' ').unwrap_or((line, ""));
        match (key, found.last_mut()) {
            ("worktree", _) => found.push(Entry { path: value.into(), ..Entry::default() }),
            ("HEAD", Some(entry)) => entry.head = Some(value.to_owned()),
            ("branch", Some(entry)) => entry.branch = Some(value.to_owned()),
            _ => {}
        }
    }
    found
}

/// A path as git writes it, even if nothing is there.
pub(super) fn resolved(path: &Path) -> PathBuf {
    let above = path.parent().and_then(|above| std::fs::canonicalize(above).ok());
    match (std::fs::canonicalize(path), above, path.file_name()) {
        (Ok(path), ..) => path,
        (Err(_), Some(above), Some(name)) => above.join(name),
        _ => path.to_owned(),
    }
}

impl Worktree {
    /// Another worktree in which its branch is checked out.
    pub(super) fn borrowed(&self) -> Result<Option<PathBuf>, String> {
        if !self.has_branch() {
            return Ok(None);
        }
        let (own, branch) = (resolved(&self.path), self.full_branch());
        let mut others = entries(&self.workspace)?.into_iter();
        let other =
            others.find(|it| it.branch.as_ref() == Some(&branch) && resolved(&it.path) != own);
        Ok(other.map(|it| it.path))
    }

    /// Fails if its branch is checked out in another worktree.
    pub(super) fn not_borrowed(&self) -> Result<(), String> {
        match self.borrowed()? {
            None => Ok(()),
            Some(other) => {
                Err(format!("its branch {} is checked out in {}", self.branch, other.display()))
            }
        }
    }
    /// The checked-out commit of its missing folder, if no branch or tag contains it: git drops it
    /// with the worktree.
    pub(super) fn stray(&self) -> Result<Option<String>, String> {
        if !holds(&self.workspace, &["rev-parse", "--git-dir"]) {
            return Ok(None);
        }
        let own = resolved(&self.path);
        let entry = entries(&self.workspace)?.into_iter().find(|it| resolved(&it.path) == own);
        // An interrupted creation has no commit yet.
        let is_commit = |head: &String| {
            holds(&self.workspace, &["cat-file", "-e", &format!("{head}^{{commit}}")])
        };
        let Some(head) = entry.and_then(|it| it.head).filter(is_commit) else { return Ok(None) };
        let containing = ["for-each-ref", "--count=1", "--contains", &head];
        let kept = self.is_merged(&head) || !git(&self.workspace, &containing)?.is_empty();
        Ok((!kept).then_some(head))
    }
}
