//! A spec's text as a tree whose every value may know its place. YAML, of which JSON is a part.
//!
//! Places are as dear to find as all the rest, and nobody asks for them unless there is
//! something to tell: a text is read [without](Tree::parse) them first, and
//! [with](Tree::with_places) them only then.

use std::fmt;
use std::marker::PhantomData;

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

/// A value and its place, if it was read with places.
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
    /// Reads a text, without places. Whatever it is, this ends soon and takes memory in
    /// proportion.
    pub(super) fn parse(text: &str) -> Result<Self, Problem> {
        Self::parse_as::<Bare>(text)
    }

    /// Reads a text, with places.
    pub(super) fn with_places(text: &str) -> Result<Self, Problem> {
        Self::parse_as::<Placed>(text)
    }

    fn parse_as<T: Branch>(text: &str) -> Result<Self, Problem> {
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
        let read = serde_saphyr::from_str_with_options(text, options).map(T::tree);
        read.map_err(|error| problem(&error))
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

/// A way to read a tree.
trait Branch: de::DeserializeOwned {
    type Key: de::DeserializeOwned;

    fn tree(self) -> Tree;

    fn key(key: Self::Key) -> (String, Option<Place>);
}

/// A tree that knows its places.
struct Placed(Spanned<Node<Self>>);

/// A tree that does not.
struct Bare(Node<Self>);

/// A value whose parts are read in the same way as itself.
struct Node<T>(Value, PhantomData<T>);

impl Branch for Placed {
    type Key = Spanned<String>;

    fn tree(self) -> Tree {
        Tree { place: place(self.0.referenced), value: self.0.value.0 }
    }

    fn key(key: Spanned<String>) -> (String, Option<Place>) {
        (key.value, place(key.referenced))
    }
}

impl Branch for Bare {
    type Key = String;

    fn tree(self) -> Tree {
        Tree { place: None, value: self.0.0 }
    }

    fn key(key: String) -> (String, Option<Place>) {
        (key, None)
    }
}

impl<'de> Deserialize<'de> for Placed {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Spanned::deserialize(deserializer).map(Self)
    }
}

impl<'de> Deserialize<'de> for Bare {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Node::deserialize(deserializer).map(Self)
    }
}

impl<'de, T: Branch> Deserialize<'de> for Node<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let value = deserializer.deserialize_any(ValueVisitor::<T>(PhantomData))?;
        Ok(Self(value, PhantomData))
    }
}

struct ValueVisitor<T>(PhantomData<T>);

impl<'de, T: Branch> Visitor<'de> for ValueVisitor<T> {
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
            let (key, place) = T::key(key);
            let value = map.next_value::<T>()?.tree();
            entries.push(Entry { key, place, value });
        }
        Ok(Value::Map(entries))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    impl Tree {
        /// It, as if it had been read without places.
        fn bare(self) -> Self {
            let value = match self.value {
                Value::List(items) => Value::List(items.into_iter().map(Self::bare).collect()),
                Value::Map(entries) => Value::Map(entries.into_iter().map(Entry::bare).collect()),
                value => value,
            };
            Self { place: None, value }
        }
    }

    impl Entry {
        fn bare(self) -> Self {
            Self { place: None, value: self.value.bare(), ..self }
        }
    }

    /// Reads a text in both ways, and says why it cannot be.
    fn reads_alike(text: &str) -> Result<(), Problem> {
        match (Tree::parse(text), Tree::with_places(text)) {
            (Ok(bare), Ok(placed)) => {
                assert!(placed.place.is_some(), "{text:?} has a place");
                assert_eq!(bare, placed.bare(), "{text:?}");
                Ok(())
            }
            (Err(wrong), Err(_)) => Err(wrong),
            (bare, placed) => panic!("{text:?}: {bare:?} and {placed:?}"),
        }
    }

    #[test]
    fn values_are_the_same_with_places_and_without() {
        for text in [
            "a: 1\nb: [-2, 1.5, ~, null, true, 'true', \"x\\ty\", 0x1f, 1e3, yes, 007]",
            "a: &x {k: v}\nb: *x\nc: [*x, *x]",
            "a: |\n  two\n  lines\nb: >-\n  one\n  line\n",
            "{\"a\": [1, {\"b\": null}], \"c\": \"d\"}",
            "1: one\ntrue: two",
            "a: !!str 1\nb: !!int '1'\nc: !own x",
            "a:\nb: ''\n? c\n: d",
        ] {
            assert_eq!(reads_alike(text), Ok(()), "{text:?} can be read");
        }
        for text in ["a: [1", "a: 1\na: 2", "a: *nobody", "--- 1\n--- 2", "a: .nan", "~: x"] {
            assert!(reads_alike(text).is_err(), "{text:?} cannot be read");
        }
    }

    proptest! {
        #[test]
        fn whatever_is_read_is_read_alike_in_both_ways(text in r#"([a-c&*!~:,'"\[\]{}0-9.\-|> ]|\n|: |- ){0,40}"#) {
            let _ = reads_alike(&text);
        }
    }
}
