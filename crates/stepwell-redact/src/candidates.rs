//! A first look at a text: can any rule match in it at all?
//!
//! Nearly every text holds no secret, and the rules in one expression read it slowly. Each match of
//! a rule holds one of a few pieces, such as `sk-` or `password`, which are taken from the rules
//! themselves. They are looked for first, all in one pass; only a text that holds one is read by
//! the rules. Capitals and small letters count as the same, so it finds too much at times, and
//! never too little.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use regex_syntax::hir::{Class, Hir, HirKind, Repetition};

/// How many bytes of each piece are looked for; no piece is shorter.
const GRAM: usize = 3;

/// How many bytes are looked at before it is asked whether there was anything.
const BLOCK: usize = 64;

/// How many slots the hashes have: as many as fit beside the text in the processor's first cache.
const SLOTS: usize = 1 << 15;

/// The largest set of texts that is kept while an expression is taken apart.
const MAX_TEXTS: usize = 256;

/// The most characters of a class that are taken as texts of their own.
const MAX_CLASS: usize = 24;

/// Bytes from the most to the least usual: the rarer a piece's bytes are, the less often they are
/// found where it is not. Before the letters are blanks, quotes and what documents have behind
/// names, as they are folded.
const USUAL: &[u8] = b" )\"':=|etaoinshrdlucmfwypvbgkjqxz";

/// The pieces, one of which every match holds.
pub(super) struct Candidates {
    /// Which hashes of three bytes a piece has.
    bits: Box<[u8; SLOTS]>,
    /// The pieces by those bytes, and where in the piece these stand.
    pieces: BTreeMap<u32, Vec<Piece>>,
    /// How many bytes a piece can have behind a quotation mark in it, at most.
    pub(super) behind_quote: usize,
}

struct Piece {
    text: Vec<u8>,
    at: usize,
}

/// Texts, small and capital letters as one.
type Texts = BTreeSet<Vec<u8>>;

impl Candidates {
    /// The pieces of an expression; nothing, if it can match without one.
    pub(super) fn of(pattern: &str) -> Option<Self> {
        let hir = regex_syntax::Parser::new().parse(pattern).ok()?;
        let texts = Needs::of(&hir).any_of?;
        let (bits, pieces) = (Box::new([0; SLOTS]), BTreeMap::new());
        let mut all = Self { bits, pieces, behind_quote: 0 };
        for text in &texts {
            let (gram, at) = rarest(text)?;
            let quote = text.iter().position(|byte| *byte == b'"');
            let behind = quote.map_or(0, |at| text.len() - at - 1);
            all.behind_quote = all.behind_quote.max(behind);
            all.bits[place(gram)] = 1;
            all.pieces.entry(gram).or_default().push(Piece { text: text.clone(), at });
        }
        Some(all)
    }

    /// Does a text hold one of the pieces?
    pub(super) fn are_in(&self, text: &str) -> bool {
        let bytes = text.as_bytes();
        let mut at = 0;
        // Whole blocks first, without a branch for each byte: nearly all hold nothing.
        while let Some(block) = bytes.get(at..).and_then(<[u8]>::first_chunk::<{ BLOCK + GRAM }>) {
            if self.may_begin_in(block) && self.begin_in(bytes, at..at + BLOCK) {
                return true;
            }
            at += BLOCK;
        }
        self.begin_in(bytes, at..bytes.len())
    }

    /// Can one of the pieces' three bytes begin in a block?
    fn may_begin_in(&self, block: &[u8; BLOCK + GRAM]) -> bool {
        let mut found = 0;
        for at in 0..BLOCK {
            // Four at a time, of which three count: that is one load.
            let four = [block[at], block[at + 1], block[at + 2], block[at + 3]];
            found |= self.bits[place(u32::from_le_bytes(four) | 0x20_2020)];
        }
        found != 0
    }

    /// Do the three bytes of a piece begin there, with the piece around them?
    fn begin_in(&self, bytes: &[u8], mut places: Range<usize>) -> bool {
        places.any(|at| {
            let Some(gram) = gram(&bytes[at..]) else { return false };
            self.bits[place(gram)] != 0 && self.is_piece(bytes, gram, at)
        })
    }

    fn is_piece(&self, bytes: &[u8], gram: u32, at: usize) -> bool {
        let is = |piece: &Piece| {
            let start = at.checked_sub(piece.at);
            let there = start.and_then(|start| bytes.get(start..start + piece.text.len()));
            there.is_some_and(|there| there.iter().map(fold).eq(piece.text.iter().copied()))
        };
        self.pieces.get(&gram).is_some_and(|pieces| pieces.iter().any(is))
    }
}

/// A letter as a small one. Some other bytes become one, too, in pieces as in texts.
const fn fold(byte: &u8) -> u8 {
    *byte | 0x20
}

/// The first three bytes as a number.
fn gram(bytes: &[u8]) -> Option<u32> {
    let [a, b, c] = *bytes.first_chunk::<GRAM>()?;
    Some(u32::from_le_bytes([fold(&a), fold(&b), fold(&c), 0]))
}

/// The slot of three bytes; a fourth one does not count.
const fn place(gram: u32) -> usize {
    ((gram << 8).wrapping_mul(0x9e37_79b1) >> 17) as usize % SLOTS
}

/// The three bytes of a piece that are rarest in texts, and where they stand.
fn rarest(text: &[u8]) -> Option<(u32, usize)> {
    let rarity = |byte: &u8| USUAL.iter().position(|it| it == byte).unwrap_or(USUAL.len());
    let windows = text.windows(GRAM).enumerate();
    let (at, bytes) = windows.max_by_key(|(_, bytes)| bytes.iter().map(rarity).sum::<usize>())?;
    Some((gram(bytes)?, at))
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
    texts.iter().map(Vec::len).min().unwrap_or(0)
}

/// Which of two sets tells more: the one whose shortest text is longer, then the smaller one.
fn better(one: Option<Texts>, other: Option<Texts>) -> Option<Texts> {
    let worth = |texts: &Texts| (shortest(texts), std::cmp::Reverse(texts.len()));
    let useful = |texts: &Texts| shortest(texts) > 0;
    match (one.filter(useful), other.filter(useful)) {
        (Some(one), Some(other)) if worth(&other) > worth(&one) => Some(other),
        (one, other) => one.or(other),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rules::RULES;

    #[test]
    fn every_rule_has_pieces_that_are_long_enough() {
        for rule in RULES {
            let needs = Needs::of(&regex_syntax::parse(rule.pattern).unwrap());
            let texts = needs.any_of.unwrap_or_default();
            let shown: Vec<_> = texts.iter().map(|it| String::from_utf8_lossy(it)).collect();
            assert!(shortest(&texts) >= GRAM, "{}: {shown:?}", rule.name);
        }
    }

    #[test]
    fn a_piece_goes_on_as_every_match_does() {
        let all = Candidates::of(r#"(?i:token)\\?["']?[ \t]*(?:=>|:)[0-9]+"#).unwrap();
        for text in ["token:1", "Token' => 2", "token\\\"\t:3", "a token =>4"] {
            assert!(all.are_in(text), "{text}");
        }
        for text in ["tokens:1", "\"tokens\":{}", "tokenizer", "token"] {
            assert!(!all.are_in(text), "{text}");
        }
    }

    #[test]
    fn an_expression_that_can_match_without_any_piece_has_none() {
        for open in ["[a-z]+", "ab", "password|[0-9]{8}", "(?:password)?", "", "a.b"] {
            assert!(Candidates::of(open).is_none(), "{open}");
        }
    }

    #[test]
    fn a_piece_is_found_wherever_it_stands_and_however_it_is_written() {
        let all = Candidates::of("(?i:token)=|xyz[0-9]").unwrap();
        for text in ["token=", "a TOKEN= b", "to\u{212a}en=", "xyz4", "..xyz7", "xyz9.."] {
            assert!(all.are_in(text), "{text}");
        }
        for text in ["", "x", "xy", "xyz", "toke", "token", "tokes="] {
            assert!(!all.are_in(text), "{text}");
        }
    }
}
