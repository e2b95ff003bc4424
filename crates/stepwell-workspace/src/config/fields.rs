//! The keys that a type reads, so that a key that is none can be told what it is near to.

use std::cell::Cell;

use serde::de::value::Error;
use serde::de::{DeserializeOwned, Deserializer, Error as _, Visitor};
use serde::forward_to_deserialize_any;

/// The keys of a type that is read from a table; nothing, if it is no such type.
pub(super) fn of<T: DeserializeOwned>() -> &'static [&'static str] {
    let asked = Asked(Cell::new(&[]));
    // It is asked for its keys, and given no values.
    let _ = T::deserialize(&asked);
    asked.0.get()
}

/// The known key that is most like a name that is none.
pub(super) fn nearest(name: &str, known: &[&'static str]) -> Option<&'static str> {
    let rated = known.iter().map(|key| (*key, stepwell::sessions::likeness(name, key)));
    rated.max_by(|one, other| one.1.total_cmp(&other.1)).map(|(key, _)| key)
}

/// Notes which keys it is asked for.
struct Asked(Cell<&'static [&'static str]>);

impl<'de> Deserializer<'de> for &Asked {
    type Error = Error;

    fn deserialize_any<V: Visitor<'de>>(self, _: V) -> Result<V::Value, Error> {
        Err(Error::custom("no values"))
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Error> {
        self.0.set(fields);
        self.deserialize_any(visitor)
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf
        option unit unit_struct newtype_struct seq tuple tuple_struct map enum identifier
        ignored_any
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::mcp::McpConfig;

    #[test]
    fn a_types_keys_are_known_and_the_nearest_is_found() {
        let known = of::<McpConfig>();
        assert!(known.contains(&"command") && known.contains(&"start_timeout"), "{known:?}");
        assert_eq!(nearest("commmand", known), Some("command"));
        assert_eq!(nearest("header", known), Some("headers"));
        assert!(of::<String>().is_empty());
    }
}
