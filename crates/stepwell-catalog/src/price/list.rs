//! A list of prices and context lengths: one file that `scripts/prices.py` makes from public data
//! sets, with their versions and its date.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use stepwell::model::Money;

use super::{Long, Models, Price};

/// The list that ships.
const SHIPPED: &str = include_str!("../../prices.json");

/// A list. A provider's models are parsed at first use.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct List {
    /// A description of the file.
    #[serde(rename = "about")]
    _about: String,
    /// The day on which the list was made.
    made: String,
    /// The data sets in it.
    sources: Vec<Source>,
    models: BTreeMap<String, Box<RawValue>>,
}

/// A data set in a list.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Source {
    /// Its name.
    pub name: String,
    /// Its version.
    pub version: String,
    /// What the list took from it.
    pub gives: String,
    /// Its licence and copyright holder.
    pub licence: String,
}

/// A model in the file.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Entry {
    /// Input, output, read from the cache, written to it.
    price: Vec<Option<Money>>,
    /// The same for calls with more input tokens than a bound.
    #[serde(default)]
    over: Vec<Over>,
    context: Option<u64>,
    max_output: Option<u64>,
}

#[derive(Deserialize)]
struct Over(u64, Money, Money, #[serde(default)] Option<Money>, #[serde(default)] Option<Money>);

impl List {
    /// The list that ships.
    #[must_use]
    pub fn shipped() -> Self {
        serde_json::from_str(SHIPPED).expect("a test reads the list that ships")
    }

    /// Parses a list completely.
    pub fn parse(text: &str) -> Result<Self, String> {
        let list: Self = serde_json::from_str(text).map_err(|error| error.to_string())?;
        for (provider, models) in &list.models {
            list.read(models).map_err(|error| format!("{provider}: {error}"))?;
        }
        let dated = list.made.len() == 10 && list.made.is_ascii();
        if dated { Ok(list) } else { Err(format!("made: {:?} is no day", list.made)) }
    }

    /// The day on which the list was made, such as `2026-11-16`.
    #[must_use]
    pub fn made(&self) -> &str {
        &self.made
    }

    /// The data sets in it.
    #[must_use]
    pub fn sources(&self) -> &[Source] {
        &self.sources
    }

    /// The providers in it.
    pub fn providers(&self) -> impl Iterator<Item = &str> {
        self.models.keys().map(String::as_str)
    }

    /// The prices of a provider's models.
    pub(super) fn models(&self, provider: &str) -> Models {
        // The script that made the list checked every line; a line that cannot be parsed is
        // ignored.
        let models = self.models.get(provider).and_then(|models| self.read(models).ok());
        models.unwrap_or_default()
    }

    fn read(&self, models: &RawValue) -> Result<Models, String> {
        let entries: BTreeMap<String, Entry> =
            serde_json::from_str(models.get()).map_err(|error| error.to_string())?;
        let price = |(name, entry): (String, Entry)| {
            let price = self.price(&entry).ok_or_else(|| format!("{name} has no price"))?;
            Ok((name, price))
        };
        entries.into_iter().map(price).collect()
    }

    fn price(&self, entry: &Entry) -> Option<Price> {
        let part = |n: usize| entry.price.get(n).copied().flatten();
        let long = entry.over.iter().map(|&Over(over, input, output, cached, cache_written)| {
            Long { over, input, cached, cache_written, output }
        });
        Some(Price {
            input: part(0)?,
            output: part(1)?,
            cached: part(2),
            cache_written: part(3),
            long: long.collect(),
            context: entry.context,
            max_output: entry.max_output,
            as_of: Some(self.made.clone()),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_list_that_ships_is_read_whole_and_says_where_it_is_from() {
        let list = List::parse(SHIPPED).unwrap();
        assert!(list.sources().iter().all(|it| it.licence.starts_with("MIT")), "{list:?}");
        assert_eq!(list.sources().len(), 2);
        for (provider, least) in [("openai", 100), ("anthropic", 50), ("gemini", 40), ("ollama", 1)]
        {
            let models = list.models(provider);
            assert!(models.len() >= least, "{provider} has {}", models.len());
            for (model, price) in &models {
                let cached = price.cached.unwrap_or(price.input);
                assert!(cached <= price.input, "{provider}/{model}: caching costs more");
                assert!(price.output >= price.input, "{provider}/{model}: output is cheaper");
                assert!(price.long.is_sorted_by_key(|it| it.over), "{provider}/{model}");
            }
        }
        let with_context = |provider| {
            let models = list.models(provider);
            models.values().filter(|it| it.context.is_some()).count() * 10 / models.len()
        };
        assert!(with_context("openai") >= 8 && with_context("anthropic") >= 8);
    }

    #[test]
    fn a_list_that_cannot_be_read_is_refused_with_its_place() {
        let with = |models: &str| {
            let text = format!(
                "{{\"about\":\"\",\"made\":\"2026-01-01\",\"sources\":[],\"models\":{models}}}"
            );
            List::parse(&text)
        };
        let good = with("{\"x\":{\"m\":{\"price\":[\"1\",\"2\",null,\"3\"]}}}").unwrap();
        let price = &good.models("x")["m"];
        assert_eq!((price.cached, price.cache_written), (None, Some("3".parse().unwrap())));
        assert_eq!(price.as_of.as_deref(), Some("2026-01-01"));
        for (wrong, says) in [
            ("{\"x\":{\"m\":{\"price\":[\"1\"]}}}", "x: m has no price"),
            ("{\"x\":{\"m\":{\"price\":[\"1\",\"dear\"]}}}", "x: "),
            ("[]", "invalid type"),
        ] {
            let why = with(wrong).unwrap_err();
            assert!(why.contains(says), "{why}");
        }
        assert!(List::parse("{}").is_err());
    }
}
