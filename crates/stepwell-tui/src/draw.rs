//! How the state looks: lines for the live part under the conversation, or for a page. Pure.

pub(crate) mod block;
mod live;
mod page;
mod question;

use ratatui::buffer::Buffer;
use ratatui::layout::{Position, Rect};
use ratatui::style::Style;
use ratatui::text::{Line, Span};

use crate::clean::Clean;
use crate::state::State;

/// What is on the screen.
#[derive(Clone, Debug, PartialEq)]
pub struct Picture {
    /// Lines, none wider than the screen.
    pub lines: Vec<Line<'static>>,
    /// Where the cursor is: column and line.
    pub cursor: Option<(u16, u16)>,
    /// Does it cover the whole screen? Else it is below the conversation.
    pub full: bool,
}

/// How the state looks.
#[must_use]
pub fn draw(state: &State) -> Picture {
    match &state.page {
        Some(page) => page::picture(state, page),
        None => live::picture(state),
    }
}

/// Is all of what is asked on the screen, as it is drawn now? On a page, none of it is.
pub(crate) fn shows_all_of_question(state: &State) -> bool {
    state.page.is_none() && live::shows_all_of_question(state)
}

impl Picture {
    /// Puts the picture into a buffer; the answer is where the cursor is then.
    pub fn render(&self, area: Rect, buffer: &mut Buffer) -> Option<Position> {
        for (line, y) in self.lines.iter().zip(area.top()..area.bottom()) {
            buffer.set_line(area.x, y, line, area.width);
        }
        let (x, y) = self.cursor?;
        let inside = x < area.width && y < area.height;
        inside.then(|| Position::new(area.x + x, area.y + y))
    }
}

/// The lines that a block is printed as, above the live part.
#[must_use]
pub fn printed(state: &State, shown: &crate::transcript::Block) -> Vec<Line<'static>> {
    block::lines(shown, usize::from(state.look.columns), state.look.theme, state.view.details)
}

/// Text that may be shown, in a style.
pub(crate) fn span(text: &Clean, style: Style) -> Span<'static> {
    Span::styled(text.as_str().replace('\n', " "), style)
}

/// Words of our own.
pub(crate) fn label(text: &'static str, style: Style) -> Span<'static> {
    Span::styled(text, style)
}

/// A line that is no wider than the screen.
pub(crate) fn fitted(line: &Line<'_>, columns: usize) -> Line<'static> {
    let mut left = columns;
    let mut spans = Vec::new();
    for span in &line.spans {
        let text = crate::wrap::cut(&span.content, left);
        left = left.saturating_sub(crate::wrap::width(&text));
        spans.push(Span::styled(text, line.style.patch(span.style)));
        if left == 0 {
            break;
        }
    }
    Line::from(spans)
}
