//! A spec's text as a tree whose every value knows its place. YAML, of which JSON is a part.

use std::fmt;

use serde::de::{self, Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_saphyr::{Location, Spanned};

use super::place::{Path, Place, Problem, Segment};

/// The largest spec. The text is held in memory several times, and is stored with each
/// session that runs it.
pub const MAX_SPEC_BYTES: usize = 1 << 20;

/// How deep a spec may be nested; the deepest of its own keys is at ten.
const MAX_DEPTH: usize = 40;

/// How many values a spec may have, aliases followed. A thousand tasks have ten thousand.
const MAX_NODES: usize = 200_000;

/// A value and its place.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Tree {
    pub(super) place: Option<Place>,
    pub(super) value: Value,
}

/// A value.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Value {
    Null,
    Bool(bool),
    Unsigned(u64),
    Signed(i64),
    Float(f64),
    Text(String),
    List(Vec<Tree>),
    Map(Vec<Entry>),
}

/// A key and what it stands for.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Entry {
    pub(super) key: String,
    pub(super) place: Option<Place>,
    pub(super) value: Tree,
}

impl Tree {
    /// Reads a text. Whatever it is, this ends soon and takes memory in proportion.
    pub(super) fn parse(text: &str) -> Result<Self, Problem> {
        if text.len() > MAX_SPEC_BYTES {
            let what =
                format!("the spec has {} bytes, and at most {MAX_SPEC_BYTES} are read", text.len());
            return Err(Problem::new(Path::root(), what));
        }
        let options = serde_saphyr::options! {
            budget: serde_saphyr::budget! {
                max_depth: MAX_DEPTH,
                flow_nesting_limit: MAX_DEPTH,
                max_nodes: MAX_NODES,
                max_events: MAX_NODES * 4,
                max_documents: 1,
            },
            alias_limits: serde_saphyr::alias_limits! {
                max_total_replayed_events: MAX_NODES,
                max_replay_stack_depth: 16,
            },
            // As YAML 1.2 has it: `yes` and `on` are words.
            strict_booleans: true,
            with_snippet: false,
        };
        serde_saphyr::from_str_with_options(text, options).map_err(|error| problem(&error))
    }

    /// The place of a value, or of what is nearest to it.
    pub(super) fn place_of(&self, path: &Path) -> Option<Place> {
        let (mut here, mut place) = (self, self.place);
        for segment in path.segments() {
            let next = match (segment, &here.value) {
                (Segment::Key(key), Value::Map(entries)) => {
                    let found = entries.iter().find(|entry| entry.key == *key);
                    found.map(|entry| (&entry.value, entry.value.place.or(entry.place)))
                }
                (Segment::Index(index), Value::List(items)) => {
                    items.get(*index).map(|item| (item, item.place))
                }
                _ => None,
            };
            let Some((tree, at)) = next else { break };
            here = tree;
            place = at.or(place);
        }
        place
    }

    /// What it is, in the words of an error.
    pub(super) fn kind(&self) -> &'static str {
        match self.value {
            Value::Null => "nothing",
            Value::Bool(_) => "true or false",
            Value::Unsigned(_) | Value::Signed(_) | Value::Float(_) => "a number",
            Value::Text(_) => "a text",
            Value::List(_) => "a list",
            Value::Map(_) => "a mapping",
        }
    }
}

fn problem(error: &serde_saphyr::Error) -> Problem {
    let inner = error.without_snippet();
    let place = inner.location().and_then(place);
    let text = inner.to_string();
    // The place is told in one way, ours.
    let what = match text.rfind(" at line ") {
        Some(end) if place.is_some() => text[..end].to_owned(),
        _ => text,
    };
    let what = what.trim_end_matches(['.', ',', ':']).to_owned();
    Problem { place, path: Path::root(), what: format!("this cannot be read: {what}"), hint: None }
}

fn place(location: Location) -> Option<Place> {
    (location.line() > 0).then(|| Place { line: location.line(), column: location.column() })
}

impl<'de> Deserialize<'de> for Tree {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let spanned = Spanned::<Value>::deserialize(deserializer)?;
        Ok(Self { place: place(spanned.referenced), value: spanned.value })
    }
}

impl<'de> Deserialize<'de> for Value {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(ValueVisitor)
    }
}

struct ValueVisitor;

impl<'de> Visitor<'de> for ValueVisitor {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value")
    }

    fn visit_unit<E: de::Error>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_none<E: de::Error>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_bool<E: de::Error>(self, value: bool) -> Result<Value, E> {
        Ok(Value::Bool(value))
    }

    fn visit_u64<E: de::Error>(self, value: u64) -> Result<Value, E> {
        Ok(Value::Unsigned(value))
    }

    fn visit_i64<E: de::Error>(self, value: i64) -> Result<Value, E> {
        Ok(u64::try_from(value).map_or(Value::Signed(value), Value::Unsigned))
    }

    fn visit_f64<E: de::Error>(self, value: f64) -> Result<Value, E> {
        Ok(Value::Float(value))
    }

    fn visit_str<E: de::Error>(self, value: &str) -> Result<Value, E> {
        Ok(Value::Text(value.to_owned()))
    }

    fn visit_string<E: de::Error>(self, value: String) -> Result<Value, E> {
        Ok(Value::Text(value))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Value, A::Error> {
        let mut items = Vec::new();
        while let Some(item) = seq.next_element()? {
            items.push(item);
        }
        Ok(Value::List(items))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Value, A::Error> {
        let mut entries = Vec::new();
        while let Some(key) = map.next_key::<Spanned<String>>()? {
            let value = map.next_value()?;
            entries.push(Entry { key: key.value, place: place(key.referenced), value });
        }
        Ok(Value::Map(entries))
    }
}
