//! Deserializes a tree into types. Every error has its position, the path of its value, and
//! what was expected.
//!
//! Two forms of enums are handled here, because serde would buffer them and lose the positions.
//! An enum named [`BY_TYPE`] is a mapping whose `type` names the variant (`agent` by default).
//! An enum named [`BY_TYPE_AND_CONFIG`] has the variant's own keys under `config`.

use std::fmt;

use serde::de::value::StrDeserializer;
use serde::de::{
    self, DeserializeSeed, Deserializer, EnumAccess, IntoDeserializer, MapAccess, SeqAccess,
    VariantAccess, Visitor,
};

use super::problem::{Path, Problem, Segment};
use super::tree::{Entry, Tree, Value};
use crate::names::{listed, nearest};

/// The name of an enum whose variant is named by `type`.
pub(super) const BY_TYPE: &str = "by type";
/// The name of an enum whose variant is named by `type`, with its keys under `config`.
pub(super) const BY_TYPE_AND_CONFIG: &str = "by type and config";

/// Reads a type from a tree.
pub(super) fn read<'de, T: de::Deserialize<'de>>(tree: &'de Tree) -> Result<T, Problem> {
    T::deserialize(Reader(tree)).map_err(|error| *error.0)
}

/// A problem, boxed because every result carries it.
#[derive(Debug)]
struct ReadError(Box<Problem>);

impl ReadError {
    fn at(mut self, tree: &Tree) -> Self {
        self.0.position = self.0.position.or(tree.position);
        self
    }

    fn under(mut self, segment: Segment) -> Self {
        self.0.path = std::mem::take(&mut self.0.path).below(segment);
        self
    }
}

impl fmt::Display for ReadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl std::error::Error for ReadError {}

impl de::Error for ReadError {
    fn custom<T: fmt::Display>(what: T) -> Self {
        Self(Box::new(Problem::new(Path::root(), what.to_string())))
    }

    fn unknown_field(field: &str, expected: &'static [&'static str]) -> Self {
        let hint =
            nearest(field, expected.iter().copied()).map(|key| format!("did you mean `{key}`?"));
        let known = listed(expected.iter().copied());
        let what = format!("unknown key `{field}`; expected one of: {known}");
        Self(Box::new(Problem::new(Path::root(), what).with_hint(hint)))
    }

    fn unknown_variant(variant: &str, expected: &'static [&'static str]) -> Self {
        let hint =
            nearest(variant, expected.iter().copied()).map(|key| format!("did you mean `{key}`?"));
        let known = listed(expected.iter().copied());
        let what = format!("unknown value `{variant}`; expected one of: {known}");
        Self(Box::new(Problem::new(Path::root(), what).with_hint(hint)))
    }

    fn missing_field(field: &'static str) -> Self {
        Self::custom(format!("missing key `{field}`"))
    }

    fn invalid_type(_: de::Unexpected<'_>, expected: &dyn de::Expected) -> Self {
        Self::custom(format!("expected {}", plain(expected)))
    }

    fn invalid_value(found: de::Unexpected<'_>, expected: &dyn de::Expected) -> Self {
        let found = match found {
            de::Unexpected::Unsigned(n) => n.to_string(),
            de::Unexpected::Signed(n) => n.to_string(),
            de::Unexpected::Float(n) => n.to_string(),
            other => other.to_string(),
        };
        Self::custom(format!("{found} is not {}", plain(expected)))
    }
}

/// What was expected, in terms of YAML instead of Rust.
fn plain(expected: &dyn de::Expected) -> String {
    let expected = expected.to_string();
    match &*expected {
        "a borrowed string" => "a string",
        "a boolean" => "true or false",
        "u8" | "u16" | "u32" | "u64" | "usize" => "a non-negative integer",
        "a nonzero u32" | "a nonzero u64" | "a nonzero usize" => "a positive integer",
        "f32" | "f64" => "a number",
        "a sequence" => "a list",
        "a map" => "a mapping",
        other if other.starts_with("struct ") => "a mapping",
        other => other,
    }
    .to_owned()
}

/// A value that is being read.
#[derive(Clone, Copy)]
struct Reader<'de>(&'de Tree);

impl<'de> Reader<'de> {
    /// Adds this value's position and kind to a visitor's error.
    fn explain(self, error: ReadError) -> ReadError {
        let mut error = error.at(self.0);
        // Only the kind of the innermost value explains the error.
        if error.0.path.segments().is_empty() && error.0.what.starts_with("expected ") {
            error.0.what = format!("this is {}; {}", self.0.kind(), error.0.what);
        }
        error
    }

    fn entries(self) -> Option<&'de [Entry]> {
        match &self.0.value {
            Value::Map(entries) => Some(entries),
            _ => None,
        }
    }

    fn find(self, key: &str) -> Option<&'de Entry> {
        self.entries()?.iter().find(|entry| entry.key == key)
    }
}

impl<'de> Deserializer<'de> for Reader<'de> {
    type Error = ReadError;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ReadError> {
        let read = match &self.0.value {
            Value::Null => visitor.visit_unit(),
            Value::Bool(value) => visitor.visit_bool(*value),
            Value::Unsigned(value) => visitor.visit_u64(*value),
            Value::Signed(value) => visitor.visit_i64(*value),
            Value::Float(value) => visitor.visit_f64(*value),
            Value::Text(value) => visitor.visit_borrowed_str(value),
            Value::List(items) => visitor.visit_seq(List { items, next: 0 }),
            Value::Map(entries) => visitor.visit_map(Map::new(entries, None)),
        };
        read.map_err(|error| self.explain(error))
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ReadError> {
        match &self.0.value {
            Value::Null => visitor.visit_none(),
            _ => visitor.visit_some(self),
        }
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        visitor: V,
    ) -> Result<V::Value, ReadError> {
        visitor.visit_newtype_struct(self).map_err(|error| self.explain(error))
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        name: &'static str,
        known: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, ReadError> {
        let read = match (name, &self.0.value) {
            (BY_TYPE, Value::Map(entries)) => visitor.visit_enum(Tagged {
                tag: self.find("type"),
                content: Content::Rest(self.0, entries),
            }),
            (BY_TYPE_AND_CONFIG, Value::Map(entries)) => {
                let known = ["type", "config"];
                if let Some(entry) = entries.iter().find(|entry| !known.contains(&&*entry.key)) {
                    let error =
                        <ReadError as de::Error>::unknown_field(&entry.key, &["type", "config"]);
                    return Err(at_key(error, entry));
                }
                let tag = self.find("type");
                let config = self.find("config");
                let missing = |field| <ReadError as de::Error>::missing_field(field);
                tag.ok_or_else(|| missing("type"))
                    .and_then(|tag| Ok((tag, config.ok_or_else(|| missing("config"))?)))
                    .and_then(|(tag, config)| {
                        visitor
                            .visit_enum(Tagged { tag: Some(tag), content: Content::Under(config) })
                    })
            }
            (BY_TYPE | BY_TYPE_AND_CONFIG, _) => {
                Err(<ReadError as de::Error>::custom("expected a mapping"))
            }
            (_, Value::Text(text)) => visitor.visit_enum(text.as_str().into_deserializer()),
            _ => Err(<ReadError as de::Error>::custom(format!(
                "expected one of: {}",
                listed(known.iter().copied())
            ))),
        };
        read.map_err(|error| self.explain(error))
    }

    serde::forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf
        unit unit_struct seq tuple tuple_struct map struct identifier ignored_any
    }
}

fn at_key(mut error: ReadError, entry: &Entry) -> ReadError {
    error.0.position = error.0.position.or(entry.position);
    error
}

struct List<'de> {
    items: &'de [Tree],
    next: usize,
}

impl<'de> SeqAccess<'de> for List<'de> {
    type Error = ReadError;

    fn next_element_seed<T: DeserializeSeed<'de>>(
        &mut self,
        seed: T,
    ) -> Result<Option<T::Value>, ReadError> {
        let Some(item) = self.items.get(self.next) else { return Ok(None) };
        let index = self.next;
        self.next += 1;
        let read = seed.deserialize(Reader(item));
        read.map(Some).map_err(|error| error.at(item).under(Segment::Index(index)))
    }

    fn size_hint(&self) -> Option<usize> {
        Some(self.items.len() - self.next)
    }
}

struct Map<'de> {
    entries: std::slice::Iter<'de, Entry>,
    /// A key that was already read.
    without: Option<&'static str>,
    value: Option<&'de Entry>,
}

impl<'de> Map<'de> {
    fn new(entries: &'de [Entry], without: Option<&'static str>) -> Self {
        Self { entries: entries.iter(), without, value: None }
    }
}

impl<'de> MapAccess<'de> for Map<'de> {
    type Error = ReadError;

    fn next_key_seed<K: DeserializeSeed<'de>>(
        &mut self,
        seed: K,
    ) -> Result<Option<K::Value>, ReadError> {
        let without = self.without;
        let Some(entry) = self.entries.find(|entry| Some(&*entry.key) != without) else {
            return Ok(None);
        };
        self.value = Some(entry);
        let key: StrDeserializer<'_, ReadError> = entry.key.as_str().into_deserializer();
        seed.deserialize(key).map(Some).map_err(|error| at_key(error, entry))
    }

    fn next_value_seed<T: DeserializeSeed<'de>>(&mut self, seed: T) -> Result<T::Value, ReadError> {
        let entry = self.value.take().expect("a value is read after its key");
        seed.deserialize(Reader(&entry.value)).map_err(|error| {
            at_key(error.at(&entry.value), entry).under(Segment::Key(entry.key.clone()))
        })
    }
}

/// A variant, and where its keys are.
struct Tagged<'de> {
    tag: Option<&'de Entry>,
    content: Content<'de>,
}

#[derive(Clone, Copy)]
enum Content<'de> {
    /// Beside the tag.
    Rest(&'de Tree, &'de [Entry]),
    /// Under a key of its own.
    Under(&'de Entry),
}

impl<'de> EnumAccess<'de> for Tagged<'de> {
    type Error = ReadError;
    type Variant = Content<'de>;

    fn variant_seed<V: DeserializeSeed<'de>>(
        self,
        seed: V,
    ) -> Result<(V::Value, Content<'de>), ReadError> {
        let Some(tag) = self.tag else {
            let agent: StrDeserializer<'_, ReadError> = "agent".into_deserializer();
            return Ok((seed.deserialize(agent)?, self.content));
        };
        let Value::Text(name) = &tag.value.value else {
            let what = format!("this is {}; expected a string", tag.value.kind());
            let error = <ReadError as de::Error>::custom(what).at(&tag.value);
            return Err(error.under(Segment::from("type")));
        };
        let name: StrDeserializer<'_, ReadError> = name.as_str().into_deserializer();
        let read = seed.deserialize(name);
        let read = read.map_err(|error| error.at(&tag.value).under(Segment::from("type")))?;
        Ok((read, self.content))
    }
}

impl<'de> VariantAccess<'de> for Content<'de> {
    type Error = ReadError;

    fn unit_variant(self) -> Result<(), ReadError> {
        Ok(())
    }

    fn newtype_variant_seed<T: DeserializeSeed<'de>>(self, seed: T) -> Result<T::Value, ReadError> {
        match self {
            Self::Rest(tree, entries) => {
                let map = Map::new(entries, Some("type"));
                let read = seed.deserialize(de::value::MapAccessDeserializer::new(map));
                read.map_err(|error| error.at(tree))
            }
            Self::Under(entry) => {
                let read = seed.deserialize(Reader(&entry.value));
                read.map_err(|error| error.at(&entry.value).under(Segment::from("config")))
            }
        }
    }

    fn tuple_variant<V: Visitor<'de>>(self, _: usize, _: V) -> Result<V::Value, ReadError> {
        Err(<ReadError as de::Error>::custom("tuple variants are not supported"))
    }

    fn struct_variant<V: Visitor<'de>>(
        self,
        _: &'static [&'static str],
        _: V,
    ) -> Result<V::Value, ReadError> {
        Err(<ReadError as de::Error>::custom("struct variants are not supported"))
    }
}
