//! Changes to a session's attributes.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::money::Money;
use super::position::Seq;
use super::talk::Who;
use super::usage::{Usage, is_zero};

/// What an edit does to one attribute.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Change<T> {
    /// Leaves it unchanged.
    #[default]
    Keep,
    /// Removes it.
    Clear,
    /// Sets this value.
    Set(T),
}

impl<T: Clone> Change<T> {
    /// Does this change nothing?
    pub fn is_keep(&self) -> bool {
        matches!(self, Self::Keep)
    }

    /// Applies the change.
    pub fn apply(&self, to: &mut Option<T>) {
        match self {
            Self::Keep => {}
            Self::Clear => *to = None,
            Self::Set(value) => *to = Some(value.clone()),
        }
    }
}

// An absent field keeps, `null` clears, a value sets.
impl<T: Serialize> Serialize for Change<T> {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Keep | Self::Clear => to.serialize_none(),
            Self::Set(value) => value.serialize(to),
        }
    }
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Change<T> {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        Ok(Option::deserialize(from)?.map_or(Self::Clear, Self::Set))
    }
}

/// A change to a session's attributes. It may come from anyone at any time.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct Edited {
    /// The session's name for people, which also finds it.
    #[serde(skip_serializing_if = "Change::is_keep")]
    pub label: Change<String>,
    /// Tags to add.
    #[serde(skip_serializing_if = "BTreeSet::is_empty")]
    pub tag: BTreeSet<String>,
    /// Tags to remove, after adding.
    #[serde(skip_serializing_if = "BTreeSet::is_empty")]
    pub untag: BTreeSet<String>,
    /// Metadata, merged key by key; `null` removes a key.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub metadata: BTreeMap<String, serde_json::Value>,
    /// What the work must achieve.
    #[serde(skip_serializing_if = "Change::is_keep")]
    pub goal: Change<String>,
    /// The dollars that the whole session may spend.
    #[serde(skip_serializing_if = "Change::is_keep")]
    pub budget: Change<Money>,
    /// Exempts the session from cleanup.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pinned: Option<bool>,
    /// The session was moved to the trash, or restored. Only the store knows whether it is there
    /// now: this event records who did it, if a front end did it for someone.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub trashed: Option<bool>,
    /// Can the session's external agent resume it?
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ready: Option<bool>,
    /// Messages that no compaction may remove from the view.
    #[serde(skip_serializing_if = "BTreeSet::is_empty")]
    pub pin_messages: BTreeSet<Seq>,
    /// Messages that a compaction may remove again; applied after pinning.
    #[serde(skip_serializing_if = "BTreeSet::is_empty")]
    pub unpin_messages: BTreeSet<Seq>,
    /// What the session did before it was imported. It replaces all that an earlier event said of
    /// it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub elsewhere: Option<Elsewhere>,
    /// Who made the change, if a front end made it for someone.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub who: Option<Box<Who>>,
}

/// What a session did before it was imported and its events do not show: other systems keep the sum
/// without its parts.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct Elsewhere {
    /// Completed steps.
    #[serde(skip_serializing_if = "is_zero")]
    pub steps: u64,
    /// Its cost, with earlier calls whose own price is unknown.
    #[serde(skip_serializing_if = "Money::is_zero")]
    pub cost: Money,
    /// Tokens that no message reports.
    #[serde(skip_serializing_if = "Usage::is_nothing")]
    pub usage: Usage,
    /// Number of errors.
    #[serde(skip_serializing_if = "is_zero")]
    pub errors: u64,
    /// The last error; its time is that of this event.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_error: Option<String>,
}

impl Elsewhere {
    /// Is everything here empty?
    #[must_use]
    pub fn is_nothing(&self) -> bool {
        *self == Self::default()
    }

    /// Are there tokens of unknown price?
    pub(crate) fn is_unpriced(&self) -> bool {
        !self.usage.is_nothing() && self.cost.is_zero()
    }
}

impl Edited {
    /// Does it pin or unpin messages?
    #[must_use]
    pub fn moves_pins(&self) -> bool {
        !self.pin_messages.is_empty() || !self.unpin_messages.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keep_clear_and_set_survive_json() {
        let edits = [
            Edited::default(),
            Edited { label: Change::Clear, goal: Change::Set("ship".into()), ..Edited::default() },
        ];
        for edit in edits {
            let json = serde_json::to_string(&edit).unwrap();
            assert_eq!(serde_json::from_str::<Edited>(&json).unwrap(), edit, "{json}");
        }
        assert_eq!(serde_json::to_string(&Edited::default()).unwrap(), "{}");
    }
}
