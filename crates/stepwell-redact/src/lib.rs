//! Redaction: secrets are taken out of what is about to be written, and the name of the rule
//! that recognised one stands in its place.
//!
//! This crate knows texts only. Which texts of an event are redacted, `stepwell` knows; it is a
//! crate of its own so that the rules can be tried, and measured, without anything else.

mod arguments;
mod candidates;
mod lines;
mod pieces;
mod rules;
#[cfg(test)]
mod taken_apart;

use std::borrow::Cow;
use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, LazyLock, OnceLock};

use regex::{Regex, RegexBuilder};

use self::candidates::{Candidates, Known, Piece, fold};
use self::pieces::PIECES;
use self::rules::{Around, RULES, Value, is_secret};

/// The name of the rule for values that were given, such as the keys in use.
const GIVEN: &str = "provider-key";

/// The name of the rule for values of variables whose names say that they are secret.
const ENVIRONMENT: &str = "environment";

/// A shorter value that was given is not looked for: a local server's key is often a plain
/// word such as `none`, which every text holds.
const MIN_GIVEN_BYTES: usize = 8;

/// A value of the environment this long is no word, whatever it is made of.
const LONG_ENVIRONMENT_BYTES: usize = 16;

/// Room for the compiled rules; more than they take, with keys of any usual length.
const COMPILED_BYTES: usize = 64 << 20;

/// Room for what a search learns of the rules while it reads. With the usual 2 MiB it has to begin
/// anew so often that it gives up and goes the slow way, ten times as long.
const SEARCH_BYTES: usize = 32 << 20;

/// Takes secrets out of texts. Its time grows with the text alone, whatever the text says.
/// Cloning is cheap. The rules are compiled when the first text comes.
#[derive(Clone)]
pub struct Redactor {
    shared: Arc<Shared>,
    taken: Arc<AtomicU64>,
}

struct Shared {
    /// The values that it was given, with the names of their rules.
    given: Vec<(String, &'static str)>,
    /// The rules with those values; unused if there are none.
    compiled: OnceLock<Compiled>,
}

struct Compiled {
    /// What every match holds; absent, a match may hold anything.
    candidates: Option<Candidates>,
    /// The rules, compiled when the first text comes that they can match in.
    pattern: OnceLock<Pattern>,
}

/// All rules in one expression: an alternative for each, with its group for the secret. A
/// placeholder is an alternative too, so that nothing is found in one.
struct Pattern {
    regex: Regex,
    /// The rule of each group, in order.
    groups: Vec<Group>,
}

/// What a group of the pattern stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Group {
    name: &'static str,
    value: Value,
}

/// A secret in a text.
struct Found {
    /// Where what was matched begins: the secret, or the words that make it one.
    start: usize,
    secret: std::ops::Range<usize>,
    /// Absent, it is a placeholder, and stays.
    rule: Option<&'static str>,
}

/// A match of the pattern.
struct Hit {
    start: usize,
    secret: std::ops::Range<usize>,
    group: Group,
}

/// The names that redaction leaves in place of secrets.
fn names() -> impl Iterator<Item = &'static str> {
    RULES.iter().map(|rule| rule.name).chain([GIVEN, ENVIRONMENT, lines::NAME])
}

impl fmt::Debug for Redactor {
    /// Without the values that were given.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Redactor").field("given", &self.shared.given.len()).finish_non_exhaustive()
    }
}

impl Default for Redactor {
    /// Knows the rules alone.
    fn default() -> Self {
        Self::new([])
    }
}

impl Redactor {
    /// Knows the rules, and these keys.
    #[must_use]
    pub fn new(keys: impl IntoIterator<Item = String>) -> Self {
        Self::with_environment(keys, [])
    }

    /// Knows the rules, these keys, and these values of the environment that are secret by
    /// their names, if they look it.
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
        // Of two that begin alike the longer one is tried first.
        given.sort_by(|(one, _), (other, _)| other.len().cmp(&one.len()).then(one.cmp(other)));
        given.dedup_by(|(later, _), (earlier, _)| later == earlier);
        let shared = Arc::new(Shared { given, compiled: OnceLock::new() });
        Self { shared, taken: Arc::default() }
    }

    /// The same rules and values with a count of its own, for texts that are only shown.
    #[must_use]
    pub fn with_own_count(&self) -> Self {
        Self { shared: Arc::clone(&self.shared), taken: Arc::default() }
    }

    /// How many texts it and its clones took a secret out of so far.
    #[must_use]
    pub fn taken(&self) -> u64 {
        self.taken.load(Ordering::Relaxed)
    }

    fn compiled(&self) -> &Compiled {
        /// The rules without any value that was given: one for all, because compiling takes long
        /// and a process may open many stores.
        static RULES_ALONE: LazyLock<Compiled> = LazyLock::new(|| Compiled::new(&[]));
        match self.shared.given.is_empty() {
            true => &RULES_ALONE,
            false => self.shared.compiled.get_or_init(|| Compiled::new(&self.shared.given)),
        }
    }

    /// The text with each secret replaced by `[redacted:rule]`. What stands around it stays,
    /// and what was redacted before is left as it is.
    #[must_use]
    pub fn redact<'a>(&self, text: &'a str) -> Cow<'a, str> {
        let redacted = match lines::redact(text) {
            Cow::Borrowed(text) => self.by_rules(text),
            Cow::Owned(text) => Cow::Owned(self.by_rules(&text).into_owned()),
        };
        if matches!(redacted, Cow::Owned(_)) {
            self.taken.fetch_add(1, Ordering::Relaxed);
        }
        redacted
    }

    fn by_rules<'a>(&self, text: &'a str) -> Cow<'a, str> {
        if !self.compiled().may_match(text) {
            return Cow::Borrowed(text);
        }
        let mut redacted = String::new();
        let (mut rest, mut changed) = (text, false);
        while let Some(found) = self.first(rest) {
            let (before, after) = (&rest[..found.secret.start], &rest[found.secret.end..]);
            match found.rule {
                None => redacted.push_str(&rest[..found.secret.end]),
                Some(rule) => {
                    // The words in front may hold another secret: a token as a user's name.
                    redacted.push_str(&before[..found.start]);
                    redacted.push_str(&self.by_rules(&before[found.start..]));
                    redacted.push_str("[redacted:");
                    redacted.push_str(rule);
                    redacted.push(']');
                    changed = true;
                }
            }
            // What follows is a text of its own: a secret that begins where another ends is
            // not hidden by it.
            rest = after;
        }
        if !changed {
            return Cow::Borrowed(text);
        }
        redacted.push_str(rest);
        Cow::Owned(redacted)
    }

    /// Does a text hold what redaction leaves behind?
    #[must_use]
    pub fn is_redacted(text: &str) -> bool {
        text.contains("[redacted:")
            && names().any(|name| text.contains(&format!("[redacted:{name}]")))
    }

    /// The rule by which a file's bytes hold a secret.
    #[must_use]
    pub fn holds_secret(&self, bytes: &[u8]) -> Option<&'static str> {
        let text = String::from_utf8_lossy(bytes);
        let mut rest = if self.compiled().may_match(&text) { text.as_ref() } else { "" };
        while let Some(found) = self.first(rest) {
            if found.rule.is_some() {
                return found.rule;
            }
            rest = &rest[found.secret.end..];
        }
        None
    }

    /// A JSON text without secrets, which stays JSON if it was: only strings change. Absent, it
    /// holds none.
    #[must_use]
    pub fn redact_json(&self, json: &str) -> Option<String> {
        arguments::redact(self, json)
    }

    /// The first secret or placeholder.
    fn first(&self, text: &str) -> Option<Found> {
        let mut at = 0;
        loop {
            let hit = self.next(text, at)?;
            if hit.group.value == Value::Placeholder {
                return Some(Found { start: hit.start, secret: hit.secret, rule: None });
            }
            let value = &text[hit.secret.clone()];
            let (before, after) = (&text[..hit.secret.start], &text[hit.secret.end..]);
            if is_secret(value, hit.group.value, Around { before, after }) {
                return Some(self.whole(text, &hit));
            }
            // The value may hold a secret, though it is none as a whole.
            at = hit.secret.start.max(text.ceil_char_boundary(hit.start + 1));
        }
    }

    /// The secret, up to the end of any other that begins in it: a value that ends at a
    /// space may be the first word of a private key.
    fn whole(&self, text: &str, hit: &Hit) -> Found {
        let (mut rule, mut secret) = (hit.group.name, hit.secret.clone());
        // One that is known by its shape would find itself at its start.
        let mut at = secret.start.max(text.ceil_char_boundary(hit.start + 1));
        while let Some(inner) = self.next(text, at).filter(|inner| inner.start < secret.end) {
            if inner.group.value == Value::Certain {
                // A shape says more than the words in front.
                if hit.start < inner.start && inner.secret.start == hit.secret.start {
                    rule = inner.group.name;
                }
                secret.end = secret.end.max(inner.secret.end);
            }
            at = match inner.group.value {
                Value::Quoted | Value::Bare | Value::Weak => inner.secret.start,
                Value::Certain | Value::Placeholder => inner.secret.end,
            };
        }
        Found { start: hit.start, secret, rule: Some(rule) }
    }

    /// The next match from a position on, whatever its value is worth.
    fn next(&self, text: &str, at: usize) -> Option<Hit> {
        // Most texts hold none, and this says so without keeping track of groups.
        let compiled = self.compiled();
        let Pattern { regex, groups } =
            compiled.pattern.get_or_init(|| Pattern::new(&self.shared.given));
        let at = regex.find_at(text, at)?.start();
        let captures = regex.captures_at(text, at)?;
        let start = captures.get(0)?.start();
        let mut groups = captures.iter().skip(1).zip(groups);
        let (secret, group) = groups.find_map(|(hit, group)| Some((hit?.range(), *group)))?;
        Some(Hit { start, secret, group })
    }
}

impl Pattern {
    fn new(given: &[(String, &'static str)]) -> Self {
        let (source, groups) = Self::source(given);
        let regex = RegexBuilder::new(&source)
            .size_limit(COMPILED_BYTES)
            .dfa_size_limit(SEARCH_BYTES)
            .build()
            .expect("every rule compiles, which the tests show, and values are escaped");
        debug_assert_eq!(regex.captures_len(), groups.len() + 1, "one group each");
        Self { regex, groups }
    }

    /// The expression, and the rule of each of its groups.
    fn source(given: &[(String, &'static str)]) -> (String, Vec<Group>) {
        // Only of names that redaction gives: in brackets of its kind a secret could hide.
        let names: Vec<_> = names().collect();
        let mut alternatives = vec![format!(r"(\[redacted:(?:{})\])", names.join("|"))];
        let mut groups = vec![Group { name: "", value: Value::Placeholder }];
        for (value, name) in given {
            alternatives.push(format!("({})", regex::escape(value)));
            groups.push(Group { name, value: Value::Certain });
        }
        for rule in RULES {
            alternatives.push(format!("(?:{})", rule.pattern));
            groups.extend(rule.values.iter().map(|value| Group { name: rule.name, value: *value }));
        }
        (alternatives.join("|"), groups)
    }
}

impl Compiled {
    fn new(given: &[(String, &'static str)]) -> Self {
        static KNOWN: Known = Known::of(PIECES);
        let given = given.iter().map(|(value, _)| value.bytes().map(|byte| fold(&byte)).collect());
        let given: Option<Vec<Piece>> = given.map(Piece::new).collect();
        let candidates = given.map(|given| Candidates::new(&KNOWN, given));
        Self { candidates, pattern: OnceLock::new() }
    }

    /// How far behind a quotation mark what every match holds can go on; absent, any distance.
    fn behind_quote(&self) -> Option<usize> {
        self.candidates.as_ref().map(|candidates| candidates.behind_quote)
    }

    /// Can a text hold a match? Nearly all say no, in a fraction of the time that a search takes.
    fn may_match(&self, text: &str) -> bool {
        self.candidates.as_ref().is_none_or(|candidates| candidates.are_in(text))
    }
}

/// Could a value be nothing but a secret? A variable such as `DB_PASSWORD` may hold a plain
/// word, which many texts hold too.
fn is_no_word(value: &str) -> bool {
    let has = |is: fn(&u8) -> bool| value.as_bytes().iter().any(is);
    let mixed = has(u8::is_ascii_digit) && has(u8::is_ascii_alphabetic);
    let long = value.len() >= LONG_ENVIRONMENT_BYTES;
    // A file that holds the secret is none.
    let file = value.starts_with(['/', '~', '.']);
    value.len() >= MIN_GIVEN_BYTES && (mixed || long) && !file
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use proptest::sample::select;
    use proptest::string::string_regex;

    use super::*;

    /// A key in use, so that the rules are compiled for it.
    const KEY: &str = "Ak7-local-4711";

    /// The same rules, with or without the first look at a text.
    fn redactor(looks_first: bool) -> Redactor {
        let redactor = Redactor::new([KEY.to_owned()]);
        let mut compiled = Compiled::new(&redactor.shared.given);
        assert!(compiled.candidates.is_some(), "the rules' pieces are long enough");
        compiled.candidates = compiled.candidates.filter(|_| looks_first);
        assert!(redactor.shared.compiled.set(compiled).is_ok());
        redactor
    }

    /// Texts that a rule matches, or nearly: cut off, or in other letters.
    fn secrets() -> impl Strategy<Value = String> {
        let patterns: Vec<String> =
            RULES.iter().map(|rule| rule.pattern.replace(r"(?-u:\b)", "")).collect();
        let matching = select(patterns).prop_flat_map(|rule| string_regex(&rule).unwrap());
        (matching, any::<prop::sample::Index>(), 0..4).prop_map(|(text, at, form)| match form {
            0 => text.chars().take(at.index(text.chars().count() + 1)).collect(),
            1 => text.to_uppercase(),
            _ => text,
        })
    }

    fn texts() -> impl Strategy<Value = String> {
        let words = [" ", "\n", "token", "the", "=", ": ", "\"", "[redacted:", "sk-", KEY, "Ak7-"];
        let part = prop_oneof![
            2 => secrets(),
            2 => select(words.to_vec()).prop_map(str::to_owned),
            1 => "\\PC{0,30}",
            1 => "[ -~\n]{0,60}",
        ];
        prop::collection::vec(part, 0..6).prop_map(|parts| parts.concat())
    }

    #[test]
    fn the_first_look_changes_nothing_that_is_found() {
        let (quick, slow) = (redactor(true), redactor(false));
        proptest!(ProptestConfig::with_cases(2_000), |(text in texts())| {
            prop_assert_eq!(quick.redact(&text), slow.redact(&text));
            prop_assert_eq!(
                quick.holds_secret(text.as_bytes()),
                slow.holds_secret(text.as_bytes())
            );
        });
        // And it does look: most of such texts hold something.
        assert!(slow.taken() > 500, "{}", slow.taken());
        assert_eq!(quick.taken(), slow.taken());
    }
}
