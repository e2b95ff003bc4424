//! Parsed search queries.

use std::ops::Range;

use super::words;
use crate::error::Result;

/// A parsed search query: every phrase must occur.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Question {
    phrases: Vec<Phrase>,
    /// May the last word be incomplete?
    typing: bool,
}

/// A word of a query, for an index that knows words but not their positions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Term<'a> {
    /// The word in lower case.
    pub word: &'a str,
    /// Is it only the start of a word?
    pub open: bool,
}

/// Adjacent words, in order.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Phrase {
    words: Vec<String>,
    /// Is the last word only the start of one?
    open: bool,
}

/// The most phrases of a query, since each word is looked up.
const MAX_PHRASES: usize = 64;

impl Question {
    /// Parses what a user typed. `None` if it has no word. Quoted words must be adjacent, and so
    /// must the words of `src/main.rs`. The last word may be incomplete, unless it is quoted:
    /// people search while they type.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let mut phrases = Vec::new();
        let mut last_is_quoted = false;
        for (n, piece) in text.split('"').enumerate() {
            let before = phrases.len();
            let quoted = n % 2 == 1;
            if quoted {
                phrases.extend(Phrase::parse(piece));
            } else {
                phrases.extend(piece.split_whitespace().filter_map(Phrase::parse));
            }
            if phrases.len() > before {
                last_is_quoted = quoted;
            }
        }
        let mut typing = false;
        if let Some(last) = phrases.last_mut().filter(|_| !last_is_quoted) {
            typing = !std::mem::replace(&mut last.open, true);
        }
        typing &= phrases.len() <= MAX_PHRASES;
        phrases.truncate(MAX_PHRASES);
        (!phrases.is_empty()).then_some(Self { phrases, typing })
    }

    /// Finds at most `limit` hits. Whole words come first; words that only start with the last one
    /// are searched if there is room, because an index must collect all of those.
    pub fn answer<T>(
        &self,
        limit: usize,
        find: impl Fn(&Self) -> Result<Vec<T>>,
    ) -> Result<Vec<T>> {
        if self.typing {
            let mut whole = self.clone();
            whole.typing = false;
            whole.phrases.last_mut().into_iter().for_each(|last| last.open = false);
            let hits = find(&whole)?;
            if hits.len() >= limit {
                return Ok(hits);
            }
        }
        find(self)
    }

    /// Every word that must occur. A text with all of them may still lack a phrase, which
    /// [`find`](Self::find) checks.
    pub fn terms(&self) -> impl Iterator<Item = Term<'_>> {
        self.phrases.iter().flat_map(|phrase| {
            let last = phrase.words.len() - 1;
            phrase
                .words
                .iter()
                .enumerate()
                .map(move |(n, word)| Term { word: word.as_str(), open: n == last && phrase.open })
        })
    }

    /// The query in FTS5's syntax.
    pub(crate) fn to_fts5(&self) -> String {
        let phrase = |phrase: &Phrase| {
            let star = if phrase.open { " *" } else { "" };
            format!("\"{}\"{star}", phrase.words.join(" "))
        };
        self.phrases.iter().map(phrase).collect::<Vec<_>>().join(" AND ")
    }

    /// Where the phrases occur in a list of words, as index ranges; `None` unless each one does.
    #[must_use]
    pub fn find(&self, words: &[&str]) -> Option<Vec<Range<usize>>> {
        let occurs = |phrase: &Phrase| phrase.places(words).next().is_some();
        self.phrases.iter().all(occurs).then(|| self.places(words))
    }

    /// Where any of the phrases occur in a list of words, as index ranges. In redacted text some
    /// may be missing.
    #[must_use]
    pub fn places(&self, words: &[&str]) -> Vec<Range<usize>> {
        let mut found: Vec<_> = self.phrases.iter().flat_map(|it| it.places(words)).collect();
        found.sort_by_key(|range| (range.start, range.end));
        found
    }
}

impl Phrase {
    fn parse(text: &str) -> Option<Self> {
        let open = text.trim_end().ends_with('*');
        let words: Vec<String> = words(text).map(|word| word.text).collect();
        (!words.is_empty()).then_some(Self { words, open })
    }

    /// Where it occurs in a list of words.
    fn places(&self, words: &[&str]) -> impl Iterator<Item = Range<usize>> {
        let starts = 0..(words.len() + 1).saturating_sub(self.words.len());
        starts.filter_map(|start| {
            let end = start + self.words.len();
            self.matches(&words[start..end]).then_some(start..end)
        })
    }

    fn matches(&self, words: &[&str]) -> bool {
        let last = self.words.len() - 1;
        self.words.iter().zip(words).enumerate().all(|(n, (asked, word))| {
            if n == last && self.open { word.starts_with(asked.as_str()) } else { word == asked }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn occurs(question: &str, text: &str) -> bool {
        let words: Vec<_> = words(text).map(|word| word.text).collect();
        let words: Vec<_> = words.iter().map(String::as_str).collect();
        Question::parse(question).is_some_and(|question| question.find(&words).is_some())
    }

    #[test]
    fn all_words_must_occur_in_any_order() {
        assert!(occurs("auth fix", "Fix the AUTH module"));
        assert!(!occurs("auth missing", "Fix the AUTH module"));
    }

    #[test]
    fn quotes_and_paths_are_phrases() {
        assert!(occurs("\"the auth\"", "Fix the AUTH module"));
        assert!(!occurs("\"auth the\"", "Fix the AUTH module"));
        assert!(occurs("src/main.rs", "edit src/main.rs now"));
        assert!(!occurs("src/main.rs", "main.rs in src"));
    }

    #[test]
    fn a_star_matches_the_start_of_a_word() {
        assert!(occurs("mod*", "the modules"));
        assert!(!occurs("mod the", "the modules"));
    }

    #[test]
    fn the_last_word_may_be_incomplete_unless_it_is_quoted() {
        assert!(occurs("the mod", "the modules"));
        assert!(occurs("src/ma", "edit src/main.rs"));
        assert!(!occurs("\"the mod\"", "the modules"));
        assert!(!occurs("odules", "the modules"));
    }

    #[test]
    fn a_query_of_very_many_words_is_truncated() {
        let question = Question::parse(&"word ".repeat(100_000)).unwrap();
        assert_eq!(question.phrases.len(), MAX_PHRASES);
    }

    #[test]
    fn a_text_without_words_is_not_a_query() {
        for text in ["", "  ", "\"", "*", "-- !"] {
            assert_eq!(Question::parse(text), None, "{text:?}");
        }
    }

    #[test]
    fn no_input_can_break_out_of_the_index_language() {
        let question = Question::parse("a\" OR b NEAR(c) col:x ^y -z \"(").unwrap();
        assert_eq!(question.to_fts5(), r#""a" AND "or b near c col x y z""#);
    }
}
