//! Markdown as styled lines.

use pulldown_cmark::{CodeBlockKind, Event, HeadingLevel, Options, Parser, Tag, TagEnd};
use ratatui::style::{Modifier, Style};
use ratatui::text::{Line, Span};

use crate::clean::Clean;
use crate::diff;
use crate::theme::Theme;
use crate::wrap::{width, wrap};

/// Markdown as lines of at most so many columns.
#[must_use]
pub(crate) fn lines(text: &Clean, columns: usize, theme: Theme) -> Vec<Line<'static>> {
    let options =
        Options::ENABLE_STRIKETHROUGH | Options::ENABLE_TABLES | Options::ENABLE_TASKLISTS;
    let mut page = Page::new(theme, columns);
    for event in Parser::new_ext(text.as_str(), options) {
        page.push(event);
    }
    page.end_line();
    while page.done.last().is_some_and(|line| line.spans.is_empty()) {
        page.done.pop();
    }
    page.done
}

/// Where a text that still grows may be cut: behind the last blank line that is in no block of code
/// or list, so that what is before it looks the same whatever follows.
#[must_use]
pub(crate) fn settled(text: &str) -> usize {
    let (mut at, mut settled, mut fence) = (0, 0, None::<(char, usize)>);
    let mut in_list = false;
    for line in text.split_inclusive('\n') {
        let start = at;
        at += line.len();
        let body = line.trim();
        let mark = body.chars().next().filter(|c| matches!(c, '`' | '~'));
        let run = mark.map_or(0, |mark| body.chars().take_while(|c| *c == mark).count());
        match (fence, mark) {
            (Some((open, length)), Some(mark))
                if mark == open && run >= length && body.len() == run =>
            {
                fence = None;
                if !in_list && line.ends_with('\n') {
                    settled = at;
                }
            }
            (None, Some(mark)) if run >= 3 => fence = Some((mark, run)),
            (None, _) if body.is_empty() && line.ends_with('\n') && !in_list => settled = at,
            (None, _) if !body.is_empty() => {
                let begins_item = is_item(body);
                // What stands at the margin behind a blank line ends a list.
                if in_list
                    && !begins_item
                    && !line.starts_with([' ', '\t'])
                    && after_blank(&text[..start])
                {
                    settled = start;
                    in_list = false;
                }
                in_list |= begins_item;
            }
            _ => {}
        }
    }
    settled
}

fn after_blank(text: &str) -> bool {
    text.ends_with("\n\n") || text.is_empty()
}

fn is_item(line: &str) -> bool {
    let numbered = line.trim_start_matches(|c: char| c.is_ascii_digit());
    line.starts_with("- ")
        || line.starts_with("* ")
        || line.starts_with("+ ")
        || (numbered.len() < line.len()
            && (numbered.starts_with(". ") || numbered.starts_with(") ")))
}

struct Page {
    theme: Theme,
    columns: usize,
    done: Vec<Line<'static>>,
    now: Vec<Span<'static>>,
    styles: Vec<Style>,
    /// What each line begins with: quotes, items.
    prefix: Vec<Prefix>,
    lists: Vec<Option<u64>>,
    code: Option<(String, String)>,
    link: Option<String>,
    table: Option<Table>,
}

#[derive(Default)]
struct Table {
    rows: Vec<Vec<String>>,
    cell: Option<String>,
}

struct Prefix {
    first: String,
    later: String,
    /// Was the first line begun?
    used: bool,
}

impl Page {
    fn new(theme: Theme, columns: usize) -> Self {
        Self {
            theme,
            columns,
            done: Vec::new(),
            now: Vec::new(),
            styles: Vec::new(),
            prefix: Vec::new(),
            lists: Vec::new(),
            code: None,
            link: None,
            table: None,
        }
    }

    fn push(&mut self, event: Event<'_>) {
        match event {
            Event::Start(tag) => self.start(tag),
            Event::End(tag) => self.end(tag),
            Event::Text(text)
            | Event::Html(text)
            | Event::InlineHtml(text)
            | Event::InlineMath(text)
            | Event::DisplayMath(text) => self.text(&text),
            Event::Code(code) => self.styled(&code, self.theme.code()),
            Event::SoftBreak => self.text(" "),
            Event::HardBreak => self.end_line(),
            Event::Rule => {
                self.blank();
                let rule = "─".repeat(self.columns.min(40));
                self.styled(&rule, self.theme.faint());
                self.end_line();
            }
            Event::TaskListMarker(done) => self.text(if done { "[x] " } else { "[ ] " }),
            Event::FootnoteReference(name) => self.text(&format!("[{name}]")),
        }
    }

    fn start(&mut self, tag: Tag<'_>) {
        match tag {
            Tag::Paragraph => self.blank(),
            Tag::Heading { level, .. } => {
                self.blank();
                let mut style = self.theme.accent().add_modifier(Modifier::BOLD);
                if level == HeadingLevel::H1 {
                    style = style.add_modifier(Modifier::UNDERLINED);
                }
                self.styles.push(style);
            }
            Tag::BlockQuote(_) => {
                self.blank();
                self.push_prefix("│ ", "│ ");
                self.styles.push(self.theme.faint());
            }
            Tag::CodeBlock(kind) => {
                self.blank();
                let language = match kind {
                    CodeBlockKind::Fenced(language) => language.to_string(),
                    CodeBlockKind::Indented => String::new(),
                };
                self.code = Some((language, String::new()));
            }
            Tag::List(first) => {
                if self.lists.is_empty() {
                    self.blank();
                } else {
                    self.end_line();
                }
                self.lists.push(first);
            }
            Tag::Item => self.start_item(),
            Tag::Emphasis => self.styles.push(Style::new().add_modifier(Modifier::ITALIC)),
            Tag::Strong => self.styles.push(Style::new().add_modifier(Modifier::BOLD)),
            Tag::Strikethrough => {
                self.styles.push(Style::new().add_modifier(Modifier::CROSSED_OUT));
            }
            Tag::Link { dest_url, .. } => self.link = Some(dest_url.to_string()),
            Tag::Image { dest_url, .. } => {
                self.text("[picture: ");
                self.link = Some(dest_url.to_string());
            }
            Tag::Table(_) => {
                self.blank();
                self.table = Some(Table::default());
            }
            Tag::TableHead | Tag::TableRow => {
                if let Some(table) = &mut self.table {
                    table.rows.push(Vec::new());
                }
            }
            Tag::TableCell => {
                if let Some(table) = &mut self.table {
                    table.cell = Some(String::new());
                }
            }
            _ => {}
        }
    }

    fn end(&mut self, tag: TagEnd) {
        match tag {
            TagEnd::Paragraph => self.end_line(),
            TagEnd::Heading(_) => {
                self.end_line();
                self.styles.pop();
            }
            TagEnd::BlockQuote(_) => {
                self.end_line();
                self.prefix.pop();
                self.styles.pop();
            }
            TagEnd::CodeBlock => self.end_code(),
            TagEnd::List(_) => {
                self.end_line();
                self.lists.pop();
            }
            TagEnd::Item => {
                self.end_line();
                self.prefix.pop();
            }
            TagEnd::Emphasis | TagEnd::Strong | TagEnd::Strikethrough => drop(self.styles.pop()),
            TagEnd::Link => self.end_link(false),
            TagEnd::Image => self.end_link(true),
            TagEnd::TableCell => {
                if let Some(table) = &mut self.table
                    && let (Some(cell), Some(row)) = (table.cell.take(), table.rows.last_mut())
                {
                    row.push(cell);
                }
            }
            TagEnd::Table => self.end_table(),
            _ => {}
        }
    }

    fn start_item(&mut self) {
        self.end_line();
        let mark = match self.lists.last_mut() {
            Some(Some(number)) => {
                *number += 1;
                format!("{}. ", *number - 1)
            }
            _ => "• ".to_owned(),
        };
        let later = " ".repeat(width(&mark));
        self.push_prefix(&mark, &later);
    }

    fn push_prefix(&mut self, first: &str, later: &str) {
        let (first, later) = (first.to_owned(), later.to_owned());
        self.prefix.push(Prefix { first, later, used: false });
    }

    fn style(&self) -> Style {
        self.styles.iter().fold(Style::new(), |all, style| all.patch(*style))
    }

    fn text(&mut self, text: &str) {
        if let Some((_, code)) = &mut self.code {
            code.push_str(text);
        } else if let Some(cell) = self.table.as_mut().and_then(|table| table.cell.as_mut()) {
            cell.push_str(text);
        } else {
            let style = self.style();
            self.styled_as(text, style);
        }
    }

    fn styled(&mut self, text: &str, style: Style) {
        if let Some(cell) = self.table.as_mut().and_then(|table| table.cell.as_mut()) {
            cell.push_str(text);
            return;
        }
        let style = self.style().patch(style);
        self.styled_as(text, style);
    }

    fn styled_as(&mut self, text: &str, style: Style) {
        for (nth, line) in text.split('\n').enumerate() {
            if nth > 0 {
                self.end_line();
            }
            if !line.is_empty() {
                self.now.push(Span::styled(line.to_owned(), style));
            }
        }
    }

    /// Where a link leads is always shown: what it is called proves nothing.
    fn end_link(&mut self, picture: bool) {
        let Some(to) = self.link.take() else { return };
        let named: String =
            self.now.last().map(|span| span.content.to_string()).unwrap_or_default();
        if named != to {
            self.text(" ");
            self.styled(&format!("<{to}>"), self.theme.link());
        }
        if picture {
            self.text("]");
        }
    }

    fn end_code(&mut self) {
        let Some((language, code)) = self.code.take() else { return };
        let is_diff = matches!(language.as_str(), "diff" | "patch");
        for line in code.trim_end_matches('\n').split('\n') {
            let style = if is_diff { diff::style(line, self.theme) } else { self.theme.code() };
            self.now.push(Span::raw("  "));
            self.now.push(Span::styled(line.to_owned(), style));
            // What does not fit goes on below, as far in as the line began.
            let blank = line.len() - line.trim_start().len();
            let indent = " ".repeat(2 + width(&line[..blank]).min(self.columns / 2));
            self.end_line_within(&indent);
        }
    }

    fn end_table(&mut self) {
        let Some(table) = self.table.take() else { return };
        let columns = table.rows.iter().map(Vec::len).max().unwrap_or(0);
        let wide = |column: usize| {
            table
                .rows
                .iter()
                .filter_map(|row| row.get(column))
                .map(|cell| width(cell))
                .max()
                .unwrap_or(0)
        };
        let mut widths: Vec<usize> = (0..columns).map(wide).collect();
        let before: usize = self.prefix.iter().map(|prefix| width(&prefix.later)).sum();
        let between = before + 3 * columns.saturating_sub(1);
        narrow(&mut widths, self.columns.saturating_sub(between));
        for (nth, row) in table.rows.iter().enumerate() {
            let style = if nth == 0 { self.theme.strong() } else { Style::new() };
            self.table_row(row, &widths, style);
        }
    }

    /// A row of a table: cells that are too long go on below, in their own column.
    fn table_row(&mut self, row: &[String], widths: &[usize], style: Style) {
        let cell = |(cell, wide): (&String, &usize)| -> Vec<String> {
            wrap(&Line::from(cell.clone()), *wide, "").iter().map(ToString::to_string).collect()
        };
        let cells: Vec<Vec<String>> = row.iter().zip(widths).map(cell).collect();
        for nth in 0..cells.iter().map(Vec::len).max().unwrap_or(0) {
            for (column, cell) in cells.iter().enumerate() {
                if column > 0 {
                    self.now.push(Span::styled(" │ ", self.theme.faint()));
                }
                let text = cell.get(nth).map_or("", String::as_str);
                let room = widths[column].saturating_sub(width(text));
                let room = if column + 1 == row.len() { 0 } else { room };
                self.now.push(Span::styled(format!("{text}{}", " ".repeat(room)), style));
            }
            self.end_line();
        }
    }

    /// A blank line before a block, except before the first one and in an item that just began.
    fn blank(&mut self) {
        self.end_line();
        let just_began = self.prefix.last().is_some_and(|prefix| !prefix.used);
        if !self.done.is_empty()
            && !just_began
            && self.done.last().is_some_and(|line| !line.spans.is_empty())
        {
            self.done.push(Line::default());
        }
    }

    fn end_line(&mut self) {
        self.end_line_within("");
    }

    /// Ends a line. Where it does not fit, the rest stands so far in.
    fn end_line_within(&mut self, indent: &str) {
        if self.now.is_empty() {
            return;
        }
        let (mut first, mut later) = (String::new(), String::new());
        for prefix in &mut self.prefix {
            first.push_str(if prefix.used { &prefix.later } else { &prefix.first });
            later.push_str(&prefix.later);
            prefix.used = true;
        }
        later.push_str(indent);
        let mut spans = vec![Span::styled(first, self.theme.faint())];
        if spans[0].content.is_empty() {
            spans.clear();
        }
        spans.append(&mut self.now);
        self.done.extend(wrap(&Line::from(spans), self.columns, &later));
    }
}

/// The narrowest that a column of a table gets.
const CELL: usize = 4;

/// Makes the columns of a table fit, if they can: the widest give way.
fn narrow(widths: &mut [usize], room: usize) {
    while widths.iter().sum::<usize>() > room {
        let Some(widest) = widths.iter_mut().max().filter(|wide| **wide > CELL) else { return };
        *widest -= 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn code_that_does_not_fit_goes_on_as_far_in_as_it_began() {
        let text = "```\nfn main() {\n    let answer = compute(one, two);\n}\n```\n";
        assert_eq!(
            shown(text, 24),
            "  fn main() {\n      let answer =\n      compute(one, two);\n  }"
        );
    }

    #[test]
    fn a_table_that_is_too_wide_keeps_its_columns() {
        let text = "| name | what it does |\n|---|---|\n| alpha | it reads all of the files |\n";
        assert_eq!(
            shown(text, 24),
            "name  │ what it does\nalpha │ it reads all of\n      │ the files"
        );
    }

    fn shown(text: &str, columns: usize) -> String {
        let lines = lines(&Clean::new(text), columns, Theme::PLAIN);
        lines.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n")
    }

    #[test]
    fn blocks_look_as_people_expect() {
        let text = "# Title\nSome *text* with `code`\nand more.\n\n- one\n- two\n  1. deep\n\n> quote\n\n```rust\nfn main() {}\n```\n\n| a | bb |\n|---|---|\n| ccc | d |\n\n[here](https://x.test) ~~old~~\n";
        insta::assert_snapshot!(shown(text, 40), @"
        Title

        Some text with code and more.

        • one
        • two
          1. deep

        │ quote

          fn main() {}

        a   │ bb
        ccc │ d

        here <https://x.test> old
        ");
    }

    #[test]
    fn items_hang_when_they_are_wrapped() {
        insta::assert_snapshot!(shown("- one two three four five\n- 漢字漢字漢字漢字", 14), @"
        • one two
          three four
          five
        • 漢字漢字漢字
          漢字
        ");
    }

    #[test]
    fn a_growing_text_is_cut_only_where_what_follows_changes_nothing() {
        for (text, settled_part) in [
            ("One.\n\nTwo", "One.\n\n"),
            ("One", ""),
            ("```\na\n\nb", ""),
            ("```\na\n\nb\n```\nx", "```\na\n\nb\n```\n"),
            ("- a\n\n- b\n", ""),
            ("- a\n\nAfter", "- a\n\n"),
        ] {
            assert_eq!(&text[..settled(text)], settled_part, "{text:?}");
        }
    }

    proptest::proptest! {
        #[test]
        fn a_text_that_is_shown_in_pieces_looks_as_if_it_was_shown_whole(
            blocks in proptest::collection::vec(proptest::sample::select(vec![
                "para one\nline two", "## head", "```\ncode\n\nmore\n```", "- a\n- b", "> q", "1. x\n2. y", "text",
            ]), 1..6)
        ) {
            let text = blocks.join("\n\n") + "\n\nend";
            let cut = settled(&text);
            let both = [shown(&text[..cut], 40), shown(&text[cut..], 40)];
            let both: Vec<_> = both.iter().filter(|part| !part.is_empty()).cloned().collect();
            proptest::prop_assert_eq!(both.join("\n\n"), shown(&text, 40));
        }
    }
}
