//! Redaction: replaces secrets in texts, before they are written, by the name of the rule that
//! found them.
//!
//! This crate only knows texts; `stepwell` decides which texts of an event are redacted. It is a
//! separate crate so that the rules can be tested and measured alone.

mod arguments;
mod edge;
mod judge;
mod lines;
mod manifest;
mod plain;
mod rules;
mod scan;

use std::borrow::Cow;
use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

use self::plain::Plain;
use self::rules::rules;
use self::scan::{Given, PLACEHOLDER, Scan, Span};

/// The rule name of configured values, such as the API keys in use.
const GIVEN: &str = "provider-key";

/// The rule name of values of secret environment variables.
const ENVIRONMENT: &str = "environment";

/// Shorter configured values are ignored: a local server's key is often a plain word such as
/// `none`, which is in every text.
const MIN_GIVEN_BYTES: usize = 8;

/// An environment value of this length is never a plain word.
const LONG_ENVIRONMENT_BYTES: usize = 16;

/// The longest name of a rule.
const LONGEST_NAME: usize = 32;

/// Replaces secrets in texts. The time depends only on the length of the text. Cloning is cheap. A
/// rule is compiled when a text first contains one of its keywords.
#[derive(Clone)]
pub struct Redactor {
    shared: Arc<Shared>,
    taken: Arc<AtomicU64>,
}

struct Shared {
    /// The configured values, with the names of their rules.
    given: Vec<(String, &'static str)>,
    /// A search automaton for them, built at first use.
    compiled: OnceLock<Given>,
}

/// The names of all rules.
fn names() -> impl Iterator<Item = &'static str> {
    rules().iter().map(|it| it.rule.name).chain([GIVEN, ENVIRONMENT, lines::NAME, manifest::NAME])
}

impl fmt::Debug for Redactor {
    /// Leaves out the configured values.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Redactor").field("given", &self.shared.given.len()).finish_non_exhaustive()
    }
}

impl Default for Redactor {
    /// With the built-in rules only.
    fn default() -> Self {
        Self::new([])
    }
}

impl Redactor {
    /// With the built-in rules and these keys.
    #[must_use]
    pub fn new(keys: impl IntoIterator<Item = String>) -> Self {
        Self::with_environment(keys, [])
    }

    /// With the built-in rules, these keys, and the values of these secret environment variables
    /// that look like secrets.
    #[must_use]
    pub fn with_environment(
        keys: impl IntoIterator<Item = String>,
        environment: impl IntoIterator<Item = String>,
    ) -> Self {
        let keys = keys.into_iter().filter(|key| key.len() >= MIN_GIVEN_BYTES);
        let environment = environment.into_iter().filter(|value| is_no_word(value));
        let mut given: Vec<_> = keys
            .map(|key| (key, GIVEN))
            .chain(environment.map(|value| (value, ENVIRONMENT)))
            .collect();
        given.sort();
        given.dedup_by(|(later, _), (earlier, _)| later == earlier);
        let shared = Arc::new(Shared { given, compiled: OnceLock::new() });
        Self { shared, taken: Arc::default() }
    }

    /// The same rules and values with a separate counter, for texts that are only shown.
    #[must_use]
    pub fn with_own_count(&self) -> Self {
        Self { shared: Arc::clone(&self.shared), taken: Arc::default() }
    }

    /// How many texts with secrets it and its clones have redacted.
    #[must_use]
    pub fn taken(&self) -> u64 {
        self.taken.load(Ordering::Relaxed)
    }

    fn given(&self) -> Option<&Given> {
        let Shared { given, compiled } = &*self.shared;
        (!given.is_empty()).then(|| compiled.get_or_init(|| Given::new(given)))
    }

    fn scan(&self, text: &str) -> Scan {
        Scan::of(text, self.given())
    }

    /// The secrets of a text as written, and as a terminal shows it.
    fn spans(&self, text: &str, scan: impl Fn(&Self, &str) -> Scan) -> Vec<Span> {
        let mut spans = scan(self, text).spans(text);
        if let Some(plain) = Plain::of(text) {
            let shown = scan(self, &plain.text).spans(&plain.text).into_iter();
            spans.extend(shown.map(|it| Span { range: plain.origin(&it.range), ..it }));
            spans = scan::joined(spans);
        }
        spans
    }

    /// The secrets of a text that may be a part of a file.
    fn spans_of_part(&self, text: &str) -> Vec<Span> {
        self.spans(text, |it, text| it.scan(text).with_lines(text))
    }

    /// Replaces each secret by `[redacted:rule]`. Everything else stays, including earlier
    /// placeholders.
    #[must_use]
    pub fn redact<'a>(&self, text: &'a str) -> Cow<'a, str> {
        let spans = self.spans_of_part(text);
        if spans.is_empty() {
            return Cow::Borrowed(text);
        }
        self.taken.fetch_add(1, Ordering::Relaxed);
        Cow::Owned(replaced(text, 0, &spans))
    }

    /// Redacts consecutive texts. A secret that spans two of them is removed from both. `None` if
    /// there is no secret.
    #[must_use]
    pub fn redact_joined(&self, texts: &[impl AsRef<str>]) -> Option<Vec<String>> {
        let whole: String = texts.iter().map(AsRef::as_ref).collect();
        let (mut spans, mut at, mut starts) = (self.spans_of_part(&whole), 0, Vec::new());
        for text in texts.iter().map(AsRef::as_ref) {
            let alone = self.spans_of_part(text).into_iter();
            let moved = |it: Span| Span { range: at + it.range.start..at + it.range.end, ..it };
            spans.extend(alone.map(moved));
            starts.push(at);
            at += text.len();
        }
        let spans = scan::joined(spans);
        if spans.is_empty() {
            return None;
        }
        self.taken.fetch_add(1, Ordering::Relaxed);
        let texts = texts.iter().map(AsRef::as_ref).zip(starts);
        Some(texts.map(|(text, start)| replaced(text, start, &spans)).collect())
    }

    /// Does a text contain a placeholder?
    #[must_use]
    pub fn is_redacted(text: &str) -> bool {
        text.contains(PLACEHOLDER)
            && names().any(|name| text.contains(&format!("{PLACEHOLDER}{name}]")))
    }

    /// The rule by which the content of a file is a secret.
    #[must_use]
    pub fn holds_secret(&self, bytes: &[u8]) -> Option<&'static str> {
        let text = String::from_utf8_lossy(bytes);
        self.spans(&text, Self::scan).first().map(|span| span.name)
    }

    /// Redacts a JSON text, which stays valid JSON: only strings change. `None` if there is no
    /// secret.
    #[must_use]
    pub fn redact_json(&self, json: &str) -> Option<String> {
        arguments::redact(self, json)
    }
}

/// A text with placeholders for its secrets. `start` is its offset in the text in which the spans
/// were found. A colour that ends within a secret ends after it instead.
fn replaced(text: &str, start: usize, spans: &[Span]) -> String {
    let (mut redacted, mut at, end) = (String::with_capacity(text.len()), 0, start + text.len());
    let is_here = |span: &&Span| span.range.start < end && span.range.end > start;
    for Span { range, name } in spans.iter().filter(is_here) {
        let secret = range.start.max(start) - start..range.end.min(end) - start;
        redacted.push_str(&text[at..secret.start]);
        redacted.push_str(PLACEHOLDER);
        redacted.push_str(name);
        redacted.push(']');
        redacted.extend(plain::colours(&text[secret.clone()]));
        at = secret.end;
    }
    redacted.push_str(&text[at..]);
    redacted
}

/// Can this value only be a secret? A variable such as `DB_PASSWORD` may hold a plain word, which
/// many texts contain.
fn is_no_word(value: &str) -> bool {
    let has = |is: fn(&u8) -> bool| value.as_bytes().iter().any(is);
    let mixed = has(u8::is_ascii_digit) && has(u8::is_ascii_alphabetic);
    let long = value.len() >= LONG_ENVIRONMENT_BYTES;
    // A path to a file with the secret is not a secret.
    let file = value.starts_with(['/', '~', '.']);
    value.len() >= MIN_GIVEN_BYTES && (mixed || long) && !file
}

#[cfg(test)]
mod tests {
    mod examples;

    use proptest::prelude::*;
    use proptest::string::string_regex;

    use super::rules::{Before, Compiled, Value};
    use super::*;

    #[test]
    fn every_name_is_short_enough_to_be_recognised_later() {
        assert!(names().all(|name| name.len() <= LONGEST_NAME));
    }

    /// Texts that match a rule's expression.
    fn matching(pattern: &str) -> impl Strategy<Value = String> + use<> {
        string_regex(&pattern.replace(r"(?-u:\b)", "")).expect("proptest knows such expressions")
    }

    #[test]
    fn every_rule_is_tried_wherever_its_expression_matches() {
        // The expression for encoded secrets accepts anything after its keywords.
        let is_whole = |it: &&Compiled| it.rule.values != [Value::Encoded];
        for Compiled { rule, .. } in rules().iter().filter(is_whole) {
            let before = match rule.before {
                Before::Name | Before::Variable => "A",
                Before::Parameter => "?",
                Before::Anything | Before::Word | Before::Prefix | Before::Run(_) => "",
            };
            proptest!(ProptestConfig::with_cases(64), |(text in matching(rule.pattern))| {
                let text = format!("{before}{text}");
                prop_assert!(Redactor::default().scan(&text).matched, "{}: {text:?}", rule.name);
            });
        }
    }
}
