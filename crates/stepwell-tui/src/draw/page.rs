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
use crate::session::Point;
use crate::state::State;
use crate::update::ACTIONS;
use crate::wrap::width;

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

/// A title on the first line.
fn title(state: &State, text: &Clean, right: &str, columns: usize) -> Line<'static> {
    let theme = state.look.theme;
    let room = columns.saturating_sub(width(text.as_str()) + width(right) + 1);
    Line::from(vec![
        span(text, theme.accent().patch(theme.strong())),
        Span::raw(" ".repeat(room)),
        Span::styled(right.to_owned(), theme.faint()),
    ])
}

/// What keys do, on the last line; what just happened goes first.
fn foot(state: &State, keys: &'static str) -> Line<'static> {
    let theme = state.look.theme;
    match state.flash() {
        Some(flash) => Line::from(span(flash, theme.accent())),
        None => Line::from(label(keys, theme.faint())),
    }
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
        Some(rows) => format!("{} · {} · Ctrl+R wider", rows.len(), page.reach.name()),
        None => format!("… · {}", page.reach.name()),
    };
    let mut lines = vec![title(state, &Clean::new("Sessions"), &count, columns)];
    let (line, column) = match &page.doing {
        Doing::Renaming(editor) => field("new name: ", editor, state),
        Doing::Tagging(editor) => field("tags: ", editor, state),
        _ => field("find: ", &page.words, state),
    };
    lines.push(line);
    let body = rows.saturating_sub(3);
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
    lines.resize(rows.saturating_sub(1), Line::default());
    lines.push(match page.doing {
        Doing::Choosing => Line::from(label(ACTIONS, theme.warn())),
        Doing::Renaming(_) | Doing::Tagging(_) => foot(state, "Enter does it · Esc back"),
        Doing::Typing if page.others == OtherAgents::Off => {
            let on = "Enter resume · Tab actions · Esc back · /config other_agents.index true finds other agents' too";
            foot(state, on)
        }
        Doing::Typing => foot(state, "Enter resume · Tab actions · Esc back"),
    });
    Picture { lines, cursor: Some((column, 1)), full: true }
}

/// What is in the selected session: where it is found first, then its last messages.
fn preview(state: &State, page: &Picker, columns: usize) -> Vec<Line<'static>> {
    let (theme, Some(row)) = (state.look.theme, page.row()) else { return Vec::new() };
    let mut lines = vec![fitted(&Line::styled(row.id.to_string(), theme.faint()), columns)];
    if let Some(hit) = &row.hit {
        let hit = Line::from(vec![label("… ", theme.warn()), span(hit, theme.strong())]);
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
        PointsFor::Rewind => ("Go back to", "Enter go back · f fork · d diff since · Esc"),
        PointsFor::Timeline => ("Timeline", "Enter look · r go back · f fork · d diff since · Esc"),
    };
    let mut lines = vec![title(state, &Clean::new(name), &page.points.len().to_string(), columns)];
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
    lines.push(foot(state, if page.way.is_some() { "Enter does it · Esc back" } else { keys }));
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
    let mut lines = vec![title(state, &page.title, &place, columns)];
    lines.extend(page.lines.iter().skip(page.top).take(body).cloned());
    lines.resize(rows.saturating_sub(1), Line::default());
    lines.push(foot(state, "Up, Down, Space, b · g, G first and last · q back"));
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
    let mut lines = vec![title(state, &Clean::new(name), "", columns)];
    let (line, column) = field("find: ", &page.filter, state);
    lines.push(line);
    let body = rows.saturating_sub(3);
    let first = first_shown(page.selected, body);
    for (nth, item) in page.fitting().into_iter().enumerate().skip(first).take(body) {
        let style = if nth == page.selected { theme.selected() } else { Style::new() };
        lines.push(Line::from(vec![label("  ", style), span(item, style)]));
    }
    lines.resize(rows.saturating_sub(1), Line::default());
    lines.push(foot(state, "Enter choose · Esc back"));
    Picture { lines, cursor: Some((column, 1)), full: true }
}
