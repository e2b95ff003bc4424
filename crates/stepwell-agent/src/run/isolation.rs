//! Where a subagent works, and how its changes come back.

use std::path::PathBuf;

use stepwell::model::Effect;
use stepwell::model::{Fate, Subagent, WorktreeOutcome};
use stepwell::{SessionId, Status};
use stepwell_files::safe_fs::look;
use stepwell_files::worktree::{Merge, Since, Worktree};

use super::{Ended, Setup};
use crate::error::Result;
use crate::tool::{self, Changed, Content, Order, ToolEnv};

/// How many characters of a task go into a commit's subject.
const SUBJECT: usize = 60;

/// Prepares a read-only subagent that works in its parent's folder.
pub(super) fn only_looks(
    setup: &mut Setup,
    order: &Order,
    place: &ToolEnv,
) -> std::result::Result<(), String> {
    setup.place =
        ToolEnv { root: place.root.clone(), store: place.store.clone(), ..setup.place.clone() };
    setup.tools.retain(|tool| tool.effect() == Effect::Pure);
    choose(setup, order)
}

/// Restricts a subagent to the tools that were chosen for it.
fn choose(setup: &mut Setup, order: &Order) -> std::result::Result<(), String> {
    let Some(chosen) = &order.tools else { return Ok(()) };
    let has = |name: &String| setup.tools.iter().any(|tool| tool.spec().name == *name);
    if let Some(unknown) = chosen.iter().find(|name| !has(name)) {
        let known: Vec<_> = setup.tools.iter().map(|tool| tool.spec().name.as_str()).collect();
        let agent = order.agent();
        return Err(format!("{agent} has no tool {unknown:?} here; it has {}", known.join(", ")));
    }
    setup.tools.retain(|tool| chosen.contains(&tool.spec().name));
    Ok(())
}

/// The store's folder, if it is on disk.
fn store(place: &ToolEnv) -> Option<PathBuf> {
    let usual = || Some(place.root.join(stepwell::store::STORE_FOLDER));
    let store = place.grounds.clone().or_else(|| place.store.clone()).or_else(usual);
    store.filter(|folder| folder.is_dir())
}

/// The location of a subagent's worktree.
pub(super) struct Site<'a> {
    place: &'a ToolEnv,
    worktree: Option<Worktree>,
}

/// The message about a worktree's end for the model, and the files that changed in the workspace.
type Said = Option<(String, Vec<Changed>)>;

impl<'a> Site<'a> {
    pub(super) fn new(place: &'a ToolEnv, id: &SessionId) -> Self {
        let store = store(place);
        Self { place, worktree: store.map(|store| Worktree::of(&place.root, &store, id)) }
    }

    /// Does a worktree or branch of that name exist?
    pub(super) fn is_taken(&self) -> bool {
        self.worktree.as_ref().is_some_and(|it| it.path.exists() || it.has_branch())
    }

    /// Is it a copied worktree, which cannot be used?
    pub(super) fn is_copy(&self) -> bool {
        self.worktree.as_ref().is_some_and(Worktree::is_copy)
    }

    fn worktree(&self) -> std::result::Result<&Worktree, String> {
        let without = "a worktree needs a store on disk, and this run is not saved".to_owned();
        self.worktree.as_ref().ok_or(without)
    }

    /// Decides where a new worktree begins. `own` are the files that the session changed.
    pub(super) fn prepare(
        &self,
        record: &mut Subagent,
        own: &[String],
    ) -> std::result::Result<(), String> {
        let worktree = self.worktree()?;
        if record.base.is_some() {
            return Ok(());
        }
        if record.uncommitted {
            record.base = Some(worktree.snapshot(own)?);
        } else {
            record.base = Some(worktree.base()?);
            record.misses_changes = worktree.misses_changes();
        }
        Ok(())
    }

    /// Prepares a subagent that works in the worktree, with all of its agent's tools.
    pub(super) fn place(
        &self,
        setup: &mut Setup,
        order: &Order,
    ) -> std::result::Result<(), String> {
        let root = self.worktree()?.root()?;
        // The worktree lies inside the store's folder, but must not reach the store.
        let grounds = store(self.place);
        setup.place = ToolEnv { root, store: None, grounds, ..setup.place.clone() };
        choose(setup, order)
    }

    /// Makes the worktree, or finds the one that someone worked in.
    pub(super) fn make(&self, record: &Subagent) -> std::result::Result<(), String> {
        let worktree = self.worktree()?;
        match (&record.base, record.ready) {
            (_, true) => worktree.restore(),
            (Some(base), false) => worktree.make(base),
            (None, false) => worktree.make("HEAD"),
        }
    }

    /// Ends the work in the worktree. The outcome is recorded before anything is removed, so that
    /// it survives a crash in between. If the outcome was reported before a rewind, this reports
    /// its current state and changes nothing.
    pub(super) fn wrap_up(
        &self,
        record: &mut Subagent,
        ended: &Ended,
        task: &str,
        told: Told,
        save: impl Fn(&Subagent) -> stepwell::Result<()>,
    ) -> Result<Said> {
        let Some(worktree) = &self.worktree else { return Ok(None) };
        let (outcome, changed, since) = match record.outcome.clone() {
            Some(outcome) => {
                // The content before the change was not kept in time.
                let before = |_: &String| Content::NotKept("the run was interrupted".to_owned());
                let changed = match told {
                    Told::Never => self.changed(worktree, record, &outcome, before),
                    Told::Before => Vec::new(),
                };
                let since = worktree.since(&outcome);
                (outcome, changed, since)
            }
            None => {
                let (outcome, changed) = self.end(worktree, record, ended, task);
                record.outcome = Some(outcome.clone());
                save(record)?;
                (outcome, changed, Since::Unchanged)
            }
        };
        let stays = match (outcome.fate, &since) {
            (Fate::Kept, _) | (_, Since::NotInHead) => None,
            (Fate::Clean | Fate::Merged | Fate::Written, _) => worktree.remove(&outcome.tip).err(),
        };
        let mut said = format!("\n[worktree: {}", describe(worktree, &outcome, &since));
        if let Some(why) = stays {
            said.push_str(&format!("; kept in {}: {why}", worktree.path.display()));
        } else if outcome.fate != Fate::Kept {
            said.push_str(match worktree.path.exists() {
                true => "; its worktree is still there",
                false => "; its worktree was removed",
            });
        }
        said.push(']');
        if record.misses_changes {
            said.push_str(
                "\n[the subagent began at the last commit: it did not see uncommitted \
                changes]",
            );
        }
        Ok(Some((said, changed)))
    }

    fn end(
        &self,
        worktree: &Worktree,
        record: &Subagent,
        ended: &Ended,
        task: &str,
    ) -> (WorktreeOutcome, Vec<Changed>) {
        let base = record.base.clone().unwrap_or_default();
        let first = task.trim().lines().next().unwrap_or_default();
        let id = worktree.branch.trim_start_matches(stepwell_files::worktree::PREFIX);
        let message = format!("{}\n\nStepwell-Session: {id}", tool::cut(first, SUBJECT));
        let outcome = worktree.wrap_up(&base, &message, Merge::No);
        let wanted = record.merge && ended.status == Status::Success;
        if outcome.fate != Fate::Kept || outcome.tip.is_empty() || !wanted {
            return (outcome, Vec::new());
        }
        // Checked before the merge, so that a rewind can restore the files.
        let paths = worktree.would_change(&base, &outcome);
        let look = |path: &String| look(&self.place.files(), path).ok();
        let before: Vec<_> = paths.iter().map(look).collect();
        let merge = if record.uncommitted { Merge::IntoFiles } else { Merge::Yes };
        let outcome = worktree.wrap_up(&base, &message, merge);
        let found = |path: &String| {
            let place = paths.iter().position(|it| it == path);
            let unread = || Content::NotKept("it could not be read".to_owned());
            place.and_then(|place| before[place].clone()).unwrap_or_else(unread)
        };
        let changed = self.changed(worktree, record, &outcome, found);
        (outcome, changed)
    }

    /// The files that a merge changed in the workspace.
    fn changed(
        &self,
        worktree: &Worktree,
        record: &Subagent,
        outcome: &WorktreeOutcome,
        before: impl Fn(&String) -> Content,
    ) -> Vec<Changed> {
        if !matches!(outcome.fate, Fate::Merged | Fate::Written) {
            return Vec::new();
        }
        let base = record.base.as_deref().unwrap_or_default();
        let paths = worktree.would_change(base, outcome).into_iter();
        let changed = paths.filter_map(|path| {
            let (before, after) = (before(&path), look(&self.place.files(), &path).ok()?);
            match (before == after, outcome.fate) {
                (false, _) => Some(Changed { path, before, after }),
                // Written before the process died, or by another subagent with the same change.
                (true, Fate::Written) => {
                    let before = Content::NotKept("the run was interrupted".to_owned());
                    Some(Changed { path, before, after })
                }
                (true, _) => None,
            }
        });
        changed.collect()
    }
}

/// Did the model already receive the outcome of a call?
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Told {
    /// The model was not told.
    Never,
    /// Yes, in a part of the conversation that was rewound.
    Before,
}

/// How a worktree ended, for the model and the user.
fn describe(worktree: &Worktree, outcome: &WorktreeOutcome, since: &Since) -> String {
    let files = match outcome.count {
        0 => String::new(),
        count if count > outcome.files.len() => {
            format!(" ({}, and {} more)", outcome.files.join(", "), count - outcome.files.len())
        }
        _ => format!(" ({})", outcome.files.join(", ")),
    };
    let (branch, path, tip) = (&worktree.branch, worktree.path.display(), &outcome.tip);
    match (outcome.fate, since) {
        (Fate::Clean, _) => "nothing was changed".to_owned(),
        (Fate::Merged, Since::TakenBack(back)) => {
            let back = back.join(" ");
            format!(
                "the changes{files} were merged, and their commit {tip} is part of the \
                 checked-out branch, but these files in the workspace differ from the merge, \
                 because they were rewound or changed since: {back}; git restore --source=HEAD -- \
                 {back} restores them"
            )
        }
        (Fate::Merged, Since::NotInHead) => format!(
            "the changes{files} were merged, but are no longer part of the checked-out branch; \
             git merge {tip} merges them again"
        ),
        (Fate::Merged, _) => {
            format!("the changes{files} are merged into the checked-out branch")
        }
        (Fate::Written, _) => {
            format!("the changes{files} are written into the workspace, not committed")
        }
        (Fate::Kept, Since::Merged) => {
            format!("the changes{files} were kept on branch {branch} and are merged now")
        }
        (Fate::Kept, Since::Removed) => format!(
            "the changes{files} were kept on branch {branch}, which was removed since{}",
            if tip.is_empty() { String::new() } else { format!("; its last commit was {tip}") }
        ),
        (Fate::Kept, _) if outcome.why.is_empty() => format!(
            "the changes{files} are committed on branch {branch}, not merged; {}",
            match worktree.path.exists() {
                true => format!("kept in {path}"),
                false => "its folder was removed since".to_owned(),
            }
        ),
        (Fate::Kept, _) => format!("{}{files}; {}", outcome.why, worktree.left()),
    }
}
