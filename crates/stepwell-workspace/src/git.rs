//! What git knows of a folder, asked through its command line.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use stepwell::model::Time;
use stepwell::report::WorkSpan;
use stepwell_files::git::SafeGit;

/// The commits of a work tree's local branches, and of what is checked out. One that was amended or
/// rebased is the same commit: its author, its author's time and its subject stay.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Commits {
    all: BTreeSet<Commit>,
}

/// One commit.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Commit {
    /// When it was first made, in seconds since 1970.
    at: i64,
    /// Who made it, and its subject.
    what: String,
    /// The sessions that it names as those that made it.
    sessions: Vec<String>,
}

/// What a session's commit message names it by.
const TRAILER: &str =
    "--format=%at%x1f%ae%x1f%s%x1f%(trailers:key=Stepwell-Session,valueonly,separator=%x2C)";

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
        let which = ["rev-list", TRAILER, "--ignore-missing", "--branches", "HEAD", &since];
        git(root, &which).map(|text| Self::read(&text))
    }

    /// Reads a line for each commit; the lines between them name it.
    fn read(text: &str) -> Self {
        let commit = |line: &str| {
            let (at, rest) = line.split_once('\u{1f}')?;
            let (what, sessions) = rest.rsplit_once('\u{1f}')?;
            let sessions = sessions.split(',').map(str::trim).filter(|it| !it.is_empty());
            let sessions = sessions.map(str::to_owned).collect();
            Some(Commit { at: at.parse().ok()?, what: what.to_owned(), sessions })
        };
        Self { all: text.lines().filter_map(commit).collect() }
    }

    /// May a session that lasted so long have made some without naming itself? If not, nobody has
    /// to ask when its tools were at work.
    #[must_use]
    pub fn any_between(&self, (from, to): WorkSpan) -> bool {
        self.all.iter().any(|it| it.sessions.is_empty() && it.is_within(from, to))
    }

    /// How many a session made: those that name it, and of those that name none, what was made
    /// while one of its tools was at work.
    #[must_use]
    pub fn of(&self, session: &str, spans: &[WorkSpan]) -> usize {
        let is_made = |it: &&Commit| match it.sessions.is_empty() {
            true => spans.iter().any(|(from, to)| it.is_within(*from, *to)),
            false => it.sessions.iter().any(|name| name == session),
        };
        self.all.iter().filter(is_made).count()
    }
}

impl Commit {
    /// Was it made from one moment to another? Git knows whole seconds.
    fn is_within(&self, from: Time, to: Time) -> bool {
        (seconds(from)..=seconds(to)).contains(&self.at)
    }
}

fn seconds(time: Time) -> i64 {
    time.as_micros().div_euclid(1_000_000)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_commit_is_counted_once_for_the_session_that_made_it() {
        let lines = "commit 1\n30\x1fe@x\x1fc\x1f\ncommit 2\n10\x1fe@x\x1fa\x1f\n\
                     commit 3\n20\x1fe@x\x1fb\x1fs1, s2\ncommit 4\n30\x1fe@x\x1fc\x1f\nnonsense\n";
        let commits = Commits::read(lines);
        let at = |seconds: i64| Time::from_micros(seconds * 1_000_000 + 500_000);
        let span = |from, to| [(at(from), at(to))];
        // What names a session is that one's, whenever it was made, and nobody else's.
        assert_eq!((commits.of("s1", &[]), commits.of("s3", &span(15, 25))), (1, 0));
        assert_eq!(commits.of("s3", &span(0, 9)), 0);
        assert_eq!(commits.of("s3", &span(10, 10)), 1);
        // The same one on two branches counts once.
        assert_eq!(commits.of("s3", &span(0, 99)), 2);
        assert!(commits.any_between((at(5), at(15))) && !commits.any_between((at(15), at(25))));
    }

    #[test]
    fn where_there_is_no_work_tree_nothing_is_counted() {
        let folder = tempfile::tempdir().unwrap();
        assert_eq!(Commits::since(folder.path(), Time::EPOCH), None);
    }
}
