//! Changes to a session's own attributes.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::facts::{Facts, Provenance, Subagent};
use super::money::Money;
use super::position::Seq;
use super::talk::Who;
use super::usage::{Usage, is_zero};

/// What an edit does to one attribute.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Change<T> {
    /// Leaves it as it is.
    #[default]
    Keep,
    /// Takes it away.
    Clear,
    /// Gives it this value.
    Set(T),
}

impl<T: Clone> Change<T> {
    /// Does this leave things as they are?
    pub fn is_keep(&self) -> bool {
        matches!(self, Self::Keep)
    }

    /// Makes the change.
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

/// A change to a session's own attributes. It may come from anyone at any time.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct Edited {
    /// A name for people; it also finds the session.
    #[serde(skip_serializing_if = "Change::is_keep")]
    pub label: Change<String>,
    /// Tags to add.
    #[serde(skip_serializing_if = "BTreeSet::is_empty")]
    pub tag: BTreeSet<String>,
    /// Tags to take away, after adding.
    #[serde(skip_serializing_if = "BTreeSet::is_empty")]
    pub untag: BTreeSet<String>,
    /// Metadata, merged key by key; `null` takes a key away.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub metadata: BTreeMap<String, serde_json::Value>,
    /// What the work is to achieve.
    #[serde(skip_serializing_if = "Change::is_keep")]
    pub goal: Change<String>,
    /// The last word of an agent that Stepwell does not run.
    #[serde(skip_serializing_if = "Change::is_keep")]
    pub summary: Change<String>,
    /// What Stepwell itself knows of it.
    #[serde(skip_serializing_if = "Facts::is_empty")]
    pub facts: Facts,
    /// What the whole session may cost.
    #[serde(skip_serializing_if = "Change::is_keep")]
    pub budget: Change<Money>,
    /// Keeps cleanup away from the session.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pinned: Option<bool>,
    /// It goes to the trash, or came back from there. Whether it is there only the store says: this
    /// is recorded where a front end does it for somebody, so that the log names them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub trashed: Option<bool>,
    /// Says whether an agent that Stepwell does not run can be taken up again.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ready: Option<bool>,
    /// Messages that no compaction may take out of the view.
    #[serde(skip_serializing_if = "BTreeSet::is_empty")]
    pub pin_messages: BTreeSet<Seq>,
    /// Messages that one may again, after pinning.
    #[serde(skip_serializing_if = "BTreeSet::is_empty")]
    pub unpin_messages: BTreeSet<Seq>,
    /// What the session did before it came here; all of it, in place of what was said before.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub elsewhere: Option<Elsewhere>,
    /// Who changed it, if a front end did it for somebody.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub who: Option<Box<Who>>,
}

/// What a session did before it came here, of which its events do not tell: other systems
/// keep the sum and not its parts.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct Elsewhere {
    /// Steps completed.
    #[serde(skip_serializing_if = "is_zero")]
    pub steps: u64,
    /// What it cost, with the calls before whose own price nobody told.
    #[serde(skip_serializing_if = "Money::is_zero")]
    pub cost: Money,
    /// Tokens that no message tells of.
    #[serde(skip_serializing_if = "Usage::is_nothing")]
    pub usage: Usage,
    /// Errors.
    #[serde(skip_serializing_if = "is_zero")]
    pub errors: u64,
    /// The last of them, which happened when this is said to have happened.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_error: Option<String>,
}

impl Elsewhere {
    /// Is this nothing?
    #[must_use]
    pub fn is_nothing(&self) -> bool {
        *self == Self::default()
    }

    /// Were there tokens whose price is not known?
    pub(crate) fn is_unpriced(&self) -> bool {
        !self.usage.is_nothing() && self.cost.is_zero()
    }
}

impl From<Facts> for Edited {
    fn from(facts: Facts) -> Self {
        Self { facts, ..Self::default() }
    }
}

impl From<Provenance> for Edited {
    fn from(provenance: Provenance) -> Self {
        Facts { provenance: Some(Box::new(provenance)), ..Facts::default() }.into()
    }
}

impl From<Subagent> for Edited {
    fn from(subagent: Subagent) -> Self {
        Facts { subagent: Some(Box::new(subagent)), ..Facts::default() }.into()
    }
}

impl Edited {
    /// Does it pin messages, or let go of them?
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
