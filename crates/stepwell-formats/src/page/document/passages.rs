//! Somebody's text, taken apart into prose and code.

/// A part of a text.
#[derive(Debug, PartialEq)]
pub(crate) enum Passage {
    /// Words, perhaps with marks of Markdown in them.
    Prose(String),
    /// Code, in a language or none.
    Code { language: String, text: String },
}

/// The passages of a text. Code begins at a fence of Markdown and ends at the next one, or
/// with the text: so every renderer agrees where it ends, and none has to ask a viewer.
pub(crate) fn passages(text: &str) -> Vec<Passage> {
    let mut passages = Vec::new();
    let mut prose: Vec<&str> = Vec::new();
    let mut lines = text.lines();
    while let Some(line) = lines.next() {
        let Some(fence) = Fence::opens(line) else {
            prose.push(line);
            continue;
        };
        close(&mut passages, &mut prose);
        let inner = lines.by_ref().take_while(|line| !fence.is_closed_by(line));
        let code: Vec<&str> = inner.map(|line| fence.unindent(line)).collect();
        passages.push(Passage::Code { language: fence.language, text: code.join("\n") });
    }
    close(&mut passages, &mut prose);
    passages
}

/// Ends the prose, without the empty lines around it.
fn close(passages: &mut Vec<Passage>, prose: &mut Vec<&str>) {
    let blank = |line: &&str| line.trim().is_empty();
    let first = prose.iter().position(|line| !blank(line));
    let last = prose.iter().rposition(|line| !blank(line));
    if let (Some(first), Some(last)) = (first, last) {
        passages.push(Passage::Prose(prose[first..=last].join("\n")));
    }
    prose.clear();
}

/// The beginning of a block of code.
struct Fence {
    mark: char,
    length: usize,
    indent: usize,
    language: String,
}

impl Fence {
    fn opens(line: &str) -> Option<Self> {
        let inner = line.trim_start();
        let mark = inner.chars().next().filter(|c| matches!(c, '`' | '~'))?;
        let info = inner.trim_start_matches(mark);
        let (length, indent) = (inner.len() - info.len(), line.len() - inner.len());
        if length < 3 || (mark == '`' && info.contains('`')) {
            return None;
        }
        let word = info.split_whitespace().next().unwrap_or_default();
        let allowed = |c: &char| c.is_ascii_alphanumeric() || "+-._#".contains(*c);
        Some(Self { mark, length, indent, language: word.chars().filter(allowed).collect() })
    }

    fn is_closed_by(&self, line: &str) -> bool {
        let line = line.trim();
        line.len() >= self.length && line.chars().all(|c| c == self.mark)
    }

    /// The line without the indentation of the whole block.
    fn unindent<'a>(&self, line: &'a str) -> &'a str {
        let blanks = line.len() - line.trim_start_matches(' ').len();
        &line[blanks.min(self.indent)..]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn prose(text: &str) -> Passage {
        Passage::Prose(text.to_owned())
    }

    fn code(language: &str, text: &str) -> Passage {
        Passage::Code { language: language.to_owned(), text: text.to_owned() }
    }

    #[test]
    fn code_is_what_stands_between_fences() {
        let text = "\na\n\nb\n\n```rust ignore\nfn f() {}\n\n# x\n```\nc\n~~~~\n```\n~~~\n~~~~\n";
        let expected = vec![
            prose("a\n\nb"),
            code("rust", "fn f() {}\n\n# x"),
            prose("c"),
            code("", "```\n~~~"),
        ];
        assert_eq!(passages(text), expected);
    }

    #[test]
    fn a_fence_that_is_left_open_ends_with_the_text() {
        assert_eq!(passages("a\n```\nb"), [prose("a"), code("", "b")]);
        assert_eq!(passages("```"), [code("", "")]);
        assert!(passages(" \n\n").is_empty());
    }

    #[test]
    fn code_in_a_list_loses_its_indentation() {
        let text = "1. x\n   ```\n   a\n     b\n   ```\n2. y";
        assert_eq!(passages(text), [prose("1. x"), code("", "a\n  b"), prose("2. y")]);
    }

    #[test]
    fn code_in_a_line_opens_nothing() {
        assert_eq!(passages("```not``` code\nb"), [prose("```not``` code\nb")]);
    }
}
