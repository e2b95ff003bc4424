//! The state of a worktree: its unsaved work, and the fate of merged work.

use std::path::PathBuf;

use stepwell_wire::WorktreeState;

use super::git::{git, holds, names, without_filters_in};
use super::registry::{entries, resolved};
use super::{Fate, Worktree, WorktreeOutcome};

/// The state of a worktree, with some of the paths that cause it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WorktreeInfo {
    /// The state.
    pub state: WorktreeState,
    /// Paths that are kept nowhere else.
    pub paths: Vec<String>,
    /// The unmerged commit, if no branch contains it.
    pub stray: Option<String>,
}

/// The remains of a worktree's folder.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Folder {
    /// Complete.
    Whole,
    /// Missing.
    Missing,
    /// Files that git cannot identify.
    Broken,
}

/// What happened to the work after its end was recorded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Since {
    /// Nothing.
    Unchanged,
    /// Merged work is still part of the checked-out branch, but these files differ from the merge.
    TakenBack(Vec<String>),
    /// Merged work is no longer part of the checked-out branch.
    NotInHead,
    /// Kept work was merged since.
    Merged,
    /// Kept work is gone, with its branch.
    Removed,
}

/// How many paths are named.
const MAX_NAMED: usize = 50;

impl Worktree {
    pub(super) fn folder(&self) -> Folder {
        let empty = std::fs::read_dir(&self.path).map_or(true, |mut all| all.next().is_none());
        // Without its own `.git`, git would describe the surrounding repository.
        let top = git(&self.path, &["rev-parse", "--show-toplevel"]);
        let resolved = std::fs::canonicalize(&self.path);
        match (top, resolved) {
            _ if empty => Folder::Missing,
            (Ok(top), Ok(path)) if path == std::path::Path::new(&top) && self.is_known() => {
                Folder::Whole
            }
            _ => Folder::Broken,
        }
    }

    /// Does its repository know it? A copied worktree refers to the original, and git commands in
    /// the copy would change the original.
    fn is_known(&self) -> bool {
        let (own, known) = (resolved(&self.path), entries(&self.path).unwrap_or_default());
        known.iter().any(|it| resolved(&it.path) == own)
    }

    /// The part of a repository that its `.git` refers to.
    pub(super) fn leads_to(&self) -> Option<PathBuf> {
        let text = std::fs::read_to_string(self.path.join(".git")).ok()?;
        Some(self.path.join(text.strip_prefix("gitdir: ")?.trim_end_matches('\n')))
    }

    /// Is it a copy, whose `.git` refers to the original's repository?
    pub fn is_copy(&self) -> bool {
        self.leads_to().is_some_and(|it| it.exists()) && self.folder() == Folder::Broken
    }

    /// Why git cannot determine the state of its existing folder.
    #[must_use]
    pub fn broken(&self) -> String {
        let (path, leads_to) = (self.path.display(), self.leads_to());
        let why = match &leads_to {
            Some(it) => format!("its .git leads to {}", it.display()),
            None => "its .git is gone".to_owned(),
        };
        format!(
            "{path} is no worktree of git's any more ({why}), so that nobody can say what in it \
             is merged"
        )
    }

    /// Its state, given its beginning and its outcome, as far as they are known.
    pub fn state(
        &self,
        base: Option<&str>,
        ended: Option<&WorktreeOutcome>,
    ) -> Result<WorktreeInfo, String> {
        let with = |state, paths| Ok(WorktreeInfo { state, paths, stray: None });
        let plain = |state| with(state, Vec::new());
        if let Some(other) = self.borrowed()? {
            return with(WorktreeState::CheckedOut, vec![other.display().to_string()]);
        }
        match self.folder() {
            Folder::Broken => return plain(WorktreeState::Broken),
            Folder::Missing => {
                let stray = self.stray()?;
                let state = match &stray {
                    Some(_) => WorktreeState::Unmerged,
                    None => self.without_folder(base, ended)?,
                };
                return Ok(WorktreeInfo { state, paths: Vec::new(), stray });
            }
            Folder::Whole => {}
        }
        let here = git(&self.path, &["symbolic-ref", "-q", "--short", "HEAD"]).unwrap_or_default();
        without_filters_in(&self.path)?;
        let changed = git(&self.path, &["status", "--porcelain", "-z"])?;
        let (nested, ignored) = (self.nested()?, self.ignored()?);
        let tip = git(&self.path, &["rev-parse", "HEAD"])?;
        let is_done = |tip: &str| self.is_merged(tip) || is_settled(ended, tip);
        let done = is_done(&tip) && (!self.has_branch() || is_done(&self.tip()?));
        let few = |paths: Vec<String>| paths.into_iter().take(MAX_NAMED).collect();
        if !nested.is_empty() {
            return with(WorktreeState::Nested, few(nested));
        }
        match (changed.is_empty(), here == self.branch, done) {
            (false, ..) => plain(WorktreeState::Uncommitted),
            (true, false, _) => plain(WorktreeState::Elsewhere),
            (true, true, false) => plain(WorktreeState::Unmerged),
            _ if !ignored.is_empty() => with(WorktreeState::Ignored, few(ignored)),
            _ if base.is_none_or(|base| base == tip) => plain(WorktreeState::Clean),
            _ => plain(WorktreeState::Merged),
        }
    }

    fn without_folder(
        &self,
        base: Option<&str>,
        ended: Option<&WorktreeOutcome>,
    ) -> Result<WorktreeState, String> {
        if !self.has_branch() {
            return Ok(WorktreeState::Clean);
        }
        let tip = self.tip()?;
        // The process may have died between removing the folder and the branch.
        let fate = ended.filter(|ended| ended.tip == tip).map(|ended| ended.fate);
        Ok(match (self.is_merged(&tip), fate) {
            (false, _) if is_settled(ended, &tip) => WorktreeState::Merged,
            (false, _) => WorktreeState::Unmerged,
            (true, Some(Fate::Clean)) => WorktreeState::Clean,
            (true, Some(Fate::Merged | Fate::Written)) => WorktreeState::Merged,
            (true, _) if base.is_some_and(|base| base != tip) => WorktreeState::Merged,
            (true, _) => WorktreeState::Gone,
        })
    }

    /// Is a commit part of the workspace's checked-out branch?
    pub(super) fn is_merged(&self, commit: &str) -> bool {
        holds(&self.workspace, &["merge-base", "--is-ancestor", commit, "HEAD"])
    }

    /// The ignored files in it; a completely ignored folder is listed as one.
    pub(super) fn ignored(&self) -> Result<Vec<String>, String> {
        let listed =
            ["ls-files", "-z", "--others", "--ignored", "--exclude-standard", "--directory"];
        Ok(names(&git(&self.path, &listed)?))
    }

    /// Other git repositories in it, tracked or not.
    pub(super) fn nested(&self) -> Result<Vec<String>, String> {
        let others =
            names(&git(&self.path, &["ls-files", "-z", "--others", "--exclude-standard"])?);
        let tracked = names(&git(&self.path, &["ls-files", "-z", "--stage"])?);
        let links = tracked.iter().filter(|line| line.starts_with("160000 "));
        let links = links.filter_map(|line| line.split_once('\t')).map(|(_, path)| path.to_owned());
        // Git lists the contents of a folder, unless the folder is a repository.
        let others = others.iter().filter_map(|path| path.strip_suffix('/')).map(str::to_owned);
        let mut found: Vec<String> = others.chain(links).collect();
        found.retain(|path| self.path.join(path).join(".git").exists());
        Ok(found)
    }

    /// The links to other repositories' commits that were added between two commits.
    pub(super) fn new_links(&self, base: &str, tip: &str) -> Result<Vec<String>, String> {
        let raw =
            git(&self.path, &["diff", "--raw", "-z", "--no-renames", "--abbrev=40", base, tip])?;
        let fields = names(&raw);
        let changes = fields.chunks_exact(2);
        let is_new = |pair: &&[String]| {
            let mut modes = pair[0].trim_start_matches(':').split(' ');
            modes.next() != Some("160000") && modes.next() == Some("160000")
        };
        Ok(changes.filter(is_new).map(|pair| pair[1].clone()).collect())
    }

    /// What happened to it since its end, for repeated reports.
    #[must_use]
    pub fn since(&self, ended: &WorktreeOutcome) -> Since {
        let merged = !ended.tip.is_empty() && self.is_merged(&ended.tip);
        match ended.fate {
            Fate::Merged if !merged => Since::NotInHead,
            Fate::Merged => {
                let files = self.unlike_head(&ended.files);
                if files.is_empty() { Since::Unchanged } else { Since::TakenBack(files) }
            }
            Fate::Kept if merged => Since::Merged,
            Fate::Kept if !self.has_branch() && self.folder() == Folder::Missing => Since::Removed,
            Fate::Clean | Fate::Written | Fate::Kept => Since::Unchanged,
        }
    }

    /// The files, relative to the repository, that differ between the workspace and HEAD.
    fn unlike_head(&self, files: &[String]) -> Vec<String> {
        let Ok(top) = git(&self.workspace, &["rev-parse", "--show-toplevel"]) else {
            return Vec::new();
        };
        let mut args = vec!["--literal-pathspecs", "diff", "--name-only", "-z", "HEAD", "--"];
        args.extend(files.iter().map(String::as_str));
        if files.is_empty() {
            return Vec::new();
        }
        names(&git(std::path::Path::new(&top), &args).unwrap_or_default())
    }
}

/// Whether what a commit holds is in the workspace, though no commit there leads to it: it began with
/// files that were not committed, and what it changed was written into them.
fn is_settled(ended: Option<&WorktreeOutcome>, tip: &str) -> bool {
    let settled = |it: &WorktreeOutcome| matches!(it.fate, Fate::Clean | Fate::Written);
    ended.is_some_and(|ended| ended.tip == tip && settled(ended))
}

/// Some paths on one line.
pub(super) fn named(paths: &[String]) -> String {
    let few: Vec<&str> = paths.iter().take(5).map(String::as_str).collect();
    match paths.len() - few.len() {
        0 => few.join(", "),
        more => format!("{}, and {more} more", few.join(", ")),
    }
}

/// Why a worktree with nested repositories is neither merged nor removed.
pub(super) fn repositories(paths: &[String]) -> String {
    format!(
        "it holds a git repository of its own ({}), of which git would merge nothing but a link",
        named(paths)
    )
}
