//! A spec's text as a tree of values with optional positions. YAML, of which JSON is a subset.
//!
//! Finding positions costs as much as all the rest, and only errors and warnings need them. So
//! a text is first parsed [without](Tree::parse) positions, and [with](Tree::with_positions)
//! them only if there is something to report.

use std::fmt;
use std::marker::PhantomData;

use serde::de::{self, Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_saphyr::{Location, Spanned};

use super::problem::{Path, Position, Problem, Segment};

/// The largest spec. Its text is in memory several times, and every session that runs it
/// stores it.
pub const MAX_SPEC_BYTES: usize = 1 << 20;

/// How deep a spec may be nested. The deepest key of the format is at level ten.
const MAX_DEPTH: usize = 40;

/// How many values a spec may have, with aliases expanded. A thousand tasks have ten thousand.
const MAX_NODES: usize = 200_000;

/// A value and its position, if it was parsed with positions.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Tree {
    pub(super) position: Option<Position>,
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

/// A key of a mapping and its value.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Entry {
    pub(super) key: String,
    pub(super) position: Option<Position>,
    pub(super) value: Tree,
}

impl Tree {
    /// Parses a text without positions. Time and memory are bounded for any text.
    pub(super) fn parse(text: &str) -> Result<Self, Problem> {
        Self::parse_as::<WithoutPositions>(text)
    }

    /// Parses a text with positions.
    pub(super) fn with_positions(text: &str) -> Result<Self, Problem> {
        Self::parse_as::<WithPositions>(text)
    }

    fn parse_as<T: ParsedTree>(text: &str) -> Result<Self, Problem> {
        if text.len() > MAX_SPEC_BYTES {
            let what = format!("the spec has {} bytes; the limit is {MAX_SPEC_BYTES}", text.len());
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
            // As in YAML 1.2: `yes` and `on` are strings.
            strict_booleans: true,
            with_snippet: false,
        };
        let read = serde_saphyr::from_str_with_options(text, options).map(T::tree);
        read.map_err(|error| problem(&error))
    }

    /// The position of a value, or of its nearest ancestor that has one.
    pub(super) fn position_of(&self, path: &Path) -> Option<Position> {
        let (mut here, mut position) = (self, self.position);
        for segment in path.segments() {
            let next = match (segment, &here.value) {
                (Segment::Key(key), Value::Map(entries)) => {
                    let found = entries.iter().find(|entry| entry.key == *key);
                    found.map(|entry| (&entry.value, entry.value.position.or(entry.position)))
                }
                (Segment::Index(index), Value::List(items)) => {
                    items.get(*index).map(|item| (item, item.position))
                }
                _ => None,
            };
            let Some((tree, at)) = next else { break };
            here = tree;
            position = at.or(position);
        }
        position
    }

    /// Its kind, for error messages.
    pub(super) fn kind(&self) -> &'static str {
        match self.value {
            Value::Null => "nothing",
            Value::Bool(_) => "true or false",
            Value::Unsigned(_) | Value::Signed(_) | Value::Float(_) => "a number",
            Value::Text(_) => "a string",
            Value::List(_) => "a list",
            Value::Map(_) => "a mapping",
        }
    }
}

fn problem(error: &serde_saphyr::Error) -> Problem {
    let inner = error.without_snippet();
    let position = inner.location().and_then(position);
    let text = inner.to_string();
    // Our own form of the position replaces the parser's.
    let what = match text.rfind(" at line ") {
        Some(end) if position.is_some() => text[..end].to_owned(),
        _ => text,
    };
    let what = what.trim_end_matches(['.', ',', ':']).to_owned();
    Problem { position, path: Path::root(), what: format!("invalid YAML: {what}"), hint: None }
}

fn position(location: Location) -> Option<Position> {
    (location.line() > 0).then(|| Position { line: location.line(), column: location.column() })
}

/// A tree as the parser returns it.
trait ParsedTree: de::DeserializeOwned {
    type Key: de::DeserializeOwned;

    fn tree(self) -> Tree;

    fn key(key: Self::Key) -> (String, Option<Position>);
}

/// A tree with positions.
struct WithPositions(Spanned<Node<Self>>);

/// A tree without positions.
struct WithoutPositions(Node<Self>);

/// A value whose parts are parsed in the same way as itself.
struct Node<T>(Value, PhantomData<T>);

impl ParsedTree for WithPositions {
    type Key = Spanned<String>;

    fn tree(self) -> Tree {
        Tree { position: position(self.0.referenced), value: self.0.value.0 }
    }

    fn key(key: Spanned<String>) -> (String, Option<Position>) {
        (key.value, position(key.referenced))
    }
}

impl ParsedTree for WithoutPositions {
    type Key = String;

    fn tree(self) -> Tree {
        Tree { position: None, value: self.0.0 }
    }

    fn key(key: String) -> (String, Option<Position>) {
        (key, None)
    }
}

impl<'de> Deserialize<'de> for WithPositions {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Spanned::deserialize(deserializer).map(Self)
    }
}

impl<'de> Deserialize<'de> for WithoutPositions {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Node::deserialize(deserializer).map(Self)
    }
}

impl<'de, T: ParsedTree> Deserialize<'de> for Node<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let value = deserializer.deserialize_any(ValueVisitor::<T>(PhantomData))?;
        Ok(Self(value, PhantomData))
    }
}

struct ValueVisitor<T>(PhantomData<T>);

impl<'de, T: ParsedTree> Visitor<'de> for ValueVisitor<T> {
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
        while let Some(item) = seq.next_element::<T>()? {
            items.push(item.tree());
        }
        Ok(Value::List(items))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Value, A::Error> {
        let mut entries = Vec::new();
        while let Some(key) = map.next_key()? {
            let (key, position) = T::key(key);
            let value = map.next_value::<T>()?.tree();
            entries.push(Entry { key, position, value });
        }
        Ok(Value::Map(entries))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    impl Tree {
        /// The same tree without positions.
        fn bare(self) -> Self {
            let value = match self.value {
                Value::List(items) => Value::List(items.into_iter().map(Self::bare).collect()),
                Value::Map(entries) => Value::Map(entries.into_iter().map(Entry::bare).collect()),
                value => value,
            };
            Self { position: None, value }
        }
    }

    impl Entry {
        fn bare(self) -> Self {
            Self { position: None, value: self.value.bare(), ..self }
        }
    }

    /// Parses a text in both ways, and checks that the results are equal.
    fn parses_alike(text: &str) -> Result<(), Problem> {
        match (Tree::parse(text), Tree::with_positions(text)) {
            (Ok(bare), Ok(positioned)) => {
                assert!(positioned.position.is_some(), "{text:?} has a position");
                assert_eq!(bare, positioned.bare(), "{text:?}");
                Ok(())
            }
            (Err(wrong), Err(_)) => Err(wrong),
            (bare, positioned) => panic!("{text:?}: {bare:?} and {positioned:?}"),
        }
    }

    #[test]
    fn values_are_the_same_with_and_without_positions() {
        for text in [
            "a: 1\nb: [-2, 1.5, ~, null, true, 'true', \"x\\ty\", 0x1f, 1e3, yes, 007]",
            "a: &x {k: v}\nb: *x\nc: [*x, *x]",
            "a: |\n  two\n  lines\nb: >-\n  one\n  line\n",
            "{\"a\": [1, {\"b\": null}], \"c\": \"d\"}",
            "1: one\ntrue: two",
            "a: !!str 1\nb: !!int '1'\nc: !own x",
            "a:\nb: ''\n? c\n: d",
        ] {
            assert_eq!(parses_alike(text), Ok(()), "{text:?} can be read");
        }
        for text in ["a: [1", "a: 1\na: 2", "a: *nobody", "--- 1\n--- 2", "a: .nan", "~: x"] {
            assert!(parses_alike(text).is_err(), "{text:?} cannot be read");
        }
    }

    proptest! {
        #[test]
        fn any_text_parses_alike_in_both_ways(text in r#"([a-c&*!~:,'"\[\]{}0-9.\-|> ]|\n|: |- ){0,40}"#) {
            let _ = parses_alike(&text);
        }
    }
}
