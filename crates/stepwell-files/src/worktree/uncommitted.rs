//! Work that is not committed: a worktree may begin with the workspace's files as they are, and its
//! changes may be written into them. Nothing on the user's branch or in their index changes.

use std::collections::BTreeSet;
use std::path::PathBuf;

use super::git::{git, names, without_filters_at};
use super::{Worktree, conflict};
use crate::git::SafeGit;

/// What a commit is called that holds the workspace as it was.
const MESSAGE: &str = "The workspace as it was, with what was not committed";

impl Worktree {
    /// A commit, on no branch, of the workspace as it is: what git tracks, and `own` files, which are
    /// relative to the workspace. It is the last commit, if there is nothing else.
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

    /// Writes what a commit changed since `base` into the workspace's files, merged with what
    /// changed there meanwhile. Conflicts are found before anything is touched; what was written
    /// before the process died is not written again.
    pub(super) fn write_into_files(&self, base: &str, tip: &str) -> Result<(), String> {
        let known = self.changed_between(base, tip)?;
        let before = ["ls-tree", "-r", "-z", "--name-only", "--full-tree", base];
        let known = known.into_iter().chain(names(&git(&self.workspace, &before)?)).collect();
        let index = OwnIndex::of(self)?;
        let ours = index.tree(&known)?;
        // Its parent is where the work began, so that git merges from there.
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

/// An index of our own, that begins as the user's and is removed with this.
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

    /// The tree of what git tracks and of `known` files as they are in the workspace.
    fn tree(&self, known: &BTreeSet<String>) -> Result<String, String> {
        let tracked: BTreeSet<String> =
            names(&self.git.text(&["ls-files", "-z"])?).into_iter().collect();
        // `git add --update` would look into submodules.
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

    /// Whether a path is a file, or nothing, and in no other repository.
    fn is_file_of_ours(&self, path: &str) -> bool {
        let is_folder = self.top.join(path).symlink_metadata().is_ok_and(|it| it.is_dir());
        let mut folders = path.match_indices('/').map(|(at, _)| path.split_at(at).0);
        !is_folder && !folders.any(|folder| self.top.join(folder).join(".git").exists())
    }

    /// Removes it, also what a git left of it that was killed.
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
