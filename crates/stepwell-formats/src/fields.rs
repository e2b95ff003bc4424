//! JSON objects whose fields are kept as they were written, so that what is not understood
//! goes back unchanged.

use std::borrow::Cow;
use std::collections::HashMap;
use std::fmt;

use serde::Deserialize;
use serde::de::{self, DeserializeOwned, Deserializer, MapAccess, Visitor};
use serde_json::value::RawValue;
use stepwell::Time;

use crate::{halves, split};

/// The fields of a JSON object, in order, each as its text. Of several of one name the
/// last counts, as everywhere in JSON.
#[derive(Clone, Debug, Default)]
pub struct Fields<'a> {
    list: Vec<(Cow<'a, str>, &'a str)>,
}

impl<'a> Fields<'a> {
    /// The fields of an object.
    pub fn parse(text: &'a str) -> Result<Self, serde_json::Error> {
        serde_json::from_str(text)
    }

    /// The fields of an object in a text that was looked over before. `None`, if it is no
    /// object.
    pub(crate) fn sound(text: &'a str) -> Option<Self> {
        let mut list = Vec::with_capacity(16);
        for (name, raw) in split::members(text)? {
            // A name that is no text makes no object of it, as when it is parsed: mended, it
            // would not go back as it was.
            let name = match name.contains('\\') {
                false => Cow::Borrowed(name.strip_prefix('"')?.strip_suffix('"')?),
                true => Cow::Owned(serde_json::from_str(name).ok()?),
            };
            list.push((name, raw));
        }
        Some(Self { list })
    }

    /// The text of a field.
    #[must_use]
    pub fn raw(&self, name: &str) -> Option<&'a str> {
        self.list.iter().rev().find(|(found, _)| found == name).map(|(_, raw)| *raw)
    }

    /// Is the field there, and is it more than `null`?
    #[must_use]
    pub fn has(&self, name: &str) -> bool {
        self.raw(name).is_some_and(|raw| raw != "null")
    }

    /// The value of a field, if it is of that type.
    #[must_use]
    pub fn get<T: DeserializeOwned>(&self, name: &str) -> Option<T> {
        serde_json::from_str(self.raw(name)?).ok()
    }

    /// The text in a field that is a string.
    #[must_use]
    pub fn text(&self, name: &str) -> Option<Cow<'a, str>> {
        text_of(self.raw(name)?)
    }

    /// The fields of a field that is an object.
    #[must_use]
    pub fn object(&self, name: &str) -> Option<Self> {
        Self::sound(self.raw(name)?)
    }

    /// The moment in a field.
    #[must_use]
    pub fn time(&self, name: &str) -> Option<Time> {
        self.text(name)?.parse().ok()
    }

    /// Is the field `true`?
    #[must_use]
    pub fn is_true(&self, name: &str) -> bool {
        self.raw(name) == Some("true")
    }

    /// The object without some of its fields, as JSON. Fields that are given with a text
    /// have that text instead.
    #[must_use]
    pub fn rewritten(&self, changes: &[(&str, Option<&str>)]) -> String {
        // Of several of one name only the last is kept.
        let kept = || {
            self.each().filter_map(|(name, raw)| {
                match changes.iter().find(|(changed, _)| *changed == name) {
                    Some((_, changed)) => changed.map(|raw| (name, raw)),
                    None => Some((name, raw)),
                }
            })
        };
        // Quotes, a colon and a comma besides.
        let room: usize = kept().map(|(name, raw)| name.len() + raw.len() + 4).sum();
        let mut text = String::with_capacity(room + 3);
        text.push('{');
        kept().for_each(|(name, raw)| push_field(&mut text, name, raw));
        text.push('}');
        text
    }

    /// Each of its fields once, in order, with its text.
    pub fn each(&self) -> impl Iterator<Item = (&str, &'a str)> {
        // Looking back is quick among few fields, and would take forever among very many.
        let last: Option<HashMap<&str, usize>> = (self.list.len() > 32).then(|| {
            let names = self.list.iter().enumerate();
            names.map(|(n, (name, _))| (name.as_ref(), n)).collect()
        });
        let is_last = move |n: usize, name: &str| match &last {
            Some(last) => last.get(name) == Some(&n),
            None => self.list[n + 1..].iter().all(|(later, _)| later != name),
        };
        let each = self.list.iter().enumerate();
        each.filter(move |(n, (name, _))| is_last(*n, name))
            .map(|(_, (name, raw))| (name.as_ref(), *raw))
    }

    /// The names of its fields.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.list.iter().map(|(name, _)| name.as_ref())
    }
}

/// Adds a field to a JSON object that is being written.
pub fn push_field(object: &mut String, name: &str, raw: &str) {
    if !object.ends_with('{') {
        object.push(',');
    }
    match name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_' || b == b'-') {
        true => {
            object.push('"');
            object.push_str(name);
            object.push('"');
        }
        false => object.push_str(&quoted(name)),
    }
    object.push(':');
    object.push_str(raw);
}

/// A JSON object with more fields at its end.
#[must_use]
pub fn with_fields(object: &str, fields: &[(&str, &str)]) -> String {
    let mut whole = object[..object.rfind('}').unwrap_or(object.len())].trim_end().to_owned();
    for (name, raw) in fields {
        push_field(&mut whole, name, raw);
    }
    whole.push('}');
    whole
}

/// A text as a JSON string.
#[must_use]
pub fn quoted(text: &str) -> String {
    serde_json::to_string(text).expect("a text is JSON")
}

/// The text of a JSON string. Half of a character in it is read as U+FFFD.
#[must_use]
pub fn text_of(raw: &str) -> Option<Cow<'_, str>> {
    let inner = raw.strip_prefix('"')?.strip_suffix('"')?;
    match inner.contains('\\') {
        false => Some(Cow::Borrowed(inner)),
        true => {
            let text = serde_json::from_str(raw).ok();
            let mended = || serde_json::from_str(&halves::mended(raw)?).ok();
            text.or_else(mended).map(Cow::Owned)
        }
    }
}

/// The elements of a JSON array, each as its text.
pub fn elements(raw: &str) -> Result<Vec<&str>, serde_json::Error> {
    let list: Vec<&RawValue> = serde_json::from_str(raw)?;
    Ok(list.into_iter().map(RawValue::get).collect())
}

impl<'de: 'a, 'a> Deserialize<'de> for Fields<'a> {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        struct Object;
        impl<'de> Visitor<'de> for Object {
            type Value = Fields<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Fields<'de>, A::Error> {
                let mut list = Vec::with_capacity(16);
                while let Some(Key(name)) = map.next_key()? {
                    let raw: &'de RawValue = map.next_value()?;
                    list.push((name, raw.get()));
                }
                Ok(Fields { list })
            }
        }
        from.deserialize_map(Object)
    }
}

/// A field's name, borrowed where it holds no escape.
struct Key<'a>(Cow<'a, str>);

impl<'de> Deserialize<'de> for Key<'de> {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        struct Name;
        impl<'de> Visitor<'de> for Name {
            type Value = Key<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a name")
            }

            fn visit_borrowed_str<E: de::Error>(self, name: &'de str) -> Result<Key<'de>, E> {
                Ok(Key(Cow::Borrowed(name)))
            }

            fn visit_str<E: de::Error>(self, name: &str) -> Result<Key<'de>, E> {
                Ok(Key(Cow::Owned(name.to_owned())))
            }
        }
        from.deserialize_str(Name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_fields_with_one_name_the_last_counts() {
        let fields = Fields::parse(r#"{"a":1,"b":2,"a":3}"#).unwrap();
        assert_eq!(fields.get::<u32>("a"), Some(3));
        assert_eq!(fields.rewritten(&[]), r#"{"b":2,"a":3}"#);
    }

    #[test]
    fn what_is_not_understood_stays_as_it_was_written() {
        let text = r#"{"x" : 1.0e5,"\u0061":{"z":[1,  2]},"c":null}"#;
        let fields = Fields::parse(text).unwrap();
        assert_eq!(fields.raw("a"), Some(r#"{"z":[1,  2]}"#));
        assert_eq!(fields.rewritten(&[("x", None)]), r#"{"a":{"z":[1,  2]},"c":null}"#);
        assert!(!fields.has("c") && fields.has("a"));
    }

    #[test]
    fn taken_apart_it_is_what_it_is_parsed() {
        for text in [
            r#"{"x" : 1.0e5,"\u0061":{"z":[1,  2]},"c":null,"x":"a\\"}"#,
            r#"{ }"#,
            r#"{"\ud800":1}"#,
            r#"[1]"#,
        ] {
            let parsed = Fields::parse(text).ok().map(|it| it.rewritten(&[]));
            assert_eq!(Fields::sound(text).map(|it| it.rewritten(&[])), parsed, "{text}");
        }
    }

    #[test]
    fn ten_thousand_levels_are_passed_over_and_not_climbed() {
        let deep = format!("{{\"a\":{}{}}}", "[".repeat(10_000), "]".repeat(10_000));
        let fields = Fields::parse(&deep).unwrap();
        assert!(fields.get::<serde_json::Value>("a").is_none());
    }
}
