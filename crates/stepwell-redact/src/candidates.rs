//! A first look at a text: can any rule match in it at all?
//!
//! Nearly every text holds no secret, and the rules in one expression read it slowly. Each match of
//! a rule holds one of a few pieces, such as `sk-` or `password`. They are looked for first, all in
//! one pass; only a text that holds one is read by the rules. Capitals and small letters count as
//! the same, so it finds too much at times, and never too little.
//!
//! The pieces of the rules are in `pieces.rs`, which a test takes from the rules themselves: to do so
//! in each process took longer than all else that a short command does.

use std::borrow::Cow;
use std::ops::Range;

/// How many bytes of each piece are looked for; no piece is shorter.
pub(super) const GRAM: usize = 3;

/// How many bytes are looked at before it is asked whether there was anything.
const BLOCK: usize = 64;

/// How many slots the hashes have: as many as fit beside the text in the processor's first cache.
const SLOTS: usize = 1 << 15;

/// Bytes from the most to the least usual: the rarer a piece's bytes are, the less often they are
/// found where it is not. Before the letters are blanks, quotes and what documents have behind
/// names, as they are folded.
const USUAL: &[u8] = b" )\"':=|etaoinshrdlucmfwypvbgkjqxz";

/// The pieces, one of which every match holds.
pub(super) struct Candidates {
    known: &'static Known,
    /// Those of values that were given, in the order of their three bytes.
    given: Vec<Piece>,
    /// Which hashes of three bytes a piece has; absent, as those that are known have.
    bits: Option<Box<Bits>>,
    /// How many bytes a piece can have behind a quotation mark in it, at most.
    pub(super) behind_quote: usize,
}

/// Pieces that the compiler made a table of: a process that looks at one text reads a few bytes
/// of it, where filling it would touch it all.
pub(super) struct Known {
    /// In the order of their three bytes.
    pieces: &'static [Piece],
    bits: Bits,
    behind_quote: usize,
}

type Bits = [u8; SLOTS];

/// One of the pieces.
#[derive(Clone)]
pub(super) struct Piece {
    /// Its three bytes that are rarest in texts, as a number.
    pub(super) gram: u32,
    /// Where they stand in it.
    pub(super) at: usize,
    /// Does it stand only at the beginning of a word?
    pub(super) begins_word: bool,
    pub(super) text: Cow<'static, [u8]>,
}

impl Piece {
    /// A piece of at least three bytes; shorter ones cannot be looked for.
    pub(super) fn new(text: Vec<u8>) -> Option<Self> {
        let (gram, at) = rarest(&text)?;
        Some(Self { gram, at, begins_word: false, text: text.into() })
    }

    /// One whose three bytes were found before.
    pub(super) const fn known(
        gram: u32,
        at: usize,
        begins_word: bool,
        text: &'static [u8],
    ) -> Self {
        Self { gram, at, begins_word, text: Cow::Borrowed(text) }
    }

    /// How many bytes it has behind a quotation mark.
    const fn behind_quote(text: &[u8]) -> usize {
        let mut at = 0;
        while at < text.len() {
            if text[at] == b'"' {
                return text.len() - at - 1;
            }
            at += 1;
        }
        0
    }
}

impl Known {
    /// A table of these.
    pub(super) const fn of(pieces: &'static [Piece]) -> Self {
        let mut known = Self { pieces, bits: [0; SLOTS], behind_quote: 0 };
        let mut next = 0;
        while next < pieces.len() {
            known.bits[place(pieces[next].gram)] = 1;
            if let Cow::Borrowed(text) = &pieces[next].text {
                let behind = Piece::behind_quote(text);
                if behind > known.behind_quote {
                    known.behind_quote = behind;
                }
            }
            next += 1;
        }
        known
    }
}

impl Candidates {
    /// Looks for pieces that are known, and for these.
    pub(super) fn new(known: &'static Known, mut given: Vec<Piece>) -> Self {
        let behind = given.iter().map(|piece| Piece::behind_quote(&piece.text)).max();
        let behind_quote = known.behind_quote.max(behind.unwrap_or(0));
        let bits = (!given.is_empty()).then(|| {
            let mut bits = Box::new(known.bits);
            given.iter().for_each(|piece| bits[place(piece.gram)] = 1);
            bits
        });
        given.sort_by_key(|piece| piece.gram);
        Self { known, given, bits, behind_quote }
    }

    fn bits(&self) -> &Bits {
        self.bits.as_deref().unwrap_or(&self.known.bits)
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
        let (bits, mut found) = (self.bits(), 0);
        for at in 0..BLOCK {
            // Four at a time, of which three count: that is one load.
            let four = [block[at], block[at + 1], block[at + 2], block[at + 3]];
            found |= bits[place(u32::from_le_bytes(four) | 0x20_2020)];
        }
        found != 0
    }

    /// Do the three bytes of a piece begin there, with the piece around them?
    fn begin_in(&self, bytes: &[u8], mut places: Range<usize>) -> bool {
        places.any(|at| {
            let Some(gram) = gram(&bytes[at..]) else { return false };
            self.bits()[place(gram)] != 0 && self.is_piece(bytes, gram, at)
        })
    }

    fn is_piece(&self, bytes: &[u8], gram: u32, at: usize) -> bool {
        let is = |piece: &Piece| {
            let Some(start) = at.checked_sub(piece.at) else { return false };
            let there = bytes.get(start..start + piece.text.len());
            there.is_some_and(|there| there.iter().map(fold).eq(piece.text.iter().copied()))
                && !(piece.begins_word && bytes[..start].last().is_some_and(is_of_word))
        };
        [self.known.pieces, &self.given].iter().any(|pieces| {
            let first = pieces.partition_point(|piece| piece.gram < gram);
            pieces[first..].iter().take_while(|piece| piece.gram == gram).any(is)
        })
    }
}

/// A letter as a small one. Some other bytes become one, too, in pieces as in texts.
pub(super) const fn fold(byte: &u8) -> u8 {
    *byte | 0x20
}

/// Is a byte one that an expression's word can have?
const fn is_of_word(byte: &u8) -> bool {
    byte.is_ascii_alphanumeric() || *byte == b'_'
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_piece_that_is_too_short_is_not_looked_for() {
        assert!(Piece::new(b"ab".to_vec()).is_none());
        assert!(Piece::new(b"abc".to_vec()).is_some());
    }
}
