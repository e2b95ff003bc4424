//! Recent models, favourites, and prices.

use schemars::JsonSchema;
use serde::Serialize;

use crate::Dollars;

/// A user's recent models and favourites.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct Models {
    /// Recent models, the last used first.
    pub recent: Vec<String>,
    /// The favourites.
    pub favourites: Vec<String>,
}

/// A model that was added to or removed from the favourites.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct FavouriteChanged {
    /// The model.
    pub model: String,
    /// Is it a favourite now?
    pub favourite: bool,
}

/// How much of another program's list was new.
#[derive(Clone, Copy, Debug, Serialize, JsonSchema)]
pub struct ModelsAdopted {
    /// Models that were added to the recent ones.
    pub recent: usize,
    /// Models that were added to the favourites.
    pub favourites: usize,
}

/// The price of a model in dollars per million tokens, and its limits.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct ModelPrice {
    /// The model, as `provider/name`.
    pub model: String,
    /// Input tokens.
    pub input_usd: Dollars,
    /// Tokens read from the provider's cache; null for the input price.
    pub cached_usd: Option<Dollars>,
    /// Tokens written to that cache; null for the input price.
    pub cache_written_usd: Option<Dollars>,
    /// Output tokens.
    pub output_usd: Dollars,
    /// Other prices for calls with a long input.
    pub long: Vec<LongPrice>,
    /// The context length in tokens.
    pub context: Option<u64>,
    /// The most output tokens.
    pub max_output: Option<u64>,
    /// The date of the list; null, if the price is the user's own.
    pub as_of: Option<String>,
}

/// The price of a whole call whose input exceeds a bound.
#[derive(Clone, Copy, Debug, Serialize, JsonSchema)]
pub struct LongPrice {
    /// The bound in input tokens.
    pub over: u64,
    /// Input tokens.
    pub input: Dollars,
    /// Tokens read from the provider's cache; absent for the input price.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cached: Option<Dollars>,
    /// Tokens written to that cache; absent for the input price.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cache_written: Option<Dollars>,
    /// Output tokens.
    pub output: Dollars,
}

/// A price list that was installed from a file.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct PricesTaken {
    /// The date of the list.
    pub made: String,
    /// The number of providers in it.
    pub providers: usize,
}
