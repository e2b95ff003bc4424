//! JSON objects whose fields are kept as they were written, so that what is not understood
//! goes back unchanged.

use std::borrow::Cow;
use std::collections::HashMap;
use std::fmt;

use memchr::memchr2;
use serde::Deserialize;
use serde::de::{self, DeserializeOwned, Deserializer, MapAccess, Visitor};
use serde_json::value::RawValue;
use stepwell::model::Time;

use crate::json::json_scan::Values;
use crate::json::lone_surrogates;

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
        Self::inside(&mut Values::inside(text, b'{')?)
    }

    /// The same, with the elements of the list that a field is; none, if it is no list. All of
    /// it is found by one look at the text.
    pub(crate) fn sound_with(text: &'a str, list: &str) -> Option<(Self, Elements<'a>)> {
        let (mut fields, mut elements) = (Vec::with_capacity(16), None);
        let mut left = Values::inside(text, b'{')?;
        while let Some(raw) = left.next() {
            let name = name_of(raw)?;
            let entered = if name == list { left.enter(b'[') } else { None };
            let value = match entered {
                Some(mut inner) => {
                    elements = Some(elements_inside(&mut inner)?);
                    left.leave(&inner)?
                }
                None => left.next()?,
            };
            fields.push((name, value));
        }
        Some((Self { list: fields }, elements))
    }

    fn inside(left: &mut Values<'a>) -> Option<Self> {
        let mut list = Vec::with_capacity(8);
        while let Some(name) = left.next() {
            list.push((name_of(name)?, left.next()?));
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
        let changed = |name: &str, raw: &'a str| -> Option<&str> {
            match changes.iter().find(|(changed, _)| *changed == name) {
                Some((_, changed)) => *changed,
                None => Some(raw),
            }
        };
        // Quotes, a colon and a comma besides.
        let length = |(name, raw): &(Cow<'a, str>, &'a str)| {
            changed(name, raw).map_or(0, |raw| name.len() + raw.len() + 4)
        };
        let mut text = String::with_capacity(self.list.iter().map(length).sum::<usize>() + 3);
        text.push('{');
        // Of several of one name only the last is kept.
        let is_last = self.last_of_name();
        for (n, (name, raw)) in self.list.iter().enumerate() {
            let Some(raw) = changed(name, raw).filter(|_| is_last(n, name)) else { continue };
            match name {
                // It stood there without an escape, and needs none.
                Cow::Borrowed(name) => push_raw_field(&mut text, name, raw),
                Cow::Owned(name) => push_field(&mut text, name, raw),
            }
        }
        text.push('}');
        text
    }

    /// Each of its fields once, in order, with its text.
    pub fn each(&self) -> impl Iterator<Item = (&str, &'a str)> {
        let is_last = self.last_of_name();
        let each = self.list.iter().enumerate();
        each.filter(move |(n, (name, _))| is_last(*n, name))
            .map(|(_, (name, raw))| (name.as_ref(), *raw))
    }

    /// Is the field at this place the last one of its name?
    fn last_of_name(&self) -> impl Fn(usize, &str) -> bool {
        // Looking back is quick among few fields, and would take forever among very many.
        let last: Option<HashMap<&str, usize>> = (self.list.len() > 32).then(|| {
            let names = self.list.iter().enumerate();
            names.map(|(n, (name, _))| (name.as_ref(), n)).collect()
        });
        move |n, name| match &last {
            Some(last) => last.get(name) == Some(&n),
            None => self.list[n + 1..].iter().all(|(later, _)| later != name),
        }
    }

    /// The names of its fields.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.list.iter().map(|(name, _)| name.as_ref())
    }
}

/// The elements of a list, each with its text, and with its fields if it is an object.
pub(crate) type Elements<'a> = Option<Vec<(&'a str, Option<Fields<'a>>)>>;

/// The elements of a list in a text that was looked over before. `None`, if it is no list.
pub(crate) fn sound_elements(text: &str) -> Elements<'_> {
    elements_inside(&mut Values::inside(text, b'[')?)
}

fn elements_inside<'a>(left: &mut Values<'a>) -> Elements<'a> {
    let mut elements = Vec::new();
    while left.first().is_some() {
        let element = match left.enter(b'{') {
            Some(mut inner) => {
                // What has a name that is no text is passed by all the same.
                let fields = Fields::inside(&mut inner);
                while inner.next().is_some() {}
                (left.leave(&inner)?, fields)
            }
            None => (left.next()?, None),
        };
        elements.push(element);
    }
    Some(elements)
}

/// The name of a field. One that is no text makes no object of it, as when it is parsed:
/// mended, it would not go back as it was.
fn name_of(raw: &str) -> Option<Cow<'_, str>> {
    Some(match raw.contains('\\') {
        false => Cow::Borrowed(raw.strip_prefix('"')?.strip_suffix('"')?),
        true => Cow::Owned(serde_json::from_str(raw).ok()?),
    })
}

/// Adds a field to a JSON object that is being written.
pub fn push_field(object: &mut String, name: &str, raw: &str) {
    match name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_' || b == b'-') {
        true => push_raw_field(object, name, raw),
        false => {
            let quoted = quoted(name);
            push_raw_field(object, &quoted[1..quoted.len() - 1], raw);
        }
    }
}

/// The same, with a name that needs no escape.
fn push_raw_field(object: &mut String, name: &str, raw: &str) {
    if !object.ends_with('{') {
        object.push(',');
    }
    object.push('"');
    object.push_str(name);
    object.push_str("\":");
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
            let text = unescaped(inner).or_else(|| serde_json::from_str(raw).ok());
            let mended = || serde_json::from_str(&lone_surrogates::mended(raw)?).ok();
            text.or_else(mended).map(Cow::Owned)
        }
    }
}

/// The text between the quotes of a JSON string. `None` where something in it is rare, or
/// wrong, and wants a closer look.
fn unescaped(inner: &str) -> Option<String> {
    let mut text = String::with_capacity(inner.len());
    let mut rest = inner;
    while let Some(at) = memchr2(b'\\', b'"', rest.as_bytes()) {
        text.push_str(rest.get(..at)?);
        let (c, length) = match rest.as_bytes().get(at..at + 2)? {
            b"\\n" => ('\n', 2),
            b"\\\"" => ('"', 2),
            b"\\\\" => ('\\', 2),
            b"\\t" => ('\t', 2),
            b"\\r" => ('\r', 2),
            b"\\/" => ('/', 2),
            // Half of a pair of surrogates is no character.
            b"\\u" => (char::from_u32(unit(rest.get(at + 2..at + 6)?)?)?, 6),
            _ => return None,
        };
        text.push(c);
        rest = rest.get(at + length..)?;
    }
    text.push_str(rest);
    Some(text)
}

/// Four hexadecimal digits.
fn unit(digits: &str) -> Option<u32> {
    let is_hex = digits.bytes().all(|byte| byte.is_ascii_hexdigit());
    is_hex.then(|| u32::from_str_radix(digits, 16).ok())?
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
    use proptest::prelude::*;

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
    fn a_list_is_taken_apart_with_the_object_that_it_is_in() {
        for text in [
            r#"{"a":1,"list":[{"x":"]}\\"},[{"y":1}],"z",{},{"\ud800":1,"v":[{}]}, 7 ],"b":{"c":2}}"#,
            r#"{"list":[],"list":[ {"x" : {"y":[1]}} ]}"#,
            r#"{"list":{"x":1},"l\u0069st":[1]}"#,
            r#"{"list":"[]"}"#,
        ] {
            let (fields, elements) = Fields::sound_with(text, "list").unwrap();
            assert_eq!(fields.rewritten(&[]), Fields::sound(text).unwrap().rewritten(&[]));
            let raw = fields.raw("list").unwrap();
            let expected = super::elements(raw).ok();
            let found = elements.as_ref().map(|list| list.iter().map(|(raw, _)| *raw).collect());
            assert_eq!(found, expected, "{text}");
            for (raw, fields) in elements.unwrap_or_default() {
                let same = Fields::sound(raw).map(|it| it.rewritten(&[]));
                assert_eq!(fields.map(|it| it.rewritten(&[])), same, "{raw}");
            }
        }
    }

    proptest! {
        #[test]
        fn a_text_is_what_it_is_when_it_is_parsed(pieces in prop::collection::vec(
            prop::sample::select(vec![
                "a", "é", "\\n", "\\\"", "\\\\", "\\t", "\\r", "\\/", "\\b", "\\f", "\\u0000",
                "\\u00e9", "\\ud83d\\ude00", "\\ud83d", "\\u+123", "\\x", "\"", "\\",
            ]),
            0..8,
        )) {
            let raw = format!("\"{}\"", pieces.concat());
            let parsed: Option<String> = serde_json::from_str(&raw).ok();
            if let Some(parsed) = parsed {
                prop_assert_eq!(text_of(&raw), Some(Cow::Owned(parsed)));
            } else if let Some(text) = raw.contains('\\').then(|| text_of(&raw)).flatten() {
                // Only what was mended is a text all the same.
                prop_assert!(lone_surrogates::mended(&raw).is_some(), "{} is no {}", raw, text);
            }
        }
    }

    #[test]
    fn ten_thousand_levels_are_passed_over_and_not_climbed() {
        let deep = format!("{{\"a\":{}{}}}", "[".repeat(10_000), "]".repeat(10_000));
        let fields = Fields::parse(&deep).unwrap();
        assert!(fields.get::<serde_json::Value>("a").is_none());
    }
}
