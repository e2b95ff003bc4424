//! What models cost, as far as it is known.
//!
//! Prices stand in a kept list ([`list`]), which ships and can be replaced by a newer one, and in
//! the user's configuration, which goes first. A price that is not known is absent, never zero.

pub mod list;
mod names;

use std::collections::BTreeMap;
use std::sync::Arc;

use parking_lot::Mutex;
use serde::{Deserialize, Serialize};
use stepwell::model::{Money, Spent, Usage};

use list::List;

/// What tokens cost; nothing, if the price is not known.
pub type Cost = Arc<dyn Fn(&Usage) -> Option<Money> + Send + Sync>;

/// The name under which a provider's price for every model stands.
const ANY: &str = "*";

/// What one model costs, in dollars per million tokens, and how much it takes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Price {
    /// Tokens sent.
    pub input: Money,
    /// Tokens sent that the provider read from its cache; as the rest if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cached: Option<Money>,
    /// Tokens sent that the provider wrote to its cache; as the rest if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cache_written: Option<Money>,
    /// Tokens received, hidden reasoning included.
    pub output: Money,
    /// What a call costs whose input is long: from the lowest bound to the highest.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub long: Vec<Long>,
    /// How many tokens fit the model, in both directions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub context: Option<u64>,
    /// How many tokens it answers with at most.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_output: Option<u64>,
    /// The day on which the price was looked up.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub as_of: Option<String>,
}

/// The price of a whole call whose input is longer than a bound.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Long {
    /// More tokens sent than this.
    pub over: u64,
    /// Tokens sent.
    pub input: Money,
    /// Tokens sent that were cached; as the rest if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cached: Option<Money>,
    /// Tokens sent that were written to the cache; as the rest if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cache_written: Option<Money>,
    /// Tokens received.
    pub output: Money,
}

impl Price {
    /// What one call cost.
    #[must_use]
    pub fn cost(&self, usage: &Usage) -> Money {
        let long = self.long.iter().rev().find(|long| usage.input > long.over);
        let (input, cached, written, output) = match long {
            Some(long) => (long.input, long.cached, long.cache_written, long.output),
            None => (self.input, self.cached, self.cache_written, self.output),
        };
        let cached = cached.unwrap_or(input);
        let read = usage.cached.min(usage.input);
        let wrote = usage.cache_written.min(usage.input - read);
        input.per_million(usage.input - read - wrote)
            + cached.per_million(read)
            + written.unwrap_or(input).per_million(wrote)
            + output.per_million(usage.output)
    }
}

/// What a user says about a price: what is absent stays as it is.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct PriceChange {
    /// Tokens sent.
    pub input: Option<Money>,
    /// Tokens sent that were cached.
    pub cached: Option<Money>,
    /// Tokens sent that were written to the cache.
    pub cache_written: Option<Money>,
    /// Tokens received.
    pub output: Option<Money>,
    /// How many tokens fit the model.
    pub context: Option<u64>,
    /// How many tokens it answers with at most.
    pub max_output: Option<u64>,
}

impl PriceChange {
    /// Does it say nothing about what tokens cost?
    const fn prices_nothing(&self) -> bool {
        self.input.is_none() && self.cached.is_none() && self.output.is_none()
    }
}

/// A price cannot be made of what was said.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadPrice {
    /// It does not name a model.
    #[error("a price is given for provider/model, not for {0:?}")]
    Name(String),
    /// A model without a known price needs both sides of one.
    #[error("the price of {0} is not known: give its input and its output")]
    Half(String),
}

/// The known prices.
#[derive(Clone, Debug)]
pub struct Prices {
    list: Arc<List>,
    /// The user's own, by provider and model.
    own: BTreeMap<String, Models>,
    /// How many tokens fit models whose price is not known, by `provider/model`.
    contexts: BTreeMap<String, u64>,
    /// What was read of the list, and the user's own over it, by provider.
    read: Arc<Mutex<BTreeMap<String, Arc<Models>>>>,
}

/// The prices of a provider's models.
pub type Models = BTreeMap<String, Price>;

/// How many tokens fit a model of which nobody said it. Too many is found out when its
/// provider refuses, too few costs a summary now and then.
pub const USUAL_CONTEXT: u64 = 128_000;

impl Default for Prices {
    /// Those that ship.
    fn default() -> Self {
        Self::of(Arc::new(List::shipped()))
    }
}

impl Prices {
    /// Those of a list.
    #[must_use]
    pub fn of(list: Arc<List>) -> Self {
        let (own, contexts) = (BTreeMap::new(), BTreeMap::new());
        Self { list, own, contexts, read: Arc::default() }
    }

    /// The prices of a provider's models. A provider's part of the list is read when it is first
    /// asked for.
    #[must_use]
    pub fn models(&self, provider: &str) -> Arc<Models> {
        let mut read = self.read.lock();
        let made = || {
            let mut models = self.list.models(provider);
            models.extend(self.own.get(provider).cloned().unwrap_or_default());
            Arc::new(models)
        };
        Arc::clone(read.entry(provider.to_owned()).or_insert_with(made))
    }

    /// Everyone of whose models a price is known.
    #[must_use]
    pub fn providers(&self) -> Vec<&str> {
        let mut all: Vec<&str> = self.list.providers().collect();
        all.extend(self.own.keys().map(String::as_str));
        all.sort_unstable();
        all.dedup();
        all
    }

    /// The price of a model: by its name, by its name without a date, or the one for all of
    /// the provider's models.
    #[must_use]
    pub fn find(&self, provider: &str, model: &str) -> Option<Price> {
        self.find_named(provider, model).or_else(|| self.models(provider).get(ANY).cloned())
    }

    /// The price of a model by its name, or by its name without a date.
    fn find_named(&self, provider: &str, model: &str) -> Option<Price> {
        let models = self.models(provider);
        let dated = || {
            let base = |name: &&String| model.strip_prefix(name.as_str()).is_some_and(is_date);
            models.keys().filter(base).max_by_key(|name| name.len()).and_then(|n| models.get(n))
        };
        models.get(model).or_else(dated).cloned()
    }

    /// Who offers a model of that name. If its maker does, that is who is meant; others may
    /// offer it too.
    #[must_use]
    pub fn offering(&self, model: &str) -> Vec<String> {
        let offers = |provider: &&str| self.find_named(provider, model).is_some();
        if let Some(maker) = names::vendor(model).filter(offers) {
            return vec![maker.to_owned()];
        }
        self.providers().into_iter().filter(offers).map(str::to_owned).collect()
    }

    /// What a call cost, unless the price is not known.
    #[must_use]
    pub fn cost(&self, provider: &str, model: &str, usage: &Usage) -> Option<Money> {
        self.find(provider, model).map(|price| price.cost(usage))
    }

    /// What a session may have cost of which only the tokens are known. Nothing, if the cost of any
    /// call was recorded: what is known and what is guessed are never one sum. Other programs
    /// call models otherwise: names that mean the same do.
    #[must_use]
    pub fn estimate(&self, provider: &str, model: &str, spent: &Spent) -> Option<Money> {
        if spent.unpriced == 0 || !spent.cost.is_zero() {
            return None;
        }
        let other = || {
            names::names(provider, model)
                .iter()
                .find_map(|name| self.find_named(&name.provider, &name.model))
        };
        let mut price = self.find(provider, model).or_else(other)?;
        // How long each call was is not known: all of them count as short.
        price.long.clear();
        Some(price.cost(&spent.usage)).filter(|cost| !cost.is_zero())
    }

    /// How many tokens fit a model, in both directions, as far as anyone said.
    #[must_use]
    pub fn context(&self, provider: &str, model: &str) -> Option<u64> {
        let own = |name: &str| self.contexts.get(&format!("{provider}/{name}")).copied();
        let known = self.find(provider, model).and_then(|price| price.context);
        own(model).or(known).or_else(|| own(ANY))
    }

    /// With a user's own prices, by `provider/model`; `provider/*` is for all of its models.
    pub fn with(mut self, changes: &BTreeMap<String, PriceChange>) -> Result<Self, BadPrice> {
        for (name, change) in changes {
            let named = name.split_once('/').filter(|(p, m)| !p.is_empty() && !m.is_empty());
            let (provider, model) = named.ok_or_else(|| BadPrice::Name(name.clone()))?;
            let price = match self.find(provider, model) {
                Some(known) => changed(known, change),
                // Only what fits is said: what it costs stays unknown.
                None if change.prices_nothing() => {
                    self.contexts.extend(change.context.map(|context| (name.clone(), context)));
                    continue;
                }
                None => fresh(change).ok_or_else(|| BadPrice::Half(name.clone()))?,
            };
            self.own.entry(provider.to_owned()).or_default().insert(model.to_owned(), price);
            // What was read lacks it.
            self.read = Arc::default();
        }
        Ok(self)
    }
}

/// A price that the user changed is the user's: the vendor's date and tier no longer hold.
fn changed(mut price: Price, change: &PriceChange) -> Price {
    let said = [change.input, change.cached, change.cache_written, change.output];
    if said.iter().any(Option::is_some) {
        price.long = Vec::new();
        price.as_of = None;
    }
    // A discount is a part of the input's price: a new one has its own, or none.
    if change.input.is_some() {
        price.cached = None;
        price.cache_written = None;
    }
    price.input = change.input.unwrap_or(price.input);
    price.cached = change.cached.or(price.cached);
    price.cache_written = change.cache_written.or(price.cache_written);
    price.output = change.output.unwrap_or(price.output);
    price.context = change.context.or(price.context);
    price.max_output = change.max_output.or(price.max_output);
    price
}

fn fresh(change: &PriceChange) -> Option<Price> {
    Some(Price {
        input: change.input?,
        cached: change.cached,
        cache_written: change.cache_written,
        output: change.output?,
        long: Vec::new(),
        context: change.context,
        max_output: change.max_output,
        as_of: None,
    })
}

/// Is this what vendors put behind a name for one of its editions: `-2025-04-14`,
/// `-20250514`, `-001`, `-latest`? Anything else is another model: `-mini`, `-5`.
fn is_date(suffix: &str) -> bool {
    let Some(rest) = suffix.strip_prefix('-').or_else(|| suffix.strip_prefix('@')) else {
        return false;
    };
    let numeric = rest.bytes().all(|b| b.is_ascii_digit() || b == b'-');
    let groups: Vec<usize> = rest.split('-').map(str::len).collect();
    rest == "latest" || (numeric && matches!(groups.as_slice(), [3 | 4 | 8] | [4, 2, 2]))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn money(text: &str) -> Money {
        text.parse().unwrap()
    }

    #[test]
    fn a_call_costs_what_its_tokens_cost_to_the_last_digit() {
        let prices = Prices::default();
        let usage =
            Usage { input: 1_001, output: 7, cached: 1_000, reasoning: 3, cache_written: 0 };
        // 1 at $2, 1,000 at $0.50 and 7 at $8 per million.
        let cost = prices.cost("openai", "gpt-4.1", &usage);
        assert_eq!(cost, Some(money("0.000558")));
        let odd = Usage { input: 10, output: 0, cached: 20, ..Usage::default() };
        assert_eq!(prices.cost("openai", "gpt-4.1", &odd), Some(money("0.000005")));
        // 100 at $3, 400 at $0.30, 500 at $3.75 and 10 at $15 per million.
        let wrote =
            Usage { input: 1_000, output: 10, cached: 400, cache_written: 500, reasoning: 0 };
        let cost = prices.cost("anthropic", "claude-sonnet-4", &wrote);
        assert_eq!(cost, Some(money("0.002445")));
    }

    #[test]
    fn a_long_call_is_dearer_as_a_whole() {
        let prices = Prices::default();
        let usage = |input| Usage { input, output: 1_000, ..Usage::default() };
        let at = prices.cost("gemini", "gemini-2.5-pro", &usage(200_000)).unwrap();
        let over = prices.cost("gemini", "gemini-2.5-pro", &usage(200_001)).unwrap();
        assert_eq!(at, money("0.26"));
        assert_eq!(over, money("0.5150025"));
    }

    #[test]
    fn the_highest_bound_that_a_call_is_over_counts() {
        let long = |over, input| Long {
            over,
            input: money(input),
            cached: None,
            cache_written: None,
            output: Money::ZERO,
        };
        let price = Price {
            long: vec![long(10, "2"), long(20, "3")],
            ..fresh(&PriceChange {
                input: Some(money("1")),
                output: Some(Money::ZERO),
                ..PriceChange::default()
            })
            .unwrap()
        };
        let cost = |input| price.cost(&Usage { input, ..Usage::default() });
        assert_eq!(
            [cost(10), cost(11), cost(21)].map(|it| it.to_string()),
            ["0.00001", "0.000022", "0.000063"]
        );
    }

    #[test]
    fn a_date_behind_a_name_is_the_same_model_and_anything_else_is_not() {
        let prices = Prices::default();
        let find = |provider: &str, model: &str| prices.find(provider, model).map(|it| it.input);
        assert_eq!(find("openai", "gpt-4.1-2025-04-14"), Some(money("2")));
        assert_eq!(find("openai", "gpt-4o-mini-2024-07-18"), Some(money("0.15")));
        assert_eq!(find("anthropic", "claude-sonnet-4-20250514"), Some(money("3")));
        assert_eq!(find("anthropic", "claude-3-5-haiku-latest"), Some(money("0.8")));
        assert_eq!(find("gemini", "gemini-2.0-flash-001"), Some(money("0.1")));
        for unknown in ["gpt-4o-audio", "gpt-4.12", "gpt-4.1-9", "gpt-99", ""] {
            assert_eq!(find("openai", unknown), None, "{unknown} has a price");
        }
        assert_eq!(find("anthropic", "claude-opus-4-9-20260101"), None);
        assert_eq!(find("nobody", "gpt-4.1"), None);
    }

    #[test]
    fn a_local_model_is_known_to_be_free() {
        let usage = Usage { input: 5_000, output: 100, ..Usage::default() };
        assert_eq!(Prices::default().cost("ollama", "llama3:8b", &usage), Some(Money::ZERO));
    }

    #[test]
    fn a_users_price_stands_over_the_one_that_ships() {
        let change = |input: &str| PriceChange { input: Some(money(input)), ..Default::default() };
        let new = PriceChange { output: Some(money("4")), ..change("1") };
        let changes = [("openai/gpt-4.1".to_owned(), change("1")), ("mine/*".to_owned(), new)];
        let prices = Prices::default().with(&changes.into()).unwrap();
        let known = prices.find("openai", "gpt-4.1").unwrap();
        assert_eq!((known.input, known.cached, known.output), (money("1"), None, money("8")));
        assert_eq!(prices.find("mine", "anything").unwrap().output, money("4"));
        let half = [("mine/x".to_owned(), change("1"))];
        let long = PriceChange { context: Some(9_000), ..Default::default() };
        let said = [("other/*".to_owned(), long.clone()), ("openai/gpt-4.1".to_owned(), long)];
        let fits = Prices::default().with(&said.into()).unwrap();
        assert_eq!(fits.context("other", "x"), Some(9_000));
        assert_eq!((fits.find("other", "x"), fits.context("nobody", "x")), (None, None));
        assert_eq!(fits.context("openai", "gpt-4.1"), Some(9_000));
        assert_eq!(fits.find("openai", "gpt-4.1").unwrap().input, money("2"));
        assert_eq!(Prices::default().context("anthropic", "claude-sonnet-4-5"), Some(200_000));
        let refused = Prices::default().with(&half.into()).unwrap_err();
        assert_eq!(refused, BadPrice::Half("mine/x".to_owned()));
    }
}
