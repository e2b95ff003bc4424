//! Arguments that several tools share.

use schemars::JsonSchema;
use serde::{Deserialize, Deserializer};
use stepwell::model::Time;
use stepwell::store::Order;
use stepwell::store::query::{Family, Filter};
use stepwell::{Seq, SessionId, Status, Stepwell};

use crate::error::{Error, Result};

/// The default number of items on a page.
const USUAL_PAGE: usize = 20;

/// The most items on a page.
const LONGEST_PAGE: usize = 100;

/// A number of items, from one to the largest page.
#[derive(Clone, Copy, Debug, JsonSchema)]
#[schemars(transparent)]
pub(crate) struct Limit(#[schemars(range(min = 1, max = 100))] usize);

impl<'de> Deserialize<'de> for Limit {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let limit = usize::deserialize(from)?;
        match (1..=LONGEST_PAGE).contains(&limit) {
            true => Ok(Self(limit)),
            false => {
                let why = format!("{limit} is not a valid limit; expected 1 to {LONGEST_PAGE}");
                Err(serde::de::Error::custom(why))
            }
        }
    }
}

impl Limit {
    /// The number of items on a page.
    pub(crate) fn of(asked: Option<Self>) -> usize {
        asked.map_or(USUAL_PAGE, |limit| limit.0)
    }
}

/// Selects sessions. All given conditions must hold.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Which {
    /// One of these: running, paused, interrupted, partial, success, failed, abandoned, idle.
    pub(crate) status: Vec<Status>,
    /// The agent.
    pub(crate) agent: Option<String>,
    /// The model.
    pub(crate) model: Option<String>,
    /// All of these tags.
    pub(crate) tags: Vec<String>,
    /// The label.
    pub(crate) label: Option<String>,
    /// A text in the task.
    pub(crate) task: Option<String>,
    /// The source, such as claude or codex: the system that it was imported from, or that keeps it
    /// here.
    pub(crate) source: Option<String>,
    /// Updated at this time or later, such as 2026-11-16T09:30:00Z.
    pub(crate) since: Option<Time>,
    /// Updated before this time.
    pub(crate) until: Option<Time>,
}

impl Which {
    /// The filter for a store.
    pub(crate) fn filter(self, family: Family) -> Filter {
        let Self { status, agent, model, tags, label, task, source, since, until } = self;
        let filter = Filter { status, agent, model, tags, label, task, ..Filter::default() };
        Filter { system: source, since, until, family, ..filter }
    }
}

/// Which items come first.
#[derive(Clone, Copy, Debug, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Direction {
    /// The oldest first.
    #[default]
    Oldest,
    /// The newest first.
    Newest,
}

impl From<Direction> for Order {
    fn from(direction: Direction) -> Self {
        match direction {
            Direction::Oldest => Self::Oldest,
            Direction::Newest => Self::Newest,
        }
    }
}

/// A point of a session: a seq, a checkpoint's name, or "-N" for N steps back.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(untagged)]
pub(crate) enum Point {
    /// An event's seq.
    Seq(u64),
    /// A checkpoint's name, or "-N" for N steps back.
    Name(String),
}

impl Point {
    /// The seq of the point; `usual` if none is given.
    pub(crate) fn of(
        point: Option<&Self>,
        usual: Seq,
        well: &Stepwell,
        id: &SessionId,
    ) -> Result<Seq> {
        Ok(match point {
            None => usual,
            Some(Self::Seq(seq)) => well.point(id, &seq.to_string())?,
            Some(Self::Name(name)) => well.point(id, name)?,
        })
    }
}

/// Parses a tool's arguments.
pub(crate) fn read<I: serde::de::DeserializeOwned>(
    arguments: rmcp::model::JsonObject,
) -> Result<I> {
    let wrong = |error: serde_json::Error| Error::Arguments(error.to_string());
    serde_json::from_value(arguments.into()).map_err(wrong)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_limit_is_what_the_schema_says() {
        for (given, taken) in
            [("1", true), ("100", true), ("0", false), ("101", false), ("-1", false)]
        {
            assert_eq!(serde_json::from_str::<Limit>(given).is_ok(), taken, "{given}");
        }
        let schema = serde_json::to_value(schemars::schema_for!(Limit)).unwrap();
        assert_eq!((&schema["minimum"], &schema["maximum"]), (&1.into(), &100.into()));
        let why = serde_json::from_str::<Limit>("1000").unwrap_err().to_string();
        assert!(why.starts_with("1000 is not a valid limit; expected 1 to 100"), "{why}");
    }
}
