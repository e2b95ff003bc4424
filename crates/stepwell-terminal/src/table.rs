//! Tables: columns as wide as they need, the last one cut to the terminal. Where even
//! the others do not fit, each row becomes a few lines.

use std::borrow::Cow;
use std::ops::Range;

use crate::console::{Paint, Style};
use crate::text::{cut, width};

/// A table with a heading.
#[derive(Debug)]
pub struct Table {
    columns: Cow<'static, [Column]>,
    rows: Vec<Vec<Cell>>,
}

/// One column.
#[derive(Clone, Copy, Debug)]
pub struct Column {
    name: &'static str,
    align: Align,
}

/// A column whose cells begin at the same place.
pub const fn left(name: &'static str) -> Column {
    Column { name, align: Align::Left }
}

/// A column whose cells end at the same place: numbers.
pub const fn right(name: &'static str) -> Column {
    Column { name, align: Align::Right }
}

/// To which side a column's cells are moved.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Align {
    Left,
    Right,
}

/// One cell: a line of text, and how it stands out.
#[derive(Debug)]
pub struct Cell {
    /// The text, on one line.
    pub text: String,
    /// How it stands out, where nothing in it stands out apart.
    pub style: Style,
    /// The bytes that stand out: all others are dim.
    pub bright: Option<Range<usize>>,
}

impl Cell {
    /// A cell in a style.
    pub fn styled(text: impl Into<String>, style: Style) -> Self {
        Self { text: text.into(), style, bright: None }
    }

    /// The cell's text, as far as it is shown, in its style.
    fn painted(&self, shown: &str, paint: Paint) -> String {
        match &self.bright {
            // A text that was cut may end before what stands out does.
            Some(bright) if shown.get(..bright.end) == self.text.get(..bright.end) => {
                let dim = |text: &str| match text.is_empty() {
                    true => String::new(),
                    false => paint.paint(Style::Dim, text),
                };
                let (before, rest) = shown.split_at(bright.start);
                let (middle, after) = rest.split_at(bright.end - bright.start);
                dim(before) + middle + &dim(after)
            }
            _ => paint.paint(self.style, shown),
        }
    }
}

impl<T: Into<String>> From<T> for Cell {
    fn from(text: T) -> Self {
        Self::styled(text, Style::Plain)
    }
}

/// What stands between two columns.
const GAP: &str = "  ";

/// The last column needs this much room to say anything.
const LEAST: usize = 12;

impl Table {
    /// An empty table.
    #[must_use]
    pub fn new(columns: impl Into<Cow<'static, [Column]>>) -> Self {
        Self { columns: columns.into(), rows: Vec::new() }
    }

    /// Adds a row: a cell for each column.
    pub fn push(&mut self, row: Vec<Cell>) {
        self.rows.push(row);
    }

    /// The table with other texts in its cells.
    #[must_use]
    pub fn mapped(&self, text: impl Fn(&str) -> String) -> Self {
        let cell = |cell: &Cell| {
            let text = text(&cell.text);
            // Where bytes stand out is known only in the text as it was.
            let bright = cell.bright.clone().filter(|_| text == cell.text);
            Cell { text, style: cell.style, bright }
        };
        let rows = self.rows.iter().map(|row| row.iter().map(cell).collect()).collect();
        Self { columns: self.columns.clone(), rows }
    }

    /// The table's lines, at most so wide; the last column gives way.
    pub fn lines(&self, paint: Paint, columns: Option<usize>) -> Vec<String> {
        let widths: Vec<usize> = (0..self.columns.len())
            .map(|n| {
                let cells = self.rows.iter().map(|row| width(&row[n].text));
                cells.chain([width(self.columns[n].name)]).max().unwrap_or(0)
            })
            .collect();
        let before: usize = widths.iter().rev().skip(1).map(|width| width + GAP.len()).sum();
        if let Some(columns) = columns.filter(|columns| before + LEAST > *columns) {
            return self.stacked(paint, columns);
        }
        let last = columns.map(|columns| columns.saturating_sub(before));
        let title = |column: &Column| Cell::styled(column.name, Style::Bold);
        let heading: Vec<Cell> = self.columns.iter().map(title).collect();
        let all = std::iter::once(&heading).chain(&self.rows);
        all.map(|cells| self.line(cells, &widths, last, paint)).collect()
    }

    /// Each row as its first two cells, the others by name, and the last.
    fn stacked(&self, paint: Paint, columns: usize) -> Vec<String> {
        let mut lines = Vec::new();
        for row in &self.rows {
            let (front, rest) = row.split_at(row.len().min(2));
            let mut line = String::new();
            let mut room = columns;
            for cell in front {
                let text = cut(&cell.text, room);
                if text.is_empty() {
                    break;
                }
                room = room.saturating_sub(width(&text) + GAP.len());
                let gap = if line.is_empty() { "" } else { GAP };
                line.extend([gap, &cell.painted(&text, paint)]);
            }
            lines.push(line);
            let Some((last, middle)) = rest.split_last() else { continue };
            let named = middle.iter().zip(&self.columns[2..]);
            let named = named.filter(|(cell, _)| !cell.text.is_empty());
            let named: Vec<_> =
                named.map(|(cell, column)| format!("{} {}", column.name, cell.text)).collect();
            for text in [named.join(GAP), last.text.clone()] {
                if !text.is_empty() {
                    lines.push(format!("{GAP}{}", cut(&text, columns.saturating_sub(GAP.len()))));
                }
            }
        }
        lines
    }

    fn line(&self, cells: &[Cell], widths: &[usize], last: Option<usize>, paint: Paint) -> String {
        let mut line = String::new();
        for (n, cell) in cells.iter().enumerate() {
            let is_last = n + 1 == cells.len();
            let text = match last {
                Some(columns) if is_last => cut(&cell.text, columns),
                _ => cell.text.clone(),
            };
            let room = " ".repeat(widths[n].saturating_sub(width(&text)));
            let painted = cell.painted(&text, paint);
            match self.columns[n].align {
                Align::Right => line.extend([room.as_str(), &painted]),
                Align::Left if is_last => line.push_str(&painted),
                Align::Left => line.extend([painted.as_str(), &room]),
            }
            if !is_last {
                line.push_str(GAP);
            }
        }
        line
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const COLUMNS: &[Column] = &[left("ID"), right("N"), left("TASK")];

    #[test]
    fn columns_line_up_and_the_last_one_gives_way() {
        let mut table = Table::new(COLUMNS);
        table.push(vec!["a".into(), "1".into(), "数据库 migration of it all".into()]);
        table.push(vec!["abc".into(), "100".into(), "x".into()]);
        let lines = table.lines(Paint::Plain, Some(22));
        assert_eq!(lines, ["ID     N  TASK", "a      1  数据库 migr…", "abc  100  x"]);
        assert!(lines.iter().all(|line| width(line) <= 22));
        let stacked = table.lines(Paint::Plain, Some(12));
        assert_eq!(stacked, ["a  1", "  数据库 mi…", "abc  100", "  x"]);
        assert_eq!(table.lines(Paint::Plain, None)[1], "a      1  数据库 migration of it all");
    }

    #[test]
    fn the_part_of_an_id_that_suffices_stands_out_in_colour_only() {
        let bright = Some(2..4);
        let id = || Cell { text: "a-bcd".to_owned(), style: Style::Plain, bright: bright.clone() };
        assert_eq!(id().painted("a-bcd", Paint::Plain), "a-bcd");
        assert_eq!(
            id().painted("a-bcd", Paint::Colour),
            "\u{1b}[2ma-\u{1b}[0mbc\u{1b}[2md\u{1b}[0m"
        );
        // What was cut is not taken apart.
        assert_eq!(id().painted("a-…", Paint::Colour), "a-…");
    }
}
