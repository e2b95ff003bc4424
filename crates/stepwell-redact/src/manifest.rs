//! The values of a Kubernetes `Secret`: what its kind says makes them secret, wherever they stand in
//! the manifest.

use std::ops::Range;
use std::sync::LazyLock;

use regex::Regex;

/// The rule's name.
pub(super) const NAME: &str = "kubernetes-secret";

/// One of these is in each manifest of a secret, as YAML and as JSON, which may be a string of another text.
pub(super) const KEYWORDS: [&str; 6] = [
    "kind: secret",
    "kind: \"secret\"",
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
    let (mut values, mut at) = (Vec::new(), 0);
    // How far the `data:` is indented whose lines these are.
    let mut data: Option<usize> = None;
    for line in text.split_inclusive('\n') {
        let bare = line.trim_end();
        let words = bare.trim_start_matches([' ', '-']);
        let indent = bare.len() - words.len();
        if words == "data:" || words == "stringData:" {
            data = Some(indent);
        } else if !words.is_empty() && data.is_some_and(|data| indent <= data) {
            data = None;
        } else if data.is_some() {
            // A line without a key goes on with the value of the line before.
            let value = words.split_once(": ").map_or(words, |(_, value)| value);
            let value = value.trim().trim_matches(['"', '\'']);
            let is_value =
                !value.ends_with(':') && !matches!(value, "" | "|" | ">" | "|-" | ">-" | "null");
            if is_value && let Some(start) = bare.rfind(value) {
                values.push(at + start..at + start + value.len());
            }
        }
        at += line.len();
    }
    values
}

fn in_json(text: &str) -> Vec<Range<usize>> {
    static DATA: LazyLock<Regex> =
        LazyLock::new(|| expression(r#"\\*"(?:data|stringData)\\*"\s*:\s*\{([^{}]*)\}"#));
    static ENTRY: LazyLock<Regex> =
        LazyLock::new(|| expression(r#"\\*"[^"\\]*\\*"\s*:\s*\\*"([^"\\]+)"#));
    let mut values = Vec::new();
    for data in DATA.captures_iter(text).filter_map(|it| it.get(1)) {
        let entries = ENTRY.captures_iter(data.as_str()).filter_map(|it| it.get(1));
        values.extend(entries.map(|it| data.start() + it.start()..data.start() + it.end()));
    }
    values
}

fn expression(pattern: &str) -> Regex {
    Regex::new(pattern).expect("the expression is written above")
}
