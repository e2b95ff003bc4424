//! Takes the rules apart: which pieces does every match hold?

use std::collections::BTreeSet;
use std::fmt::Write;

use regex_syntax::hir::{Class, Hir, HirKind, Look, Repetition};

use super::Pattern;
use super::candidates::{Candidates, GRAM, Known, Piece, fold};
use super::rules::RULES;

/// The largest set of texts that is kept while an expression is taken apart.
const MAX_TEXTS: usize = 256;

/// The most characters of a class that are taken as texts of their own.
const MAX_CLASS: usize = 24;

/// Stands for a word's boundary in texts. No folded byte looks so.
const BOUNDARY: u8 = 1;

/// Texts, small and capital letters as one.
type Texts = BTreeSet<Vec<u8>>;

/// The pieces of an expression; nothing, if it can match without one.
fn pieces(pattern: &str) -> Option<Texts> {
    let needs = Needs::of(&regex_syntax::parse(pattern).expect("an expression"));
    needs.any_of.filter(|texts| shortest(texts) >= GRAM)
}

fn without_boundaries(text: &[u8]) -> Vec<u8> {
    text.iter().copied().filter(|byte| *byte != BOUNDARY).collect()
}

/// A piece to look for. Only a boundary in front of a letter is asked for.
fn piece(text: &[u8]) -> Piece {
    let begins_word = matches!(text, [BOUNDARY, b'a'..=b'z', ..]);
    let piece = Piece::new(without_boundaries(text)).expect("long enough");
    Piece { begins_word, ..piece }
}

/// What an expression needs of the texts that it matches.
#[derive(Default)]
struct Needs {
    /// All that it matches, if that is little.
    exactly: Option<Texts>,
    /// How its matches begin.
    begins: Begins,
    /// Texts of which every match holds at least one.
    any_of: Option<Texts>,
}

/// How matches begin.
#[derive(Clone)]
struct Begins {
    /// Texts of which every match begins with one, unless it is empty; absent, with anything.
    with: Option<Texts>,
    /// Can a match be empty?
    or_empty: bool,
}

impl Default for Begins {
    /// With anything.
    fn default() -> Self {
        Self { with: None, or_empty: true }
    }
}

impl Begins {
    fn of(texts: &Texts) -> Self {
        let with = texts.iter().filter(|text| !text.is_empty()).cloned().collect();
        Self { with: Some(with), or_empty: texts.contains(&Vec::new()) }
    }

    /// How a row begins: with this one and, where it is empty, with what is behind it.
    fn before(self, behind: &Self) -> Self {
        match self.or_empty {
            false => self,
            true => Self { with: either(self.with, behind.with.clone()), ..*behind },
        }
    }

    /// Texts of which every match begins with one.
    fn always(&self) -> Option<&Texts> {
        self.with.as_ref().filter(|_| !self.or_empty)
    }
}

/// All of two sets, if they are not too many.
fn either(one: Option<Texts>, other: Option<Texts>) -> Option<Texts> {
    one.zip(other).map(|(one, other)| &one | &other).filter(|texts| texts.len() <= MAX_TEXTS)
}

impl Needs {
    fn of(hir: &Hir) -> Self {
        match hir.kind() {
            HirKind::Look(Look::WordAscii) => Self::exactly(Texts::from([vec![BOUNDARY]])),
            HirKind::Empty | HirKind::Look(_) => Self::exactly(Texts::from([Vec::new()])),
            HirKind::Literal(literal) => {
                Self::exactly(Texts::from([literal.0.iter().map(fold).collect()]))
            }
            HirKind::Class(class) => match texts_of(class) {
                Some(texts) => Self::exactly(texts),
                None => Self {
                    begins: Begins { or_empty: false, ..Begins::default() },
                    ..Self::default()
                },
            },
            HirKind::Capture(capture) => Self::of(&capture.sub),
            HirKind::Repetition(repetition) => Self::repeated(repetition),
            HirKind::Concat(parts) => Self::in_a_row(parts.iter().map(Self::of).collect()),
            HirKind::Alternation(parts) => Self::one_of(parts.iter().map(Self::of)),
        }
    }

    fn exactly(texts: Texts) -> Self {
        let any_of = Some(texts.clone()).filter(|texts| shortest(texts) > 0);
        Self { begins: Begins::of(&texts), any_of, exactly: Some(texts) }
    }

    fn repeated(repetition: &Repetition) -> Self {
        let once = Self::of(&repetition.sub);
        let or_empty = once.begins.or_empty || repetition.min == 0;
        let begins = Begins { or_empty, ..once.begins.clone() };
        match (repetition.min, repetition.max) {
            (1, Some(1)) => once,
            (0, Some(1)) => {
                let none = |mut texts: Texts| {
                    texts.insert(Vec::new());
                    texts
                };
                Self { exactly: once.exactly.map(none), begins, any_of: None }
            }
            (0, _) => Self { begins, ..Self::default() },
            _ => Self { exactly: None, ..once },
        }
    }

    fn in_a_row(parts: Vec<Self>) -> Self {
        // How what is left begins, before each part and at the end.
        let mut left = vec![Begins::of(&Texts::from([Vec::new()]))];
        for part in parts.iter().rev() {
            let behind = left.last().cloned().unwrap_or_default();
            left.push(part.begins.clone().before(&behind));
        }
        left.reverse();
        let begins = left.first().cloned().unwrap_or_default();
        // What stands together at this place, since the last part that may be anything.
        let mut row = Texts::from([Vec::new()]);
        let (mut whole, mut any_of) = (true, None);
        for (part, left) in parts.into_iter().zip(left) {
            any_of = better(any_of, part.any_of);
            match part.exactly.as_ref().and_then(|texts| joined(&row, texts)) {
                Some(joined) => row = joined,
                None => {
                    // The longer a piece is, the less often it is found where there is no match.
                    let further = left.always().and_then(|it| joined(&row, it));
                    any_of = better(any_of, further);
                    whole = false;
                    row = part.exactly.unwrap_or_else(|| Texts::from([Vec::new()]));
                }
            }
            any_of = better(any_of, Some(row.clone()));
        }
        Self { exactly: whole.then_some(row), begins, any_of }
    }

    fn one_of(parts: impl Iterator<Item = Self>) -> Self {
        let none = || Some(Texts::new());
        let begins = Begins { with: none(), or_empty: false };
        let start = Self { exactly: none(), begins, any_of: none() };
        let both = |a: Option<Texts>, b: Option<Texts>| a.zip(b).map(|(a, b)| &a | &b);
        let all = parts.fold(start, |all, part| Self {
            exactly: both(all.exactly, part.exactly).filter(|texts| texts.len() <= MAX_TEXTS),
            begins: Begins {
                with: either(all.begins.with, part.begins.with),
                or_empty: all.begins.or_empty || part.begins.or_empty,
            },
            any_of: both(all.any_of, part.any_of),
        });
        // Whatever the parts hold, each of them is whole.
        let any_of = better(all.any_of, all.exactly.clone());
        Self { any_of, ..all }
    }
}

/// The texts that a class stands for, if they are few.
fn texts_of(class: &Class) -> Option<Texts> {
    let texts: Texts = match class {
        Class::Unicode(class) => {
            let chars = class.iter().flat_map(|range| range.start()..=range.end());
            let utf8 = |c: char| c.to_string().bytes().map(|byte| fold(&byte)).collect();
            // Each small letter comes with its capital.
            chars.take(2 * MAX_CLASS + 1).map(utf8).collect()
        }
        Class::Bytes(class) => {
            let bytes = class.iter().flat_map(|range| range.start()..=range.end());
            bytes.map(|byte| vec![fold(&byte)]).collect()
        }
    };
    (texts.len() <= MAX_CLASS && class_size(class) <= 2 * MAX_CLASS).then_some(texts)
}

fn class_size(class: &Class) -> usize {
    match class {
        Class::Unicode(class) => class.iter().map(regex_syntax::hir::ClassUnicodeRange::len).sum(),
        Class::Bytes(class) => class.iter().map(regex_syntax::hir::ClassBytesRange::len).sum(),
    }
}

/// Each of the first with each of the second behind it, if they are not too many.
fn joined(first: &Texts, second: &Texts) -> Option<Texts> {
    let few = first.len() * second.len() <= MAX_TEXTS;
    few.then(|| {
        let behind = |one: &Vec<u8>| -> Vec<Vec<u8>> {
            second.iter().map(|other| [one.as_slice(), other].concat()).collect()
        };
        first.iter().flat_map(behind).collect()
    })
}

fn shortest(texts: &Texts) -> usize {
    texts.iter().map(|text| without_boundaries(text).len()).min().unwrap_or(0)
}

/// Which of two sets tells more: the one whose shortest text is longer, then the smaller one, then
/// the one that asks for more boundaries.
fn better(one: Option<Texts>, other: Option<Texts>) -> Option<Texts> {
    let asks = |texts: &Texts| texts.iter().filter(|text| text.contains(&BOUNDARY)).count();
    let worth = |it: &Texts| (shortest(it), std::cmp::Reverse(it.len()), asks(it));
    let useful = |texts: &Texts| shortest(texts) > 0;
    match (one.filter(useful), other.filter(useful)) {
        (Some(one), Some(other)) if worth(&other) > worth(&one) => Some(other),
        (one, other) => one.or(other),
    }
}

#[test]
fn every_rule_has_pieces_that_are_long_enough() {
    for rule in RULES {
        assert!(pieces(rule.pattern).is_some(), "{}", rule.name);
    }
}

#[test]
fn an_expression_that_can_match_without_any_piece_has_none() {
    for open in ["[a-z]+", "ab", "password|[0-9]{8}", "(?:password)?", "", "a.b"] {
        assert!(pieces(open).is_none(), "{open}");
    }
}

fn looking_for(pattern: &str) -> Candidates {
    let pieces = pieces(pattern).expect("it has pieces");
    static NONE: Known = Known::of(&[]);
    Candidates::new(&NONE, pieces.iter().map(|text| piece(text)).collect())
}

#[test]
fn a_piece_is_found_wherever_it_stands_and_however_it_is_written() {
    let all = looking_for("(?i:token)=|xyz[0-9]");
    for text in ["token=", "a TOKEN= b", "to\u{212a}en=", "xyz4", "..xyz7", "xyz9.."] {
        assert!(all.are_in(text), "{text}");
    }
    for text in ["", "x", "xy", "xyz", "toke", "token", "tokes="] {
        assert!(!all.are_in(text), "{text}");
    }
}

#[test]
fn a_piece_that_begins_a_word_is_not_found_within_one() {
    let all = looking_for(r"(?-u:\b)sk-[0-9]{4}|(?-u:\b)(?:hf|api_org)_[0-9]|x(?-u:\b)-yz");
    for text in ["sk-1234", "a sk-1", "\"sk-1", "\u{e9}sk-1", "=hf_4", "api_org_1", "ax-yz"] {
        assert!(all.are_in(text), "{text}");
    }
    for text in ["task-1", "Risk-1", "_sk-1", "7sk-1", "half_hf", "shf_4", "my_api_org_1", "xyz"] {
        assert!(!all.are_in(text), "{text}");
    }
}

#[test]
fn a_piece_goes_on_as_every_match_does() {
    let pattern = r#"(?i:token)\\?["']?[ \t]*(?:=>|:)[0-9]+"#;
    let all = looking_for(pattern);
    for text in ["token:1", "Token' => 2", "token\\\"\t:3", "a token =>4"] {
        assert!(all.are_in(text), "{text}");
    }
    for text in ["tokens:1", "\"tokens\":{}", "tokenizer", "token"] {
        assert!(!all.are_in(text), "{text}");
    }
}

#[test]
fn the_pieces_in_the_source_are_those_of_the_rules() {
    let wanted = pieces(&Pattern::source(&[]).0).expect("every rule has pieces");
    let mut wanted: Vec<_> = wanted.iter().map(|text| piece(text)).collect();
    wanted.sort_by_key(|piece| piece.gram);
    let mut text = String::from(
        "//! Made from the rules by a test of `taken_apart`, which writes it anew when they change.\n\n\
         use super::candidates::Piece;\n\n\
         /// Every match of a rule holds one of these, small and capital letters as one. Each with its\n\
         /// three rarest bytes as a number, in whose order they are, where these stand, and whether it\n\
         /// begins a word.\n\
         #[rustfmt::skip]\n\
         pub(super) const PIECES: &[Piece] = &[\n",
    );
    for Piece { gram, at, begins_word, text: piece } in &wanted {
        let piece = piece.escape_ascii();
        writeln!(text, "    Piece::known({gram:#x}, {at}, {begins_word}, b\"{piece}\"),")
            .expect("a text takes all");
    }
    text.push_str("];\n");
    if text != include_str!("pieces.rs") {
        let file = concat!(env!("CARGO_MANIFEST_DIR"), "/src/pieces.rs");
        std::fs::write(file, text).expect("the file is written");
        panic!("src/pieces.rs was not that of the rules, and is now: run the tests again");
    }
}
