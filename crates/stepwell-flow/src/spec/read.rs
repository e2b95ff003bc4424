//! From a tree to types. Every error knows its place, which key it is about, and what was
//! expected there.
//!
//! Two shapes are read here that serde would have to buffer, and so lose their places: an
//! enum named [`BY_TYPE`] is a mapping whose `type` says which variant it is (`agent` if it
//! says nothing), and an enum named [`BY_TYPE_AND_CONFIG`] has the variant's own keys under
//! `config`.

use std::fmt;

use serde::de::value::StrDeserializer;
use serde::de::{
    self, DeserializeSeed, Deserializer, EnumAccess, IntoDeserializer, MapAccess, SeqAccess,
    VariantAccess, Visitor,
};

use super::place::{Path, Problem, Segment};
use super::tree::{Entry, Tree, Value};
use crate::names::{listed, nearest};

/// The name of an enum whose variant is told by `type`.
pub(super) const BY_TYPE: &str = "by type";
/// The name of an enum whose variant is told by `type`, its keys being under `config`.
pub(super) const BY_TYPE_AND_CONFIG: &str = "by type and config";

/// Reads a type from a tree.
pub(super) fn read<'de, T: de::Deserialize<'de>>(tree: &'de Tree) -> Result<T, Problem> {
    T::deserialize(Reader(tree)).map_err(|wrong| *wrong.0)
}

/// What went wrong; boxed, since it travels through every result.
#[derive(Debug)]
struct Wrong(Box<Problem>);

impl Wrong {
    fn at(mut self, tree: &Tree) -> Self {
        self.0.place = self.0.place.or(tree.place);
        self
    }

    fn under(mut self, segment: Segment) -> Self {
        self.0.path = std::mem::take(&mut self.0.path).below(segment);
        self
    }
}

impl fmt::Display for Wrong {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl std::error::Error for Wrong {}

impl de::Error for Wrong {
    fn custom<T: fmt::Display>(what: T) -> Self {
        Self(Box::new(Problem::new(Path::root(), what.to_string())))
    }

    fn unknown_field(field: &str, expected: &'static [&'static str]) -> Self {
        let hint =
            nearest(field, expected.iter().copied()).map(|key| format!("did you mean `{key}`?"));
        let known = listed(expected.iter().copied());
        let what = format!("there is no key `{field}` here; known are {known}");
        Self(Box::new(Problem::new(Path::root(), what).hinting(hint)))
    }

    fn unknown_variant(variant: &str, expected: &'static [&'static str]) -> Self {
        let hint =
            nearest(variant, expected.iter().copied()).map(|key| format!("did you mean `{key}`?"));
        let what = format!("`{variant}` is none of {}", listed(expected.iter().copied()));
        Self(Box::new(Problem::new(Path::root(), what).hinting(hint)))
    }

    fn missing_field(field: &'static str) -> Self {
        Self::custom(format!("the key `{field}` is missing"))
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

/// What was expected, in the words of someone who writes YAML.
fn plain(expected: &dyn de::Expected) -> String {
    let expected = expected.to_string();
    match &*expected {
        "a string" | "a borrowed string" => "a text",
        "a boolean" => "true or false",
        "u8" | "u16" | "u32" | "u64" | "usize" => "a whole number that is not negative",
        "a nonzero u32" | "a nonzero u64" | "a nonzero usize" => "a whole number above 0",
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
    /// What a visitor did not want, in words of our own.
    fn unfit(self, wrong: Wrong) -> Wrong {
        let mut wrong = wrong.at(self.0);
        // Only the innermost value's kind explains it.
        if wrong.0.path.segments().is_empty() && wrong.0.what.starts_with("expected ") {
            wrong.0.what = format!("this is {}; {}", self.0.kind(), wrong.0.what);
        }
        wrong
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
    type Error = Wrong;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Wrong> {
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
        read.map_err(|wrong| self.unfit(wrong))
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Wrong> {
        match &self.0.value {
            Value::Null => visitor.visit_none(),
            _ => visitor.visit_some(self),
        }
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        visitor: V,
    ) -> Result<V::Value, Wrong> {
        visitor.visit_newtype_struct(self).map_err(|wrong| self.unfit(wrong))
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        name: &'static str,
        known: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Wrong> {
        let read = match (name, &self.0.value) {
            (BY_TYPE, Value::Map(entries)) => visitor.visit_enum(Tagged {
                tag: self.find("type"),
                content: Content::Rest(self.0, entries),
            }),
            (BY_TYPE_AND_CONFIG, Value::Map(entries)) => {
                let known = ["type", "config"];
                if let Some(entry) = entries.iter().find(|entry| !known.contains(&&*entry.key)) {
                    let wrong =
                        <Wrong as de::Error>::unknown_field(&entry.key, &["type", "config"]);
                    return Err(at_key(wrong, entry));
                }
                let tag = self.find("type");
                let config = self.find("config");
                let missing = |field| <Wrong as de::Error>::missing_field(field);
                tag.ok_or_else(|| missing("type"))
                    .and_then(|tag| Ok((tag, config.ok_or_else(|| missing("config"))?)))
                    .and_then(|(tag, config)| {
                        visitor
                            .visit_enum(Tagged { tag: Some(tag), content: Content::Under(config) })
                    })
            }
            (BY_TYPE | BY_TYPE_AND_CONFIG, _) => {
                Err(<Wrong as de::Error>::custom("expected a mapping"))
            }
            (_, Value::Text(text)) => visitor.visit_enum(text.as_str().into_deserializer()),
            _ => Err(<Wrong as de::Error>::custom(format!(
                "expected one of {}",
                listed(known.iter().copied())
            ))),
        };
        read.map_err(|wrong| self.unfit(wrong))
    }

    serde::forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf
        unit unit_struct seq tuple tuple_struct map struct identifier ignored_any
    }
}

fn at_key(mut wrong: Wrong, entry: &Entry) -> Wrong {
    wrong.0.place = wrong.0.place.or(entry.place);
    wrong
}

struct List<'de> {
    items: &'de [Tree],
    next: usize,
}

impl<'de> SeqAccess<'de> for List<'de> {
    type Error = Wrong;

    fn next_element_seed<T: DeserializeSeed<'de>>(
        &mut self,
        seed: T,
    ) -> Result<Option<T::Value>, Wrong> {
        let Some(item) = self.items.get(self.next) else { return Ok(None) };
        let index = self.next;
        self.next += 1;
        let read = seed.deserialize(Reader(item));
        read.map(Some).map_err(|wrong| wrong.at(item).under(Segment::Index(index)))
    }

    fn size_hint(&self) -> Option<usize> {
        Some(self.items.len() - self.next)
    }
}

struct Map<'de> {
    entries: std::slice::Iter<'de, Entry>,
    /// A key that was read already.
    without: Option<&'static str>,
    value: Option<&'de Entry>,
}

impl<'de> Map<'de> {
    fn new(entries: &'de [Entry], without: Option<&'static str>) -> Self {
        Self { entries: entries.iter(), without, value: None }
    }
}

impl<'de> MapAccess<'de> for Map<'de> {
    type Error = Wrong;

    fn next_key_seed<K: DeserializeSeed<'de>>(
        &mut self,
        seed: K,
    ) -> Result<Option<K::Value>, Wrong> {
        let without = self.without;
        let Some(entry) = self.entries.find(|entry| Some(&*entry.key) != without) else {
            return Ok(None);
        };
        self.value = Some(entry);
        let key: StrDeserializer<'_, Wrong> = entry.key.as_str().into_deserializer();
        seed.deserialize(key).map(Some).map_err(|wrong| at_key(wrong, entry))
    }

    fn next_value_seed<T: DeserializeSeed<'de>>(&mut self, seed: T) -> Result<T::Value, Wrong> {
        let entry = self.value.take().expect("a value is read after its key");
        seed.deserialize(Reader(&entry.value)).map_err(|wrong| {
            at_key(wrong.at(&entry.value), entry).under(Segment::Key(entry.key.clone()))
        })
    }
}

/// A variant and where its keys are.
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
    type Error = Wrong;
    type Variant = Content<'de>;

    fn variant_seed<V: DeserializeSeed<'de>>(
        self,
        seed: V,
    ) -> Result<(V::Value, Content<'de>), Wrong> {
        let Some(tag) = self.tag else {
            let agent: StrDeserializer<'_, Wrong> = "agent".into_deserializer();
            return Ok((seed.deserialize(agent)?, self.content));
        };
        let Value::Text(name) = &tag.value.value else {
            let what = format!("this is {}; expected a text", tag.value.kind());
            let wrong = <Wrong as de::Error>::custom(what).at(&tag.value);
            return Err(wrong.under(Segment::from("type")));
        };
        let name: StrDeserializer<'_, Wrong> = name.as_str().into_deserializer();
        let read = seed.deserialize(name);
        let read = read.map_err(|wrong| wrong.at(&tag.value).under(Segment::from("type")))?;
        Ok((read, self.content))
    }
}

impl<'de> VariantAccess<'de> for Content<'de> {
    type Error = Wrong;

    fn unit_variant(self) -> Result<(), Wrong> {
        Ok(())
    }

    fn newtype_variant_seed<T: DeserializeSeed<'de>>(self, seed: T) -> Result<T::Value, Wrong> {
        match self {
            Self::Rest(tree, entries) => {
                let map = Map::new(entries, Some("type"));
                let read = seed.deserialize(de::value::MapAccessDeserializer::new(map));
                read.map_err(|wrong| wrong.at(tree))
            }
            Self::Under(entry) => {
                let read = seed.deserialize(Reader(&entry.value));
                read.map_err(|wrong| wrong.at(&entry.value).under(Segment::from("config")))
            }
        }
    }

    fn tuple_variant<V: Visitor<'de>>(self, _: usize, _: V) -> Result<V::Value, Wrong> {
        Err(<Wrong as de::Error>::custom("no variant has unnamed parts"))
    }

    fn struct_variant<V: Visitor<'de>>(
        self,
        _: &'static [&'static str],
        _: V,
    ) -> Result<V::Value, Wrong> {
        Err(<Wrong as de::Error>::custom("a variant's keys are a type of their own"))
    }
}
