//! Removes terminal sequences such as colours. `grep --color` writes them inside words, where they
//! would hide a secret from every rule.

use std::ops::Range;
use std::sync::LazyLock;

use regex::Regex;

/// The beginning of a sequence: the character itself, its escaped form, or its replacement.
macro_rules! escape {
    () => {
        r"(?:\x1b|\u{fffd}|\\u001[bB]|\\x1[bB]|\\033|\\e)"
    };
}

/// A colour or another terminal sequence; a link; a character set.
static SEQUENCE: LazyLock<Regex> = LazyLock::new(|| {
    let pattern = concat!(
        escape!(),
        r"(?:\[[0-?]*[ -/]*[@-~]|[()][0-9AB]",
        r"|\][^\x07\x1b\r\n]{0,4096}(?:\x07|",
        escape!(),
        r"\\))|\u{9b}[0-?]*[ -/]*[@-~]",
    );
    Regex::new(pattern).expect("the expression is written above")
});

/// The sequences of a text.
fn sequences(text: &str) -> impl Iterator<Item = Range<usize>> {
    // Nearly every text is done here.
    let may_have = text.contains(['\u{1b}', '\\', '\u{9b}', '\u{fffd}']);
    may_have.then(|| SEQUENCE.find_iter(text)).into_iter().flatten().map(|it| it.range())
}

/// The sequences without visible text of their own, unlike a link's address.
pub(super) fn colours(text: &str) -> impl Iterator<Item = &str> {
    let all = sequences(text).map(|range| &text[range]);
    all.filter(|sequence| !sequence.contains(']'))
}

/// A text as a person sees it.
pub(super) struct Plain {
    pub(super) text: String,
    /// The start of each part, here and in the original.
    parts: Vec<(usize, usize)>,
}

impl Plain {
    /// `None` if the text contains no sequence.
    pub(super) fn of(whole: &str) -> Option<Self> {
        let mut plain = Self { text: String::new(), parts: Vec::new() };
        let mut at = 0;
        for sequence in sequences(whole) {
            plain.push(whole, at..sequence.start);
            at = sequence.end;
        }
        if at == 0 {
            return None;
        }
        plain.push(whole, at..whole.len());
        Some(plain)
    }

    fn push(&mut self, whole: &str, part: Range<usize>) {
        if !part.is_empty() {
            self.parts.push((self.text.len(), part.start));
            self.text.push_str(&whole[part]);
        }
    }

    /// The range of a part in the original.
    pub(super) fn origin(&self, part: &Range<usize>) -> Range<usize> {
        let origin = |at: usize| {
            let after = self.parts.partition_point(|(start, _)| *start <= at);
            let (start, origin) = after.checked_sub(1).map_or((0, 0), |last| self.parts[last]);
            origin + (at - start)
        };
        origin(part.start)..origin(part.end - 1) + 1
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_is_found_again_in_the_coloured_text() {
        let whole = "\u{1b}[1mone\u{1b}[m tw\u{1b}[01;31m\u{1b}[Ko\u{1b}(B \\u001b[0mend\u{9b}0m";
        let plain = Plain::of(whole).unwrap();
        assert_eq!(plain.text, "one two end");
        let origin = |part| &whole[plain.origin(&part)];
        assert_eq!(origin(0..3), "one");
        assert_eq!(origin(4..7), "tw\u{1b}[01;31m\u{1b}[Ko");
        assert_eq!(origin(8..11), "end");
        assert_eq!(Plain::of("on\u{fffd}[01;31me").unwrap().text, "one");
        assert!(Plain::of("C:\\example\\033 a[0m").is_none());
    }
}
