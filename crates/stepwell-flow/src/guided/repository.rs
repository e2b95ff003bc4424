//! The git work tree of guided work: its changes, obstacles to a commit, and the commit.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use stepwell::model::Digest;
use stepwell_files::git::SafeGit;

use super::commit_diff::fingerprint;

/// Instructions for a user without a git identity. A commit needs a name and an address.
const NO_IDENTITY: &str = "git does not know who commits. Tell it, then resume: \
    git config --global user.name \"YOUR NAME\" && \
    git config --global user.email YOU@EXAMPLE.COM";

/// Files in git's folder that show an unfinished operation, of which a commit would become a part.
const UNDER_WAY: [(&str, &str); 5] = [
    ("MERGE_HEAD", "a merge"),
    ("CHERRY_PICK_HEAD", "a cherry-pick"),
    ("REVERT_HEAD", "a revert"),
    ("rebase-merge", "a rebase"),
    ("rebase-apply", "a rebase"),
];

/// The most files in a short list.
const NAMED: usize = 5;

/// A git work tree, or a folder outside of git.
pub(super) struct Repository {
    root: PathBuf,
    git: SafeGit,
}

impl Repository {
    pub(super) fn at(root: &Path) -> Self {
        Self { root: root.to_owned(), git: SafeGit::new(root) }
    }

    pub(super) fn exists(&self) -> bool {
        self.git.holds(&["rev-parse", "--is-inside-work-tree"])
    }

    /// The checked-out commit; empty, if there is none.
    pub(super) fn head(&self) -> String {
        self.git.text(&["rev-parse", "--verify", "-q", "HEAD"]).unwrap_or_default()
    }

    /// The files among these that git considers changed and does not ignore.
    pub(super) fn changed(&self, files: &[String]) -> Result<Vec<String>, String> {
        let others = ["ls-files", "--others", "--exclude-standard", "-z"];
        let changed = ["diff", "--name-only", "--no-renames", "--relative", "-z", "HEAD"];
        let mut seen = names(&self.git.text(&others)?);
        seen.extend(match self.head().is_empty() {
            true => names(&self.git.text(&["ls-files", "--cached", "-z"])?),
            false => names(&self.git.text(&changed)?),
        });
        Ok(files.iter().filter(|file| seen.contains(*file)).cloned().collect())
    }

    /// The files among these that are still to be committed. The result of a filter is unknown
    /// without running it, so such a file counts as done once the user has committed it.
    pub(super) fn left(&self, files: &[String], base: &str) -> Result<Vec<String>, String> {
        let mut left = self.changed(files)?;
        if base.is_empty() || self.git.without_filters(&left).is_ok() {
            return Ok(left);
        }
        let since = ["diff", "--name-only", "--no-renames", "--relative", "-z", base, "HEAD"];
        let committed = names(&self.git.text(&since)?);
        let is_filtered =
            |file: &String| self.git.without_filters(std::slice::from_ref(file)).is_err();
        left.retain(|file| !(committed.contains(file) && is_filtered(file)));
        Ok(left)
    }

    /// The files among these that changed in another repository, such as a submodule. A commit here
    /// does not include them.
    pub(super) fn changed_apart(&self, files: &[String]) -> Vec<String> {
        let mut within: BTreeMap<&str, Vec<String>> = BTreeMap::new();
        for file in files {
            let folders = file.match_indices('/').map(|(at, _)| file.split_at(at).0);
            let has_git = |folder: &&str| self.root.join(folder).join(".git").exists();
            if let Some(folder) = folders.rev().find(has_git) {
                within.entry(folder).or_default().push(file[folder.len() + 1..].to_owned());
            }
        }
        let changed = within.into_iter().flat_map(|(folder, files)| {
            let other = Self::at(&self.root.join(folder));
            let changed = other.changed(&files).unwrap_or_default().into_iter();
            changed.map(|file| format!("{folder}/{file}")).collect::<Vec<_>>()
        });
        changed.collect()
    }

    /// Why some files cannot be committed now, and what the user can do about it.
    pub(super) fn obstacle(&self, files: &[String]) -> Option<String> {
        let is_known = |who: &str| self.git.holds(&["var", who]);
        if !is_known("GIT_AUTHOR_IDENT") || !is_known("GIT_COMMITTER_IDENT") {
            return Some(NO_IDENTITY.to_owned());
        }
        let is_there = |name: &str| {
            let path = self.git.text(&["rev-parse", "--git-path", name]);
            path.is_ok_and(|path| self.root.join(path).exists())
        };
        if let Some((_, what)) = UNDER_WAY.iter().find(|(name, _)| is_there(name)) {
            return Some(format!("{what} is under way in git. Finish or abort it, then resume"));
        }
        let conflicts = self.git.text(&["ls-files", "--unmerged", "-z"]).unwrap_or_default();
        if !conflicts.is_empty() {
            return Some(
                "git has conflicts that are not resolved. Resolve them, then resume".into(),
            );
        }
        let filtered = self.git.without_filters(files).err();
        filtered.map(|why| format!("{why}. Commit it yourself, then resume"))
    }

    /// Does the user's git sign commits? Commits made here are not signed, because signing would
    /// start a program that the configuration names.
    pub(super) fn wants_signature(&self) -> bool {
        let set = |scope: &&str| {
            let get = ["config", scope, "--includes", "--type=bool", "--get", "commit.gpgSign"];
            self.git.text(&get).ok()
        };
        let scopes = ["--worktree", "--local", "--global", "--system"];
        scopes.iter().find_map(set).is_some_and(|value| value == "true")
    }

    /// Is no branch checked out? Then no branch would contain the commit.
    pub(super) fn is_detached(&self) -> bool {
        !self.git.holds(&["symbolic-ref", "-q", "HEAD"])
    }

    /// A value that changes with everything that a commit of these files depends on.
    pub(super) fn state_of(&self, files: &[String]) -> Value {
        let branch = self.git.text(&["symbolic-ref", "-q", "HEAD"]).unwrap_or_default();
        let listed = self.git.text(&["ls-tree", "-r", "-z", "HEAD"]).unwrap_or_default();
        let files_of_head: BTreeMap<&str, &str> = listed
            .split('\0')
            .filter_map(|entry| entry.split_once('\t'))
            .map(|(about, path)| (path, about))
            .collect();
        let before = files.iter().map(|file| files_of_head.get(file.as_str()).unwrap_or(&""));
        let before: Vec<&str> = before.copied().collect();
        let before = Digest::of(format!("{branch}\n{}", before.join("\n")).as_bytes());
        json!({ "digest": fingerprint(&self.root, files), "before": before.to_string() })
    }

    /// The newest commit since `base` with a trailer.
    pub(super) fn commit_with(&self, trailer: &str, base: &str) -> Option<String> {
        let range = if base.is_empty() { "HEAD".to_owned() } else { format!("{base}..HEAD") };
        let log = self.git.text(&["log", "--format=%H%n%B%x00", &range]).ok()?;
        let mut commits = log.split('\0').map(str::trim_start);
        let ours = commits.find(|commit| commit.lines().any(|line| line == trailer))?;
        ours.lines().next().map(str::to_owned)
    }

    /// Commits these files as they are in the work tree, and nothing else. If that fails, the
    /// user's staged changes stay as they were.
    pub(super) fn commit(&self, files: &[String], message: &str) -> Result<String, String> {
        let known = names(&self.git.text(&["ls-files", "--cached", "-z"])?);
        let is_new = |file: &&String| {
            !known.contains(*file) && self.root.join(file).symlink_metadata().is_ok()
        };
        let new: Vec<String> = files.iter().filter(is_new).cloned().collect();
        // Git only commits paths that it knows.
        self.with_paths(&["add", "--intent-to-add"], &new)?;
        let commit = self.with_paths(&["commit", "--quiet", "--only", "-m", message], files);
        if let Err(why) = commit {
            let _ = self.with_paths(&["rm", "--quiet", "--cached", "--force"], &new);
            return Err(why);
        }
        self.git.text(&["rev-parse", "HEAD"])
    }

    fn with_paths(&self, args: &[&str], paths: &[String]) -> Result<(), String> {
        if paths.is_empty() {
            return Ok(());
        }
        let from_input = ["--pathspec-from-file=-", "--pathspec-file-nul"];
        let args = [&["--literal-pathspecs"], args, &from_input[..]].concat();
        self.git.text_with_input(&args, &paths.join("\0")).map(drop)
    }
}

/// The message for the user about files that a commit here does not include.
pub(super) fn not_here(apart: &[String]) -> Option<String> {
    let named: Vec<&str> = apart.iter().take(NAMED).map(String::as_str).collect();
    let more = match apart.len() - named.len() {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    let is = if apart.len() == 1 {
        "is in a git repository of its"
    } else {
        "are in git repositories of their"
    };
    (!apart.is_empty()).then(|| format!("{}{more} {is} own: commit that there", named.join(", ")))
}

fn names(text: &str) -> BTreeSet<String> {
    text.split('\0').filter(|name| !name.is_empty()).map(str::to_owned).collect()
}
