//! Worktrees with uncommitted files: they begin with the workspace's current files, and their
//! changes are written back into them. The user's branch and index stay unchanged.

use std::collections::BTreeSet;
use std::path::PathBuf;

use super::git::{git, names, without_filters_at};
use super::{Worktree, conflict};
use crate::git::SafeGit;

/// The message of a commit of the workspace's files.
const MESSAGE: &str = "The workspace as it was, with what was not committed";

impl Worktree {
    /// A commit, on no branch, of the workspace's files: those that git tracks, and the `own` ones,
    /// relative to the workspace. If there are no changes, it is the last commit.
    pub fn snapshot(&self, own: &[String]) -> Result<String, String> {
        let head = self.base()?;
        without_filters_at(&self.workspace, &head)?;
        let prefix = git(&self.workspace, &["rev-parse", "--show-prefix"])?;
        let own: BTreeSet<String> = own.iter().map(|file| format!("{prefix}{file}")).collect();
        let tree = OwnIndex::of(self)?.tree(&own)?;
        match tree == self.tree_of(&head)? {
            true => Ok(head),
            false => self.commit_of(&tree, &head),
        }
    }

    /// Writes the changes of a commit since `base` into the workspace's files, merged with later
    /// changes there. Conflicts are detected before anything is touched. After a crash, files that
    /// were already written stay as they are.
    pub(super) fn write_into_files(&self, base: &str, tip: &str) -> Result<(), String> {
        let known = self.changed_between(base, tip)?;
        let before = ["ls-tree", "-r", "-z", "--name-only", "--full-tree", base];
        let known = known.into_iter().chain(names(&git(&self.workspace, &before)?)).collect();
        let index = OwnIndex::of(self)?;
        let ours = index.tree(&known)?;
        // The base is its parent, so that git merges from there.
        let commit = self.commit_of(&ours, base)?;
        let merge = ["merge-tree", "--write-tree", "--name-only", "--no-messages", &commit, tip];
        let merged = git(&self.workspace, &merge).map_err(|said| conflict(&said))?;
        if merged == ours {
            return Ok(());
        }
        index.git.text(&["read-tree", "-m", "-u", &ours, &merged]).map(drop)
    }

    /// The files that commits change, relative to the repository.
    pub(super) fn changed_between(&self, base: &str, tip: &str) -> Result<Vec<String>, String> {
        let range = format!("{base}...{tip}");
        let changed = ["diff", "--name-only", "-z", "--no-renames", "--no-relative", &range];
        git(&self.workspace, &changed).map(|said| names(&said))
    }

    fn tree_of(&self, commit: &str) -> Result<String, String> {
        git(&self.workspace, &["rev-parse", &format!("{commit}^{{tree}}")])
    }

    fn commit_of(&self, tree: &str, parent: &str) -> Result<String, String> {
        git(&self.workspace, &["commit-tree", tree, "-p", parent, "-m", MESSAGE])
    }
}

/// A temporary index that begins as a copy of the user's.
struct OwnIndex {
    git: SafeGit,
    top: PathBuf,
    path: PathBuf,
}

impl OwnIndex {
    fn of(worktree: &Worktree) -> Result<Self, String> {
        let folder = &worktree.workspace;
        let of_git = |name: &str| -> Result<PathBuf, String> {
            Ok(folder.join(git(folder, &["rev-parse", "--git-path", name])?))
        };
        let name = worktree.branch.replace('/', "-");
        let (theirs, path) = (of_git("index")?, of_git(&format!("{name}.index"))?);
        let top = PathBuf::from(git(folder, &["rev-parse", "--show-toplevel"])?);
        let own = Self { git: SafeGit::new(&top).with_index(&path), top, path };
        own.remove();
        match std::fs::copy(&theirs, &own.path) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                Err(format!("{}: {error}", theirs.display()))
            }
            _ => Ok(own),
        }
    }

    /// The tree of the tracked and the `known` files in the workspace.
    fn tree(&self, known: &BTreeSet<String>) -> Result<String, String> {
        let tracked: BTreeSet<String> =
            names(&self.git.text(&["ls-files", "-z"])?).into_iter().collect();
        // `git add --update` would inspect submodules.
        let changed = ["diff", "--ignore-submodules=all", "--name-only", "-z", "--no-renames"];
        let changed = names(&self.git.text(&changed)?);
        let known = known.difference(&tracked).chain(&changed).map(String::as_str);
        let known: Vec<&str> = known.filter(|path| self.is_file_of_ours(path)).collect();
        let update = ["update-index", "--add", "--remove", "-z", "--stdin"];
        if !known.is_empty() {
            self.git.text_with_input(&update, &known.join("\0"))?;
        }
        self.git.text(&["write-tree"])
    }

    /// Is the path absent or a file, and not inside another repository?
    fn is_file_of_ours(&self, path: &str) -> bool {
        let is_folder = self.top.join(path).symlink_metadata().is_ok_and(|it| it.is_dir());
        let mut folders = path.match_indices('/').map(|(at, _)| path.split_at(at).0);
        !is_folder && !folders.any(|folder| self.top.join(folder).join(".git").exists())
    }

    /// Removes it, and the lock file of a git that was killed.
    fn remove(&self) {
        let mut lock = self.path.clone().into_os_string();
        lock.push(".lock");
        let _ = std::fs::remove_file(&self.path);
        let _ = std::fs::remove_file(lock);
    }
}

impl Drop for OwnIndex {
    fn drop(&mut self) {
        self.remove();
    }
}
