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
    /// A person or agent asked for it.
    #[default]
    Manual,
    /// The phase changed.
    Phase,
    /// The runner made it on its own.
    Automatic,
}

/// A point with a name.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Checkpoint {
    /// Its name. A later checkpoint with the same name replaces it.
    pub name: String,
    /// Why it was taken.
    pub reason: CheckpointReason,
    /// The user's own keys and values.
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
    /// The checkpoint for entering a phase.
    #[must_use]
    pub fn of_phase(phase: Phase) -> Self {
        let (name, reason) = (format!("phase-{phase}"), CheckpointReason::Phase);
        Self { name, reason, metadata: BTreeMap::new() }
    }

    /// A checkpoint that the runner makes on its own.
    pub fn automatic(name: impl Into<String>) -> Self {
        let (name, reason) = (name.into(), CheckpointReason::Automatic);
        Self { name, reason, metadata: BTreeMap::new() }
    }

    /// The same checkpoint, with the person who made it through a front end.
    #[must_use]
    pub fn made_by(mut self, who: Option<&Who>) -> Self {
        if let Some(who) = who {
            self.metadata.insert("by".to_owned(), who.name.clone().into());
        }
        self
    }
}

/// A summary replaced old messages of a lane's view. The messages stay in the log.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Compacted {
    /// The lane.
    #[serde(default)]
    pub lane: Lane,
    /// The first replaced message.
    pub from: Seq,
    /// The last replaced message.
    pub to: Seq,
    /// The text in their place. If absent, the messages leave the view without a summary.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub summary: Option<String>,
    /// Messages in the range that stay in the view.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub pinned: Vec<Seq>,
    /// Estimated tokens of the view before.
    #[serde(default)]
    pub tokens_before: u64,
    /// Estimated tokens of the view after.
    #[serde(default)]
    pub tokens_after: u64,
    /// Tokens of the model call that wrote the summary.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub usage: Option<Usage>,
    /// The cost of that call. Absent beside a usage if the price was unknown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost: Option<Money>,
    /// The model that wrote the summary; absent if none did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// Why the model's answer was not used as the summary; absent if it was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fault: Option<String>,
}

impl Compacted {
    /// A truncation: messages of a lane leave the view without a summary.
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

    /// Did messages leave the view without a model's summary?
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
    /// The view, with tasks, phase, goal, nodes and gates.
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

/// State that a rewind restores. The store fills it in when it records the rewind, so that the fold
/// need not read the past.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct Restored {
    /// The phase at the point.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub phase: Option<Phase>,
    /// How often plan had gone back to discuss by then.
    #[serde(skip_serializing_if = "is_none_yet")]
    pub discuss_returns: u32,
    /// The goal at the point.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub goal: Option<String>,
    /// How many gates were open at the point.
    #[serde(skip_serializing_if = "is_none_yet")]
    pub open_gates: u32,
}

fn is_none_yet(n: &u32) -> bool {
    *n == 0
}

/// A rewind is about to change files. It is on disk before the first file changes, so an
/// interrupted rewind can be finished.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Rewinding {
    /// The rewind begins. The file events that follow, recorded together with this one, hold each
    /// file's present and intended state. A [`Rewound`] or [`Undone`] after the files moved ends
    /// it.
    Begun {
        /// The point whose files come back.
        to: Seq,
        /// What is rewound.
        scope: Scope,
        /// If this undoes a rewind, or redoes one: the event that it reverses.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        undoes: Option<Seq>,
        /// How many file events follow.
        files: u64,
    },
    /// The rewind failed and was reversed by the file events recorded together with this one.
    Dropped {
        /// The `Begun` event.
        of: Seq,
        /// Why it failed.
        why: String,
    },
}

/// The session was rewound.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Rewound {
    /// The point: the last event that counts.
    pub to: Seq,
    /// What was rewound.
    pub scope: Scope,
    /// The restored state.
    #[serde(default)]
    pub restored: Restored,
}

/// A compaction or a rewind was undone.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Undone {
    /// The original messages are in the view again. Later ones stay.
    Compaction {
        /// The compaction.
        of: Seq,
    },
    /// The state from just before a rewind, or before an undo of one, is back.
    Rewind {
        /// The event that is reversed.
        of: Seq,
        /// What it had moved.
        scope: Scope,
        /// The restored state.
        #[serde(default)]
        restored: Restored,
    },
}
