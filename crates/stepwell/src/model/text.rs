//! Types whose JSON form is the text they print, and whose parser reads it back; and a number with its
//! noun.

use std::fmt::Display;

/// Implements serde for a type by its `Display` and `FromStr`.
macro_rules! as_text {
    ($type:ty) => {
        impl serde::Serialize for $type {
            fn serialize<S: serde::Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
                to.collect_str(self)
            }
        }

        impl<'de> serde::Deserialize<'de> for $type {
            fn deserialize<D: serde::Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
                // Parses the borrowed text, without a temporary copy.
                struct Text;
                impl serde::de::Visitor<'_> for Text {
                    type Value = $type;

                    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                        f.write_str("a string")
                    }

                    fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<$type, E> {
                        text.parse().map_err(E::custom)
                    }
                }
                from.deserialize_str(Text)
            }
        }
    };
}

pub(super) use as_text;

/// A number with its noun, in the plural unless it is one: `1 byte`, `2 bytes`.
#[must_use]
pub fn counted<N: Copy + Display + PartialEq + From<u8>>(n: N, one: &str) -> String {
    let plural = if n == N::from(1) { "" } else { "s" };
    format!("{n} {one}{plural}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_one_is_singular() {
        let all = [0_u64, 1, 2, 11].map(|n| counted(n, "byte"));
        assert_eq!(all, ["0 bytes", "1 byte", "2 bytes", "11 bytes"]);
    }
}
