//! What a subagent's session remembers of who started it, and for what.

use std::path::Path;

use serde::{Deserialize, Serialize};
use stepwell::log::Head;
use stepwell::model::Edited;

use super::{Outcome, WorktreeRef};

/// The metadata key under which it is kept.
const KEY: &str = "subagent";

/// Where a subagent works.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Isolation {
    /// In the workspace, with tools that only look.
    #[default]
    ReadOnly,
    /// In a git worktree of its own.
    Worktree,
}

/// What a subagent's session remembers of who started it, and for what.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SubagentRecord {
    /// The call that started it.
    pub call: String,
    /// How many sessions stand above it.
    pub depth: u32,
    /// Where it works.
    #[serde(rename = "ground")]
    pub isolation: Isolation,
    /// Is what it changed to be merged?
    #[serde(default)]
    pub merge: bool,
    /// Does it begin with the workspace's files as they are, and is what it changed written into
    /// them, without a commit?
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub uncommitted: bool,
    /// The commit that its worktree began at.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub base: Option<String>,
    /// Was its worktree made? Before that nobody worked in it.
    #[serde(default)]
    pub ready: bool,
    /// Did its workspace hold changes that its worktree did not?
    #[serde(default)]
    pub misses_changes: bool,
    /// How its worktree ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub outcome: Option<Outcome>,
}

impl SubagentRecord {
    /// What a session remembers, if it is a subagent's.
    #[must_use]
    pub fn of(head: &Head) -> Option<Self> {
        serde_json::from_value(head.metadata.get(KEY)?.clone()).ok()
    }

    /// The worktrees of which one is a session's, by the folder that it recorded; nothing, if it
    /// works in none. A fork works where the session did that it was forked from.
    #[must_use]
    pub fn worktrees(head: &Head) -> Option<Vec<WorktreeRef>> {
        let is_apart = Self::of(head)?.isolation == Isolation::Worktree;
        is_apart.then(|| WorktreeRef::named(Path::new(&head.workspace)))
    }

    /// The change that makes a session remember this.
    #[must_use]
    pub fn edited(&self) -> Edited {
        let value = serde_json::to_value(self).unwrap_or_default();
        Edited { metadata: [(KEY.to_owned(), value)].into(), ..Edited::default() }
    }
}
