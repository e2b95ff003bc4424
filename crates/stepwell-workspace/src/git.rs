//! What git knows of a folder, asked through its command line.

use std::path::{Path, PathBuf};

use stepwell::Time;
use stepwell_files::git::SafeGit;

/// When the commits of a work tree's local branches, and of what is checked out, were made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Commits {
    /// In seconds since 1970, ascending.
    times: Vec<i64>,
}

/// What git answers in a folder; `None` where there is no git, or it has no answer.
fn git(folder: &Path, args: &[&str]) -> Option<String> {
    SafeGit::new(folder).text(args).ok()
}

/// The repository that a folder is in, which all of its work trees share.
#[must_use]
pub fn repository(folder: &Path) -> Option<PathBuf> {
    let path = git(folder, &["rev-parse", "--path-format=absolute", "--git-common-dir"])?;
    std::fs::canonicalize(path.trim_end_matches('\n')).ok()
}

impl Commits {
    /// The commits from a moment on; `None` where there is no git, or no work tree.
    #[must_use]
    pub fn since(root: &Path, since: Time) -> Option<Self> {
        // A second earlier: git counts whole ones.
        let since = format!("--since=@{}", seconds(since).saturating_sub(1).max(0));
        // Before the first commit there is no HEAD.
        let which = ["rev-list", "--timestamp", "--ignore-missing", "--branches", "HEAD", &since];
        git(root, &which).map(|text| Self::read(&text))
    }

    /// Reads lines of a time and a commit.
    fn read(text: &str) -> Self {
        let time = |line: &str| line.split_whitespace().next()?.parse().ok();
        let mut times: Vec<i64> = text.lines().filter_map(time).collect();
        times.sort_unstable();
        Self { times }
    }

    /// How many were made from one moment to another, both included.
    #[must_use]
    pub fn between(&self, from: Time, to: Time) -> usize {
        let (from, to) = (seconds(from), seconds(to));
        let before = self.times.partition_point(|time| *time < from);
        self.times.partition_point(|time| *time <= to).saturating_sub(before)
    }
}

fn seconds(time: Time) -> i64 {
    time.as_micros().div_euclid(1_000_000)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commits_are_counted_from_moment_to_moment() {
        let commits = Commits::read("30 c\n10 a\n20 b\nnonsense\n");
        let at = |seconds: i64| Time::from_micros(seconds * 1_000_000 + 500_000);
        assert_eq!(commits.between(at(0), at(9)), 0);
        assert_eq!(commits.between(at(10), at(20)), 2);
        assert_eq!(commits.between(at(0), at(99)), 3);
        assert_eq!(commits.between(at(30), at(10)), 0);
    }

    #[test]
    fn where_there_is_no_work_tree_nothing_is_counted() {
        let folder = tempfile::tempdir().unwrap();
        assert_eq!(Commits::since(folder.path(), Time::EPOCH), None);
    }
}
