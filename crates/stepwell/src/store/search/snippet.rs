//! Excerpts of search hits.

use std::borrow::Cow;
use std::ops::Range;

use super::{Question, Word, searchable, words};
use crate::log::Redactor;
use crate::model::Event;
use crate::store::query::Snippet;

/// How every redaction placeholder starts.
const PLACEHOLDER: &str = "[redacted:";

/// The number of words of an excerpt.
const WORDS: usize = 24;

/// How many of them come before the first match.
const LEAD: usize = 6;

/// The searchable text of an event, redacted. Excerpts are cut only from this: no rule recognizes
/// the rest of a secret that was cut first.
#[derive(Clone, Debug)]
pub struct Shown<'a> {
    text: String,
    redactor: &'a Redactor,
}

impl<'a> Shown<'a> {
    /// The searchable text of an event, redacted.
    #[must_use]
    pub fn of(event: &Event, redactor: &'a Redactor) -> Self {
        let text = searchable(&event.clone().redacted(redactor)).unwrap_or_default();
        // Other programs' records are stored unredacted, and a secret may span two parts.
        Self { text: redactor.redact(&text).into_owned(), redactor }
    }

    /// The words around the first match. If no match is left after redaction, the start of the text
    /// or its first placeholder.
    #[must_use]
    pub fn snippet(&self, question: &Question) -> Snippet {
        let snippet = cut(&self.text, question);
        // Cutting words off and joining lines can form a secret that was not one before.
        match self.redactor.redact(&snippet.text) {
            Cow::Borrowed(_) => snippet,
            Cow::Owned(text) => Snippet { matches: marks(&text, question), text },
        }
    }
}

/// The place to start an excerpt at or before `at`, so that it does not start inside a placeholder.
fn placeholder_start(text: &str, at: usize) -> usize {
    /// Longer than any placeholder.
    const LONGEST: usize = 48;
    let from = text.floor_char_boundary(at.saturating_sub(LONGEST));
    let front = &text[from..at];
    let open = front.rfind(PLACEHOLDER).filter(|start| !front[*start..].contains(']'));
    // A placeholder's first word follows its bracket directly.
    let bracket = || front.ends_with('[').then(|| front.len() - 1);
    let bracket = || bracket().filter(|start| text[from + start..].starts_with(PLACEHOLDER));
    open.or_else(bracket).map_or(at, |start| from + start)
}

/// The byte ranges of the query's phrases in an excerpt.
fn marks(text: &str, question: &Question) -> Vec<Range<usize>> {
    let words: Vec<Word> = words(text).collect();
    let folded: Vec<&str> = words.iter().map(|word| word.text.as_str()).collect();
    let places = question.places(&folded).into_iter();
    places.map(|it| words[it.start].place.start..words[it.end - 1].place.end).collect()
}

fn cut(text: &str, question: &Question) -> Snippet {
    let words: Vec<Word> = words(text).collect();
    let folded: Vec<&str> = words.iter().map(|word| word.text.as_str()).collect();
    let found = question.places(&folded);
    let hidden = || {
        let start = text.find(PLACEHOLDER)?;
        Some(words.partition_point(|word| word.place.start < start))
    };
    let first = found.first().map(|range| range.start).or_else(hidden).unwrap_or(0);
    let first = first.saturating_sub(LEAD);
    let last = (first + WORDS).min(words.len());
    if first >= last {
        return Snippet::default();
    }
    let mut shown = Snippet::default();
    if first > 0 {
        shown.text.push('…');
    }
    let mut at = placeholder_start(text, words[first].place.start);
    let mut open = 0;
    for (n, word) in words[first..last].iter().enumerate() {
        push_line(&mut shown.text, &text[at..word.place.start]);
        let start = shown.text.len();
        shown.text.push_str(&text[word.place.clone()]);
        at = word.place.end;
        let n = first + n;
        if found.iter().any(|range| range.contains(&n)) {
            // The words of one phrase make one match.
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

/// Appends text with every run of white space as one space. Long text between two words is
/// truncated.
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
        let snippet = cut(text, &Question::parse(question).unwrap());
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
    fn a_redaction_placeholder_is_not_split() {
        let text = "one [redacted:private-key] is the key of the deep well";
        assert_eq!(shown(text, "deep"), "…[redacted:private-key] is the key of the [deep] well");
        assert_eq!(shown("[redacted:jwt] is the one", "one"), "[redacted:jwt] is the [one]");
    }

    #[test]
    fn a_long_text_is_cut_around_the_first_match() {
        let text = format!("{}needle{}", "a ".repeat(100), " b".repeat(100));
        let shown = shown(&text, "needle");
        assert!(shown.starts_with("…a a") && shown.ends_with("b b…"), "{shown}");
        assert!(shown.contains("[needle]"));
    }
}
