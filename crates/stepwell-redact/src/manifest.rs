//! Finds the values of a Kubernetes `Secret`: its kind makes them secret, wherever they are in the
//! manifest.

use std::ops::Range;
use std::sync::LazyLock;

use regex::Regex;

pub(super) const NAME: &str = "kubernetes-secret";

/// Every manifest of a secret contains one of these, as YAML or as JSON, possibly inside a string.
pub(super) const KEYWORDS: [&str; 7] = [
    "kind: secret",
    "kind: \"secret\"",
    "kind: 'secret'",
    "\"kind\":\"secret\"",
    "\"kind\": \"secret\"",
    "\\\"kind\\\":\\\"secret\\\"",
    "\\\"kind\\\": \\\"secret\\\"",
];

/// The longest keyword.
const LONGEST_KEYWORD: usize = 24;

/// Does the text, which begins with a keyword, name exactly this kind?
pub(super) fn is_named(text: &str) -> bool {
    let front = &text[..text.floor_char_boundary(LONGEST_KEYWORD + 1)];
    let behind = front.find("Secret").map(|at| &text[at + "Secret".len()..]);
    behind.is_some_and(|rest| !rest.starts_with(|c: char| c.is_alphanumeric()))
}

/// The ranges of the values.
pub(super) fn values(text: &str) -> impl Iterator<Item = Range<usize>> {
    in_yaml(text).into_iter().chain(in_json(text))
}

fn in_yaml(text: &str) -> Vec<Range<usize>> {
    let mut values = Vec::new();
    // The indentation of the current `data:`.
    let mut data: Option<usize> = None;
    for line in lines(text) {
        let (indent, words) = indented(&text[line.clone()]);
        let start = line.end - words.len();
        let words = words.trim_end();
        if let Some(entries) = entries(words) {
            values.extend(ranges_of_values(entries, start + words.len() - entries.len()));
        } else if words == "data:" || words == "stringData:" {
            data = Some(indent);
        } else if !words.is_empty() && data.is_some_and(|data| indent <= data) {
            data = None;
        } else if data.is_some() {
            values.extend(value(words).map(|it| start + it.start..start + it.end));
        }
    }
    values
}

/// The lines of a text, with plain or escaped ends.
fn lines(text: &str) -> impl Iterator<Item = Range<usize>> {
    static END: LazyLock<Regex> = LazyLock::new(|| expression(r"\r?\n|(?:\\+r)?\\+n"));
    let ends =
        END.find_iter(text).map(|end| end.range()).chain(std::iter::once(text.len()..text.len()));
    ends.scan(0, |from, end| Some(std::mem::replace(from, end.end)..end.start))
}

/// The indentation of a line, and its text, both without line numbers and diff marks.
fn indented(line: &str) -> (usize, &str) {
    let front = line.trim_start();
    let behind = front.trim_start_matches(|c: char| c.is_ascii_digit());
    let is_numbered = behind.len() < front.len() && behind.starts_with(['\t', '→', '|', '│']);
    let line = match is_numbered {
        true => behind.trim_start_matches(['\t', '→', '|', '│']),
        false => line.trim_start_matches(['+', '>', '|']),
    };
    let words = line.trim_start_matches([' ', '-']);
    (line.len() - words.len(), words)
}

/// The entries of `data: {key: value}`.
fn entries(words: &str) -> Option<&str> {
    let behind = words.strip_prefix("data:").or_else(|| words.strip_prefix("stringData:"))?;
    behind.trim_start().strip_prefix('{')
}

/// The ranges of the values in these entries.
fn ranges_of_values(entries: &str, start: usize) -> impl Iterator<Item = Range<usize>> {
    let parts = entries.split([',', '}']).scan(start, |at, part| {
        let start = *at;
        *at += part.len() + 1;
        Some((start, part))
    });
    parts.filter_map(|(start, part)| {
        let (key, _) = part.split_once(':')?;
        value(&part[key.len()..]).map(|it| start + key.len() + it.start..start + key.len() + it.end)
    })
}

/// The value of a line. A line without a key continues the value of the line before.
fn value(words: &str) -> Option<Range<usize>> {
    let value = words.split_once(": ").map_or(words, |(_, value)| value);
    let value = value.trim().trim_matches(['"', '\'']);
    let is_value = !value.ends_with(':') && !matches!(value, "" | "|" | ">" | "|-" | ">-" | "null");
    let start = words.rfind(value).filter(|_| is_value)?;
    Some(start..start + value.len())
}

fn in_json(text: &str) -> Vec<Range<usize>> {
    /// The data and its entries. A value that is JSON itself contains escapes.
    static PLAIN: LazyLock<[Regex; 2]> = LazyLock::new(|| {
        [
            expression(r#""(?:data|stringData)"\s*:\s*\{((?:[^{}"]|"(?:[^"\\]|\\.)*")*)\}"#),
            expression(r#""[^"\\]*"\s*:\s*"((?:[^"\\]|\\.)+)""#),
        ]
    });
    /// The same in an escaped text.
    static ESCAPED: LazyLock<[Regex; 2]> = LazyLock::new(|| {
        [
            expression(r#"\\+"(?:data|stringData)\\+"\s*:\s*\{([^{}]*)\}"#),
            expression(r#"\\+"[^"\\]*\\+"\s*:\s*\\+"([^"\\]+)"#),
        ]
    });
    let mut values = Vec::new();
    for [data, entry] in [&*PLAIN, &*ESCAPED] {
        for data in data.captures_iter(text).filter_map(|it| it.get(1)) {
            let entries = entry.captures_iter(data.as_str()).filter_map(|it| it.get(1));
            values.extend(entries.map(|it| data.start() + it.start()..data.start() + it.end()));
        }
    }
    values
}

fn expression(pattern: &str) -> Regex {
    Regex::new(pattern).expect("the expression is written above")
}
