//! A page's text, laid out for the terminal's width.

use ratatui::text::Line;

use crate::draw::block;
use crate::page::{Content, Page, TextPage};
use crate::state::State;
use crate::{diff, markdown};

impl State {
    /// How many lines of a text fit a page.
    #[must_use]
    pub fn page_rows(&self) -> usize {
        usize::from(self.look.rows).saturating_sub(2).max(1)
    }

    /// Shows a text.
    pub(crate) fn open_text(&mut self, title: &str, content: Content) {
        let is_transcript = matches!(content, Content::Transcript | Content::Helper(_));
        self.open_page(Page::Text(TextPage::new(title, content)));
        self.lay_out();
        let rows = self.page_rows();
        if let (true, Some(Page::Text(page))) = (is_transcript, &mut self.page) {
            page.top = page.last_top(rows);
        }
    }

    /// Lays a page's text out for the present width. Of the conversation, only what is new is laid
    /// out again.
    pub(crate) fn lay_out(&mut self) {
        let (columns, theme, details) = (usize::from(self.look.columns), self.look.theme, true);
        let rows = self.page_rows();
        let Some(Page::Text(page)) = &mut self.page else { return };
        match &page.content {
            Content::Diff(text) => page.lines = diff::lines(text, columns, theme),
            Content::Markdown(text) => page.lines = markdown::lines(text, columns, theme),
            Content::Plain(text) => {
                let wrap =
                    |line: &str| crate::wrap::wrap(&Line::from(line.to_owned()), columns, "  ");
                page.lines = text.as_str().lines().flat_map(wrap).collect();
            }
            Content::Transcript | Content::Helper(_) => {
                let at_end = page.top >= page.last_top(rows);
                let transcript = match &page.content {
                    Content::Helper(name) => {
                        let named = self.helpers.iter().find(|helper| helper.name == *name);
                        named.map(|helper| &helper.transcript)
                    }
                    _ => Some(&self.transcript),
                };
                let Some(transcript) = transcript else { return };
                page.lay_out(transcript, |shown| block::lines(shown, columns, theme, details));
                if at_end {
                    page.top = page.last_top(rows);
                }
            }
        }
        page.top = page.top.min(page.lines.len().saturating_sub(1));
    }

    /// A question whose page shows its end was read.
    pub(crate) fn mark_read(&mut self) {
        let rows = self.page_rows();
        let Some(Page::Text(page)) = &self.page else { return };
        let Some((session, gate)) = &page.about else { return };
        if page.top >= page.last_top(rows)
            && let Some(asked) =
                self.gates.questions.iter_mut().find(|asked| asked.is(session, gate))
        {
            asked.read = true;
        }
    }

    /// Lays a page's text out anew: the width is another.
    pub(crate) fn lay_out_anew(&mut self) {
        if let Some(Page::Text(page)) = &mut self.page {
            (page.lines, page.blocks, page.settled) = (Vec::new(), 0, 0);
        }
        self.lay_out();
    }
}
