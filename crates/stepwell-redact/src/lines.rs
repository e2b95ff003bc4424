//! Finds lines of a private key in a part of a file, where only their look identifies them, and a
//! truncated line may be followed by other text. In a whole file such lines are harmless, because a
//! key there has its header.

use std::ops::Range;

pub(super) const NAME: &str = "key-lines";

/// The line lengths of keys: PEM's, OpenSSH's, PGP's.
const LENGTHS: std::ops::RangeInclusive<usize> = 64..=76;

/// The longest prefix that a search puts in front of a line: a file's name and a line number.
const LONGEST_FRONT: usize = 120;

/// The end of a prefix that a program put in front of a line: a number, a quote mark, a file's
/// name.
const FRONT_ENDS: [char; 6] = [':', '|', ' ', '\t', '→', '>'];

/// Header lines between a key's first line and its characters.
const HEADERS: [&str; 7] =
    ["Proc-Type:", "DEK-Info:", "Version:", "Comment:", "Hash:", "Charset:", "Encryption:"];

/// Does a text contain such lines?
pub(super) fn are_in(text: &str) -> bool {
    !ranges(text).is_empty()
}

/// The ranges of such lines, without certificates and public keys, which look the same.
pub(super) fn ranges(text: &str) -> Vec<Range<usize>> {
    // Nearly every text is done here.
    let may_be_full = |line: Range<usize>| {
        let is_long = line.len() >= *LENGTHS.start();
        is_long && material(&text[line]).is_some_and(|it| LENGTHS.contains(&it.len()))
    };
    if !ends(text, false).any(may_be_full) && !text.contains("PRIVATE KEY") {
        return Vec::new();
    }
    let lines: Vec<Line> = ends(text, true).map(|line| Line::of(text, line)).collect();
    let (mut ranges, mut at) = (Vec::new(), 0);
    while at < lines.len() {
        let end = at + lines[at..].iter().take_while(|line| line.material.is_some()).count();
        if end > at {
            let block = Block { text, lines: &lines, inner: at..end };
            ranges.extend(block.secret());
        } else if let Some(front) = lines[at].front_of_key(text) {
            // Truncated in its first line.
            let body = lines[at + 1..].iter().find(|line| line.mark != Some(Mark::Header));
            ranges.extend(body.and_then(|line| line.cut(text, front)));
        }
        at = end.max(at + 1);
    }
    ranges
}

/// The lines of a text without their ends, which may be escaped.
fn ends(text: &str, escaped: bool) -> impl Iterator<Item = Range<usize>> {
    let bytes = text.as_bytes();
    let mut start = Some(0);
    std::iter::from_fn(move || {
        let from = start?;
        let end = match escaped {
            false => memchr::memchr(b'\n', &bytes[from..]).map(|at| (at, 1)),
            true => text[from..].find(['\n', '\\']).and_then(|first| line_end(text, from, first)),
        };
        start = end.map(|(at, len)| from + at + len);
        let line = &text[from..end.map_or(text.len(), |(at, _)| from + at)];
        Some(from..from + line.trim_end_matches('\r').len())
    })
}

/// The next line break, and its length.
fn line_end(text: &str, from: usize, mut at: usize) -> Option<(usize, usize)> {
    let rest = &text[from..];
    loop {
        let here = &rest[at..];
        if here.starts_with('\n') {
            return Some((at, 1));
        }
        let slashes = here.bytes().take_while(|byte| *byte == b'\\').count();
        let letter = &here[slashes..];
        if letter.starts_with("r\\n") {
            return Some((at, slashes + 3));
        }
        if letter.starts_with('n') {
            return Some((at, slashes + 1));
        }
        at += slashes + letter.find(['\n', '\\'])?;
    }
}

/// A line of a text.
struct Line {
    whole: Range<usize>,
    /// The part that may belong to a key: the whole line, or the part after a file's name and a
    /// number.
    material: Option<Range<usize>>,
    mark: Option<Mark>,
}

/// A line that identifies the lines next to it.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Mark {
    Begin { private: bool },
    End { private: bool },
    Header,
}

impl Line {
    fn of(text: &str, whole: Range<usize>) -> Self {
        let line = &text[whole.clone()];
        let material = material(line).map(|it| whole.end - it.len()..whole.end);
        let mark = if material.is_some() { None } else { Mark::of(line) };
        Self { whole, material, mark }
    }

    /// The prefix of a private key's first line, if this is one.
    fn front_of_key<'a>(&self, text: &'a str) -> Option<&'a str> {
        let begins = self.mark == Some(Mark::Begin { private: true });
        let line = &text[self.whole.clone()];
        line.find("---").filter(|_| begins).map(|front| &line[..front])
    }

    /// The end of a key that was truncated in this line and is followed by other text. The lines
    /// before have the same prefix, except for a shorter line number.
    fn cut(&self, text: &str, front: &str) -> Option<Range<usize>> {
        let mut start = self.whole.start;
        for end in front.chars().filter(|it| FRONT_ENDS.contains(it) && *it != ' ') {
            start += text[start..self.whole.end].find(end)? + end.len_utf8();
        }
        let rest = text[start..self.whole.end].trim_start_matches(' ');
        let start = self.whole.end - rest.len();
        let run = rest.bytes().take_while(|byte| is_base64_byte(*byte)).count();
        is_random(&rest[..run]).then(|| start..start + run)
    }

    fn is_full(&self) -> bool {
        self.material.as_ref().is_some_and(|material| LENGTHS.contains(&material.len()))
    }
}

impl Mark {
    fn of(line: &str) -> Option<Self> {
        let private = line.contains("PRIVATE KEY");
        // A truncated one does not say what it is.
        let is_whole = private || line.trim_end().ends_with("---");
        match (line.contains("---"), line.contains("BEGIN "), line.contains("END ")) {
            (true, true, false) => is_whole.then_some(Self::Begin { private }),
            (true, false, true) => is_whole.then_some(Self::End { private }),
            (true, true, true) => None,
            _ => {
                let words = line.rsplit(['|', '\t', '→', '>']).next().unwrap_or(line).trim();
                let is_header = words.is_empty() || HEADERS.iter().any(|it| words.contains(it));
                is_header.then_some(Self::Header)
            }
        }
    }
}

/// Consecutive lines that may belong to a key.
struct Block<'a> {
    text: &'a str,
    lines: &'a [Line],
    inner: Range<usize>,
}

impl Block<'_> {
    /// The part that belongs to a key.
    fn secret(&self) -> Option<Range<usize>> {
        let before = self.lines[..self.inner.start].iter().rev().map(|line| line.mark);
        let before = before.into_iter().find(|mark| *mark != Some(Mark::Header)).flatten();
        let after = self.lines.get(self.inner.end).and_then(|line| line.mark);
        let begun = before == Some(Mark::Begin { private: true });
        let ended = after == Some(Mark::End { private: true });
        let is_public = before == Some(Mark::Begin { private: false })
            || after == Some(Mark::End { private: false });
        if is_public {
            return None;
        }
        let mut lines = self.inner.clone();
        let first_full = lines.clone().find(|line| self.lines[*line].is_full());
        if !begun && !ended {
            let first = first_full?;
            // The line before may be the end of one.
            let is_cut = first > lines.start && is_random(self.material(first - 1));
            lines.start = first - usize::from(is_cut);
        }
        if begun && first_full != Some(lines.start) && !ended {
            // Truncated in its first line, or prose about keys.
            let first = self.material(lines.start);
            return is_random(first).then(|| self.range(lines.start..lines.start + 1));
        }
        if !ended {
            // Only the last line of a key is shorter.
            let start = lines.start + usize::from(!self.lines[lines.start].is_full());
            let full = (start..lines.end).take_while(|line| self.lines[*line].is_full()).count();
            lines.end = lines.end.min(start + full + 1);
            if lines.end > start + full && !self.is_last(lines.end - 1) {
                lines.end -= 1;
            }
        }
        if begun || ended || self.is_key(lines.clone()) {
            let mut range = self.range(lines.clone());
            if lines.end == self.inner.end {
                range.end = self.cut_end(lines.end - 1).unwrap_or(range.end);
            }
            return Some(range);
        }
        None
    }

    fn material(&self, line: usize) -> &str {
        self.lines[line].material.clone().map_or("", |range| &self.text[range])
    }

    /// From the first line's characters to the last line's.
    fn range(&self, lines: Range<usize>) -> Range<usize> {
        let of = |line: usize| self.lines[line].material.as_ref();
        let start = of(lines.start).map_or(0, |material| material.start);
        start..of(lines.end - 1).map_or(start, |material| material.end)
    }

    /// Is a line of less than full length the last of a key?
    fn is_last(&self, line: usize) -> bool {
        let material = self.material(line);
        material.ends_with('=') || is_random(material)
    }

    /// Columns of digests only have small letters and digits; a single line may be anything.
    fn is_key(&self, lines: Range<usize>) -> bool {
        let (mut upper, mut lower, mut digit) = (false, false, false);
        for byte in lines.clone().flat_map(|line| self.material(line).bytes()) {
            upper |= byte.is_ascii_uppercase();
            lower |= byte.is_ascii_lowercase();
            digit |= byte.is_ascii_digit();
        }
        lines.len() >= 2 && upper && lower && digit
    }

    /// The end of a key in the line after a full one, if other text follows there.
    fn cut_end(&self, last: usize) -> Option<usize> {
        let line = &self.lines[last];
        let front = &self.text[line.whole.start..line.material.as_ref()?.start];
        let next = self.lines.get(last + 1).filter(|_| line.is_full())?;
        next.cut(self.text, front).map(|cut| cut.end)
    }
}

/// The part of a line that may belong to a key.
fn material(line: &str) -> Option<&str> {
    let is_base64 = |byte: &u8| is_base64_byte(*byte) || *byte == b'=';
    // Everything from the end of the line back to a prefix.
    let run = line.bytes().rev().take_while(is_base64).count();
    let (front, tail) = line.split_at(line.len() - run);
    let ends = front.is_empty() || front.ends_with(FRONT_ENDS);
    let is_material = ends && front.len() <= LONGEST_FRONT;
    let body = tail.trim_end_matches('=');
    (is_material && !body.is_empty() && !body.contains('=')).then_some(tail)
}

/// Is it unlike a word, with more than small letters after the first one?
fn is_random(material: &str) -> bool {
    material.bytes().skip(1).any(|byte| !byte.is_ascii_lowercase())
}

const fn is_base64_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'+' || byte == b'/'
}
