//! Amounts of money as JSON numbers.

use std::borrow::Cow;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Serialize, Serializer};
use serde_json::value::RawValue;
use stepwell::model::Money;

/// An amount in US dollars: a JSON number with all of its digits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Dollars(pub Money);

impl From<Money> for Dollars {
    fn from(money: Money) -> Self {
        Self(money)
    }
}

impl Serialize for Dollars {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        // A float would lose digits.
        let number =
            RawValue::from_string(self.0.to_string()).map_err(serde::ser::Error::custom)?;
        number.serialize(to)
    }
}

impl JsonSchema for Dollars {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "Dollars".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "number" })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_amount_is_a_number_with_all_of_its_digits() {
        let amount: Money = "0.000000000001".parse().unwrap();
        assert_eq!(serde_json::to_string(&Dollars(amount)).unwrap(), "0.000000000001");
    }
}
