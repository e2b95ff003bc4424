//! The rules: how secrets look.
//!
//! A rule has keywords and an expression. The expression is only tried at a keyword, so a text
//! without keywords costs a single search. No expression looks at the text after the secret, so
//! truncated texts are covered, too.

mod shapes;
mod words;

use std::borrow::Cow;
use std::sync::{LazyLock, OnceLock};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD_NO_PAD;
use parking_lot::Mutex;
use regex::{Regex, RegexBuilder};
use regex_automata::hybrid::dfa::{Cache, DFA};
use regex_automata::{Anchored, Input};

/// The size limit of a compiled rule. The largest needs a tenth of it.
const COMPILED_BYTES: usize = 16 << 20;

/// A kind of secret.
pub(super) struct Rule {
    /// Its name, which appears in the placeholder.
    pub(super) name: &'static str,
    /// Every match begins with one of these, in any case, or with its base64 form. The expression
    /// checks the case.
    pub(super) keywords: &'static [&'static str],
    /// The required text before the keyword.
    pub(super) before: Before,
    /// How far a match can extend.
    pub(super) reach: Reach,
    /// The expression, with a group around each possible place of the secret.
    pub(super) pattern: &'static str,
    /// The kind of each group, in order.
    pub(super) values: &'static [Value],
}

/// The required text before a keyword. It is checked in code, because the expressions cannot look
/// back.
#[derive(Clone, Copy)]
pub(super) enum Before {
    /// Anything.
    Anything,
    /// The keyword begins a word.
    Word,
    /// The same, or the keyword is inside a word and random text follows.
    Prefix,
    /// A letter or digit: the keyword ends a name, as in `db_pass`.
    Name,
    /// A capital or digit: the keyword ends a variable's name, as in `GITHUB_TOKEN`.
    Variable,
    /// The keyword is a URL parameter.
    Parameter,
    /// Any number of such bytes, which belong to the match.
    Run(fn(u8) -> bool),
}

/// How far a match can extend.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Reach {
    /// To the end of the text.
    Text,
    /// The flag is in the same shell command as the keyword, which is the program.
    Command,
}

/// How certain it is that a group is a secret.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Value {
    /// An earlier placeholder.
    Placeholder,
    /// Certain, by its shape or by the words in front of it.
    Certain,
    /// Certain by the words in front of it, unless it refers to a secret elsewhere.
    Named,
    /// A user name and password in base64, if it can be decoded.
    Login,
    /// Another secret in base64, if the decoded text contains one.
    Encoded,
    /// Only the words in front of it say so, and it is quoted.
    Quoted,
    /// The same, and it is short.
    Short,
    /// Only the words in front of it say so.
    Bare,
    /// Only a word that is common in code says so, so the value must look random.
    Weak,
}

impl Value {
    /// Is it a secret whatever the value looks like?
    pub(super) const fn is_sure(self) -> bool {
        match self {
            Self::Placeholder | Self::Certain | Self::Named | Self::Login | Self::Encoded => true,
            Self::Quoted | Self::Short | Self::Bare | Self::Weak => false,
        }
    }
}

/// A rule for secrets that are recognised by their shape.
const fn certain(
    name: &'static str,
    keywords: &'static [&'static str],
    pattern: &'static str,
) -> Rule {
    let (before, reach) = (Before::Anything, Reach::Text);
    Rule { name, keywords, before, reach, pattern, values: &[Value::Certain] }
}

/// The same, with a keyword too short to search inside words.
const fn word(
    name: &'static str,
    keywords: &'static [&'static str],
    pattern: &'static str,
) -> Rule {
    Rule { before: Before::Word, ..certain(name, keywords, pattern) }
}

/// The same, with a keyword that is distinct even inside a word.
const fn prefix(
    name: &'static str,
    keywords: &'static [&'static str],
    pattern: &'static str,
) -> Rule {
    Rule { before: Before::Prefix, ..certain(name, keywords, pattern) }
}

/// Does the keyword alone identify what follows it?
pub(super) fn is_telling(keyword: &str) -> bool {
    keyword.len() >= 4 || keyword.bytes().any(|byte| byte.is_ascii_punctuation())
}

impl Rule {
    /// Is the whole match the secret, so that its beginning identifies a truncated one?
    fn is_shape(&self) -> bool {
        self.values == [Value::Certain]
            && self.pattern.starts_with('(')
            && !self.pattern.starts_with("(?")
            && !matches!(self.before, Before::Run(_))
    }

    /// The compiled expression, anchored at the beginning.
    fn compile(&self) -> Regex {
        RegexBuilder::new(&format!("^(?:{})", self.pattern))
            .size_limit(COMPILED_BYTES)
            .build()
            .expect("every rule compiles, which the tests show")
    }
}

/// A rule whose expression is compiled at first use.
pub(super) struct Compiled {
    pub(super) rule: &'static Rule,
    /// The rule's keywords as they occur in texts.
    pub(super) keywords: Vec<Cow<'static, str>>,
    regex: OnceLock<Regex>,
    front: OnceLock<Front>,
}

impl Compiled {
    fn new(rule: &'static Rule) -> Self {
        let keywords = match rule.values {
            [Value::Encoded] => encoded_fronts(rule),
            _ => rule.keywords.iter().copied().map(Cow::Borrowed).collect(),
        };
        Self { rule, keywords, regex: OnceLock::new(), front: OnceLock::new() }
    }

    /// The length of a text's beginning that could become a match: a truncated secret.
    pub(super) fn front(&self, text: &str) -> usize {
        match self.rule.is_shape() {
            true => self.front.get_or_init(|| Front::of(self.rule)).len(text),
            false => 0,
        }
    }

    pub(super) fn regex(&self) -> &Regex {
        self.regex.get_or_init(|| self.rule.compile())
    }
}

/// A rule's expression as an automaton that reports after each byte whether a match is still
/// possible.
struct Front {
    automaton: DFA,
    cache: Mutex<Cache>,
}

impl Front {
    fn of(rule: &Rule) -> Self {
        let automaton = DFA::new(rule.pattern).expect("every rule compiles, which the tests show");
        let cache = Mutex::new(automaton.create_cache());
        Self { automaton, cache }
    }

    fn len(&self, text: &str) -> usize {
        let mut cache = self.cache.lock();
        let input = Input::new(text).anchored(Anchored::Yes);
        let Ok(mut state) = self.automaton.start_state_forward(&mut cache, &input) else {
            return 0;
        };
        for (len, byte) in text.bytes().enumerate() {
            match self.automaton.next_state(&mut cache, state, byte) {
                Ok(next) if !next.is_dead() && !next.is_quit() => state = next,
                _ => return len,
            }
        }
        text.len()
    }
}

/// The base64 forms of the prefixes of secrets.
fn encoded_fronts(rule: &Rule) -> Vec<Cow<'static, str>> {
    /// A shorter prefix occurs in too many words.
    const SHORTEST: usize = 3;
    let begins = |it: &&Rule| matches!(it.before, Before::Anything | Before::Word | Before::Prefix);
    let shapes = shapes::RULES.iter().filter(begins).filter(|it| it.values == [Value::Certain]);
    let fronts = shapes.chain([rule]).flat_map(|it| it.keywords);
    let fronts = fronts.filter(|it| it.len() >= SHORTEST).map(|front| {
        let mut encoded = STANDARD_NO_PAD.encode(front);
        // The last character also depends on the text after the prefix.
        encoded.truncate(front.len() * 8 / 6);
        encoded
    });
    let mut fronts: Vec<_> = fronts.map(Cow::Owned).collect();
    fronts.sort();
    fronts.dedup();
    fronts
}

/// All rules, in order of precedence.
pub(super) fn rules() -> &'static [Compiled] {
    static ALL: LazyLock<Vec<Compiled>> = LazyLock::new(|| {
        let all = shapes::RULES.iter().chain(words::RULES);
        all.map(Compiled::new).collect()
    });
    &ALL
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_rule_compiles_and_has_as_many_groups_as_it_says() {
        for Compiled { rule, .. } in rules() {
            assert_eq!(rule.compile().captures_len() - 1, rule.values.len(), "{}", rule.name);
            let _ = Compiled::new(rule).front("text");
        }
    }

    /// [`crate::arguments`] relies on this: `key="value` contains no keyword that is in neither the
    /// key nor the value.
    #[test]
    fn no_keyword_goes_from_a_name_over_to_a_quoted_value() {
        for Compiled { rule, .. } in rules() {
            let crosses = |it: &&str| it.contains(['=', '"']);
            let is_free = rule.keywords.iter().any(crosses);
            assert!(!is_free || matches!(rule.before, Before::Parameter), "{}", rule.name);
        }
    }
}
