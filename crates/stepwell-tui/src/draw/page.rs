//! Pages: they cover the whole screen.

use ratatui::style::Style;
use ratatui::text::{Line, Span};

use super::live::session_line;
use super::{Picture, fitted, label, span};
use crate::clean::Clean;
use crate::editor::Editor;
use crate::effect::{OtherAgents, PointsFor};
use crate::markdown;
use crate::page::{ChoicePage, Choosing, Doing, Page, Picker, PointsPage, TextPage, WAYS};
use crate::session::{LISTED, Point};
use crate::state::State;
use crate::wrap::width;

/// The actions on a session, as the picker shows them.
const ACTIONS: &[&str] = &[
    "r rename",
    "t tag",
    "p pin",
    "f fork",
    "y copy id",
    "d delete",
    "u undelete",
    "c Claude Code",
    "x Codex",
    "Esc back",
];

/// What keys do where something is about to be done.
const DOES_IT: &[&str] = &["Enter does it", "Esc back"];
const REWIND_KEYS: &[&str] = &["Enter go back", "Esc back", "f fork", "d diff since"];
const TIMELINE_KEYS: &[&str] = &["Enter look", "Esc back", "r go back", "f fork", "d diff since"];

/// The narrowest screen on which a preview stands beside the list.
const BESIDE: usize = 90;

pub(super) fn picture(state: &State, page: &Page) -> Picture {
    let columns = usize::from(state.look.columns);
    let rows = usize::from(state.look.rows);
    let mut picture = match page {
        Page::Picker(page) => picker(state, page, columns, rows),
        Page::Points(page) => points(state, page, columns, rows),
        Page::Text(page) => text(state, page, columns, rows),
        Page::Choice(page) => choice(state, page, columns, rows),
    };
    picture.lines.truncate(rows);
    picture.lines = picture.lines.iter().map(|line| fitted(line, columns)).collect();
    picture
}

/// A title on the first line, and what is said of it: as much as fits, the first goes first. What
/// just happened stands there while it is new, so that it hides no keys.
fn title(state: &State, text: &Clean, right: &[String], columns: usize) -> Line<'static> {
    let theme = state.look.theme;
    let name = theme.accent().patch(theme.strong());
    let room = columns.saturating_sub(width(text.as_str()) + 2);
    let flash = state.flash();
    if let Some(flash) = flash.filter(|flash| width(flash.as_str()) > room) {
        return Line::from(span(flash, theme.accent()));
    }
    let (right, style) = match flash {
        Some(flash) => (flash.to_string(), theme.accent()),
        None => (fitting(right, room), theme.faint()),
    };
    let between = columns.saturating_sub(width(text.as_str()) + width(&right) + 1);
    Line::from(vec![span(text, name), Span::raw(" ".repeat(between)), Span::styled(right, style)])
}

/// As many parts as fit, the first ones first.
fn fitting<T: AsRef<str>>(parts: &[T], columns: usize) -> String {
    let mut all = String::new();
    for part in parts.iter().map(AsRef::as_ref) {
        let between = if all.is_empty() { "" } else { " · " };
        if width(&all) + width(between) + width(part) > columns {
            break;
        }
        all.push_str(between);
        all.push_str(part);
    }
    all
}

/// What keys do, on the last line: what matters most first.
fn foot(state: &State, keys: &[&str]) -> Line<'static> {
    let columns = usize::from(state.look.columns);
    Line::styled(fitting(keys, columns), state.look.theme.faint())
}

/// What can be done, on as many lines as that takes.
fn actions(columns: usize, style: Style) -> Vec<Line<'static>> {
    let (mut lines, mut line) = (Vec::new(), String::new());
    for action in ACTIONS {
        let between = if line.is_empty() { "" } else { "  " };
        if !line.is_empty() && width(&line) + width(between) + width(action) > columns {
            lines.push(Line::styled(std::mem::take(&mut line), style));
        } else {
            line.push_str(between);
        }
        line.push_str(action);
    }
    lines.push(Line::styled(line, style));
    lines
}

/// A text that is typed, behind a word; and the cursor's column.
fn field(word: &'static str, editor: &Editor, state: &State) -> (Line<'static>, u16) {
    let column = width(word) + width(editor.before_cursor());
    let text = Clean::line(editor.text());
    (
        Line::from(vec![label(word, state.look.theme.accent()), span(&text, Style::new())]),
        column as u16,
    )
}

/// The first of so many rows that are shown, so that the selected one is among them.
fn first_shown(selected: usize, rows: usize) -> usize {
    selected.saturating_sub(rows.saturating_sub(1))
}

fn picker(state: &State, page: &Picker, columns: usize, rows: usize) -> Picture {
    let theme = state.look.theme;
    let found = page.rows.as_deref().unwrap_or_default();
    let count = match &page.rows {
        Some(rows) if rows.len() >= LISTED => format!("the newest {}", rows.len()),
        Some(rows) => rows.len().to_string(),
        None => "…".to_owned(),
    };
    let next = page.reach.wider(state.session().is_some()).name();
    let right = [count, page.reach.name().to_owned(), format!("Ctrl+R {next}")];
    let mut lines = vec![title(state, &Clean::new("Sessions"), &right, columns)];
    let (line, column) = match &page.doing {
        Doing::Renaming(editor) => field("new name: ", editor, state),
        Doing::Tagging(editor) => field("tags: ", editor, state),
        _ => field("find: ", &page.words, state),
    };
    lines.push(line);
    let foot = picker_foot(state, page, columns);
    let body = rows.saturating_sub(2 + foot.len());
    let beside = columns >= BESIDE;
    let wide = if beside { columns / 2 } else { columns };
    let listed = if beside || page.preview.is_none() { body } else { body.div_ceil(2) };
    let first = first_shown(page.selected, listed);
    let mut list: Vec<Line<'static>> = Vec::new();
    for (nth, row) in found.iter().enumerate().skip(first).take(listed) {
        let style = if nth == page.selected { theme.selected() } else { Style::new() };
        list.push(
            fitted(&session_line(row, wide.saturating_sub(1), state), wide).patch_style(style),
        );
    }
    if found.is_empty() && page.rows.is_some() {
        list.push(Line::styled("nothing is like that; Ctrl+R searches further", theme.faint()));
    }
    let room = if beside { columns - wide - 2 } else { columns };
    let preview = preview(state, page, room);
    match beside {
        true => lines.extend(side_by_side(&list, &preview, wide, body)),
        false => {
            list.resize(listed, Line::default());
            lines.extend(list);
            lines.extend(preview.into_iter().take(body.saturating_sub(listed)));
        }
    }
    lines.resize(rows.saturating_sub(foot.len()), Line::default());
    lines.extend(foot);
    Picture { lines, cursor: Some((column, 1)), full: true }
}

/// What keys do in the list of sessions.
fn picker_foot(state: &State, page: &Picker, columns: usize) -> Vec<Line<'static>> {
    let warn = state.look.theme.warn();
    let on = "/config other_agents.index true finds other agents' too";
    match page.doing {
        Doing::Choosing => actions(columns, warn),
        Doing::Deleted => {
            vec![Line::styled(fitting(&["u brings it back", "Esc back"], columns), warn)]
        }
        Doing::Renaming(_) | Doing::Tagging(_) => vec![foot(state, DOES_IT)],
        Doing::Typing if page.others == OtherAgents::Off => {
            vec![foot(state, &["Enter resume", "Tab actions", "Esc back", on])]
        }
        Doing::Typing => vec![foot(state, &["Enter resume", "Tab actions", "Esc back"])],
    }
}

/// What is in the selected session: where it is found first, then its last messages.
fn preview(state: &State, page: &Picker, columns: usize) -> Vec<Line<'static>> {
    let (theme, Some(row)) = (state.look.theme, page.row()) else { return Vec::new() };
    let mut lines = vec![fitted(&Line::styled(row.id.to_string(), theme.faint()), columns)];
    for hit in &row.hits {
        // It says for itself that something stands before it.
        let hit = Clean::line(hit.as_str().trim_start_matches('…'));
        let hit = Line::from(vec![label("… ", theme.warn()), span(&hit, theme.strong())]);
        lines.extend(crate::wrap::wrap(&hit, columns, "  "));
    }
    if let Some(text) = &page.preview {
        lines.extend(markdown::lines(text, columns, theme));
    }
    lines
}

fn side_by_side(
    left: &[Line<'static>],
    right: &[Line<'static>],
    wide: usize,
    rows: usize,
) -> Vec<Line<'static>> {
    let mut lines = Vec::new();
    for nth in 0..rows {
        let mut line = left.get(nth).cloned().unwrap_or_default();
        let style = line.style;
        let used: usize = line.spans.iter().map(|span| width(&span.content)).sum();
        line.push_span(Span::styled(" ".repeat(wide.saturating_sub(used)), style));
        line.push_span(Span::raw("│ "));
        if let Some(right) = right.get(nth) {
            line.extend(right.spans.iter().map(|span| span.clone().patch_style(right.style)));
        }
        lines.push(line);
    }
    lines
}

fn points(state: &State, page: &PointsPage, columns: usize, rows: usize) -> Picture {
    let theme = state.look.theme;
    let (name, keys) = match page.purpose {
        PointsFor::Rewind => ("Go back to", REWIND_KEYS),
        PointsFor::Timeline => ("Timeline", TIMELINE_KEYS),
    };
    let count = [page.points.len().to_string()];
    let mut lines = vec![title(state, &Clean::new(name), &count, columns)];
    let body = rows.saturating_sub(2);
    let asked = if page.way.is_some() { WAYS.len() + 1 } else { 0 };
    let listed = body.saturating_sub(asked).max(1);
    let first = first_shown(page.selected, listed);
    for (nth, point) in page.points.iter().enumerate().skip(first).take(listed) {
        let style = if nth == page.selected { theme.selected() } else { Style::new() };
        lines.push(point_line(state, point, columns).patch_style(style));
    }
    lines.resize(listed + 1, Line::default());
    if let Some(way) = page.way {
        lines.push(Line::styled("Bring back:", theme.warn()));
        for (nth, (_, says)) in WAYS.iter().enumerate() {
            let style = if nth == way { theme.selected() } else { Style::new() };
            lines.push(Line::from(vec![label("  ", style), label(says, style)]));
        }
    }
    lines.resize(rows.saturating_sub(1), Line::default());
    lines.push(foot(state, if page.way.is_some() { DOES_IT } else { keys }));
    Picture { lines, cursor: None, full: true }
}

fn point_line(state: &State, point: &Point, columns: usize) -> Line<'static> {
    let theme = state.look.theme;
    let mut spans = vec![
        Span::styled(format!("{:>6} ", point.seq.to_string()), theme.faint()),
        Span::styled(format!("{:<11} ", point.kind), theme.accent()),
    ];
    if columns >= 60 {
        spans.push(Span::styled(format!("{:>8} ", point.when.as_str()), theme.faint()));
    }
    spans.push(span(&point.text, Style::new()));
    fitted(&Line::from(spans), columns)
}

fn text(state: &State, page: &TextPage, columns: usize, rows: usize) -> Picture {
    let body = rows.saturating_sub(2);
    let last = (page.top + body).min(page.lines.len());
    let place = format!("{}-{last} of {}", page.top + 1, page.lines.len());
    let mut lines = vec![title(state, &page.title, &[place], columns)];
    lines.extend(page.lines.iter().skip(page.top).take(body).cloned());
    lines.resize(rows.saturating_sub(1), Line::default());
    lines.push(foot(state, &["q back", "Space, b pages", "Up, Down", "g, G first and last"]));
    Picture { lines, cursor: None, full: true }
}

fn choice(state: &State, page: &ChoicePage, columns: usize, rows: usize) -> Picture {
    let theme = state.look.theme;
    let name = match page.what {
        Choosing::Model => "Model",
        Choosing::Mode => "When are you asked?",
        Choosing::Agent => "Agent",
        Choosing::Helper => "Who works here",
    };
    let mut lines = vec![title(state, &Clean::new(name), &[], columns)];
    let (line, column) = field("find: ", &page.filter, state);
    lines.push(line);
    let body = rows.saturating_sub(3);
    let first = first_shown(page.selected, body);
    if page.items.is_empty() {
        lines.push(Line::styled(nothing(page.what), theme.faint()));
    }
    for (nth, item) in page.fitting().into_iter().enumerate().skip(first).take(body) {
        let style = if nth == page.selected { theme.selected() } else { Style::new() };
        lines.push(Line::from(vec![label("  ", style), span(item, style)]));
    }
    lines.resize(rows.saturating_sub(1), Line::default());
    lines.push(foot(state, &["Enter choose", "Esc back"]));
    Picture { lines, cursor: Some((column, 1)), full: true }
}

/// What an empty list says.
const fn nothing(what: Choosing) -> &'static str {
    match what {
        Choosing::Model => "  none was used yet: type one, such as anthropic/NAME or ollama/NAME",
        Choosing::Mode | Choosing::Agent | Choosing::Helper => "  there is none",
    }
}
