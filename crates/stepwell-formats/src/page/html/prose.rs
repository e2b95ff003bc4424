//! Markdown as HTML in which nothing is markup that somebody wrote: tags are shown as text,
//! and links and pictures by their addresses, so that a page loads nothing and leads nowhere.

use pulldown_cmark::{
    Alignment, CodeBlockKind, CowStr, Event, HeadingLevel, Options, Parser, Tag, TagEnd, html,
};

/// What line breaks in a text mean.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Breaks {
    /// What they mean in Markdown: nothing.
    Soft,
    /// Line breaks: somebody typed them.
    Hard,
}

/// Stands for a `<` while Markdown is read, so that none begins a tag. It is no character, and
/// nothing that means something.
const LESS: char = '\u{fdd0}';

/// Markdown as HTML.
pub(super) fn rendered(text: &str, breaks: Breaks) -> String {
    let source: String = text.chars().map(harmless).collect();
    let options = Options::ENABLE_TABLES | Options::ENABLE_STRIKETHROUGH;
    let mut out = String::with_capacity(source.len() + source.len() / 4);
    let mut addresses: Vec<CowStr<'_>> = Vec::new();
    let events =
        Parser::new_ext(&source, options).filter_map(|event| plain(event, breaks, &mut addresses));
    html::push_html(&mut out, events);
    out.replace(LESS, "&lt;")
}

fn harmless(c: char) -> char {
    match c {
        '<' => LESS,
        '\n' | '\t' => c,
        // A terminal's colours in a tool's output, NUL, and their like.
        c if c.is_control() || c == LESS => char::REPLACEMENT_CHARACTER,
        c => c,
    }
}

/// What is written for an event of the reader.
fn plain<'a>(
    event: Event<'a>,
    breaks: Breaks,
    addresses: &mut Vec<CowStr<'a>>,
) -> Option<Event<'a>> {
    let event = match event {
        Event::Start(Tag::Link { dest_url, .. } | Tag::Image { dest_url, .. }) => {
            addresses.push(dest_url);
            return None;
        }
        Event::End(TagEnd::Link | TagEnd::Image) => {
            let address = addresses.pop().filter(|it| !it.is_empty());
            return address.map(|it| Event::Text(format!(" ({it})").into()));
        }
        Event::Start(Tag::Heading { level, .. }) => Event::Start(Tag::Heading {
            level: lower(level),
            id: None,
            classes: Vec::new(),
            attrs: Vec::new(),
        }),
        Event::End(TagEnd::Heading(level)) => Event::End(TagEnd::Heading(lower(level))),
        // A style of their own is not allowed to cells.
        Event::Start(Tag::Table(columns)) => {
            Event::Start(Tag::Table(vec![Alignment::None; columns.len()]))
        }
        // Its language would be a class that somebody else wrote.
        Event::Start(Tag::CodeBlock(_)) => Event::Start(Tag::CodeBlock(CodeBlockKind::Indented)),
        Event::Start(Tag::HtmlBlock) => Event::Start(Tag::Paragraph),
        Event::End(TagEnd::HtmlBlock) => Event::End(TagEnd::Paragraph),
        Event::Html(text) | Event::InlineHtml(text) => Event::Text(text),
        Event::SoftBreak if breaks == Breaks::Hard => Event::HardBreak,
        event => event,
    };
    Some(event)
}

/// A heading below those of the page.
const fn lower(level: HeadingLevel) -> HeadingLevel {
    match level {
        HeadingLevel::H1 => HeadingLevel::H3,
        HeadingLevel::H2 => HeadingLevel::H4,
        HeadingLevel::H3 => HeadingLevel::H5,
        _ => HeadingLevel::H6,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn markdown_is_rendered_and_tags_are_text() {
        let html = rendered(
            "# A\n\n**b** `c < d` <b>x</b>\n\n- e\n\n| f | g |\n|--:|---|\n| 1 | 2 |",
            Breaks::Soft,
        );
        for part in [
            "<h3>A</h3>",
            "<strong>b</strong>",
            "<code>c &lt; d</code>",
            "&lt;b&gt;x&lt;/b&gt;",
            "<li>e</li>",
            "<th>f</th>",
        ] {
            assert!(html.contains(part), "{part}: {html}");
        }
    }

    #[test]
    fn links_and_pictures_are_shown_by_their_addresses() {
        let html = rendered(
            "[a](javascript:x) ![b](http://evil.example/c.png) <https://d.example>",
            Breaks::Soft,
        );
        assert_eq!(
            html.trim(),
            "<p>a (javascript:x) b (http://evil.example/c.png) &lt;https://d.example&gt;</p>"
        );
    }

    #[test]
    fn line_breaks_that_somebody_typed_stay() {
        assert_eq!(rendered("a\nb", Breaks::Hard).trim(), "<p>a<br />\nb</p>");
        assert_eq!(rendered("a\nb", Breaks::Soft).trim(), "<p>a\nb</p>");
    }
}
