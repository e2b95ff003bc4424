//! A tool's output: complete if it fits, otherwise its beginning and end.

use std::collections::VecDeque;

use stepwell::model::counted;

/// Collects output. Accepts any amount and keeps as much as the limit allows.
#[derive(Clone, Debug)]
pub(crate) struct Output {
    head: Vec<u8>,
    tail: VecDeque<u8>,
    /// How many bytes each of the two parts may have.
    half: usize,
    /// How many bytes between the two parts were dropped.
    dropped: usize,
}

impl Output {
    pub(crate) fn new(limit: usize) -> Self {
        Self { head: Vec::new(), tail: VecDeque::new(), half: limit.div_ceil(2), dropped: 0 }
    }

    pub(crate) fn push(&mut self, bytes: &[u8]) {
        let room = self.half - self.head.len();
        let (first, rest) = bytes.split_at(room.min(bytes.len()));
        self.head.extend_from_slice(first);
        self.tail.extend(rest);
        let excess = self.tail.len().saturating_sub(self.half);
        self.tail.drain(..excess);
        self.dropped += excess;
    }

    /// The output as text. A part is cut at the end of a line, else of a word: half a line
    /// misleads, and half a token is not recognised by the redactor.
    pub(crate) fn text(mut self) -> String {
        let tail = self.tail.make_contiguous();
        if self.dropped == 0 {
            self.head.extend_from_slice(tail);
            return String::from_utf8_lossy(&self.head).into_owned();
        }
        let is_break = |byte: &u8| *byte == b'\n';
        let is_gap = u8::is_ascii_whitespace;
        let end = self.head.iter().rposition(is_break);
        let end = end.or_else(|| self.head.iter().rposition(is_gap));
        let end = end.map_or(self.head.len(), |at| at + 1);
        let within = &tail[..tail.len().saturating_sub(1)];
        let start = within.iter().position(is_break).or_else(|| within.iter().position(is_gap));
        let start = start.map_or(0, |at| at + 1);
        let (head, tail) = (whole(&self.head[..end]), &tail[start..]);
        let missing = self.dropped + (self.head.len() - head.len()) + start;
        let head = String::from_utf8_lossy(head);
        let gap = if head.is_empty() || head.ends_with('\n') { "" } else { "\n" };
        let tail = String::from_utf8_lossy(tail);
        let tail = tail.trim_start_matches(char::REPLACEMENT_CHARACTER);
        format!("{head}{gap}[{} left out]\n{tail}", counted(missing, "byte"))
    }
}

/// The bytes without an incomplete character at the end.
fn whole(bytes: &[u8]) -> &[u8] {
    match std::str::from_utf8(bytes) {
        Err(error) if error.error_len().is_none() => &bytes[..error.valid_up_to()],
        _ => bytes,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(limit: usize, pieces: &[&str]) -> String {
        let mut output = Output::new(limit);
        pieces.iter().for_each(|piece| output.push(piece.as_bytes()));
        output.text()
    }

    #[test]
    fn what_fits_is_kept_whole() {
        assert_eq!(shown(8, &["abc", "def", "gh"]), "abcdefgh");
        assert_eq!(shown(0, &[]), "");
    }

    #[test]
    fn the_first_and_the_last_part_are_kept_and_the_rest_is_counted() {
        assert_eq!(shown(4, &["abcdef"]), "ab\n[2 bytes left out]\nef");
        let lines: String = (0..100).map(|n| format!("line {n:02}\n")).collect();
        let told = shown(40, &[&lines]);
        assert_eq!(told, "line 00\nline 01\n[768 bytes left out]\nline 98\nline 99\n");
    }

    #[test]
    fn characters_are_not_cut_in_two() {
        let told = shown(6, &["éééééééé"]);
        assert!(!told.contains(char::REPLACEMENT_CHARACTER), "{told}");
        assert!(told.starts_with("é\n[") && told.ends_with("\né"), "{told}");
    }
}
