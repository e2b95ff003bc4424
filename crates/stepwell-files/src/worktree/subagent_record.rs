//! A subagent's session's record of its parent's call.

use std::path::Path;

use serde::{Deserialize, Serialize};
use stepwell::log::Head;
use stepwell::model::Edited;

use super::{Outcome, WorktreeRef};

/// Its metadata key.
const KEY: &str = "subagent";

/// Where a subagent works.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Isolation {
    /// In the workspace, with read-only tools.
    #[default]
    ReadOnly,
    /// In its own git worktree.
    Worktree,
}

/// A subagent's session's record of its parent's call.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SubagentRecord {
    /// The call that started it.
    pub call: String,
    /// The number of sessions above it.
    pub depth: u32,
    /// Where it works.
    #[serde(rename = "ground")]
    pub isolation: Isolation,
    /// Are its changes to be merged?
    #[serde(default)]
    pub merge: bool,
    /// Does it begin with the workspace's uncommitted files, and write its changes back without a
    /// commit?
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub uncommitted: bool,
    /// The commit at which its worktree began.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub base: Option<String>,
    /// Was its worktree created? Before that it did no work.
    #[serde(default)]
    pub ready: bool,
    /// Did the workspace have uncommitted changes that its worktree lacked?
    #[serde(default)]
    pub misses_changes: bool,
    /// The outcome of its worktree.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub outcome: Option<Outcome>,
}

impl SubagentRecord {
    /// The record, if this session is a subagent's.
    #[must_use]
    pub fn of(head: &Head) -> Option<Self> {
        serde_json::from_value(head.metadata.get(KEY)?.clone()).ok()
    }

    /// The worktrees that a session's recorded folder may refer to; `None` if it works in none. A
    /// fork works where its parent did.
    #[must_use]
    pub fn worktrees(head: &Head) -> Option<Vec<WorktreeRef>> {
        let is_apart = Self::of(head)?.isolation == Isolation::Worktree;
        is_apart.then(|| WorktreeRef::named(Path::new(&head.workspace)))
    }

    /// The event that stores this record.
    #[must_use]
    pub fn edited(&self) -> Edited {
        let value = serde_json::to_value(self).unwrap_or_default();
        Edited { metadata: [(KEY.to_owned(), value)].into(), ..Edited::default() }
    }
}
