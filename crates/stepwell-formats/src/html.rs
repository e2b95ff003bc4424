//! A document as one HTML page that needs nothing else: no request, no script.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use stepwell::{Digest, SessionId, Stepwell};

use crate::Result;
use crate::document::{Block, Call, Conversation, Document, Passage, Picture, Turn};
use crate::escape::escape;
use crate::export::page;
use crate::registry::Entry;
use crate::writer::{Exported, Outlet, Writer};

pub(crate) static FORMAT: Entry = Entry {
    name: "html",
    aliases: &["htm"],
    title: "HTML, for reading",
    reader: None,
    writer: Some(&Html),
};

struct Html;

impl Writer for Html {
    fn ending(&self) -> &'static str {
        "html"
    }

    fn write(&self, well: &Stepwell, id: &SessionId, to: &mut Outlet<'_>) -> Result<Exported> {
        page(well, id, to, render)
    }
}

/// How the page looks, by day and by night.
const STYLE: &str = include_str!("page.css");

/// The document as a page.
pub(crate) fn render(document: &Document) -> String {
    let title = escape(&document.title);
    // Nothing may be loaded or run, whatever slips in: only this very style, and pictures
    // that the page itself holds.
    let style = STANDARD.encode(Digest::of(STYLE.as_bytes()).as_bytes());
    let policy = format!(
        "default-src 'none'; style-src 'sha256-{style}'; img-src data:; base-uri 'none'; \
         form-action 'none'"
    );
    let mut out = format!(
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta http-equiv=\"Content-Security-Policy\" content=\"{policy}\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <meta name=\"referrer\" content=\"no-referrer\">\n\
         <title>{title}</title>\n<style>{STYLE}</style>\n</head>\n<body>\n<main>\n\
         <h1 dir=\"auto\">{title}</h1>\n<table>\n"
    );
    for (name, value) in &document.attributes {
        out.push_str(&format!("<tr><th>{name}</th><td>{}</td></tr>\n", escape(value)));
    }
    out.push_str("</table>\n");
    for note in &document.notes {
        out.push_str(&format!("<p class=\"note\">{}</p>\n", escape(note)));
    }
    for Conversation { lane, turns } in &document.conversations {
        if let Some(lane) = lane {
            out.push_str(&format!("<h1>Lane {}</h1>\n", escape(lane)));
        }
        turns.iter().for_each(|turn| render_turn(&mut out, turn));
    }
    if let Some(broken) = &document.broken {
        out.push_str(&format!("<p class=\"note\">{}</p>\n", escape(broken)));
    }
    for list in &document.lists {
        out.push_str(&format!("<h2>{}</h2>\n<ul>\n", list.title));
        for (name, detail) in &list.items {
            let (name, detail) = (escape(name), escape(detail));
            out.push_str(&format!("<li><code>{name}</code>: {detail}</li>\n"));
        }
        out.push_str("</ul>\n");
    }
    out.push_str("</main>\n</body>\n</html>\n");
    out
}

fn render_turn(out: &mut String, turn: &Turn) {
    out.push_str(&format!("<section>\n<h2>{}</h2>\n", turn.speaker));
    for block in &turn.blocks {
        match block {
            Block::Text(text) => out.push_str(&prose(text)),
            Block::Aside(title, text) => fold(out, title, &prose(text)),
            Block::Picture(picture) => render_picture(out, picture),
            Block::Call(call) => fold(out, &call.summary(), &render_call(call)),
        }
    }
    out.push_str("</section>\n");
}

fn render_call(Call { arguments, result, .. }: &Call) -> String {
    let (arguments, text, title) = (pre(arguments), pre(&result.text), result.title());
    let mut out = format!("{arguments}<p>{title}:</p>\n{text}");
    for picture in &result.pictures {
        render_picture(&mut out, picture);
    }
    out
}

fn render_picture(out: &mut String, picture: &Picture) {
    match picture.data_uri() {
        Some(uri) => out.push_str(&format!("<img alt=\"picture\" src=\"{}\">\n", escape(&uri))),
        None => out.push_str(&format!("<p>{}</p>\n", escape(&picture.stand_in()))),
    }
}

fn prose(passages: &[Passage]) -> String {
    let passage = |passage: &Passage| match passage {
        Passage::Prose(text) => {
            format!("<div class=\"text\" dir=\"auto\">{}</div>\n", escape(text))
        }
        Passage::Code { text, .. } => pre(text),
    };
    passages.iter().map(passage).collect()
}

/// Text as it is laid out. A browser drops the line break at its beginning.
fn pre(text: &str) -> String {
    format!("<pre>\n{}</pre>\n", escape(text))
}

fn fold(out: &mut String, summary: &str, inner: &str) {
    let summary = escape(summary);
    out.push_str(&format!("<details>\n<summary>{summary}</summary>\n{inner}</details>\n"));
}
