//! How one thing of the conversation looks.

use std::time::Duration;

use ratatui::style::Style;
use ratatui::text::{Line, Span};

use super::{fitted, label, span};
use crate::clean::Clean;
use crate::theme::Theme;
use crate::told::ToolOutcome;
use crate::transcript::{Block, ToolBlock, ToolState};
use crate::wrap::wrap;
use crate::{diff, markdown};

/// How many lines of a tool's output are shown when it is folded.
const FOLDED: usize = 3;
/// The same of a diff.
const FOLDED_DIFF: usize = 12;
/// How many are shown at most when it is not.
const UNFOLDED: usize = 400;

/// A block as lines of at most so many columns.
pub(crate) fn lines(
    block: &Block,
    columns: usize,
    theme: Theme,
    details: bool,
) -> Vec<Line<'static>> {
    let mut lines = Vec::new();
    match block {
        Block::User(text) => {
            lines.push(Line::default());
            lines.extend(marked("› ", theme.accent(), text, columns, theme.strong()));
        }
        Block::Answer(text) => {
            lines.push(Line::default());
            lines.extend(markdown::lines(text, columns, theme));
        }
        Block::Thinking(text) => {
            lines.push(Line::default());
            lines.extend(marked("∴ ", theme.faint(), text, columns, theme.faint()));
        }
        Block::Tool(tool) => lines.extend(tool_lines(tool, columns, theme, details)),
        Block::Picture(kind) => {
            lines.push(Line::from(vec![
                label("▣ picture: ", theme.faint()),
                span(kind, theme.faint()),
            ]));
        }
        Block::Note(text) => {
            lines.extend(marked("· ", theme.faint(), text, columns, theme.faint()));
        }
        Block::Trouble(text) => lines.extend(marked("✗ ", theme.bad(), text, columns, theme.bad())),
        Block::Output(text) => lines.extend(output(text, columns, theme, UNFOLDED)),
    }
    lines
}

/// Text behind a mark, which only its first line has.
fn marked(
    mark: &'static str,
    mark_style: Style,
    text: &Clean,
    columns: usize,
    style: Style,
) -> Vec<Line<'static>> {
    let mut lines = Vec::new();
    for (nth, line) in text.as_str().trim_end().split('\n').enumerate() {
        let mark = if nth == 0 { mark } else { "  " };
        let line = Line::from(vec![label(mark, mark_style), Span::styled(line.to_owned(), style)]);
        lines.extend(wrap(&line, columns, "  "));
    }
    lines
}

fn tool_lines(tool: &ToolBlock, columns: usize, theme: Theme, details: bool) -> Vec<Line<'static>> {
    let (mark, style, ending) = match tool.state {
        ToolState::Called => ("○ ", theme.faint(), String::new()),
        ToolState::Running(ran) => ("◐ ", theme.accent(), format!(" {}", seconds(ran))),
        ToolState::Over(ToolOutcome::Done) => ("● ", theme.good(), String::new()),
        ToolState::Over(ToolOutcome::Failed) => ("● ", theme.bad(), " failed".to_owned()),
        ToolState::Over(ToolOutcome::Denied) => ("● ", theme.warn(), " not allowed".to_owned()),
        ToolState::Over(ToolOutcome::Waits) => ("○ ", theme.warn(), " waits for you".to_owned()),
        ToolState::Over(ToolOutcome::CutOff) => ("● ", theme.warn(), " cut off".to_owned()),
        ToolState::Over(ToolOutcome::NotRun) => ("○ ", theme.warn(), " not run".to_owned()),
    };
    // How it ended is never cut off the line.
    let room = columns.saturating_sub(crate::wrap::width(&ending));
    let (name, does) = named(tool);
    let head = Line::from(vec![
        label(mark, style),
        span(&name, theme.strong()),
        label(" ", Style::new()),
        span(&does, Style::new()),
    ]);
    let mut head = fitted(&head, room);
    head.push_span(Span::styled(ending, style));
    let mut lines = vec![head];
    if details && tool.state == ToolState::Over(ToolOutcome::Done) {
        lines.extend(output(&tool.change, columns, theme, UNFOLDED));
    }
    let most = match (details, diff::is_diff(&tool.output)) {
        (true, _) => UNFOLDED,
        (false, true) => FOLDED_DIFF,
        (false, false) => FOLDED,
    };
    lines.extend(output(&tool.output, columns, theme, most));
    lines
}

/// What a call is called and what it does. Where what it does begins with the tool's own verb, that
/// is name enough: `write a.txt`, not `write_file write a.txt`.
fn named(tool: &ToolBlock) -> (Clean, Clean) {
    let (name, does) = (&tool.run.tool, &tool.run.preview);
    let verb = name.as_str().split_once('_').map(|(verb, _)| verb);
    match does.as_str().split_once(' ') {
        Some((first, rest)) if Some(first) == verb => (Clean::line(first), Clean::line(rest)),
        _ => (name.clone(), does.clone()),
    }
}

/// Output, at most so many lines of it, and how many there are beyond.
fn output(text: &Clean, columns: usize, theme: Theme, most: usize) -> Vec<Line<'static>> {
    let is_diff = diff::is_diff(text);
    let all: Vec<&str> = text.as_str().trim_end().lines().collect();
    let style = |line: &str| if is_diff { diff::style(line, theme) } else { theme.faint() };
    let mut lines = Vec::new();
    for line in all.iter().take(most) {
        let line = Line::from(vec![
            label("  ", Style::new()),
            Span::styled((*line).to_owned(), style(line)),
        ]);
        lines.extend(wrap(&line, columns, "  "));
    }
    if all.len() > most {
        let more = format!("  … {} more lines", all.len() - most);
        lines.push(Line::styled(more, theme.faint()));
    }
    lines
}

/// A time as people read it.
pub(crate) fn seconds(time: Duration) -> String {
    match time.as_secs() {
        seconds @ 0..60 => format!("{seconds}s"),
        seconds @ 60..3600 => format!("{}m {:02}s", seconds / 60, seconds % 60),
        seconds => format!("{}h {:02}m", seconds / 3600, seconds / 60 % 60),
    }
}
