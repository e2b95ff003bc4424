//! Styled lines, cut to the width of the screen between graphemes.

use ratatui::style::Style;
use ratatui::text::{Line, Span};
use unicode_segmentation::UnicodeSegmentation;
use unicode_width::UnicodeWidthStr;

/// How many columns a text takes.
#[must_use]
pub(crate) fn width(text: &str) -> usize {
    text.graphemes(true).map(grapheme_width).sum()
}

/// How many columns a grapheme takes: at most two, whatever it is composed of.
fn grapheme_width(grapheme: &str) -> usize {
    grapheme.width().min(2)
}

/// Wraps a line between words; words that are too long are cut. Lines after the first begin with
/// `indent`.
#[must_use]
pub(crate) fn wrap(line: &Line<'_>, columns: usize, indent: &str) -> Vec<Line<'static>> {
    let columns = columns.max(4);
    let indent = if width(indent) + 4 > columns { "" } else { indent };
    let mut wrapper =
        Wrapper { columns, indent, done: Vec::new(), now: Vec::new(), used: 0, breaks: None };
    for span in &line.spans {
        let style = line.style.patch(span.style);
        for grapheme in span.content.graphemes(true) {
            wrapper.push(grapheme, style);
        }
    }
    wrapper.finish()
}

/// Cuts a text to a width; if something is lost, it ends with an ellipsis.
#[must_use]
pub(crate) fn cut(text: &str, columns: usize) -> String {
    if width(text) <= columns {
        return text.to_owned();
    }
    let (mut short, mut used) = (String::new(), 0);
    for grapheme in text.graphemes(true) {
        used += grapheme_width(grapheme);
        if used >= columns {
            break;
        }
        short.push_str(grapheme);
    }
    if columns > 0 {
        short.push('…');
    }
    short
}

struct Wrapper<'a> {
    columns: usize,
    indent: &'a str,
    done: Vec<Line<'static>>,
    now: Vec<(String, Style)>,
    used: usize,
    /// Behind which of the present line's graphemes it may end.
    breaks: Option<usize>,
}

impl Wrapper<'_> {
    fn push(&mut self, grapheme: &str, style: Style) {
        let wide = grapheme_width(grapheme);
        // After a break, the rest of the line can still leave no room for a wide grapheme.
        while self.used + wide > self.columns {
            // A space between two lines is not shown.
            if grapheme == " " {
                self.breaks = Some(self.now.len());
                self.next_line();
                return;
            }
            self.next_line();
        }
        self.now.push((grapheme.to_owned(), style));
        self.used += wide;
        // Behind its mark an item's line does not end.
        if grapheme == " " && self.used > width(self.indent) {
            self.breaks = Some(self.now.len());
        }
    }

    fn next_line(&mut self) {
        let at = self.breaks.take().unwrap_or(self.now.len());
        let rest = self.now.split_off(at);
        let mut line = std::mem::take(&mut self.now);
        while line.last().is_some_and(|(grapheme, _)| grapheme == " ") {
            line.pop();
        }
        self.done.push(joined(line));
        let indent = self.indent.graphemes(true).map(|one| (one.to_owned(), Style::new()));
        self.now.extend(indent);
        self.now.extend(rest);
        self.used = self.now.iter().map(|(grapheme, _)| grapheme_width(grapheme)).sum();
    }

    fn finish(mut self) -> Vec<Line<'static>> {
        self.done.push(joined(self.now));
        self.done
    }
}

/// Graphemes as spans, as few as there are styles in a row.
fn joined(graphemes: Vec<(String, Style)>) -> Line<'static> {
    let mut spans: Vec<Span<'static>> = Vec::new();
    for (grapheme, style) in graphemes {
        match spans.last_mut() {
            Some(span) if span.style == style => span.content.to_mut().push_str(&grapheme),
            _ => spans.push(Span::styled(grapheme, style)),
        }
    }
    Line::from(spans)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wrapped(text: &str, columns: usize, indent: &str) -> Vec<String> {
        wrap(&Line::from(text.to_owned()), columns, indent)
            .iter()
            .map(ToString::to_string)
            .collect()
    }

    #[test]
    fn lines_end_between_words_and_long_words_are_cut() {
        assert_eq!(wrapped("one two three", 8, ""), ["one two", "three"]);
        assert_eq!(wrapped("abcdefghij", 4, ""), ["abcd", "efgh", "ij"]);
        assert_eq!(wrapped("- one two three", 9, "  "), ["- one two", "  three"]);
        assert_eq!(wrapped("- one two three", 8, "  "), ["- one", "  two", "  three"]);
        assert_eq!(wrapped("", 9, "  "), [""]);
    }

    #[test]
    fn wide_and_combining_characters_stay_whole() {
        assert_eq!(wrapped("漢字漢字漢", 5, ""), ["漢字", "漢字", "漢"]);
        assert_eq!(
            wrapped("e\u{301}e\u{301}e\u{301}e\u{301}e\u{301}", 4, ""),
            ["e\u{301}e\u{301}e\u{301}e\u{301}", "e\u{301}"]
        );
        assert_eq!(wrapped(" abcd漢", 5, ""), ["", "abcd", "漢"]);
        assert_eq!(wrapped("- a bcde漢", 8, "  "), ["- a", "  bcde漢"]);
        assert_eq!(wrapped("漢 abcde", 7, "  "), ["漢", "  abcde"]);
        assert_eq!(wrapped("漢 abcde", 7, "   "), ["漢 abcd", "   e"]);
        assert_eq!(wrapped("- a bcdef漢", 8, "  "), ["- a", "  bcdef", "  漢"]);
        assert_eq!(width("👩\u{200d}💻"), 2);
        assert_eq!(cut("漢字漢字", 5), "漢字…");
        assert_eq!(cut("short", 5), "short");
    }

    proptest::proptest! {
        #[test]
        fn no_line_is_wider_than_asked_and_nothing_is_lost(
            text in "( ?(\\PC|[a漢👍\u{301}]){0,40}){0,3}",
            columns in 4usize..30,
            indent in " {0,6}",
        ) {
            let lines = wrapped(&text, columns, &indent);
            for line in &lines {
                proptest::prop_assert!(width(line) <= columns, "{:?}", line);
            }
            let kept = |text: &str| text.chars().filter(|c| *c != ' ').collect::<String>();
            proptest::prop_assert_eq!(kept(&lines.concat()), kept(&text));
            // Words stay apart. A space that carries a combining mark is none.
            let is_plain = text.graphemes(true).all(|one| one == " " || !one.contains(' '));
            let fits = text.split(' ').all(|word| width(word) + indent.len() <= columns);
            if is_plain && fits {
                let words = |text: &str| text.split(' ').filter(|word| !word.is_empty()).map(str::to_owned).collect::<Vec<_>>();
                proptest::prop_assert_eq!(words(&lines.join(" ")), words(&text));
            }
        }
    }
}
