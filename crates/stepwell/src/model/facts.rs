//! What Stepwell itself knows of a session: typed, apart from the user's metadata, and folded into
//! the head.

use serde::{Deserialize, Serialize};

use super::digest::Digest;
use super::id::SessionId;
use super::position::Seq;
use super::time::Time;

/// What Stepwell itself knows of a session. In an edit, a fact that is there takes the place of the
/// one before.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct Facts {
    /// The files that an import read it from.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub provenance: Option<Box<Provenance>>,
    /// The call that started it as a subagent, and where it works.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub subagent: Option<Box<Subagent>>,
    /// Does a compaction leave old messages out without a summary?
    #[serde(skip_serializing_if = "Option::is_none")]
    pub truncated: Option<bool>,
}

impl Facts {
    /// Are there none?
    #[must_use]
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// Takes in the facts of an edit.
    pub fn update(&mut self, new: &Self) {
        if new.provenance.is_some() {
            self.provenance.clone_from(&new.provenance);
        }
        if new.subagent.is_some() {
            self.subagent.clone_from(&new.subagent);
        }
        self.truncated = new.truncated.or(self.truncated).filter(|is_so| *is_so);
    }

    /// Every text in them.
    pub fn texts_mut(&mut self) -> impl Iterator<Item = &mut String> {
        let provenance = self.provenance.as_deref_mut().into_iter();
        let subagent = self.subagent.as_deref_mut().into_iter();
        let paths = provenance.flat_map(|it| [Some(&mut it.from), it.root.as_mut()]);
        let words = subagent.flat_map(|it| {
            let outcome = it.outcome.as_mut().into_iter();
            outcome.flat_map(|it| it.files.iter_mut().chain([&mut it.why]))
        });
        paths.flatten().chain(words)
    }
}

/// The file or folder that a session was imported from, and how it looked then.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct Provenance {
    /// The path of the file that holds the session, or of the folder or database that was read.
    pub from: String,
    /// The path that was given to the import, if that is another one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub root: Option<String>,
    /// When the session changed last, by its files.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub updated_at: Option<Time>,
    /// Was it put together from other files, because its own is broken?
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub recovered: bool,
    /// The file's size.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bytes: Option<u64>,
    /// The file's digest.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub digest: Option<Digest>,
    /// Its size, times and number in the file system, by which it is known again unread.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stamp: Option<String>,
    /// The session here that was exported to that file.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub continues: Option<Mark>,
}

/// A session that another one goes on from, and how far it was then.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Mark {
    /// The session.
    pub session: SessionId,
    /// Its last event when it was written.
    pub seq: Seq,
    /// When that happened: another store may have another session of the same name. As a number of
    /// microseconds, since each format writes moments in its own way.
    #[serde(with = "micros")]
    #[cfg_attr(feature = "schema", schemars(with = "i64"))]
    pub at: Time,
}

/// A moment as microseconds since 1970.
mod micros {
    use serde::{Deserialize, Deserializer, Serializer};

    use crate::model::time::Time;

    pub(super) fn serialize<S: Serializer>(at: &Time, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_i64(at.as_micros())
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Time, D::Error> {
        i64::deserialize(from).map(Time::from_micros)
    }
}

/// The call that started a subagent's session, and where the subagent works.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Subagent {
    /// The call that started it.
    pub call: String,
    /// How many sessions stand above it.
    pub depth: u32,
    /// Where it works.
    pub isolation: Isolation,
    /// Is what it changed to be merged?
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub merge: bool,
    /// Does it begin with the workspace's files as they are, and is what it changed written into
    /// them, without a commit?
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub uncommitted: bool,
    /// The commit that its worktree began at.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub base: Option<String>,
    /// Was its worktree made? Before that nothing was done in it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub ready: bool,
    /// Did its workspace hold changes that its worktree did not?
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub misses_changes: bool,
    /// How its worktree ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub outcome: Option<WorktreeOutcome>,
}

/// Where a subagent works.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Isolation {
    /// In the workspace, with tools that only look.
    #[default]
    ReadOnly,
    /// In a git worktree of its own.
    Worktree,
}

/// What became of a worktree.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Fate {
    /// Nothing was changed in it: it is removed.
    Clean,
    /// What was changed is part of what is checked out: it is removed.
    Merged,
    /// What was changed is written into the workspace's files, not committed: it is removed.
    Written,
    /// It holds work that is not merged.
    Kept,
}

/// How a worktree ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct WorktreeOutcome {
    /// What became of it.
    pub fate: Fate,
    /// The last commit of its branch; empty, if that is not known.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub tip: String,
    /// The files that its commits change, relative to the repository; not more than a few.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub files: Vec<String>,
    /// How many there are.
    #[serde(default)]
    pub count: usize,
    /// Why it was not merged or not even committed.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub why: String,
}
