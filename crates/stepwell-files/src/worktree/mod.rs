//! The git worktree of a subagent, from its creation to its removal.
//!
//! Every step can be repeated after a crash, and finds what was done before. Unmerged work is never
//! removed here without force.

mod git;
mod reference;
mod registry;
mod state;
mod uncommitted;

use std::path::{Path, PathBuf};

use stepwell::SessionId;
use stepwell::log::Head;
use stepwell::model::{Fate, Isolation, WorktreeOutcome};

use self::git::{git, holds, without_filters_at, without_filters_in, without_merge_drivers};
pub use self::reference::WorktreeRef;
use self::state::{Folder, named, repositories};
pub use self::state::{Since, WorktreeInfo};
use crate::git::SafeGit;

/// The folder of worktrees in a store's folder.
pub const FOLDER: &str = "worktrees";

/// The prefix of the branches' names.
pub const PREFIX: &str = "stepwell/";

/// A subagent's worktree, whether it exists or not.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Worktree {
    /// The workspace that it belongs to.
    workspace: PathBuf,
    /// The worktree's folder.
    pub path: PathBuf,
    /// Its branch.
    pub branch: String,
}

/// The worktrees of which one is a subagent's, by the folder that its session recorded; none, if
/// it works in none. A fork works where the session did that it was forked from.
#[must_use]
pub fn worktrees_of(head: &Head) -> Option<Vec<WorktreeRef>> {
    let is_apart = head.facts.subagent.as_ref()?.isolation == Isolation::Worktree;
    is_apart.then(|| WorktreeRef::named(Path::new(&head.workspace)))
}

/// The most files in an outcome: the session's head must stay small.
const MAX_NAMED: usize = 50;

impl Worktree {
    /// The worktree of a session, for a workspace and its store.
    #[must_use]
    pub fn of(workspace: &Path, store: &Path, session: &SessionId) -> Self {
        let path = store.join(FOLDER).join(session.as_str());
        Self { workspace: workspace.to_owned(), path, branch: format!("{PREFIX}{session}") }
    }

    /// The commit at which a new worktree begins. The error is for the model.
    pub fn base(&self) -> Result<String, String> {
        SafeGit::new(&self.workspace).usable()?;
        if !holds(&self.workspace, &["rev-parse", "--is-inside-work-tree"]) {
            return Err("a worktree needs a git repository, and the workspace is in none; use \
                        workspace \"read_only\", or ask the user to run: git init"
                .to_owned());
        }
        git(&self.workspace, &["rev-parse", "--verify", "-q", "HEAD^{commit}"]).map_err(|_| {
            "a worktree begins at the last commit, and the repository has none yet: commit \
             something first"
                .to_owned()
        })
    }

    /// Does the workspace have uncommitted changes, which a worktree lacks?
    #[must_use]
    pub fn misses_changes(&self) -> bool {
        let status = git(&self.workspace, &["status", "--porcelain"]).unwrap_or_default();
        // Stepwell's own entry in .gitignore does not count.
        status.lines().any(|line| !line.ends_with(" .gitignore"))
    }

    /// The workspace's folder inside the worktree.
    pub fn root(&self) -> Result<PathBuf, String> {
        let prefix = git(&self.workspace, &["rev-parse", "--show-prefix"])?;
        Ok(match prefix.trim_end_matches('/') {
            "" => self.path.clone(),
            prefix => self.path.join(prefix),
        })
    }

    /// Creates it at a commit. It has never been used, so remains of an interrupted creation are
    /// removed first.
    pub fn make(&self, base: &str) -> Result<(), String> {
        without_filters_at(&self.workspace, base)?;
        self.clear()?;
        if let Some(above) = self.path.parent() {
            stepwell::store::refuse_link(above).map_err(|error| error.to_string())?;
            std::fs::create_dir_all(above).map_err(|error| format!("{above:?}: {error}"))?;
        }
        let path = self.path.to_string_lossy().into_owned();
        git(&self.workspace, &["worktree", "add", "-q", "-b", &self.branch, &path, base])?;
        let root = self.root()?;
        if root.is_dir() {
            return Ok(());
        }
        let _ = self.clear();
        Err("nothing of the workspace's folder is committed: commit something in it first".into())
    }

    /// Its remains, described for the model and the user.
    #[must_use]
    pub fn left(&self) -> String {
        let (path, branch) = (self.path.display(), &self.branch);
        match (self.folder() != Folder::Missing, self.has_branch()) {
            (true, true) => format!("kept in {path}, branch {branch}"),
            (true, false) => format!("kept in {path}; its branch {branch} was removed"),
            (false, true) => format!("its branch {branch} is kept"),
            (false, false) => format!("its branch {branch} was removed"),
        }
    }

    /// Restores its folder from its branch.
    pub fn restore(&self) -> Result<(), String> {
        match self.folder() {
            Folder::Whole => return Ok(()),
            Folder::Broken => return self.mend(),
            Folder::Missing => {}
        }
        self.without_stray()?;
        if !self.has_branch() {
            return Err(format!("its worktree and its branch {} were removed", self.branch));
        }
        without_filters_at(&self.workspace, &self.full_branch())?;
        self.forget();
        let path = self.path.to_string_lossy().into_owned();
        git(&self.workspace, &["worktree", "add", "-q", &path, &self.branch]).map(drop)
    }

    /// Makes it once more after it ended and was removed: at what is checked out, if that holds
    /// its work, and else where it ended.
    pub fn make_again(&self, ended: &WorktreeOutcome) -> Result<(), String> {
        if self.folder() != Folder::Missing {
            return Err(self.broken());
        }
        self.without_stray()?;
        let elsewhere = !ended.tip.is_empty() && !self.is_merged(&ended.tip);
        self.make(if elsewhere { &ended.tip } else { "HEAD" })
    }

    /// Fails if git would drop a commit together with a worktree whose folder is gone.
    fn without_stray(&self) -> Result<(), String> {
        match self.stray()? {
            None => Ok(()),
            Some(commit) => Err(format!(
                "its folder was removed while commit {commit}, which is on no branch, was \
                 checked out in it; git branch NAME {commit} keeps that"
            )),
        }
    }

    /// Reconnects it after it was moved with its repository. A copied worktree leads to another
    /// repository, which git would change instead.
    pub fn find_again(&self) -> Result<(), String> {
        if self.leads_to().is_some_and(|repository| !repository.exists()) {
            let path = self.path.to_string_lossy().into_owned();
            git(&self.workspace, &["worktree", "repair", &path])?;
        }
        Ok(())
    }

    fn mend(&self) -> Result<(), String> {
        self.find_again()?;
        match self.folder() {
            Folder::Whole => Ok(()),
            Folder::Broken | Folder::Missing => Err(self.broken()),
        }
    }

    /// Makes git forget a worktree whose folder is gone. Nothing is pruned, because other worktrees
    /// may be missing only temporarily.
    fn forget(&self) {
        let path = self.path.to_string_lossy().into_owned();
        // An interrupted creation leaves a lock. If git does not know the worktree, it is forgotten
        // already.
        let git = SafeGit::new(&self.workspace).looking_into(&self.path);
        let _ = git.text(&["worktree", "remove", "-f", "-f", &path]);
    }

    fn clear(&self) -> Result<(), String> {
        self.not_borrowed()?;
        self.forget();
        match std::fs::remove_dir_all(&self.path) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                return Err(format!("{}: {error}", self.path.display()));
            }
            _ => {}
        }
        // Git keeps its entry while a broken folder exists.
        self.forget();
        if self.has_branch() {
            git(&self.workspace, &["branch", "-q", "-D", &self.branch])?;
        }
        Ok(())
    }

    /// Does its branch exist?
    #[must_use]
    pub fn has_branch(&self) -> bool {
        holds(&self.workspace, &["rev-parse", "-q", "--verify", &self.full_branch()])
    }

    fn full_branch(&self) -> String {
        format!("refs/heads/{}", self.branch)
    }

    /// Ends the work in it: commits what is not committed, and merges it if that is asked for.
    /// It removes nothing.
    pub fn wrap_up(&self, base: &str, message: &str, merge: Merge) -> WorktreeOutcome {
        let kept = |why: String| WorktreeOutcome {
            fate: Fate::Kept,
            tip: String::new(),
            files: Vec::new(),
            count: 0,
            why,
        };
        match self.try_settle(base, message, merge) {
            Ok(outcome) => outcome,
            Err(why) => kept(why),
        }
    }

    fn try_settle(
        &self,
        base: &str,
        message: &str,
        merge: Merge,
    ) -> Result<WorktreeOutcome, String> {
        match self.folder() {
            Folder::Whole => {}
            Folder::Broken => return Err(self.broken()),
            Folder::Missing => {
                let stray = self.stray()?.map(|commit| {
                    format!(
                        "; its last commit {commit} is on no branch: git merge {commit} takes it over"
                    )
                });
                return Err(format!("its folder was removed{}", stray.unwrap_or_default()));
            }
        }
        let here = git(&self.path, &["symbolic-ref", "-q", "--short", "HEAD"]).unwrap_or_default();
        if here != self.branch {
            return Err(format!("something other than {} is checked out in it", self.branch));
        }
        let nested = self.nested()?;
        if !nested.is_empty() {
            return Err(repositories(&nested));
        }
        without_filters_in(&self.path)?;
        let torn = git(&self.path, &["diff", "--name-only", "--diff-filter=U"])?;
        if !torn.is_empty() {
            let files = torn.lines().take(MAX_NAMED).collect::<Vec<_>>().join(", ");
            return Err(format!("it holds conflicts that are not resolved ({files})"));
        }
        if !git(&self.path, &["status", "--porcelain"])?.is_empty() {
            git(&self.path, &["add", "-A"])?;
            git(&self.path, &["commit", "-q", "-m", message])
                .map_err(|error| format!("its changes could not be committed: {error}"))?;
        }
        let tip = git(&self.path, &["rev-parse", "HEAD"])?;
        let files = self.changed_between(base, &tip)?;
        let links = self.new_links(base, &tip)?;
        let drivers = without_merge_drivers(&self.path, &files);
        let count = files.len();
        let files: Vec<String> = files.into_iter().take(MAX_NAMED).collect();
        let merged = holds(&self.workspace, &["merge-base", "--is-ancestor", &tip, "HEAD"]);
        let (fate, why) = match (tip == base, merged, merge) {
            (true, ..) => (Fate::Clean, String::new()),
            (false, true, _) => (Fate::Merged, String::new()),
            (false, false, _) if !links.is_empty() => (Fate::Kept, repositories(&links)),
            (false, false, Merge::No) => (Fate::Kept, String::new()),
            (false, false, Merge::Yes) => match drivers.and_then(|()| self.merge(&tip, message)) {
                Ok(()) => (Fate::Merged, String::new()),
                Err(why) => (Fate::Kept, format!("it could not be merged: {why}")),
            },
            (false, false, Merge::IntoFiles) => {
                match drivers.and_then(|()| self.write_into_files(base, &tip)) {
                    Ok(()) => (Fate::Written, String::new()),
                    Err(why) => (Fate::Kept, format!("it could not be merged: {why}")),
                }
            }
        };
        Ok(WorktreeOutcome { fate, tip, files, count, why })
    }

    /// Merges a commit into the workspace's checked-out branch. Conflicts are detected before
    /// anything is touched.
    fn merge(&self, tip: &str, message: &str) -> Result<(), String> {
        let ours = git(&self.workspace, &["rev-parse", "HEAD"])?;
        let target = if holds(&self.workspace, &["merge-base", "--is-ancestor", &ours, tip]) {
            tip.to_owned()
        } else {
            let merged = ["merge-tree", "--write-tree", "--name-only", "--no-messages", &ours, tip];
            let tree = git(&self.workspace, &merged).map_err(|said| conflict(&said))?;
            let subject = message.lines().next().unwrap_or_default();
            let message = format!("Merge {}: {subject}", self.branch);
            let commit = ["commit-tree", &tree, "-p", &ours, "-p", tip, "-m", &message];
            git(&self.workspace, &commit)?
        };
        // By default git overwrites ignored files. It applies this option only to fast-forwards,
        // which this always is.
        let forward = ["merge", "-q", "--ff-only", "--no-overwrite-ignore", &target];
        git(&self.workspace, &forward).map(drop)
    }

    /// The workspace's files that merging its commits since `base` would change, relative to the
    /// workspace.
    #[must_use]
    pub fn would_change(&self, base: &str, outcome: &WorktreeOutcome) -> Vec<String> {
        let prefix = git(&self.workspace, &["rev-parse", "--show-prefix"]).unwrap_or_default();
        let inside = |file: &String| file.strip_prefix(&prefix).map(str::to_owned);
        // An outcome lists only some files. Git would read an empty name as HEAD.
        let is_known = !base.is_empty() && !outcome.tip.is_empty();
        let files = is_known.then(|| self.changed_between(base, &outcome.tip).ok()).flatten();
        files.unwrap_or_else(|| outcome.files.clone()).iter().filter_map(inside).collect()
    }

    /// Removes it with its branch. Refuses if it contains anything that is kept nowhere else; keeps
    /// the branch if it moved on from `tip`.
    pub fn remove(&self, tip: &str) -> Result<(), String> {
        self.not_borrowed()?;
        match self.folder() {
            Folder::Broken => return Err(self.broken()),
            Folder::Missing => {
                if let Some(commit) = self.stray()? {
                    return Err(format!("its last commit {commit} is on no branch"));
                }
                let _ = std::fs::remove_dir(&self.path);
                self.forget();
            }
            Folder::Whole => {
                let ignored = self.ignored()?;
                if !ignored.is_empty() {
                    let names = named(&ignored);
                    return Err(format!(
                        "it holds what git ignores, and nothing else keeps: {names}"
                    ));
                }
                let nested = self.nested()?;
                if !nested.is_empty() {
                    return Err(repositories(&nested));
                }
                without_filters_in(&self.path)?;
                let path = self.path.to_string_lossy().into_owned();
                let git = SafeGit::new(&self.workspace).looking_into(&self.path);
                git.text(&["worktree", "remove", &path]).map_err(|said| {
                    match said.contains("modified or untracked") {
                        true => "it holds changes that are not committed".to_owned(),
                        false => said,
                    }
                })?;
            }
        }
        match self.has_branch() {
            false => Ok(()),
            true => git(&self.workspace, &["update-ref", "-d", &self.full_branch(), tip]).map(drop),
        }
    }

    /// Removes it with its branch, whatever it contains. Refuses if the branch is checked out
    /// elsewhere.
    pub fn remove_by_force(&self) -> Result<(), String> {
        self.clear()
    }

    /// The last commit of its branch.
    pub fn tip(&self) -> Result<String, String> {
        git(&self.workspace, &["rev-parse", &self.full_branch()])
    }
}

/// How to merge a branch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Merge {
    /// With a commit.
    Yes,
    /// Into the workspace's files, without a commit.
    IntoFiles,
    /// Not at all: the branch stays.
    No,
}

/// Parses git's output about a merge with conflicts: a tree, then the files.
fn conflict(said: &str) -> String {
    let is_tree = |line: &str| line.len() >= 40 && line.bytes().all(|it| it.is_ascii_hexdigit());
    let mut lines = said.lines();
    match lines.next() {
        Some(first) if is_tree(first) => {
            let files: Vec<&str> = lines.take_while(|line| !line.is_empty()).collect();
            format!("conflicts in {}", files.join(", "))
        }
        _ => said.to_owned(),
    }
}

/// The sessions that may have a worktree's folder or branch here, in order. A branch may also be
/// the user's own.
#[must_use]
pub fn all(workspace: &Path, store: &Path) -> Vec<SessionId> {
    let folders = std::fs::read_dir(store.join(FOLDER)).into_iter().flatten().flatten();
    let mut found: Vec<String> =
        folders.filter_map(|entry| entry.file_name().into_string().ok()).collect();
    let listed = ["for-each-ref", "--format=%(refname:short)", &format!("refs/heads/{PREFIX}")];
    let branches = git(workspace, &listed).unwrap_or_default();
    found.extend(branches.lines().filter_map(|line| line.strip_prefix(PREFIX)).map(str::to_owned));
    // Git may know a worktree without a folder or branch.
    let within = registry::resolved(&store.join(FOLDER));
    let known = registry::entries(workspace).unwrap_or_default();
    let known = known.iter().filter(|it| it.path.parent() == Some(&*within));
    let known = known.filter_map(|it| it.path.file_name()?.to_str());
    found.extend(known.map(str::to_owned));
    found.sort();
    found.dedup();
    found.iter().filter_map(|name| name.parse().ok()).collect()
}
