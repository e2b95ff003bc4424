//! Points of a session, and what moves or shortens its view: checkpoints, compactions, rewinds.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::id::Lane;
use super::money::Money;
use super::phase::Phase;
use super::position::Seq;
use super::talk::Who;
use super::usage::Usage;

/// Why a checkpoint was taken.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum CheckpointReason {
    /// Someone asked for it.
    #[default]
    Manual,
    /// The phase changed.
    Phase,
    /// The runner takes them now and then.
    Automatic,
}

/// A named seq.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Checkpoint {
    /// Its name; a later one of the same name takes its place.
    pub name: String,
    /// Why it was taken.
    pub reason: CheckpointReason,
    /// Whatever its maker wants to remember.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub metadata: BTreeMap<String, serde_json::Value>,
}

impl From<String> for Checkpoint {
    fn from(name: String) -> Self {
        Self { name, ..Self::default() }
    }
}

impl From<&str> for Checkpoint {
    fn from(name: &str) -> Self {
        name.to_owned().into()
    }
}

impl Checkpoint {
    /// The one that is taken when the work enters a phase.
    #[must_use]
    pub fn of_phase(phase: Phase) -> Self {
        let (name, reason) = (format!("phase-{phase}"), CheckpointReason::Phase);
        Self { name, reason, metadata: BTreeMap::new() }
    }

    /// One that is taken without being asked for.
    pub fn automatic(name: impl Into<String>) -> Self {
        let (name, reason) = (name.into(), CheckpointReason::Automatic);
        Self { name, reason, metadata: BTreeMap::new() }
    }

    /// The same with a note of who made it through a front end.
    #[must_use]
    pub fn made_by(mut self, who: Option<&Who>) -> Self {
        if let Some(who) = who {
            self.metadata.insert("by".to_owned(), who.name.clone().into());
        }
        self
    }
}

/// A prefix of a lane's view was replaced by a summary. The originals stay.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Compacted {
    /// Whose view.
    #[serde(default)]
    pub lane: Lane,
    /// The first message that it replaces.
    pub from: Seq,
    /// The last one.
    pub to: Seq,
    /// What stands in their place; absent, they are left out without a word.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub summary: Option<String>,
    /// Messages in the range that stay as they are.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub pinned: Vec<Seq>,
    /// Estimated tokens of the view before.
    #[serde(default)]
    pub tokens_before: u64,
    /// Estimated tokens of the view after.
    #[serde(default)]
    pub tokens_after: u64,
    /// Tokens of the call that wrote the summary.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub usage: Option<Usage>,
    /// What that call cost; absent beside a usage, the price was not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost: Option<Money>,
    /// The model that was asked for the summary; absent, none was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// Why what that model said is not the summary; absent, it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fault: Option<String>,
}

impl Compacted {
    /// Leaves messages of a lane out, without a word in their place.
    #[must_use]
    pub fn new(lane: Lane, from: Seq, to: Seq) -> Self {
        Self {
            lane,
            from,
            to,
            summary: None,
            pinned: Vec::new(),
            tokens_before: 0,
            tokens_after: 0,
            usage: None,
            cost: None,
            model: None,
            fault: None,
        }
    }

    /// Were messages left out without a model's summary of them?
    #[must_use]
    pub const fn is_truncation(&self) -> bool {
        self.model.is_none() || self.fault.is_some()
    }
}

/// What a rewind moves back.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Scope {
    /// What the model is shown, with tasks, phase, goal, nodes and gates.
    Chat,
    /// The workspace's files.
    Files,
    /// Both.
    Both,
}

impl Scope {
    /// Does it move the view?
    #[must_use]
    pub const fn moves_view(self) -> bool {
        matches!(self, Self::Chat | Self::Both)
    }

    /// Does it move files?
    #[must_use]
    pub const fn moves_files(self) -> bool {
        matches!(self, Self::Files | Self::Both)
    }
}

/// What a move of the view brings back. The store fills it in when it records the
/// move, so that the fold needs no look into the past.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct Restored {
    /// The phase at that point.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub phase: Option<Phase>,
    /// How often plan had gone back to discuss.
    #[serde(skip_serializing_if = "is_none_yet")]
    pub discuss_returns: u32,
    /// The goal at that point.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub goal: Option<String>,
    /// How many gates were open.
    #[serde(skip_serializing_if = "is_none_yet")]
    pub open_gates: u32,
}

fn is_none_yet(n: &u32) -> bool {
    *n == 0
}

/// Files are about to be moved back. On disk before the first of them is touched, so that
/// a move that was cut off is finished, and never half done for good.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Rewinding {
    /// The file events that follow at once, recorded together with this one, say what each
    /// file is and what it is to become. The [`Rewound`] or the [`Undone`] that comes after
    /// they were moved ends it.
    Begun {
        /// The event whose files come back.
        to: Seq,
        /// What is moved.
        scope: Scope,
        /// The move that is taken back by this: a rewind, or the taking back of one.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        undoes: Option<Seq>,
        /// How many file events follow.
        files: u64,
    },
    /// It could not be done, and what was done of it was taken back: the file events that
    /// were recorded together with this one.
    Dropped {
        /// The one that began.
        of: Seq,
        /// Why it could not be done.
        why: String,
    },
}

/// The session was moved back.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Rewound {
    /// The last event that counts.
    pub to: Seq,
    /// What was moved.
    pub scope: Scope,
    /// What that brought back.
    #[serde(default)]
    pub restored: Restored,
}

/// A compaction or a rewind was taken back.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Undone {
    /// The originals are shown again; what came later stays.
    Compaction {
        /// The compaction.
        of: Seq,
    },
    /// All is again as it was just before the move: a rewind, or the taking back of one.
    Rewind {
        /// The move.
        of: Seq,
        /// What it had moved.
        scope: Scope,
        /// What taking it back restored.
        #[serde(default)]
        restored: Restored,
    },
}
