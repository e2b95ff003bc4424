//! Finds secrets in a text: one pass for the keywords of all rules, then a rule's expression at
//! each of its keywords.
//!
//! The time depends only on the length of the text. A rule is tried at most once at each keyword,
//! never inside a secret that it found, and a rule that reads a whole command reads it once.

use std::borrow::Cow;
use std::cmp::Reverse;
use std::collections::BTreeSet;
use std::ops::Range;
use std::sync::LazyLock;

use aho_corasick::{AhoCorasick, AhoCorasickKind};

use super::edge;
use super::judge::{Around, decoded, is_chance, is_secret};
use super::rules::{Before, Compiled, Reach, Value, is_telling, rules};
use super::{lines, manifest};

/// The beginning of every placeholder.
pub(super) const PLACEHOLDER: &str = "[redacted:";

/// A rule does not search again inside a longer value that it rejected: otherwise many values on
/// one long line would each be read to the end of the line.
const LONG_VALUE: usize = 1 << 10;

/// Characters that end a shell command.
const COMMAND_ENDS: [char; 4] = ['\n', '|', ';', '&'];

/// The result of a scan.
#[derive(Default)]
pub(super) struct Scan {
    hits: Vec<Hit>,
    /// Did any expression match, even if its value is not a secret?
    pub(super) matched: bool,
    /// How far each rule has read; empty until one is tried.
    read: Vec<usize>,
}

/// A secret or a placeholder that a rule found.
struct Hit {
    /// The start of the match: the secret, or the words in front of it.
    start: usize,
    secret: Range<usize>,
    value: Value,
    /// The rule's number. If two rules find the same secret, the lower number wins.
    order: usize,
    name: &'static str,
}

impl Hit {
    /// Of several hits at one place the first in this order names the secret: a shape beats the
    /// words in front, and longer words beat shorter ones.
    fn rank(&self) -> (usize, bool, Reverse<usize>, usize, usize) {
        let (sure, others) = match self.value.is_sure() {
            true => (self.start, 0),
            false => (0, self.start),
        };
        let is_placeholder = self.value == Value::Placeholder;
        let sure = if is_placeholder { usize::MAX } else { sure };
        (self.secret.start, !self.value.is_sure(), Reverse(sure), others, self.order)
    }
}

/// A part of a text to replace.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Span {
    pub(super) range: Range<usize>,
    pub(super) name: &'static str,
}

/// Configured secret values, such as the keys in use.
pub(super) struct Given {
    values: AhoCorasick,
    names: Vec<&'static str>,
}

impl Given {
    pub(super) fn new(given: &[(String, &'static str)]) -> Self {
        let values = AhoCorasick::new(given.iter().map(|(value, _)| value));
        let values = values.expect("a few values make a small automaton");
        Self { values, names: given.iter().map(|(_, name)| *name).collect() }
    }
}

/// The keywords of all rules, and their uses.
struct Keywords {
    automaton: AhoCorasick,
    uses: Vec<Use>,
}

/// The use of a keyword.
enum Use {
    Placeholder,
    Manifest,
    Rules(Vec<usize>),
}

static KEYWORDS: LazyLock<Keywords> = LazyLock::new(|| {
    let (mut texts, mut uses) = (vec![PLACEHOLDER], vec![Use::Placeholder]);
    texts.extend(manifest::KEYWORDS);
    uses.extend(manifest::KEYWORDS.map(|_| Use::Manifest));
    let special = texts.len();
    for (n, Compiled { keywords, .. }) in rules().iter().enumerate() {
        for keyword in keywords {
            let known = texts.iter().skip(special).position(|it| it.eq_ignore_ascii_case(keyword));
            match known.and_then(|known| uses.get_mut(special + known)) {
                Some(Use::Rules(rules)) => rules.push(n),
                _ => {
                    texts.push(keyword);
                    uses.push(Use::Rules(vec![n]));
                }
            }
        }
    }
    let automaton = AhoCorasick::builder()
        .ascii_case_insensitive(true)
        .kind(Some(AhoCorasickKind::ContiguousNFA))
        .build(texts)
        .expect("a few hundred short keywords make a small automaton");
    Keywords { automaton, uses }
});

/// Could a text contain a secret?
pub(super) fn may_match(text: &str, given: Option<&Given>) -> bool {
    KEYWORDS.automaton.is_match(text) || given.is_some_and(|given| given.values.is_match(text))
}

impl Scan {
    /// Scans a text.
    pub(super) fn of(text: &str, given: Option<&Given>) -> Self {
        let (mut scan, mut is_manifest) = (Self::default(), false);
        for found in KEYWORDS.automaton.find_overlapping_iter(text) {
            match &KEYWORDS.uses[found.pattern().as_usize()] {
                Use::Placeholder => scan.add_placeholder(text, found.start()),
                Use::Manifest => is_manifest |= manifest::is_named(&text[found.start()..]),
                Use::Rules(rules) => {
                    rules.iter().for_each(|rule| scan.look(text, *rule, found.range()));
                }
            }
        }
        if is_manifest {
            manifest::values(text).for_each(|value| scan.add_certain(value, manifest::NAME));
        }
        if let Some(given) = given {
            for found in given.values.find_overlapping_iter(text) {
                scan.add_certain(found.range(), given.names[found.pattern().as_usize()]);
            }
        }
        scan
    }

    /// Scans a text that may be a part of a file, with lines of a key.
    pub(super) fn with_lines(mut self, text: &str) -> Self {
        let found = lines::ranges(text).into_iter();
        found.for_each(|range| self.add_certain(range, lines::NAME));
        self
    }

    /// Did this rule find something?
    #[cfg(test)]
    pub(super) fn is_by(&self, rule: usize) -> bool {
        self.hits.iter().any(|hit| hit.order == rule + 1)
    }

    fn add_placeholder(&mut self, text: &str, start: usize) {
        let behind = &text[start + PLACEHOLDER.len()..];
        let longest = behind.floor_char_boundary(super::LONGEST_NAME + 1);
        let Some(len) = behind[..longest].find(']') else { return };
        // Brackets around any other text could hide a secret.
        let Some(name) = super::names().find(|name| *name == &behind[..len]) else { return };
        let secret = start..start + PLACEHOLDER.len() + len + 1;
        self.matched = true;
        self.hits.push(Hit { start, secret, value: Value::Placeholder, order: 0, name });
    }

    fn add_certain(&mut self, secret: Range<usize>, name: &'static str) {
        let hit = Hit { start: secret.start, secret, value: Value::Certain, order: 0, name };
        self.matched = true;
        self.hits.push(hit);
    }

    /// Tries a rule at one of its keywords, if the text in front allows it.
    fn look(&mut self, text: &str, rule: usize, keyword: Range<usize>) {
        let at = keyword.start;
        let (before, last) = (&text[..at], text.as_bytes()[..at].last());
        let attempt = Attempt { rule, start: at, keyword: keyword.len(), is_within: false };
        let attempt = match rules()[rule].rule.before {
            Before::Anything => Some(attempt),
            Before::Word => edge::is_word_start(before).then_some(attempt),
            Before::Prefix => {
                let is_within = !edge::is_word_start(before);
                // A hyphen joins words: `task-`.
                let is_joined = text[keyword].ends_with('-') && last != Some(&b'_');
                (!is_within || !is_joined).then_some(Attempt { is_within, ..attempt })
            }
            Before::Name => last.is_some_and(u8::is_ascii_alphanumeric).then_some(attempt),
            Before::Variable => {
                let is = |byte: &u8| byte.is_ascii_uppercase() || byte.is_ascii_digit();
                last.is_some_and(is).then_some(attempt)
            }
            Before::Parameter => edge::is_parameter_start(before).then_some(attempt),
            Before::Run(is) => {
                let read = self.read.get(rule).copied().unwrap_or(0).min(at);
                let run = before.as_bytes()[read..].iter().rev().take_while(|byte| is(**byte));
                let start = at - run.count();
                let behind = edge::run_start(before, start);
                if behind > start && self.finds(text, Attempt { start: behind, ..attempt }) {
                    return;
                }
                // An apparent escape may be the secret's own first letter.
                Some(Attempt { start, ..attempt })
            }
        };
        if let Some(attempt) = attempt {
            self.make(text, attempt);
        }
    }

    /// Tries a rule at a place. Returns whether it found something.
    fn finds(&mut self, text: &str, attempt: Attempt) -> bool {
        let rule = attempt.rule;
        let (found, read) = (self.hits.len(), self.read.get(rule).copied().unwrap_or(0));
        self.make(text, attempt);
        let finds = self.hits.len() > found;
        if !finds {
            self.read[rule] = read;
        }
        finds
    }

    /// Tries a rule at a place that it has not read yet.
    fn make(&mut self, text: &str, attempt: Attempt) {
        if self.read.is_empty() {
            self.read.resize(rules().len(), 0);
        }
        let read = &mut self.read[attempt.rule];
        if attempt.start < *read {
            return;
        }
        match attempt.outcome(text) {
            Outcome::No { read: end } => *read = end,
            // A rejected value may contain a secret. A long one is read only once.
            Outcome::Value(value) => {
                self.matched = true;
                let is_long = value.len() > LONG_VALUE;
                *read = if is_long { value.end } else { value.start };
            }
            Outcome::Secret(hit) => {
                self.matched = true;
                *read = hit.secret.end;
                self.hits.push(hit);
            }
        }
    }

    /// The parts of the text to replace, in order.
    pub(super) fn spans(mut self, text: &str) -> Vec<Span> {
        let mut tried = BTreeSet::new();
        loop {
            let (spans, found) = (self.merged(), self.hits.len());
            // A secret directly after another one counts as the beginning of a word.
            for end in spans.iter().map(|span| span.range.end) {
                if tried.insert(end) {
                    self.hits.extend(words_at(text, end));
                }
            }
            if self.hits.len() == found {
                return spans;
            }
        }
    }

    /// The hits without overlaps and placeholders.
    fn merged(&mut self) -> Vec<Span> {
        self.hits.sort_by_key(Hit::rank);
        let mut merged: Vec<(Range<usize>, Value, &'static str)> = Vec::new();
        // The start of the last value that only the words in front of it identify.
        let mut judged = None;
        for Hit { secret, value, name, .. } in &self.hits {
            if !value.is_sure() && judged.replace(secret.start) == Some(secret.start) {
                continue;
            }
            match merged.last_mut().filter(|(last, ..)| secret.start < last.end) {
                // An earlier placeholder stays, unless it is part of a larger secret.
                Some((last, Value::Placeholder, _)) if secret.end <= last.end => {}
                Some((last, known, named)) => {
                    if *known == Value::Placeholder {
                        (*known, *named) = (*value, name);
                    }
                    last.end = last.end.max(secret.end);
                }
                None => merged.push((secret.clone(), *value, name)),
            }
        }
        let secrets = merged.into_iter().filter(|(_, value, _)| *value != Value::Placeholder);
        secrets.map(|(range, _, name)| Span { range, name }).collect()
    }
}

/// The spans of several scans as one list, in order and without overlaps. The first of two
/// overlapping spans names them.
pub(super) fn joined(mut spans: Vec<Span>) -> Vec<Span> {
    spans.sort_by_key(|span| (span.range.start, Reverse(span.range.end)));
    let mut joined: Vec<Span> = Vec::new();
    for span in spans {
        match joined.last_mut().filter(|last| span.range.start < last.range.end) {
            Some(last) => last.range.end = last.range.end.max(span.range.end),
            None => joined.push(span),
        }
    }
    joined
}

/// A rule tried at a place.
#[derive(Clone, Copy)]
struct Attempt {
    rule: usize,
    start: usize,
    /// The length of the keyword there.
    keyword: usize,
    /// Is it inside a word?
    is_within: bool,
}

/// The outcome of an attempt.
enum Outcome {
    /// The rule does not match, here or anywhere up to this position.
    No {
        read: usize,
    },
    /// It matches, but the value is not a secret.
    Value(Range<usize>),
    Secret(Hit),
}

impl Attempt {
    fn outcome(self, text: &str) -> Outcome {
        let (compiled, rest) = (&rules()[self.rule], &text[self.start..]);
        let rule = compiled.rule;
        // If no flag follows the program, none follows in the rest of the command.
        let read = match rule.reach {
            Reach::Text => self.start,
            Reach::Command => self.start + rest.find(COMMAND_ENDS).unwrap_or(rest.len()),
        };
        // Most do not match, which is cheaper to find out without groups.
        let regex = compiled.regex();
        let captures = regex.is_match(rest).then(|| regex.captures(rest)).flatten();
        let Some(captures) = captures else {
            return self.cut_short(text).map_or(Outcome::No { read }, Outcome::Secret);
        };
        let mut groups = captures.iter().skip(1).zip(rule.values);
        let Some((group, value)) = groups.find_map(|(group, value)| Some((group?, *value))) else {
            return Outcome::No { read };
        };
        let secret = self.start + group.start()..self.start + group.end();
        let around = Around { before: &text[..secret.start], after: &text[secret.end..] };
        let found = &text[secret.clone()];
        let holds_one = || decoded(found).is_some_and(|it| !Scan::of(&it, None).hits.is_empty());
        let is_secret = is_secret(found, value, around)
            && (value != Value::Encoded || holds_one())
            && (!self.is_within || is_chance(&rest[self.keyword..group.end()]));
        match is_secret {
            true => Outcome::Secret(self.hit(secret, value)),
            false => Outcome::Value(secret),
        }
    }

    /// A truncated secret whose visible part looks random.
    fn cut_short(self, text: &str) -> Option<Hit> {
        let (before, rest) = text.split_at(self.start);
        let keyword = rest.get(..self.keyword)?;
        // In base64, a keyword of letters and digits may occur by chance.
        let is_plain = keyword.bytes().all(|byte| byte.is_ascii_alphanumeric());
        if self.is_within || !is_telling(keyword) || (is_plain && !edge::is_word_start(before)) {
            return None;
        }
        let len = rules()[self.rule].front(rest);
        let random = rest.get(self.keyword..len)?;
        is_chance(random).then(|| self.hit(self.start..self.start + len, Value::Certain))
    }

    fn hit(self, secret: Range<usize>, value: Value) -> Hit {
        let Self { rule, start, .. } = self;
        Hit { start, secret, value, order: rule + 1, name: rules()[rule].rule.name }
    }
}

/// The hits of the rules that need the beginning of a word, at a place where one certainly begins.
fn words_at(text: &str, start: usize) -> impl Iterator<Item = Hit> {
    let rest = &text.as_bytes()[start..];
    let begins = |keyword: &&Cow<'static, str>| {
        let front = rest.get(..keyword.len());
        front.is_some_and(|front| front.eq_ignore_ascii_case(keyword.as_bytes()))
    };
    let all = rules().iter().enumerate();
    all.filter_map(move |(rule, Compiled { rule: it, keywords, .. })| {
        let is_word = matches!(it.before, Before::Word | Before::Prefix);
        let keyword = keywords.iter().find(begins).filter(|_| is_word)?.len();
        match (Attempt { rule, start, keyword, is_within: false }).outcome(text) {
            Outcome::Secret(hit) => Some(hit),
            _ => None,
        }
    })
}
