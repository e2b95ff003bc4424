//! The text that a person types: several lines, edited between graphemes.

use unicode_segmentation::UnicodeSegmentation;

use crate::clean::Clean;
use crate::wrap::width;

/// A text and where the cursor is in it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Editor {
    text: String,
    /// A byte position between two graphemes.
    cursor: usize,
    /// What was cut last.
    cut: String,
    /// What was typed before, the newest last.
    history: Vec<String>,
    /// Which of them is shown, and what was typed instead of it.
    recalled: Option<(usize, String)>,
}

/// Where the cursor goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Move {
    /// One grapheme back.
    Left,
    /// One grapheme on.
    Right,
    /// One word back.
    WordLeft,
    /// One word on.
    WordRight,
    /// To the beginning of the line.
    Home,
    /// To the end of the line.
    End,
    /// One line up.
    Up,
    /// One line down.
    Down,
}

/// What one line of the text looks like on the screen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Row {
    /// The text.
    pub text: Clean,
    /// The cursor's column, if it is in this row.
    pub cursor: Option<usize>,
}

impl Editor {
    /// What was typed.
    #[must_use]
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Is nothing typed?
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.text.is_empty()
    }

    /// The text before the cursor.
    #[must_use]
    pub fn before_cursor(&self) -> &str {
        &self.text[..self.cursor]
    }

    /// Puts another text in place of this one, with the cursor at its end.
    pub fn set(&mut self, text: &str) {
        self.text = Clean::new(text).as_str().to_owned();
        self.cursor = self.text.len();
    }

    /// Types or pastes.
    pub fn insert(&mut self, text: &str) {
        let clean = Clean::new(text);
        self.text.insert_str(self.cursor, clean.as_str());
        self.cursor += clean.as_str().len();
        // A combining character may have joined the grapheme before it.
        self.cursor = self.boundary_at_or_after(self.cursor);
        self.recalled = None;
    }

    /// Replaces what is before the cursor from a byte position on.
    pub fn replace_from(&mut self, from: usize, with: &str) {
        self.text.replace_range(from..self.cursor, "");
        self.cursor = from;
        self.insert(with);
    }

    /// Takes the text away and remembers it.
    pub fn take(&mut self) -> String {
        let text = std::mem::take(&mut self.text);
        self.cursor = 0;
        self.recalled = None;
        self.remember(&text);
        text
    }

    /// Remembers a text for the history.
    pub fn remember(&mut self, text: &str) {
        if !text.trim().is_empty() && self.history.last().is_none_or(|last| last != text) {
            self.history.push(text.to_owned());
        }
    }

    /// Forgets what is typed.
    pub fn clear(&mut self) {
        self.text.clear();
        self.cursor = 0;
        self.recalled = None;
    }

    /// Removes the grapheme before the cursor.
    pub fn backspace(&mut self) {
        let from = self.target(Move::Left);
        self.text.replace_range(from..self.cursor, "");
        self.cursor = from;
    }

    /// Removes the grapheme behind the cursor.
    pub fn delete(&mut self) {
        let to = self.target(Move::Right);
        self.text.replace_range(self.cursor..to, "");
    }

    /// Cuts from the cursor to where a move leads.
    pub fn cut_to(&mut self, to: Move) {
        let mut target = self.target(to);
        // At the end of a line, the line break is what there is to cut.
        if target == self.cursor && to == Move::End {
            target = self.target(Move::Right);
        }
        let (from, to) = (target.min(self.cursor), target.max(self.cursor));
        if from < to {
            self.cut = self.text[from..to].to_owned();
            self.text.replace_range(from..to, "");
            self.cursor = from;
        }
    }

    /// Inserts what was cut last.
    pub fn paste_cut(&mut self) {
        let cut = self.cut.clone();
        self.insert(&cut);
    }

    /// Moves the cursor. Tells whether it moved.
    pub fn go(&mut self, to: Move) -> bool {
        let target = self.target(to);
        let moved = target != self.cursor;
        self.cursor = target;
        moved
    }

    /// Moves the cursor, if it can.
    pub fn jump(&mut self, to: Move) {
        self.go(to);
    }

    /// Shows what was typed before this.
    pub fn recall_older(&mut self) {
        let at = match &self.recalled {
            Some((at, _)) => *at,
            None => self.history.len(),
        };
        let Some(older) = at.checked_sub(1) else { return };
        let typed = match self.recalled.take() {
            Some((_, typed)) => typed,
            None => self.text.clone(),
        };
        let text = self.history[older].clone();
        self.set(&text);
        self.recalled = Some((older, typed));
    }

    /// Shows what was typed after this, and at last what was not sent.
    pub fn recall_newer(&mut self) {
        let Some((at, typed)) = self.recalled.take() else { return };
        match self.history.get(at + 1).cloned() {
            Some(text) => {
                self.set(&text);
                self.recalled = Some((at + 1, typed));
            }
            None => self.set(&typed),
        }
    }

    fn boundary_at_or_after(&self, at: usize) -> usize {
        let mut bounds = self.text.grapheme_indices(true).map(|(at, _)| at);
        bounds.find(|bound| *bound >= at).unwrap_or(self.text.len())
    }

    fn line_start(&self) -> usize {
        self.before_cursor().rfind('\n').map_or(0, |at| at + 1)
    }

    fn line_end(&self) -> usize {
        self.text[self.cursor..].find('\n').map_or(self.text.len(), |at| self.cursor + at)
    }

    fn target(&self, to: Move) -> usize {
        let after = &self.text[self.cursor..];
        match to {
            Move::Left => {
                self.before_cursor().grapheme_indices(true).next_back().map_or(0, |(at, _)| at)
            }
            Move::Right => self.cursor + after.graphemes(true).next().map_or(0, str::len),
            Move::WordLeft => {
                let trimmed = self.before_cursor().trim_end();
                let mut words = trimmed.split_word_bound_indices();
                words.next_back().map_or(0, |(at, _)| at)
            }
            Move::WordRight => {
                let blank = after.len() - after.trim_start().len();
                let word = after.trim_start().split_word_bounds().next().map_or(0, str::len);
                self.cursor + blank + word
            }
            Move::Home => self.line_start(),
            Move::End => self.line_end(),
            Move::Up => match self.line_start().checked_sub(1) {
                None => self.cursor,
                Some(end) => {
                    self.same_column(self.text[..end].rfind('\n').map_or(0, |at| at + 1), end)
                }
            },
            Move::Down => match self.line_end() {
                end if end == self.text.len() => self.cursor,
                end => {
                    let start = end + 1;
                    let end =
                        self.text[start..].find('\n').map_or(self.text.len(), |at| start + at);
                    self.same_column(start, end)
                }
            },
        }
    }

    /// The place in another line under the cursor.
    fn same_column(&self, start: usize, end: usize) -> usize {
        let column = width(&self.text[self.line_start()..self.cursor]);
        let mut used = 0;
        for (at, grapheme) in self.text[start..end].grapheme_indices(true) {
            if used >= column {
                return start + at;
            }
            used += width(grapheme);
        }
        end
    }

    /// The text as rows of at most so many columns.
    #[must_use]
    pub fn rows(&self, columns: usize) -> Vec<Row> {
        let columns = columns.max(2);
        let mut rows = Vec::new();
        let (mut text, mut used, mut cursor) = (String::new(), 0, None);
        for (at, grapheme) in self.text.grapheme_indices(true) {
            let wide = width(grapheme);
            let breaks = grapheme == "\n";
            if at == self.cursor && used < columns {
                cursor = Some(used);
            }
            if breaks || used + wide > columns {
                rows.push(Row { text: Clean::new(&text), cursor: cursor.take() });
                text.clear();
                used = 0;
                if at == self.cursor
                    && !breaks
                    && rows.last().is_none_or(|row| row.cursor.is_none())
                {
                    cursor = Some(0);
                }
            }
            if !breaks {
                text.push_str(grapheme);
                used += wide;
            }
        }
        if self.cursor == self.text.len() {
            if used >= columns {
                rows.push(Row { text: Clean::new(&text), cursor: None });
                (text, used) = (String::new(), 0);
            }
            cursor = Some(used);
        }
        rows.push(Row { text: Clean::new(&text), cursor });
        rows
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn typed(text: &str) -> Editor {
        let mut editor = Editor::default();
        editor.insert(text);
        editor
    }

    #[test]
    fn the_cursor_never_stands_inside_a_grapheme() {
        let mut editor = typed("ae\u{301}👩\u{200d}💻漢");
        for left in ["ae\u{301}👩\u{200d}💻", "ae\u{301}", "a", ""] {
            assert!(editor.go(Move::Left));
            assert_eq!(editor.before_cursor(), left);
        }
        assert!(!editor.go(Move::Left));
        editor.go(Move::Right);
        editor.delete();
        assert_eq!(editor.text(), "a👩\u{200d}💻漢");
        editor.backspace();
        assert_eq!(editor.text(), "👩\u{200d}💻漢");
    }

    #[test]
    fn words_and_lines_are_cut_and_come_back() {
        let mut editor = typed("one two  three\nfour");
        editor.cut_to(Move::WordLeft);
        assert_eq!(editor.text(), "one two  three\n");
        editor.paste_cut();
        editor.go(Move::Up);
        editor.cut_to(Move::End);
        assert_eq!(editor.text(), "one \nfour");
        editor.cut_to(Move::End);
        assert_eq!(editor.text(), "one four");
        editor.cut_to(Move::Home);
        assert_eq!(editor.text(), "four");
        editor.go(Move::WordRight);
        assert_eq!(editor.before_cursor(), "four");
    }

    #[test]
    fn history_keeps_what_was_not_sent() {
        let mut editor = typed("first");
        editor.take();
        editor.insert("second");
        editor.take();
        editor.insert("draft");
        editor.recall_older();
        editor.recall_older();
        editor.recall_older();
        assert_eq!(editor.text(), "first");
        editor.recall_newer();
        assert_eq!(editor.text(), "second");
        editor.recall_newer();
        assert_eq!(editor.text(), "draft");
        editor.recall_newer();
        assert_eq!(editor.text(), "draft");
    }

    #[test]
    fn rows_show_the_cursor_once_wherever_it_is() {
        let mut editor = typed("abcdef\n漢字漢\n\nx");
        let steps = editor.text().graphemes(true).count();
        for _ in 0..=steps {
            let rows = editor.rows(4);
            assert_eq!(rows.iter().filter(|row| row.cursor.is_some()).count(), 1, "{rows:?}");
            editor.go(Move::Left);
        }
        let rows: Vec<_> = editor.rows(4).into_iter().map(|row| row.text.to_string()).collect();
        assert_eq!(rows, ["abcd", "ef", "漢字", "漢", "", "x"]);
    }

    #[test]
    fn a_paste_cannot_smuggle_escape_sequences_in() {
        assert_eq!(typed("a\u{1b}[201~b\r\nc").text(), "ab\nc");
    }
}
