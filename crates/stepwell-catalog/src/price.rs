//! The prices of models.
//!
//! Prices come from a list ([`list`]), which ships and can be replaced by a newer one, and from the
//! user's configuration, which takes precedence. An unknown price is absent, never zero.

pub mod list;
mod names;

use std::collections::BTreeMap;
use std::sync::Arc;

use parking_lot::Mutex;
use serde::{Deserialize, Serialize};
use stepwell::model::{Money, Spent, Usage};

use list::List;

/// Computes the cost of a usage; `None` if the price is unknown.
pub type Cost = Arc<dyn Fn(&Usage) -> Option<Money> + Send + Sync>;

/// The name of a provider's price for all of its models.
const ANY: &str = "*";

/// The price of a model in dollars per million tokens, and its limits.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Price {
    /// Input tokens.
    pub input: Money,
    /// Input tokens that the provider read from its cache; `None` for the input price.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cached: Option<Money>,
    /// Input tokens that the provider wrote to its cache; `None` for the input price.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cache_written: Option<Money>,
    /// Output tokens, hidden reasoning included.
    pub output: Money,
    /// Prices of calls with long input, from the lowest bound to the highest.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub long: Vec<Long>,
    /// The context length in tokens, input and output.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub context: Option<u64>,
    /// The most output tokens.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_output: Option<u64>,
    /// The day of the price.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub as_of: Option<String>,
}

/// The price of a whole call whose input exceeds a bound.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Long {
    /// The bound in input tokens.
    pub over: u64,
    /// Input tokens.
    pub input: Money,
    /// Input tokens from the cache; `None` for the input price.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cached: Option<Money>,
    /// Input tokens written to the cache; `None` for the input price.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cache_written: Option<Money>,
    /// Output tokens.
    pub output: Money,
}

impl Price {
    /// The cost of one call.
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

/// A user's change to a price. Absent fields stay as they are.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct PriceChange {
    /// Input tokens.
    pub input: Option<Money>,
    /// Input tokens from the cache.
    pub cached: Option<Money>,
    /// Input tokens written to the cache.
    pub cache_written: Option<Money>,
    /// Output tokens.
    pub output: Option<Money>,
    /// The context length.
    pub context: Option<u64>,
    /// The most output tokens.
    pub max_output: Option<u64>,
}

impl PriceChange {
    /// Does it leave the token prices unchanged?
    const fn prices_nothing(&self) -> bool {
        self.input.is_none() && self.cached.is_none() && self.output.is_none()
    }
}

/// Why a price cannot be changed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadPrice {
    /// The name is not `provider/model`.
    #[error("a price is given for provider/model, not for {0:?}")]
    Name(String),
    /// A model without a known price needs an input and an output price.
    #[error("the price of {0} is not known: give its input and its output")]
    Half(String),
}

/// All known prices.
#[derive(Clone, Debug)]
pub struct Prices {
    list: Arc<List>,
    /// The user's prices, by provider and model.
    own: BTreeMap<String, Models>,
    /// Context lengths of models without a known price, by `provider/model`.
    contexts: BTreeMap<String, u64>,
    /// Parsed prices with the user's changes, by provider.
    read: Arc<Mutex<BTreeMap<String, Arc<Models>>>>,
}

/// The prices of a provider's models, by name.
pub type Models = BTreeMap<String, Price>;

/// The assumed context length of an unknown model. If it is too high, the provider refuses and the
/// run adapts; if it is too low, an extra summary is written now and then.
pub const USUAL_CONTEXT: u64 = 128_000;

impl Default for Prices {
    /// The prices that ship.
    fn default() -> Self {
        Self::of(Arc::new(List::shipped()))
    }
}

impl Prices {
    /// The prices of a list.
    #[must_use]
    pub fn of(list: Arc<List>) -> Self {
        let (own, contexts) = (BTreeMap::new(), BTreeMap::new());
        Self { list, own, contexts, read: Arc::default() }
    }

    /// The prices of a provider's models. The provider's part of the list is parsed at first use.
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

    /// The providers with at least one known price.
    #[must_use]
    pub fn providers(&self) -> Vec<&str> {
        let mut all: Vec<&str> = self.list.providers().collect();
        all.extend(self.own.keys().map(String::as_str));
        all.sort_unstable();
        all.dedup();
        all
    }

    /// The price of a model: by its name, by its name without a date, or the provider's price for
    /// all models.
    #[must_use]
    pub fn find(&self, provider: &str, model: &str) -> Option<Price> {
        self.find_named(provider, model).or_else(|| self.models(provider).get(ANY).cloned())
    }

    /// The price of a model: by its name, or by its name without a date.
    fn find_named(&self, provider: &str, model: &str) -> Option<Price> {
        let models = self.models(provider);
        let dated = || {
            let base = |name: &&String| model.strip_prefix(name.as_str()).is_some_and(is_date);
            models.keys().filter(base).max_by_key(|name| name.len()).and_then(|n| models.get(n))
        };
        models.get(model).or_else(dated).cloned()
    }

    /// The providers that offer this model. Only its maker, if the maker offers it.
    #[must_use]
    pub fn offering(&self, model: &str) -> Vec<String> {
        let offers = |provider: &&str| self.find_named(provider, model).is_some();
        if let Some(maker) = names::vendor(model).filter(offers) {
            return vec![maker.to_owned()];
        }
        self.providers().into_iter().filter(offers).map(str::to_owned).collect()
    }

    /// The cost of a call; `None` if the price is unknown.
    #[must_use]
    pub fn cost(&self, provider: &str, model: &str, usage: &Usage) -> Option<Money> {
        self.find(provider, model).map(|price| price.cost(usage))
    }

    /// The estimated cost of a session with known tokens but without any recorded cost. `None` if
    /// the cost of any call was recorded, because recorded and estimated costs are never added.
    /// Other programs' names of the same model are recognised.
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
        // The length of each call is unknown, so all count as short.
        price.long.clear();
        Some(price.cost(&spent.usage)).filter(|cost| !cost.is_zero())
    }

    /// The known context length of a model, input and output.
    #[must_use]
    pub fn context(&self, provider: &str, model: &str) -> Option<u64> {
        let own = |name: &str| self.contexts.get(&format!("{provider}/{name}")).copied();
        let known = self.find(provider, model).and_then(|price| price.context);
        own(model).or(known).or_else(|| own(ANY))
    }

    /// Adds a user's prices, by `provider/model`; `provider/*` is for all models.
    pub fn with(mut self, changes: &BTreeMap<String, PriceChange>) -> Result<Self, BadPrice> {
        for (name, change) in changes {
            let named = name.split_once('/').filter(|(p, m)| !p.is_empty() && !m.is_empty());
            let (provider, model) = named.ok_or_else(|| BadPrice::Name(name.clone()))?;
            let price = match self.find(provider, model) {
                Some(known) => changed(known, change),
                // Only the context length is given; the price stays unknown.
                None if change.prices_nothing() => {
                    self.contexts.extend(change.context.map(|context| (name.clone(), context)));
                    continue;
                }
                None => fresh(change).ok_or_else(|| BadPrice::Half(name.clone()))?,
            };
            self.own.entry(provider.to_owned()).or_default().insert(model.to_owned(), price);
            // Cached prices lack the change.
            self.read = Arc::default();
        }
        Ok(self)
    }
}

/// The price after a user's change, without the vendor's date and tiers.
fn changed(mut price: Price, change: &PriceChange) -> Price {
    let said = [change.input, change.cached, change.cache_written, change.output];
    if said.iter().any(Option::is_some) {
        price.long = Vec::new();
        price.as_of = None;
    }
    // Cache discounts belong to the old input price.
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

/// Is this a suffix that vendors add for an edition of the same model, such as `-2025-04-14`,
/// `-20250514`, `-001` or `-latest`? Other suffixes, such as `-mini` or `-5`, name another model.
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
