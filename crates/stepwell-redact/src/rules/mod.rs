//! The rules: what secrets look like.
//!
//! A rule has keywords and an expression. The expression is tried where one of the keywords
//! stands, and nowhere else, so that a text without keywords costs one search for all of them.
//! No expression asks for anything behind the secret: a secret at the end of a text that was cut off
//! is found, too.

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

/// Room for one compiled rule. The largest takes a tenth of it.
const COMPILED_BYTES: usize = 16 << 20;

/// A kind of secret.
pub(super) struct Rule {
    /// Its name, which replaces the secret.
    pub(super) name: &'static str,
    /// Every match begins with one of these, in upper or lower case, or with one of them in base64. The
    /// expression decides about the case.
    pub(super) keywords: &'static [&'static str],
    /// What has to stand in front of the keyword.
    pub(super) before: Before,
    /// How far a match can go.
    pub(super) reach: Reach,
    /// The expression, with a group around each place where the secret can be.
    pub(super) pattern: &'static str,
    /// What the expression's groups hold, in order.
    pub(super) values: &'static [Value],
}

/// What has to stand in front of a keyword. Expressions cannot look back, so this is code.
#[derive(Clone, Copy)]
pub(super) enum Before {
    /// Anything.
    Anything,
    /// The keyword begins a word.
    Word,
    /// The same, or it stands within a word and what follows it looks like chance.
    Prefix,
    /// A letter or a digit: the keyword ends a name, as in `db_pass`.
    Name,
    /// A capital or a digit: the keyword ends the name of a variable, as in `GITHUB_TOKEN`.
    Variable,
    /// The keyword is a parameter of an address.
    Parameter,
    /// Any number of such bytes. The match begins with them.
    Run(fn(u8) -> bool),
}

/// How far a match can go.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Reach {
    /// To the end of the text.
    Text,
    /// Its flag is in the same command of a shell as the keyword, which is the program.
    Command,
}

/// How sure it is that a group holds a secret.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Value {
    /// It is what an earlier redaction left.
    Placeholder,
    /// Its shape says so, or the words in front of it leave no doubt.
    Certain,
    /// The words in front of it leave no doubt, unless it names the place where the secret is.
    Named,
    /// It is a user's name and a password in base64, if it can be decoded.
    Login,
    /// It is another secret in base64, if what is decoded holds one.
    Encoded,
    /// Only the words in front of it say so, and it is quoted.
    Quoted,
    /// The same, and it is short.
    Short,
    /// Only the words in front of it say so.
    Bare,
    /// Only a word in front of it says so that is as usual in code: it has to look random.
    Weak,
}

impl Value {
    /// Does it take no judgement of the value's looks?
    pub(super) const fn is_sure(self) -> bool {
        match self {
            Self::Placeholder | Self::Certain | Self::Named | Self::Login | Self::Encoded => true,
            Self::Quoted | Self::Short | Self::Bare | Self::Weak => false,
        }
    }
}

/// A rule for secrets that are known by their shape.
const fn certain(
    name: &'static str,
    keywords: &'static [&'static str],
    pattern: &'static str,
) -> Rule {
    let (before, reach) = (Before::Anything, Reach::Text);
    Rule { name, keywords, before, reach, pattern, values: &[Value::Certain] }
}

/// The same, where the keyword is too short to be looked for within words.
const fn word(
    name: &'static str,
    keywords: &'static [&'static str],
    pattern: &'static str,
) -> Rule {
    Rule { before: Before::Word, ..certain(name, keywords, pattern) }
}

/// The same, where the keyword has a sign that sets it apart from the word it may stand in.
const fn prefix(
    name: &'static str,
    keywords: &'static [&'static str],
    pattern: &'static str,
) -> Rule {
    Rule { before: Before::Prefix, ..certain(name, keywords, pattern) }
}

/// Does a keyword say by itself what follows it?
pub(super) fn is_telling(keyword: &str) -> bool {
    keyword.len() >= 4 || keyword.bytes().any(|byte| byte.is_ascii_punctuation())
}

impl Rule {
    /// Is all of a match the secret, so that its front tells what was cut off?
    fn is_shape(&self) -> bool {
        self.values == [Value::Certain]
            && self.pattern.starts_with('(')
            && !self.pattern.starts_with("(?")
            && !matches!(self.before, Before::Run(_))
    }

    /// The expression, compiled for a text that begins where the rule is tried.
    fn compile(&self) -> Regex {
        RegexBuilder::new(&format!("^(?:{})", self.pattern))
            .size_limit(COMPILED_BYTES)
            .build()
            .expect("every rule compiles, which the tests show")
    }
}

/// A rule with its expression, which is compiled when a text first holds one of its keywords.
pub(super) struct Compiled {
    pub(super) rule: &'static Rule,
    /// The rule's keywords, as a text has them.
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

    /// How long the front of a text is that goes on to a match if more follows: a secret that was
    /// cut off.
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

/// A rule's expression as an automaton, which tells after each byte whether a match is still possible.
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

/// What every secret that has a front of its own begins with in base64.
fn encoded_fronts(rule: &Rule) -> Vec<Cow<'static, str>> {
    /// A shorter front begins too many words.
    const SHORTEST: usize = 3;
    let begins = |it: &&Rule| matches!(it.before, Before::Anything | Before::Word | Before::Prefix);
    let shapes = shapes::RULES.iter().filter(begins).filter(|it| it.values == [Value::Certain]);
    let fronts = shapes.chain([rule]).flat_map(|it| it.keywords);
    let fronts = fronts.filter(|it| it.len() >= SHORTEST).map(|front| {
        let mut encoded = STANDARD_NO_PAD.encode(front);
        // The last character also says what follows the front.
        encoded.truncate(front.len() * 8 / 6);
        encoded
    });
    let mut fronts: Vec<_> = fronts.map(Cow::Owned).collect();
    fronts.sort();
    fronts.dedup();
    fronts
}

/// All rules, in order: of two that find the same secret the first one names it.
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

    /// [`crate::arguments`] relies on it: what is written as `key="value` has no keyword that
    /// neither the key nor the value has.
    #[test]
    fn no_keyword_goes_from_a_name_over_to_a_quoted_value() {
        for Compiled { rule, .. } in rules() {
            let crosses = |it: &&str| it.contains(['=', '"']);
            let is_free = rule.keywords.iter().any(crosses);
            assert!(!is_free || matches!(rule.before, Before::Parameter), "{}", rule.name);
        }
    }
}
