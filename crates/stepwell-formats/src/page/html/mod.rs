//! A document as one HTML page that needs nothing else: no request, no script.

mod prose;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use sha2::{Digest as _, Sha256};
use stepwell::{SessionId, Stepwell};

use crate::Result;
use crate::page::document::{
    Block, Call, Command, Conversation, Document, Edit, Entry, Fold, Line, List, Mark, NodeResult,
    Picture, Speaker, Turn, clock,
};
use crate::page::{escape, export_page};
use crate::registry::Entry as FormatEntry;
use crate::write::writer::{Exported, Outlet, Writer};
use prose::{Breaks, rendered};

pub(crate) static FORMAT: FormatEntry = FormatEntry {
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
        export_page(well, id, to, render)
    }
}

/// How the page looks, by day and by night.
const STYLE: &str = include_str!("page.css");

/// The document as a page.
pub(crate) fn render(document: &Document) -> String {
    let title = escape(&document.title);
    let mut out = head(&title);
    out.push_str("<table class=\"facts\">\n");
    for (name, value) in &document.attributes {
        out.push_str(&format!("<tr><th>{name}</th><td>{}</td></tr>\n", escape(value)));
    }
    out.push_str("</table>\n");
    for note in &document.notes {
        out.push_str(&format!("<p class=\"note\">{}</p>\n", escape(note)));
    }
    for Conversation { lane, entries } in &document.conversations {
        if let Some(lane) = lane {
            out.push_str(&format!("<h1>Lane {}</h1>\n", escape(lane)));
        }
        entries.iter().for_each(|entry| render_entry(&mut out, entry));
    }
    render_results(&mut out, &document.results);
    if let Some(broken) = &document.broken {
        out.push_str(&format!("<p class=\"note\">{}</p>\n", escape(broken)));
    }
    document.lists.iter().for_each(|list| render_list(&mut out, list));
    out.push_str("</main>\n</body>\n</html>\n");
    out
}

fn head(title: &str) -> String {
    // Nothing may be loaded or run, whatever slips in: only this very style, and pictures
    // that the page itself holds.
    let style = STANDARD.encode(Sha256::digest(STYLE));
    let policy = format!(
        "default-src 'none'; style-src 'sha256-{style}'; img-src data:; base-uri 'none'; \
         form-action 'none'"
    );
    format!(
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta http-equiv=\"Content-Security-Policy\" content=\"{policy}\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <meta name=\"referrer\" content=\"no-referrer\">\n\
         <title>{title}</title>\n<style>{STYLE}</style>\n</head>\n<body>\n<main>\n\
         <h1 dir=\"auto\">{title}</h1>\n"
    )
}

fn render_entry(out: &mut String, entry: &Entry) {
    match entry {
        Entry::Turn(turn) => render_turn(out, turn),
        Entry::Mark(Mark { at, text }) => {
            let (at, text) = (clock(*at), escape(text));
            out.push_str(&format!("<p class=\"mark\" dir=\"auto\"><time>{at}</time> {text}</p>\n"));
        }
        Entry::Fold(Fold { title, entries }) => {
            let title = escape(title);
            out.push_str(&format!("<details class=\"fold\">\n<summary>{title}</summary>\n"));
            entries.iter().for_each(|entry| render_entry(out, entry));
            out.push_str("</details>\n");
        }
    }
}

fn render_turn(out: &mut String, turn: &Turn) {
    let (word, name) = (turn.speaker.word(), turn.speaker.name());
    let at = turn.at.map(|at| format!(" <time>{}</time>", clock(at))).unwrap_or_default();
    let detail = match turn.detail.is_empty() {
        true => String::new(),
        false => format!(" <span class=\"detail\">{}</span>", escape(&turn.detail)),
    };
    out.push_str(&format!("<section class=\"{word}\">\n<h2>{name}{at}{detail}</h2>\n"));
    let breaks = match turn.speaker {
        Speaker::User | Speaker::Tool => Breaks::Hard,
        Speaker::Assistant | Speaker::System | Speaker::Context | Speaker::Summary => Breaks::Soft,
    };
    for block in &turn.blocks {
        match block {
            Block::Text(text) => out.push_str(&prose(text, breaks)),
            Block::Aside(title, text) => fold(out, "aside", title, &prose(text, breaks)),
            Block::Command(command) => render_command(out, command),
            Block::Picture(picture) => render_picture(out, picture),
            Block::Call(call) => render_call(out, call),
        }
    }
    out.push_str("</section>\n");
}

/// A command that the user ran themselves.
fn render_command(out: &mut String, Command { typed, output, failed }: &Command) {
    if let Some(typed) = typed {
        out.push_str(&pre(typed));
    }
    if !output.is_empty() {
        out.push_str(&pre(output));
    }
    if let Some(why) = failed {
        out.push_str(&format!("<p class=\"label\">Failed: {}</p>\n", escape(why)));
    }
}

/// A call, folded away; one that changes files shows what it changes.
fn render_call(out: &mut String, call: &Call) {
    let (class, open) = match (call.failed(), call.edits.is_empty()) {
        (true, _) => ("call failed", ""),
        (false, true) => ("call", ""),
        (false, false) => ("call", " open"),
    };
    let summary = escape(&call.summary());
    out.push_str(&format!("<details class=\"{class}\"{open}>\n<summary>{summary}</summary>\n"));
    call.edits.iter().for_each(|edit| render_edit(out, edit));
    if let Some(arguments) = &call.arguments {
        out.push_str(&pre(arguments));
    }
    if let Some(result) = &call.result {
        out.push_str(&format!("<p class=\"label\">{}</p>\n{}", result.title(), pre(&result.text)));
        result.pictures.iter().for_each(|picture| render_picture(out, picture));
    }
    out.push_str("</details>\n");
}

fn render_edit(out: &mut String, edit: &Edit) {
    if let Some(path) = &edit.path {
        out.push_str(&format!("<p class=\"label\"><code>{}</code></p>\n", escape(path)));
    }
    let line = |line: &Line| {
        let class = match line {
            Line::Kept(_) => "kept",
            Line::Added(_) => "added",
            Line::Removed(_) => "removed",
            Line::Place(_) => "place",
        };
        format!("<span class=\"{class}\">{}\n</span>", escape(&line.unified()))
    };
    let lines: String = edit.lines.iter().map(line).collect();
    out.push_str(&format!("<pre class=\"diff\">{lines}</pre>\n"));
}

fn render_results(out: &mut String, results: &[NodeResult]) {
    if !results.is_empty() {
        out.push_str("<h1>Results of nodes</h1>\n");
    }
    for NodeResult { key, state, text } in results {
        let key = escape(key);
        out.push_str(&format!(
            "<section class=\"node\">\n<h2>{key} <span class=\"detail\">{state}</span></h2>\n"
        ));
        if !text.is_empty() {
            out.push_str(&prose(text, Breaks::Soft));
        }
        out.push_str("</section>\n");
    }
}

fn render_list(out: &mut String, list: &List) {
    out.push_str(&format!("<h2>{}</h2>\n<ul>\n", list.title));
    for (name, detail) in &list.items {
        let (name, detail) = (escape(name), escape(detail));
        out.push_str(&format!("<li><code>{name}</code>: {detail}</li>\n"));
    }
    out.push_str("</ul>\n");
}

fn render_picture(out: &mut String, picture: &Picture) {
    match picture.data_uri() {
        Some(uri) => out.push_str(&format!("<img alt=\"picture\" src=\"{}\">\n", escape(&uri))),
        None => out.push_str(&format!("<p>{}</p>\n", escape(&picture.stand_in()))),
    }
}

fn prose(text: &str, breaks: Breaks) -> String {
    format!("<div class=\"text\" dir=\"auto\">{}</div>\n", rendered(text, breaks))
}

/// Text as it is laid out. A browser drops the line break at its beginning.
fn pre(text: &str) -> String {
    format!("<pre>\n{}</pre>\n", escape(text))
}

fn fold(out: &mut String, class: &str, summary: &str, inner: &str) {
    let summary = escape(summary);
    out.push_str(&format!(
        "<details class=\"{class}\">\n<summary>{summary}</summary>\n{inner}</details>\n"
    ));
}
