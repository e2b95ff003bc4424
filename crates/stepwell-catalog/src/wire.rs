//! Prices as JSON for programs.

use stepwell_wire::{LongPrice, ModelPrice};

use crate::price::{Long, Price};

impl From<&Long> for LongPrice {
    fn from(long: &Long) -> Self {
        let Long { over, input, cached, cache_written, output } = *long;
        let (cached, cache_written) = (cached.map(Into::into), cache_written.map(Into::into));
        Self { over, input: input.into(), cached, cache_written, output: output.into() }
    }
}

impl Price {
    /// The price of a model as JSON.
    #[must_use]
    pub fn of_model(&self, model: &str) -> ModelPrice {
        ModelPrice {
            model: model.to_owned(),
            input_usd: self.input.into(),
            cached_usd: self.cached.map(Into::into),
            cache_written_usd: self.cache_written.map(Into::into),
            output_usd: self.output.into(),
            long: self.long.iter().map(Into::into).collect(),
            context: self.context,
            max_output: self.max_output,
            as_of: self.as_of.clone(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_prices_of_long_inputs_are_numbers_as_all_are() {
        let money = |text: &str| text.parse().unwrap();
        let long = Long {
            over: 200_000,
            input: money("6"),
            cached: Some(money("0.6")),
            cache_written: None,
            output: money("22.5"),
        };
        let text = serde_json::to_string(&LongPrice::from(&long)).unwrap();
        assert_eq!(text, r#"{"over":200000,"input":6,"cached":0.6,"output":22.5}"#);
    }
}
