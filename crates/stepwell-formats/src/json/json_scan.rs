//! JSON that was looked over before, taken apart: where each value in it ends is found
//! without asking again whether it is JSON.
//!
//! Of text that is no JSON the answers make no sense, and nothing else happens.

use memchr::memchr;

/// Where a string ends whose opening quote is there.
pub(crate) fn text_end(text: &[u8], open: usize) -> usize {
    let mut from = open + 1;
    while let Some(quote) = text.get(from..).and_then(|rest| memchr(b'"', rest)) {
        let quote = from + quote;
        let front = text.get(open + 1..quote).unwrap_or_default();
        let escapes = front.iter().rev().take_while(|byte| **byte == b'\\').count();
        if escapes.is_multiple_of(2) {
            return quote + 1;
        }
        from = quote + 1;
    }
    text.len()
}

/// The values between two brackets, in order.
pub(crate) struct Values<'a> {
    text: &'a str,
    at: usize,
}

impl<'a> Values<'a> {
    /// Those of a text that begins with this bracket.
    pub(crate) fn inside(raw: &'a str, open: u8) -> Option<Self> {
        (raw.as_bytes().first() == Some(&open)).then_some(Self { text: raw, at: 1 })
    }

    /// The next value.
    pub(crate) fn next(&mut self) -> Option<&'a str> {
        let first = self.first()?;
        let (bytes, start) = (self.text.as_bytes(), self.at);
        let end = match first {
            b'"' => text_end(bytes, start),
            b'{' | b'[' => nested_end(bytes, start),
            _ => word_end(bytes, start),
        };
        self.at = end;
        self.text.get(start..end)
    }

    /// How the next value begins; `None`, if there is none.
    pub(crate) fn first(&mut self) -> Option<u8> {
        let bytes = self.text.as_bytes();
        let between = |byte: &u8| matches!(byte, b' ' | b'\t' | b'\n' | b'\r' | b',' | b':');
        self.at += bytes.get(self.at..)?.iter().position(|byte| !between(byte))?;
        Some(bytes[self.at]).filter(|first| !matches!(first, b'}' | b']'))
    }

    /// The values in the next one, if that begins with this bracket. They must be passed by
    /// to the last, and then [left](Self::leave).
    pub(crate) fn enter(&mut self, open: u8) -> Option<Self> {
        (self.first() == Some(open)).then_some(Self { text: self.text, at: self.at + 1 })
    }

    /// Goes on behind the value that was entered. The answer is all of it.
    pub(crate) fn leave(&mut self, inner: &Self) -> Option<&'a str> {
        let start = self.at;
        self.at = inner.at + 1;
        self.text.get(start..self.at)
    }
}

fn nested_end(text: &[u8], open: usize) -> usize {
    let (mut at, mut depth) = (open, 0_usize);
    while let Some(byte) = text.get(at) {
        match byte {
            b'"' => {
                at = text_end(text, at);
                continue;
            }
            b'{' | b'[' => depth += 1,
            b'}' | b']' if depth == 1 => return at + 1,
            b'}' | b']' => depth = depth.saturating_sub(1),
            _ => {}
        }
        at += 1;
    }
    text.len()
}

fn word_end(text: &[u8], start: usize) -> usize {
    let ends = |byte: &u8| matches!(byte, b' ' | b'\t' | b'\n' | b'\r' | b',' | b'}' | b']');
    let rest = text.get(start..).unwrap_or_default();
    start + rest.iter().position(ends).unwrap_or(rest.len())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::Value;

    use super::*;

    /// Texts full of what ends and escapes things.
    fn text() -> impl Strategy<Value = String> {
        prop::collection::vec(
            prop::sample::select(vec!["\\", "\"", "{", "]", ",", "é", " a"]),
            0..8,
        )
        .prop_map(|pieces| pieces.concat())
    }

    fn value() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            any::<i64>().prop_map(Value::from),
            text().prop_map(Value::from),
        ];
        leaf.prop_recursive(4, 32, 6, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..6).prop_map(Value::from),
                prop::collection::vec((text(), inner), 0..6)
                    .prop_map(|fields| fields.into_iter().collect::<Value>()),
            ]
        })
    }

    /// The fields of an object: each name as it is written, quotes included, and its value.
    fn members(raw: &str) -> Option<impl Iterator<Item = (&str, &str)>> {
        let mut left = Values::inside(raw, b'{')?;
        Some(std::iter::from_fn(move || Some((left.next()?, left.next()?))))
    }

    fn elements(raw: &str) -> Option<impl Iterator<Item = &str>> {
        let mut left = Values::inside(raw, b'[')?;
        Some(std::iter::from_fn(move || left.next()))
    }

    /// Takes a text apart all the way down and puts it together again.
    fn rebuilt(raw: &str) -> Value {
        let name = |raw: &str| serde_json::from_str::<String>(raw).unwrap();
        if let Some(fields) = members(raw) {
            fields.map(|(field, raw)| (name(field), rebuilt(raw))).collect()
        } else if let Some(list) = elements(raw) {
            list.map(rebuilt).collect()
        } else {
            serde_json::from_str(raw).unwrap()
        }
    }

    proptest! {
        #[test]
        fn what_is_taken_apart_is_what_was_written(value in value()) {
            prop_assert_eq!(&rebuilt(&value.to_string()), &value);
            prop_assert_eq!(&rebuilt(&serde_json::to_string_pretty(&value).unwrap()), &value);
        }

        #[test]
        fn what_is_no_json_ends_as_well(pieces in prop::collection::vec(text(), 0..12)) {
            let text = pieces.concat();
            for raw in [format!("{{{text}"), format!("[{text}")] {
                let fields = members(&raw).into_iter().flatten().count();
                let items = elements(&raw).into_iter().flatten().count();
                prop_assert!(fields + items <= raw.len());
            }
        }
    }
}
