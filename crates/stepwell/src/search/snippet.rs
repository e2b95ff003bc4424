//! The piece of text that a hit is shown with.

use super::{Question, Word, words};
use crate::Snippet;

/// How many words a snippet has.
const WORDS: usize = 24;

/// How many of them stand before the first match.
const LEAD: usize = 6;

/// The words around the first match, on one line. If nothing matches, the text's
/// front.
#[must_use]
pub fn snippet(text: &str, question: &Question) -> Snippet {
    let words: Vec<Word> = words(text).collect();
    let folded: Vec<&str> = words.iter().map(|word| word.text.as_str()).collect();
    let found = question.find(&folded).unwrap_or_default();
    let first = found.first().map_or(0, |range| range.start.saturating_sub(LEAD));
    let last = (first + WORDS).min(words.len());
    if first >= last {
        return Snippet::default();
    }
    let mut shown = Snippet::default();
    if first > 0 {
        shown.text.push('…');
    }
    let mut at = words[first].place.start;
    let mut open = 0;
    for (n, word) in words[first..last].iter().enumerate() {
        push_line(&mut shown.text, &text[at..word.place.start]);
        let start = shown.text.len();
        shown.text.push_str(&text[word.place.clone()]);
        at = word.place.end;
        let n = first + n;
        if found.iter().any(|range| range.contains(&n)) {
            // Words of one phrase make one match.
            let joined = found.iter().any(|range| range.contains(&n) && range.start < n);
            match shown.matches.last_mut() {
                Some(before) if joined && open == n => before.end = shown.text.len(),
                _ => shown.matches.push(start..shown.text.len()),
            }
            open = n + 1;
        }
    }
    if last < words.len() {
        shown.text.push('…');
    } else {
        push_line(&mut shown.text, &text[at..]);
        shown.text.truncate(shown.text.trim_end().len());
    }
    shown
}

/// Appends text with every run of white space made one space; what lies between two
/// words can be long, and is cut.
fn push_line(to: &mut String, text: &str) {
    const LONGEST: usize = 40;
    let mut count = 0;
    for c in text.chars() {
        if c.is_whitespace() || c.is_control() {
            if !to.ends_with(' ') {
                to.push(' ');
            }
        } else if count < LONGEST {
            to.push(c);
            count += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(text: &str, question: &str) -> String {
        let snippet = snippet(text, &Question::parse(question).unwrap());
        let mut marked = snippet.text.clone();
        for range in snippet.matches.iter().rev() {
            marked.insert(range.end, ']');
            marked.insert(range.start, '[');
        }
        marked
    }

    #[test]
    fn matches_are_marked_and_the_text_is_one_line() {
        assert_eq!(shown("Fix the\n\n  auth module.", "auth"), "Fix the [auth] module.");
        assert_eq!(shown("ÉTÉ à Paris", "été"), "[ÉTÉ] à Paris");
    }

    #[test]
    fn a_phrase_is_one_match() {
        assert_eq!(shown("see src/main.rs here", "src/main.rs"), "see [src/main.rs] here");
    }

    #[test]
    fn a_long_text_is_cut_around_the_first_match() {
        let text = format!("{}needle{}", "a ".repeat(100), " b".repeat(100));
        let shown = shown(&text, "needle");
        assert!(shown.starts_with("…a a") && shown.ends_with("b b…"), "{shown}");
        assert!(shown.contains("[needle]"));
    }
}
