//! A document in Markdown, for any viewer.
//!
//! What was said keeps its own Markdown, but for what would reach beyond it: tags, and
//! headings on the level of the document's own.

use stepwell::{SessionId, Stepwell};

use crate::Result;
use crate::page::document::{
    Block, Call, Command, Conversation, Document, Edit, Entry, Fold, Line, Mark, NodeResult,
    Passage, Picture, Turn, clock, passages,
};
use crate::page::{escape, export_page};
use crate::registry::Entry as FormatEntry;
use crate::write::writer::{Exported, Outlet, Writer};

pub(crate) static FORMAT: FormatEntry = FormatEntry {
    name: "markdown",
    aliases: &["md"],
    title: "Markdown, for reading",
    reader: None,
    writer: Some(&Markdown),
};

struct Markdown;

impl Writer for Markdown {
    fn ending(&self) -> &'static str {
        "md"
    }

    fn write(&self, well: &Stepwell, id: &SessionId, to: &mut Outlet<'_>) -> Result<Exported> {
        export_page(well, id, to, render)
    }
}

/// Stands behind a `<` in code, where an entity would show: it cannot be seen, and a tag
/// cannot begin with it.
const WORD_JOINER: char = '\u{2060}';

/// The document as Markdown.
pub(crate) fn render(document: &Document) -> String {
    let mut out = format!("# {}\n\n| | |\n|---|---|\n", plain(&document.title));
    for (name, value) in &document.attributes {
        out.push_str(&format!("| {name} | {} |\n", plain(value)));
    }
    for note in &document.notes {
        out.push_str(&format!("\n> **Note:** {}\n", plain(note)));
    }
    for Conversation { lane, entries } in &document.conversations {
        if let Some(lane) = lane {
            out.push_str(&format!("\n# Lane {}\n", plain(lane)));
        }
        entries.iter().for_each(|entry| render_entry(&mut out, entry));
    }
    render_results(&mut out, &document.results);
    if let Some(broken) = &document.broken {
        out.push_str(&format!("\n---\n\n**{}**\n", plain(broken)));
    }
    for list in &document.lists {
        out.push_str(&format!("\n## {}\n\n", list.title));
        for (name, detail) in &list.items {
            out.push_str(&format!("- {}: {}\n", code(name), plain(detail)));
        }
    }
    out
}

fn render_entry(out: &mut String, entry: &Entry) {
    match entry {
        Entry::Turn(turn) => render_turn(out, turn),
        Entry::Mark(Mark { at, text }) => {
            let (first, rest) = text.split_once('\n').unwrap_or((text, ""));
            out.push_str(&format!("\n*{}* {}\n", clock(*at), plain(first)));
            // A plan that was asked about, or a diff, keeps its lines.
            if !rest.trim().is_empty() {
                out.push_str(&format!("\n{}", fenced("", rest.trim_start_matches('\n'))));
            }
        }
        Entry::Fold(Fold { title, entries }) => {
            let mut inner = String::new();
            entries.iter().for_each(|entry| render_entry(&mut inner, entry));
            out.push('\n');
            fold(out, title, inner.trim_start_matches('\n'));
        }
    }
}

fn render_turn(out: &mut String, turn: &Turn) {
    out.push_str(&format!("\n## {}\n", turn.speaker.name()));
    let at = turn.at.map(|at| format!("*{}*", clock(at)));
    let detail = Some(plain(&turn.detail)).filter(|it| !it.is_empty());
    let line: Vec<String> = at.into_iter().chain(detail).collect();
    if !line.is_empty() {
        out.push_str(&format!("\n{}\n", line.join(" · ")));
    }
    for block in &turn.blocks {
        out.push('\n');
        match block {
            Block::Text(text) => out.push_str(&prose(text)),
            Block::Aside(title, text) => fold(out, title, &prose(text)),
            Block::Command(command) => out.push_str(&render_command(command)),
            Block::Picture(picture) => render_picture(out, picture),
            Block::Call(call) => fold(out, &call.summary(), &render_call(call)),
        }
    }
}

fn render_command(Command { typed, output, failed }: &Command) -> String {
    let mut parts: Vec<String> = typed.iter().map(|typed| fenced("sh", typed)).collect();
    if !output.is_empty() {
        parts.push(fenced("", output));
    }
    parts.extend(failed.as_ref().map(|why| format!("Failed: {}\n", plain(why))));
    parts.join("\n")
}

fn render_call(call: &Call) -> String {
    let mut parts: Vec<String> = call.edits.iter().map(render_edit).collect();
    parts.extend(call.arguments.as_ref().map(|arguments| fenced("json", arguments)));
    if let Some(result) = &call.result {
        parts.push(format!("{}:\n\n{}", result.title(), fenced("", &result.text)));
        for picture in &result.pictures {
            let mut out = String::new();
            render_picture(&mut out, picture);
            parts.push(out);
        }
    }
    parts.join("\n")
}

fn render_edit(edit: &Edit) -> String {
    let lines: Vec<String> = edit.lines.iter().map(Line::unified).collect();
    let path = edit.path.as_ref().map(|path| format!("{}\n\n", code(path)));
    format!("{}{}", path.unwrap_or_default(), fenced("diff", &lines.join("\n")))
}

fn render_results(out: &mut String, results: &[NodeResult]) {
    if !results.is_empty() {
        out.push_str("\n# Results of nodes\n");
    }
    for NodeResult { key, state, text } in results {
        out.push_str(&format!("\n## {} ({state})\n", plain(key)));
        if !text.is_empty() {
            out.push_str(&format!("\n{}", prose(text)));
        }
    }
}

fn render_picture(out: &mut String, picture: &Picture) {
    match picture.data_uri() {
        Some(uri) => out.push_str(&format!("![picture]({uri})\n")),
        None => out.push_str(&format!("{}\n", plain(&picture.stand_in()))),
    }
}

/// Folds Markdown away under a summary.
fn fold(out: &mut String, summary: &str, inner: &str) {
    let summary = escape(summary).replace(char::is_whitespace, " ");
    out.push_str(&format!("<details>\n<summary>{summary}</summary>\n\n{inner}\n</details>\n"));
}

/// Text as a block of code, in a fence that nothing in it can close.
fn fenced(language: &str, text: &str) -> String {
    let fence = "`".repeat(longest_run(text, '`').max(2) + 1);
    let end = if text.is_empty() || text.ends_with('\n') { "" } else { "\n" };
    format!("{fence}{language}\n{text}{end}{fence}\n")
}

/// Text as code in a line.
fn code(text: &str) -> String {
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    match longest_run(&text, '`') {
        0 => format!("`{text}`"),
        run => {
            let ticks = "`".repeat(run + 1);
            format!("{ticks} {text} {ticks}")
        }
    }
}

fn longest_run(text: &str, of: char) -> usize {
    text.split(|c| c != of).map(str::len).max().unwrap_or(0)
}

/// Text on one line, without any meaning in Markdown.
fn plain(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            c if c.is_control() => out.push(' '),
            '\\' | '`' | '*' | '_' | '[' | ']' | '<' | '>' | '|' | '#' | '~' | '&' => {
                out.extend(['\\', c]);
            }
            c => out.push(c),
        }
    }
    out
}

/// Text with its own Markdown, kept from reaching beyond itself.
fn prose(text: &str) -> String {
    let mut out = String::new();
    for passage in &passages(text) {
        if !out.is_empty() {
            out.push('\n');
        }
        match passage {
            Passage::Prose(text) => text.lines().for_each(|line| prose_line(&mut out, line)),
            Passage::Code { language, text } => out.push_str(&fenced(language, text)),
        }
    }
    out
}

fn prose_line(out: &mut String, line: &str) {
    let trimmed = line.trim();
    let underline = !trimmed.is_empty()
        && (trimmed.chars().all(|c| c == '=') || trimmed.chars().all(|c| c == '-'));
    if underline && !out.is_empty() && !out.ends_with("\n\n") {
        // It would make a heading of the line above.
        out.push('\n');
    }
    if line.trim_start().starts_with('#') {
        let level = longest_run(line.split(|c| c != '#' && c != ' ').next().unwrap_or(""), '#');
        out.push_str(&"#".repeat(6_usize.saturating_sub(level).min(2)));
        out.push_str(&without_tags(line.trim_start()));
    } else {
        out.push_str(&without_tags(line));
    }
    out.push('\n');
}

/// A line in which no tag can begin, be it in code or not.
fn without_tags(line: &str) -> String {
    let mut out = String::with_capacity(line.len());
    let mut in_code = false;
    let mut chars = line.chars().peekable();
    let mut before = ' ';
    while let Some(c) = chars.next() {
        in_code ^= c == '`' && before != '`';
        let begins = chars
            .peek()
            .is_some_and(|next| next.is_ascii_alphabetic() || matches!(next, '/' | '!' | '?'));
        match (c, begins, in_code) {
            ('<', true, true) => out.extend(['<', WORD_JOINER]),
            ('<', true, false) => out.push_str("&lt;"),
            _ => out.push(c),
        }
        before = c;
    }
    out
}
