//! Search without an index: which text of an event is searchable, how text is split into words, how
//! a query is parsed, and how an excerpt is cut.
//!
//! All stores use these functions, so all find the same hits.

mod question;
mod sift;
mod snippet;

use std::ops::Range;

pub use question::{Question, Term};
pub(crate) use sift::sifted;
pub use snippet::Shown;

use crate::model::{Event, Part};

/// How much of one event's text is searched. Longer texts are found only by their start.
pub const MAX_SEARCHED_BYTES: usize = 1 << 20;

/// A word of a text, in lower case, with its place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Word {
    /// The word in lower case.
    pub text: String,
    /// Its byte range in the text.
    pub place: Range<usize>,
}

/// The words of a text: runs of letters, digits and marks, in lower case. In scripts without spaces
/// between words, each character is a word.
pub fn words(text: &str) -> impl Iterator<Item = Word> + '_ {
    let mut chars = text.char_indices().peekable();
    std::iter::from_fn(move || {
        let (start, first) = chars.find(|(_, c)| is_wordy(*c))?;
        let mut end = start + first.len_utf8();
        let mut folded: String = first.to_lowercase().collect();
        if !is_unspaced(first) {
            while let Some((at, c)) = chars.next_if(|(_, c)| is_wordy(*c) && !is_unspaced(*c)) {
                folded.extend(c.to_lowercase());
                end = at + c.len_utf8();
            }
        }
        Some(Word { text: folded, place: start..end })
    })
}

/// Is it a letter, a digit, or a combining mark?
fn is_wordy(c: char) -> bool {
    c.is_alphanumeric() || ('\u{300}'..='\u{36f}').contains(&c)
}

/// Is it Han, Kana, Thai, Lao, Khmer or Burmese? Hangul has spaces.
fn is_unspaced(c: char) -> bool {
    matches!(c,
        '\u{0e00}'..='\u{0eff}' | '\u{1000}'..='\u{109f}' | '\u{1780}'..='\u{17ff}'
        | '\u{3040}'..='\u{30ff}' | '\u{3400}'..='\u{4dbf}' | '\u{4e00}'..='\u{9fff}'
        | '\u{f900}'..='\u{faff}' | '\u{20000}'..='\u{3ffff}')
}

/// The searchable text of an event: tasks, messages, calls and results, nodes' results, file paths,
/// errors. `None` if it has none.
#[must_use]
pub fn searchable(event: &Event) -> Option<String> {
    let mut texts: Vec<&str> = Vec::new();
    let answer;
    match event {
        Event::Created(created) => texts.push(&created.task),
        Event::Message(message) => {
            for part in &message.parts {
                match part {
                    Part::Text(text) | Part::Thinking(text) => texts.push(&text.text),
                    Part::ToolCall(call) => texts.extend([&*call.name, &call.arguments]),
                    Part::ToolResult(result) => texts.push(&result.text),
                    Part::Image(_) => {}
                }
            }
        }
        Event::Node(node) => {
            answer = node.answer();
            texts.extend(answer.as_deref());
            texts.extend(node.error.as_deref());
        }
        Event::Task(task) => texts.push(&task.description),
        Event::File(file) => {
            texts.push(&file.path);
            texts.extend(file.renamed_from.as_deref());
        }
        Event::Said(said) => texts.push(&said.text),
        Event::Record(record) => texts.extend(record.text.as_deref()),
        Event::Error(failure) => texts.push(&failure.message),
        Event::Status(change) => texts.extend(change.error.as_deref()),
        _ => {}
    }
    let mut text = texts.join("\n");
    text.truncate(text.floor_char_boundary(MAX_SEARCHED_BYTES));
    (!text.is_empty()).then_some(text)
}

/// The kinds of events that have searchable text.
pub const SEARCHABLE_KINDS: [crate::model::Kind; 9] = [
    crate::model::Kind::Created,
    crate::model::Kind::Message,
    crate::model::Kind::Node,
    crate::model::Kind::Task,
    crate::model::Kind::File,
    crate::model::Kind::Error,
    crate::model::Kind::Status,
    crate::model::Kind::Said,
    crate::model::Kind::Record,
];

#[cfg(test)]
mod tests {
    use super::*;

    fn folded(text: &str) -> Vec<String> {
        words(text).map(|word| word.text).collect()
    }

    #[test]
    fn words_are_runs_of_letters_and_digits_in_lower_case() {
        assert_eq!(folded("Fix src/auth_v2.rs, NOW!"), ["fix", "src", "auth", "v2", "rs", "now"]);
        assert_eq!(folded("Ünïcode ÉTÉ"), ["ünïcode", "été"]);
        assert!(folded(" \n\t-- ").is_empty());
    }

    #[test]
    fn scripts_without_spaces_are_found_by_any_part() {
        assert_eq!(folded("数据库 ok"), ["数", "据", "库", "ok"]);
    }

    #[test]
    fn places_point_back_into_the_text() {
        let text = "aé 数x";
        for word in words(text) {
            assert_eq!(text[word.place].to_lowercase(), word.text);
        }
    }
}
