//! Models: which were used, which are favourites, what they cost.

use schemars::JsonSchema;
use serde::Serialize;

use crate::Dollars;

/// The models that a user used last, and their favourites.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct Models {
    /// Those that were used, the last one first.
    pub recent: Vec<String>,
    /// The favourites.
    pub favourites: Vec<String>,
}

/// A model that became a favourite, or is none any more.
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
    /// Models that are remembered as recent now.
    pub recent: usize,
    /// Models that are favourites now.
    pub favourites: usize,
}

/// What a model costs, in dollars per million tokens, and how much fits it.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct ModelPrice {
    /// The model, as `provider/name`.
    pub model: String,
    /// Tokens sent.
    pub input_usd: Dollars,
    /// Tokens read from the provider's cache; null, they cost what others do.
    pub cached_usd: Option<Dollars>,
    /// Tokens written to that cache; null, they cost what others do.
    pub cache_written_usd: Option<Dollars>,
    /// Tokens received.
    pub output_usd: Dollars,
    /// Other prices for calls with a long input.
    pub long: Vec<LongPrice>,
    /// How many tokens fit the model.
    pub context: Option<u64>,
    /// How many of them an answer may have.
    pub max_output: Option<u64>,
    /// The day of the list; null, the price is the user's own.
    pub as_of: Option<String>,
}

/// The price of a whole call whose input is longer than a bound.
#[derive(Clone, Copy, Debug, Serialize, JsonSchema)]
pub struct LongPrice {
    /// More tokens sent than this.
    pub over: u64,
    /// Tokens sent.
    pub input: Dollars,
    /// Tokens read from the provider's cache; absent, they cost what others do.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cached: Option<Dollars>,
    /// Tokens written to that cache; absent, they cost what others do.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cache_written: Option<Dollars>,
    /// Tokens received.
    pub output: Dollars,
}

/// A list of prices that was taken from a file.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct PricesTaken {
    /// The day on which it was made.
    pub made: String,
    /// How many providers it lists.
    pub providers: usize,
}
