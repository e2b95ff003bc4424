//! What programs get to read of files, rewinds and worktrees.

use stepwell_wire::{FileDiff, FileDiffKind, LeftFile, RewoundWork, WorktreeState};

use crate::diff::{Change, Patch};
use crate::plan::Remark;
use crate::rewind_effect::Work;
use crate::worktree::State;

impl From<Patch> for FileDiff {
    fn from(patch: Patch) -> Self {
        let Patch { path, change, renamed_from, added, removed, diff } = patch;
        let change = match change {
            Change::Created => FileDiffKind::Created,
            Change::Deleted => FileDiffKind::Deleted,
            Change::Renamed => FileDiffKind::Renamed,
            Change::Changed => FileDiffKind::Changed,
        };
        Self { path, change, renamed_from, added, removed, diff }
    }
}

impl From<Work> for RewoundWork {
    fn from(work: Work) -> Self {
        let Work { steps, messages, tasks, questions, phases, goals, compactions, answers } = work;
        Self { steps, messages, tasks, questions, phases, goals, compactions, answers }
    }
}

impl From<&Remark> for LeftFile {
    fn from(remark: &Remark) -> Self {
        Self { path: remark.path.clone(), why: remark.why.clone() }
    }
}

impl From<State> for WorktreeState {
    fn from(state: State) -> Self {
        match state {
            State::Clean => Self::Clean,
            State::Merged => Self::Merged,
            State::Unmerged => Self::Unmerged,
            State::Uncommitted => Self::Uncommitted,
            State::Ignored => Self::Ignored,
            State::Nested => Self::Nested,
            State::Elsewhere => Self::Elsewhere,
            State::CheckedOut => Self::CheckedOut,
            State::Gone => Self::Gone,
            State::Broken => Self::Broken,
        }
    }
}
