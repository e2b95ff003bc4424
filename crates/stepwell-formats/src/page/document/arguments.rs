//! A call's arguments, laid out for people.

use std::fmt;

use serde::de::{Deserialize, Deserializer, IgnoredAny, MapAccess, Visitor};

/// How much of an argument its call's summary repeats, in characters.
const GIST: usize = 60;

/// The arguments over several lines. The text of each value is kept, and so is their
/// order; what is no JSON stays as it is.
pub(super) fn pretty(text: &str) -> String {
    if serde_json::from_str::<IgnoredAny>(text).is_err() {
        return text.to_owned();
    }
    let (mut out, mut depth, mut quoted, mut escaped) = (String::new(), 0, false, false);
    let mut rest = text.chars().peekable();
    let line = |out: &mut String, depth: usize| {
        out.push('\n');
        out.extend(std::iter::repeat_n("  ", depth));
    };
    while let Some(c) = rest.next() {
        if quoted {
            out.push(c);
            quoted = escaped || c != '"';
            escaped = !escaped && c == '\\';
            continue;
        }
        match c {
            '"' => {
                quoted = true;
                out.push(c);
            }
            '{' | '[' => {
                out.push(c);
                while rest.next_if(char::is_ascii_whitespace).is_some() {}
                match rest.next_if(|c| matches!(c, '}' | ']')) {
                    Some(end) => out.push(end),
                    None => {
                        depth += 1;
                        line(&mut out, depth);
                    }
                }
            }
            '}' | ']' => {
                depth = depth.saturating_sub(1);
                line(&mut out, depth);
                out.push(c);
            }
            ',' => {
                out.push(c);
                line(&mut out, depth);
            }
            ':' => out.push_str(": "),
            c if c.is_ascii_whitespace() => {}
            c => out.push(c),
        }
    }
    out
}

/// The front of the first argument, on one line.
pub(super) fn gist(text: &str) -> Option<String> {
    let First(value) = serde_json::from_str(text).ok()?;
    let text = match value? {
        serde_json::Value::String(text) => text,
        other => other.to_string(),
    };
    let text = one_line(&text);
    let front: String = text.chars().take(GIST).collect();
    let more = if front.len() < text.len() { "…" } else { "" };
    Some(format!("{front}{more}")).filter(|gist| !gist.is_empty())
}

/// The text with all white space as single blanks.
pub(super) fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// The first value of an object, in the order of its text.
struct First(Option<serde_json::Value>);

impl<'de> Deserialize<'de> for First {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        struct Front;

        impl<'de> Visitor<'de> for Front {
            type Value = First;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<First, A::Error> {
                let first = map.next_entry::<IgnoredAny, _>()?.map(|(_, value)| value);
                while map.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
                Ok(First(first))
            }
        }

        from.deserialize_map(Front)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_keep_their_order_and_their_numbers() {
        let text = r#"{"z": 1.50, "a":["x,{y\"",{}], "e": [ ]}"#;
        let laid_out =
            "{\n  \"z\": 1.50,\n  \"a\": [\n    \"x,{y\\\"\",\n    {}\n  ],\n  \"e\": []\n}";
        assert_eq!(pretty(text), laid_out);
        let value = |text: &str| serde_json::from_str::<serde_json::Value>(text).unwrap();
        assert_eq!(value(&pretty(text)), value(text));
    }

    #[test]
    fn what_is_no_json_stays_as_it_is() {
        assert_eq!(pretty("{\"a\": "), "{\"a\": ");
        assert_eq!(gist("{\"a\": "), None);
    }

    #[test]
    fn a_gist_is_the_front_of_the_first_argument() {
        assert_eq!(gist(r#"{"z":"a\n  b","a":1}"#).unwrap(), "a b");
        assert_eq!(gist(r#"{"n":[1,2]}"#).unwrap(), "[1,2]");
        assert_eq!(gist("{}"), None);
        let long = format!(r#"{{"a":"{}"}}"#, "é".repeat(200));
        assert_eq!(gist(&long).unwrap(), format!("{}…", "é".repeat(GIST)));
    }
}
