//! JSON as text: made compact, laid out as Python does it, and with parts of it exchanged,
//! without a look at what its numbers and its unknown parts say.
//!
//! Nothing here climbs down into nested values by calling itself without a bound, so that
//! text of any depth is passed over and stays what it was.

use std::borrow::Cow;
use std::collections::BTreeMap;

use crate::json::fields::{Fields, elements, push_field, quoted};
use crate::json::json_scan::text_end;

/// How deep parts are exchanged. No system's own parts lie deeper.
const MAX_DEPTH: usize = 16;

/// The letters that a file is written in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Letters {
    /// All of them.
    All,
    /// ASCII; the others as `\u` and a number.
    Ascii,
}

/// A piece of JSON text.
enum Piece<'a> {
    /// A string with its quotes.
    Text(&'a str),
    /// A brace, a bracket, a comma or a colon.
    Mark(char),
    /// A number, or a word.
    Word(&'a str),
}

/// The pieces of a JSON text that is known to be one.
fn pieces(raw: &str) -> impl Iterator<Item = Piece<'_>> {
    let mut rest = raw;
    std::iter::from_fn(move || {
        rest = rest.trim_start();
        let first = rest.chars().next()?;
        let end = match first {
            '"' => text_end(rest.as_bytes(), 0),
            '{' | '}' | '[' | ']' | ',' | ':' => 1,
            _ => rest
                .find(|c: char| c.is_whitespace() || "{}[],:\"".contains(c))
                .unwrap_or(rest.len()),
        };
        let (piece, behind) = rest.split_at(end.max(first.len_utf8()));
        rest = behind;
        Some(match first {
            '"' => Piece::Text(piece),
            '{' | '}' | '[' | ']' | ',' | ':' => Piece::Mark(first),
            _ => Piece::Word(piece),
        })
    })
}

/// A string as it is always written; one that is no text, such as half of a pair of
/// surrogates, stays as it is.
fn plain(text: &str) -> Cow<'_, str> {
    match text.contains('\\') {
        false => Cow::Borrowed(text),
        true => match serde_json::from_str::<String>(text) {
            Ok(text) => Cow::Owned(quoted(&text)),
            Err(_) => Cow::Borrowed(text),
        },
    }
}

/// The same JSON in one form, however it was laid out and escaped.
pub(crate) fn compact(raw: &str) -> String {
    let mut text = String::with_capacity(raw.len());
    for piece in pieces(raw) {
        match piece {
            Piece::Text(it) => text.push_str(&plain(it)),
            Piece::Mark(it) => text.push(it),
            Piece::Word(it) => text.push_str(it),
        }
    }
    text
}

/// The same JSON as Python's `json.dumps` lays it out with an indent of 2.
pub(crate) fn laid_out(raw: &str, letters: Letters) -> String {
    let mut text = String::with_capacity(raw.len() + raw.len() / 4);
    let mut depth = 0_usize;
    let mut is_empty = false;
    for piece in pieces(raw) {
        if let Piece::Mark(close @ ('}' | ']')) = piece {
            depth = depth.saturating_sub(1);
            if !is_empty {
                new_line(&mut text, depth);
            }
            text.push(close);
            is_empty = false;
            continue;
        }
        if is_empty {
            new_line(&mut text, depth);
        }
        is_empty = false;
        match piece {
            Piece::Text(it) => push_text(&mut text, &plain(it), letters),
            Piece::Word(it) => text.push_str(it),
            Piece::Mark(',') => {
                text.push(',');
                new_line(&mut text, depth);
            }
            Piece::Mark(':') => text.push_str(": "),
            Piece::Mark(open) => {
                text.push(open);
                depth += 1;
                is_empty = true;
            }
        }
    }
    text
}

/// The deepest indent. What nests deeper is laid out as if it did not, so that a text of
/// nothing but brackets does not become one of nothing but spaces.
const MAX_INDENT: usize = 64;

fn new_line(text: &mut String, depth: usize) {
    text.push('\n');
    text.extend(std::iter::repeat_n("  ", depth.min(MAX_INDENT)));
}

fn push_text(text: &mut String, string: &str, letters: Letters) {
    if letters == Letters::All {
        text.push_str(string);
        return;
    }
    let mut units = [0; 2];
    for c in string.chars() {
        match c {
            ' '..='~' => text.push(c),
            _ => c.encode_utf16(&mut units).iter().for_each(|unit| {
                text.push_str(&format!("\\u{unit:04x}"));
            }),
        }
    }
}

/// What stands in the place of parts of a JSON text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Swap {
    /// This text, in place of the whole.
    With(String),
    /// Other things in its fields, or at its places if it is a list.
    Inside(BTreeMap<String, Swap>),
}

impl Default for Swap {
    fn default() -> Self {
        Self::Inside(BTreeMap::new())
    }
}

impl Swap {
    /// Puts a text at the end of a path.
    pub(crate) fn put(&mut self, path: &[String], raw: String) {
        match (path.split_first(), self) {
            (None, it) => *it = Self::With(raw),
            (Some((first, rest)), Self::Inside(fields)) => {
                fields.entry(first.clone()).or_default().put(rest, raw);
            }
            // What is exchanged as a whole has no inside any more.
            (Some(_), Self::With(_)) => {}
        }
    }

    /// Makes the exchange. What is not there is not exchanged.
    pub(crate) fn apply(&self, raw: &str) -> String {
        self.at(raw, 0).unwrap_or_else(|| raw.to_owned())
    }

    fn at(&self, raw: &str, depth: usize) -> Option<String> {
        let fields = match self {
            Self::With(text) => return Some(text.clone()),
            Self::Inside(fields) if depth < MAX_DEPTH && !fields.is_empty() => fields,
            Self::Inside(_) => return None,
        };
        if raw.trim_start().starts_with('[') {
            let mut list = String::from("[");
            for (n, raw) in elements(raw).ok()?.into_iter().enumerate() {
                if n > 0 {
                    list.push(',');
                }
                let swapped = fields.get(&n.to_string()).and_then(|it| it.at(raw, depth + 1));
                list.push_str(swapped.as_deref().unwrap_or(raw));
            }
            list.push(']');
            return Some(list);
        }
        let mut object = String::from("{");
        for (name, raw) in Fields::parse(raw).ok()?.each() {
            let swapped = fields.get(name).and_then(|it| it.at(raw, depth + 1));
            push_field(&mut object, name, swapped.as_deref().unwrap_or(raw));
        }
        object.push('}');
        Some(object)
    }
}

/// The value of a JSON text, if it nests no deeper than what an event can hold.
pub(crate) fn value(raw: &str) -> Option<serde_json::Value> {
    // An event holds it some levels down, and is read as deep as this and no deeper.
    let inside = format!("[[[[[[{raw}]]]]]]");
    let mut value: serde_json::Value = serde_json::from_str(&inside).ok()?;
    for _ in 0..6 {
        value = value.get_mut(0)?.take();
    }
    Some(value)
}

/// `old` with everything that `new` says: fields of objects and elements of lists are laid
/// over each other, and what only `old` has stays.
pub(crate) fn overlaid(old: &str, new: &str) -> String {
    overlay(old, new, 0).unwrap_or_else(|| new.to_owned())
}

fn overlay(old: &str, new: &str, depth: usize) -> Option<String> {
    if depth >= MAX_DEPTH {
        return None;
    }
    let lay = |old: &str, new: &str| overlay(old, new, depth + 1).unwrap_or_else(|| new.to_owned());
    if let (Ok(old), Ok(new)) = (elements(old), elements(new)) {
        let laid = new.iter().enumerate().map(|(n, new)| match old.get(n) {
            Some(old) => lay(old, new),
            None => (*new).to_owned(),
        });
        return Some(format!("[{}]", laid.collect::<Vec<_>>().join(",")));
    }
    let (old, new) = (Fields::parse(old).ok()?, Fields::parse(new).ok()?);
    let mut fresh: BTreeMap<&str, &str> = new.each().collect();
    let mut object = String::from("{");
    for (name, raw) in old.each() {
        match fresh.remove(name) {
            Some(new) => push_field(&mut object, name, &lay(raw, new)),
            None => push_field(&mut object, name, raw),
        }
    }
    for (name, raw) in new.each().filter(|(name, _)| fresh.contains_key(name)) {
        push_field(&mut object, name, raw);
    }
    object.push('}');
    Some(object)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn path(text: &str) -> Vec<String> {
        text.split('.').map(str::to_owned).collect()
    }

    #[test]
    fn text_is_laid_out_as_python_does() {
        let raw = r#"{"a":[1,2.50,{}],"b":{},"c":[],"d":"é\n\u007f😀","e":null}"#;
        let ascii = "{\n  \"a\": [\n    1,\n    2.50,\n    {}\n  ],\n  \"b\": {},\n  \"c\": [],\n  \
                     \"d\": \"\\u00e9\\n\\u007f\\ud83d\\ude00\",\n  \"e\": null\n}";
        assert_eq!(laid_out(raw, Letters::Ascii), ascii);
        assert_eq!(compact(ascii), compact(raw));
        assert!(laid_out(raw, Letters::All).contains("é\\n\u{7f}😀"));
    }

    #[test]
    fn what_is_no_text_and_what_is_no_number_here_stays() {
        let raw = r#"{"s":"\ud800","n":123456789012345678901234567890,"f":1.0E+2}"#;
        assert_eq!(compact(&laid_out(raw, Letters::Ascii)), raw);
    }

    #[test]
    fn parts_are_exchanged_and_laid_over_each_other() {
        let mut swap = Swap::default();
        swap.put(&path("a.1.r"), "7".to_owned());
        swap.put(&path("z"), "8".to_owned());
        assert_eq!(
            swap.apply(r#"{"a":[{"r":1},{"r":2,"x":1}],"b":1}"#),
            r#"{"a":[{"r":1},{"r":7,"x":1}],"b":1}"#
        );
        assert_eq!(
            overlaid(r#"{"a":[{"r":1,"x":2}],"u":3}"#, r#"{"a":[{"r":5},{"r":6}],"n":1}"#),
            r#"{"a":[{"r":5,"x":2},{"r":6}],"u":3,"n":1}"#
        );
    }

    #[test]
    fn ten_thousand_levels_are_laid_out_in_bounds() {
        let deep = format!("{{\"a\":{}{}}}", "[".repeat(10_000), "]".repeat(10_000));
        let laid = laid_out(&deep, Letters::All);
        assert!(laid.len() < 20_000 * 2 * (2 * MAX_INDENT + 2));
        assert_eq!(compact(&laid), deep);
    }
}
