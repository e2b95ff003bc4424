//! The screen: finished lines are printed into the terminal's scrollback, the live part is drawn
//! below them, and pages cover it all for a while.

use std::io::{self, Write};

use crossterm::cursor::{Hide, MoveTo, Show};
use crossterm::queue;
use crossterm::style::{Attribute, Print, SetAttribute};
use crossterm::terminal::{
    BeginSynchronizedUpdate, Clear, ClearType, EndSynchronizedUpdate, EnterAlternateScreen,
    LeaveAlternateScreen,
};
use ratatui::backend::{Backend, CrosstermBackend};
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::{Color, Modifier, Style};
use ratatui::text::Line;

use crate::draw::Picture;

/// A terminal's screen.
#[derive(Debug)]
pub struct Screen<W: Write> {
    backend: CrosstermBackend<W>,
    columns: u16,
    rows: u16,
    /// Where the live part begins.
    top: u16,
    /// The live part or the page, as it is on the screen.
    shown: Buffer,
    /// How far below the live part's beginning the cursor is.
    cursor: u16,
    full: bool,
    /// Lines that wait until no page covers the screen.
    waiting: Vec<Line<'static>>,
    /// Was the screen's size changed, so that nobody knows where the live part is?
    lost: bool,
}

impl<W: Write> Screen<W> {
    /// A screen of a size, on which the cursor is in a row; in the last, if the terminal did not
    /// say.
    pub fn new(writer: W, (columns, rows): (u16, u16), row: Option<u16>) -> Self {
        Self {
            backend: CrosstermBackend::new(writer),
            columns,
            rows,
            top: row.unwrap_or(u16::MAX).min(rows.saturating_sub(1)),
            shown: Buffer::empty(Rect::ZERO),
            cursor: 0,
            full: false,
            waiting: Vec::new(),
            lost: false,
        }
    }

    /// The screen has another size. Terminals wrap what is on it anew.
    pub fn resize(&mut self, columns: u16, rows: u16) {
        if !self.full {
            // Lines that no longer fit take more rows than before.
            let above = self.shown.area.top()..self.shown.area.top() + self.cursor;
            let wraps = |y| self.used_columns(y).div_ceil(columns.max(1)).max(1);
            let is_drawn = self.shown.area.height > self.cursor;
            self.cursor = if is_drawn { above.map(wraps).sum() } else { self.cursor };
        }
        (self.columns, self.rows) = (columns, rows);
        self.shown = Buffer::empty(Rect::ZERO);
        self.lost = true;
    }

    /// How many columns of a row something is drawn in.
    fn used_columns(&self, y: u16) -> u16 {
        let area = self.shown.area;
        let drawn = |x: &u16| self.shown.cell((*x, y)).is_some_and(|cell| cell.symbol() != " ");
        (area.left()..area.right()).rev().find(drawn).map_or(0, |x| x + 1)
    }

    /// Must the cursor's row be found out before the live part is drawn?
    #[must_use]
    pub const fn is_lost(&self) -> bool {
        self.lost && !self.full
    }

    /// The cursor is in this row: the live part is around it. A terminal that did not say is taken
    /// to have left the live part where it was.
    pub fn found(&mut self, row: Option<u16>) {
        self.lost = false;
        let top = row.map_or(self.top, |row| row.saturating_sub(self.cursor));
        self.top = top.min(self.rows.saturating_sub(1));
        self.shown = Buffer::empty(Rect::ZERO);
    }

    /// Something else had the terminal: the live part begins anew where the cursor is, or in the
    /// last row if the terminal did not say.
    pub fn reopen(&mut self, (columns, rows): (u16, u16), row: Option<u16>) {
        (self.columns, self.rows, self.cursor) = (columns, rows, 0);
        self.found(Some(row.unwrap_or(u16::MAX)));
    }

    /// Prints lines above the live part for good, and shows a picture.
    ///
    /// # Errors
    /// If the terminal is gone.
    pub fn show(&mut self, printed: Vec<Line<'static>>, picture: &Picture) -> io::Result<()> {
        self.waiting.extend(printed);
        queue!(self.backend, BeginSynchronizedUpdate, Hide)?;
        if picture.full != self.full {
            self.full = picture.full;
            self.shown = Buffer::empty(Rect::ZERO);
            match self.full {
                true => queue!(self.backend, EnterAlternateScreen, Clear(ClearType::All))?,
                false => queue!(self.backend, LeaveAlternateScreen)?,
            }
        }
        let area = match self.full {
            true => Rect::new(0, 0, self.columns, self.rows),
            false => self.make_room(picture.lines.len())?,
        };
        let mut next = Buffer::empty(area);
        let cursor = picture.render(area, &mut next);
        if self.shown.area != area {
            self.shown = Buffer::empty(area);
            if self.full {
                queue!(self.backend, Clear(ClearType::All))?;
            }
        }
        self.backend.draw(self.shown.diff(&next).into_iter())?;
        self.shown = next;
        if !self.full {
            self.cursor = cursor.map_or(0, |at| at.y - area.y);
        }
        match cursor {
            Some(at) => queue!(self.backend, MoveTo(at.x, at.y), Show)?,
            None if self.full => {}
            // Where the live part is can be found out from the cursor.
            None => queue!(self.backend, MoveTo(0, area.y))?,
        }
        queue!(self.backend, EndSynchronizedUpdate)?;
        Write::flush(&mut self.backend)
    }

    /// Prints what waits, and sees to it that the live part has its lines.
    fn make_room(&mut self, lines: usize) -> io::Result<Rect> {
        let height = (lines as u16).clamp(1, self.rows.max(1));
        let is_there = self.shown.area == Rect::new(0, self.top, self.columns, height);
        if is_there && self.waiting.is_empty() {
            return Ok(self.shown.area);
        }
        self.clear_live()?;
        let last = self.rows.saturating_sub(1);
        let mut row = self.top;
        for line in std::mem::take(&mut self.waiting) {
            write_line(&mut self.backend, &line)?;
            queue!(self.backend, Print("\r\n"))?;
            row = (row + 1).min(last);
        }
        let below = height - 1;
        queue!(self.backend, Print("\n".repeat(below.into())))?;
        self.top = (row + below).min(last) - below;
        self.shown = Buffer::empty(Rect::ZERO);
        Ok(Rect::new(0, self.top, self.columns, height))
    }

    /// Clears the live part and what is below it. A terminal that is told to clear all of its screen
    /// at once may keep what was there in its scrollback, as tmux does: the first row goes alone.
    fn clear_live(&mut self) -> io::Result<()> {
        queue!(self.backend, MoveTo(0, self.top))?;
        if self.top == 0 {
            queue!(self.backend, Clear(ClearType::UntilNewLine))?;
            if self.rows < 2 {
                return Ok(());
            }
            queue!(self.backend, MoveTo(0, 1))?;
        }
        queue!(self.backend, Clear(ClearType::FromCursorDown), MoveTo(0, self.top))
    }

    /// Leaves the terminal as a shell expects it: below what was printed.
    ///
    /// # Errors
    /// If the terminal is gone.
    pub fn close(&mut self) -> io::Result<()> {
        if self.full {
            queue!(self.backend, LeaveAlternateScreen)?;
            self.full = false;
        }
        self.clear_live()?;
        for line in std::mem::take(&mut self.waiting) {
            write_line(&mut self.backend, &line)?;
            queue!(self.backend, Print("\r\n"))?;
        }
        queue!(self.backend, Show)?;
        self.shown = Buffer::empty(Rect::ZERO);
        Write::flush(&mut self.backend)
    }

    /// What is written to.
    pub fn writer(&mut self) -> &mut impl Write {
        &mut self.backend
    }
}

/// Writes a line with its styles. What drives a terminal is left out, even should it have come this
/// far.
fn write_line(to: &mut impl Write, line: &Line<'_>) -> io::Result<()> {
    for span in &line.spans {
        let codes = codes(line.style.patch(span.style));
        let text: String = span.content.chars().filter(|c| !c.is_control()).collect();
        match codes.is_empty() {
            true => queue!(to, Print(text))?,
            false => {
                write!(to, "\u{1b}[{}m{text}", codes.join(";"))?;
                queue!(to, SetAttribute(Attribute::Reset))?;
            }
        }
    }
    Ok(())
}

/// A style in the terminal's numbers.
fn codes(style: Style) -> Vec<String> {
    let mut codes = Vec::new();
    let modifiers = [
        (Modifier::BOLD, "1"),
        (Modifier::DIM, "2"),
        (Modifier::ITALIC, "3"),
        (Modifier::UNDERLINED, "4"),
        (Modifier::REVERSED, "7"),
        (Modifier::CROSSED_OUT, "9"),
    ];
    for (modifier, code) in modifiers {
        if style.add_modifier.contains(modifier) {
            codes.push(code.to_owned());
        }
    }
    if let Some(number) = style.fg.and_then(colour) {
        codes.push(number.to_string());
    }
    if let Some(number) = style.bg.and_then(colour) {
        codes.push((number + 10).to_string());
    }
    codes
}

fn colour(colour: Color) -> Option<u8> {
    Some(match colour {
        Color::Black => 30,
        Color::Red => 31,
        Color::Green => 32,
        Color::Yellow => 33,
        Color::Blue => 34,
        Color::Magenta => 35,
        Color::Cyan => 36,
        Color::Gray => 37,
        Color::DarkGray => 90,
        Color::LightRed => 91,
        Color::LightGreen => 92,
        Color::LightYellow => 93,
        Color::LightBlue => 94,
        Color::LightMagenta => 95,
        Color::LightCyan => 96,
        Color::White => 97,
        // The theme uses the terminal's own colours only.
        Color::Reset | Color::Rgb(..) | Color::Indexed(_) => return None,
    })
}
