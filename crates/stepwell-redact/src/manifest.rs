//! The values of a Kubernetes `Secret`: what its kind says makes them secret, wherever they stand in
//! the manifest.

use std::ops::Range;
use std::sync::LazyLock;

use regex::Regex;

/// The rule's name.
pub(super) const NAME: &str = "kubernetes-secret";

/// One of these is in each manifest of a secret, as YAML and as JSON, which may be a string of another text.
pub(super) const KEYWORDS: [&str; 7] = [
    "kind: secret",
    "kind: \"secret\"",
    "kind: 'secret'",
    "\"kind\":\"secret\"",
    "\"kind\": \"secret\"",
    "\\\"kind\\\":\\\"secret\\\"",
    "\\\"kind\\\": \\\"secret\\\"",
];

/// No keyword is longer.
const LONGEST_KEYWORD: usize = 24;

/// Does a text that begins with one of the keywords name the kind, and not a longer one?
pub(super) fn is_named(text: &str) -> bool {
    let front = &text[..text.floor_char_boundary(LONGEST_KEYWORD + 1)];
    let behind = front.find("Secret").map(|at| &text[at + "Secret".len()..]);
    behind.is_some_and(|rest| !rest.starts_with(|c: char| c.is_alphanumeric()))
}

/// Where the values are.
pub(super) fn values(text: &str) -> impl Iterator<Item = Range<usize>> {
    in_yaml(text).into_iter().chain(in_json(text))
}

fn in_yaml(text: &str) -> Vec<Range<usize>> {
    let mut values = Vec::new();
    // How far the `data:` is indented whose lines these are.
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

/// The lines of a text, whose ends may be escaped.
fn lines(text: &str) -> impl Iterator<Item = Range<usize>> {
    static END: LazyLock<Regex> = LazyLock::new(|| expression(r"\r?\n|(?:\\+r)?\\+n"));
    let ends =
        END.find_iter(text).map(|end| end.range()).chain(std::iter::once(text.len()..text.len()));
    ends.scan(0, |from, end| Some(std::mem::replace(from, end.end)..end.start))
}

/// How far a line is indented, and its words. What numbers it or marks it as added is neither.
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

/// Where the values of entries are that begin there.
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

/// The value of a line. One without a key goes on with the value of the line before.
fn value(words: &str) -> Option<Range<usize>> {
    let value = words.split_once(": ").map_or(words, |(_, value)| value);
    let value = value.trim().trim_matches(['"', '\'']);
    let is_value = !value.ends_with(':') && !matches!(value, "" | "|" | ">" | "|-" | ">-" | "null");
    let start = words.rfind(value).filter(|_| is_value)?;
    Some(start..start + value.len())
}

fn in_json(text: &str) -> Vec<Range<usize>> {
    /// The data, and its entries. A value that is JSON itself has escapes in it.
    static PLAIN: LazyLock<[Regex; 2]> = LazyLock::new(|| {
        [
            expression(r#""(?:data|stringData)"\s*:\s*\{((?:[^{}"]|"(?:[^"\\]|\\.)*")*)\}"#),
            expression(r#""[^"\\]*"\s*:\s*"((?:[^"\\]|\\.)+)""#),
        ]
    });
    /// The same in a text that is escaped.
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
