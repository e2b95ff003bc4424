//! Answers of limited size: long texts are cut, and full pages end.
//!
//! Secrets are removed before a text is cut, so that no half of one is left.

use std::borrow::Cow;
use std::marker::PhantomData;

use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::{Serialize, Serializer};
use serde_json::Value;
use stepwell::log::Redactor;

use crate::error::Result;

/// The most bytes of JSON for the items of one answer. About 8,000 tokens: clients warn their users
/// above 10,000.
pub(crate) const PAGE_BYTES: usize = 32 << 10;

/// The most characters of a text in an answer about that text.
pub(crate) const TEXT_CHARS: usize = 16_000;

/// Increasing cuts: the characters of a text and the entries of a list that are kept. The first cut
/// that makes an item fit is used.
const CUTS: [Cuts; 4] = [
    Cuts { chars: 4_000, entries: 500 },
    Cuts { chars: 1_000, entries: 100 },
    Cuts { chars: 200, entries: 30 },
    // Ids and digests are never cut.
    Cuts { chars: 140, entries: 8 },
];

#[derive(Clone, Copy, Debug)]
struct Cuts {
    chars: usize,
    entries: usize,
}

/// An item of an answer with long texts cut. It has the form of a `T`.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Shortened<T> {
    value: Value,
    left_out: Vec<LeftOut>,
    form: PhantomData<fn() -> T>,
}

/// Entries of a list that did not fit. `read_event` returns an event with all of its entries.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub(crate) struct LeftOut {
    /// The list, as a JSON pointer into this answer.
    at: String,
    /// How many of its last entries are missing.
    entries: usize,
}

impl LeftOut {
    fn below(&self, at: &str) -> Self {
        Self { at: format!("{at}{}", self.at), entries: self.entries }
    }
}

impl<T: Serialize> Shortened<T> {
    /// An item without secrets, of at most this many bytes.
    pub(crate) fn to(item: &T, bytes: usize, redactor: &Redactor) -> Result<Self> {
        let json = serde_json::to_string(item)?;
        let json = redactor.redact_json(&json).unwrap_or(json);
        let whole: Value = serde_json::from_str(&json)?;
        let (mut value, mut left_out) = (whole.clone(), Vec::new());
        for cuts in CUTS {
            left_out.clear();
            value = cuts.of(&whole, &mut Pointer::default(), &mut left_out);
            if value.to_string().len() <= bytes {
                break;
            }
        }
        Ok(Self { value, left_out, form: PhantomData })
    }

    /// The omitted entries of an item at this place of an answer.
    pub(crate) fn left_out(&self, at: &str) -> Vec<LeftOut> {
        self.left_out.iter().map(|it| it.below(at)).collect()
    }
}

impl<T> Serialize for Shortened<T> {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        self.value.serialize(to)
    }
}

impl<T: JsonSchema> JsonSchema for Shortened<T> {
    fn schema_name() -> Cow<'static, str> {
        T::schema_name()
    }

    fn schema_id() -> Cow<'static, str> {
        T::schema_id()
    }

    fn inline_schema() -> bool {
        T::inline_schema()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        T::json_schema(generator)
    }
}

/// The current position in an item.
#[derive(Debug, Default)]
struct Pointer(String);

impl Pointer {
    /// Runs `work` one level deeper.
    fn within<T>(&mut self, step: &str, work: impl FnOnce(&mut Self) -> T) -> T {
        let length = self.0.len();
        self.0.push('/');
        self.0.push_str(&step.replace('~', "~0").replace('/', "~1"));
        let done = work(self);
        self.0.truncate(length);
        done
    }

    /// Notes the omitted entries of a list.
    fn note(&self, all: usize, kept: usize, left_out: &mut Vec<LeftOut>) {
        if all > kept {
            left_out.push(LeftOut { at: self.0.clone(), entries: all - kept });
        }
    }
}

impl Cuts {
    fn of(self, value: &Value, at: &mut Pointer, left_out: &mut Vec<LeftOut>) -> Value {
        match value {
            Value::String(text) => Value::String(cut(text, self.chars)),
            Value::Array(entries) => {
                at.note(entries.len(), self.entries, left_out);
                let kept = entries.iter().take(self.entries).enumerate();
                kept.map(|(n, it)| at.within(&n.to_string(), |at| self.of(it, at, left_out)))
                    .collect()
            }
            // None of our own types has as many fields, so these are a user's own keys.
            Value::Object(fields) => {
                let most = self.entries.max(60);
                at.note(fields.len(), most, left_out);
                let kept = fields.iter().take(most);
                kept.map(|(key, it)| (key.clone(), at.within(key, |at| self.of(it, at, left_out))))
                    .collect()
            }
            other => other.clone(),
        }
    }
}

/// The beginning of a text, and the number of characters that follow.
fn cut(text: &str, chars: usize) -> String {
    match text.char_indices().nth(chars) {
        None => text.to_owned(),
        Some((end, _)) => {
            let more = text[end..].chars().count();
            format!("{} […{more} more characters]", &text[..end])
        }
    }
}

/// A page of items that is being filled.
#[derive(Debug)]
pub(crate) struct Page<'a, T> {
    redactor: &'a Redactor,
    most: usize,
    left: usize,
    items: Vec<Shortened<T>>,
}

impl<'a, T: Serialize> Page<'a, T> {
    /// An empty page for at most this many items.
    pub(crate) fn new(redactor: &'a Redactor, most: usize) -> Self {
        Self { redactor, most, left: PAGE_BYTES, items: Vec::new() }
    }

    /// Is the page full?
    pub(crate) fn is_full(&self) -> bool {
        self.items.len() >= self.most
    }

    /// Adds an item. Returns false if it belongs on the next page. The first item is always added,
    /// so that paging ends.
    pub(crate) fn push(&mut self, item: &T) -> Result<bool> {
        if self.is_full() {
            return Ok(false);
        }
        let item = Shortened::to(item, PAGE_BYTES / 2, self.redactor)?;
        let bytes = item.value.to_string().len();
        if bytes > self.left && !self.items.is_empty() {
            return Ok(false);
        }
        self.left = self.left.saturating_sub(bytes);
        self.items.push(item);
        Ok(true)
    }

    /// The omitted entries of its items, which are in this list of an answer.
    pub(crate) fn left_out(&self, list: &str) -> Vec<LeftOut> {
        let items = self.items.iter().enumerate();
        items.flat_map(|(n, item)| item.left_out(&format!("/{list}/{n}"))).collect()
    }

    /// Its items.
    pub(crate) fn into_items(self) -> Vec<Shortened<T>> {
        self.items
    }
}

/// A part of a long text.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub(crate) struct Stretch {
    /// The text from `offset` on.
    pub(crate) text: String,
    /// Its offset, in characters.
    pub(crate) offset: usize,
    /// The length of the whole text, in characters.
    pub(crate) total: usize,
    /// The offset of the next part; absent, if this is the last one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) next: Option<usize>,
}

impl Stretch {
    /// A part of a text, without secrets.
    pub(crate) fn of(text: &str, offset: usize, redactor: &Redactor) -> Self {
        let text = redactor.redact(text);
        let total = text.chars().count();
        let stretch: String = text.chars().skip(offset).take(TEXT_CHARS).collect();
        let end = offset.saturating_add(TEXT_CHARS);
        Self { text: stretch, offset, total, next: (end < total).then_some(end) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_ends_when_it_is_full_and_always_takes_the_first_item() {
        let redactor = Redactor::default();
        let mut page: Page<'_, String> = Page::new(&redactor, 1_000);
        let huge = "word ".repeat(1 << 16);
        assert!(page.push(&huge).unwrap());
        let mut taken = 1;
        while page.push(&huge).unwrap() {
            taken += 1;
        }
        assert!((2..20).contains(&taken), "{taken}");
        let whole = serde_json::to_string(&page.into_items()).unwrap();
        assert!(whole.len() <= PAGE_BYTES + 1_000, "{}", whole.len());
    }

    #[test]
    fn an_item_of_many_small_parts_is_cut_as_well() {
        let redactor = Redactor::default();
        let many: Vec<String> = (0..100_000).map(|n| format!("part {n}")).collect();
        let cut = Shortened::to(&many, 1_000, &redactor).unwrap();
        assert!(cut.value.to_string().len() <= 1_000);
        let kept = cut.value.as_array().unwrap().len();
        let left_out = LeftOut { at: "/events/3".to_owned(), entries: 100_000 - kept };
        assert_eq!(cut.left_out("/events/3"), [left_out]);
    }

    #[test]
    fn a_secret_is_taken_out_before_a_text_is_cut_in_two() {
        let redactor = Redactor::default();
        let secret = format!("ghp_{}", "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8");
        let text = format!("{} {secret} end", "x".repeat(TEXT_CHARS - 20));
        let first = Stretch::of(&text, 0, &redactor);
        let second = Stretch::of(&text, first.next.unwrap(), &redactor);
        let both = first.text + &second.text;
        assert!(!both.contains("ghp_a1B2"), "{both}");
        assert!(both.ends_with("end"));
    }
}
