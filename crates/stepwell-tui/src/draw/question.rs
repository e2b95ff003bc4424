//! A question of the run under the conversation. It is shown from its beginning; what does not fit
//! is cut at its end, and counted.

use ratatui::text::{Line, Span};

use super::{label, span};
use crate::choice::Choice;
use crate::clean::Clean;
use crate::diff;
use crate::gates::Asked;
use crate::state::State;
use crate::theme::Theme;
use crate::told::QuestionKind;
use crate::wrap::{width, wrap};

/// How many rows what is asked may take, if two thirds of the screen are not more.
const BODY: usize = 16;
/// How many rows of its end a question for words shows: its end says what is asked.
const END: usize = 3;

/// A question as it is drawn.
pub(super) struct View {
    /// Its lines.
    pub(super) lines: Vec<Line<'static>>,
    /// Is all of what is asked among them?
    pub(super) whole: bool,
}

/// The rows of a text, each with the number of the line that it is a part of.
type Rows = Vec<(usize, Line<'static>)>;

/// Draws a question into so many rows.
pub(super) fn view(state: &State, asked: &Asked, columns: usize, room: usize) -> View {
    let theme = state.look.theme;
    let body = body(asked, columns, theme);
    let mut after = Vec::new();
    let waiting = state.gates.questions.len() - 1;
    if waiting > 0 {
        after.push(Line::styled(format!("  {waiting} more questions wait"), theme.faint()));
    }
    let keys = |seen: bool| keys(state, asked, seen, columns);
    let usual = keys(true);
    let most = BODY.max(usize::from(state.look.rows) * 2 / 3);
    let fits = |others: usize| room.saturating_sub(1 + others).min(most);
    if body.len() <= fits(after.len() + usual.len()) {
        let body = body.into_iter().map(|(_, line)| line);
        let lines = std::iter::once(Line::default()).chain(body).chain(after).chain(usual);
        return View { lines: lines.collect(), whole: true };
    }
    // It is allowed once all of it was shown.
    let keys = keys(asked.read);
    // The mark takes a row too.
    let shown = fits(after.len() + keys.len() + 1).max(1);
    let mut lines = vec![Line::default()];
    lines.extend(cut(body, shown, asked, theme));
    lines.extend(after);
    lines.extend(keys);
    // On a tiny screen, the beginning of what is asked goes before everything else.
    let blank = usize::from(lines.len() > room);
    let lines = lines.into_iter().skip(blank).take(room.max(1)).collect();
    View { lines, whole: false }
}

/// Words about keys, on as many lines as they take: a key stays beside what it does.
fn wrap_keys(text: &str, columns: usize, theme: Theme) -> Vec<Line<'static>> {
    let mut lines: Vec<String> = Vec::new();
    for key in text.split(" · ") {
        match lines.last_mut() {
            Some(line) if width(line) + 3 + width(key) <= columns => {
                line.push_str(" · ");
                line.push_str(key);
            }
            _ => lines.push(format!("  {key}")),
        }
    }
    let styled = lines.into_iter().map(|line| Line::styled(line, theme.warn()));
    styled.flat_map(|line| wrap(&line, columns, "  ")).collect()
}

/// The answers, on as many lines as they take. Brackets mark the chosen one, so that it is seen
/// without colours, and take the place of blanks, so that nothing moves.
fn choices(asked: &Asked, columns: usize, theme: Theme) -> Vec<Line<'static>> {
    let mut lines: Vec<Vec<Span<'static>>> = Vec::new();
    let mut used = 0;
    for choice in Choice::offered(&asked.question) {
        let label = choice.label(&asked.question);
        let (shown, style) = match asked.choice == Some(choice) {
            true => (format!("[{label}]"), theme.selected()),
            false => (format!(" {label} "), theme.warn()),
        };
        let wide = width(&shown);
        match lines.last_mut() {
            Some(line) if used + 1 + wide <= columns => {
                line.push(Span::styled("·", theme.warn()));
                line.push(Span::styled(shown, style));
                used += 1 + wide;
            }
            _ => {
                lines.push(vec![Span::raw(" "), Span::styled(shown, style)]);
                used = 1 + wide;
            }
        }
    }
    lines.into_iter().flat_map(|line| wrap(&Line::from(line), columns, "  ")).collect()
}

/// What is asked, then what would be done.
fn body(asked: &Asked, columns: usize, theme: Theme) -> Rows {
    let question = &asked.question;
    let (prompt, detail) = (question.shown_prompt(), question.shown_detail());
    let mut rows = Rows::new();
    for (nth, line) in prompt.as_str().trim_end().lines().enumerate() {
        let mut spans = vec![label(if nth == 0 { "? " } else { "  " }, theme.warn())];
        if let (0, Some(asker)) = (nth, &question.asker) {
            spans.push(span(asker, theme.accent()));
            spans.push(label(" asks: ", theme.faint()));
        }
        spans.push(Span::styled(line.to_owned(), theme.strong()));
        let wrapped = wrap(&Line::from(spans), columns, "  ");
        rows.extend(wrapped.into_iter().map(|line| (nth, line)));
    }
    let before = rows.last().map_or(0, |(nth, _)| nth + 1);
    let Some(detail) = detail else { return rows };
    let is_diff = diff::is_diff(&detail);
    for (nth, line) in detail.as_str().trim_end().lines().enumerate() {
        let style = if is_diff { diff::style(line, theme) } else { theme.code() };
        let wrapped = wrap(&Line::styled(format!("  {line}"), style), columns, "  ");
        rows.extend(wrapped.into_iter().map(|line| (before + nth, line)));
    }
    rows
}

/// So many rows of what is asked, and a mark that says how much is missing. A question for words
/// keeps its end as well.
fn cut(mut rows: Rows, shown: usize, asked: &Asked, theme: Theme) -> Vec<Line<'static>> {
    let words = asked.question.kind == QuestionKind::Words && asked.question.detail.is_none();
    let end = if words { end_of(&rows).min(shown.saturating_sub(1)) } else { 0 };
    let tail = rows.split_off(rows.len() - end);
    let hidden = rows.split_off(shown - end);
    let mut lines: Vec<Line<'static>> = rows.into_iter().map(|(_, line)| line).collect();
    lines.push(Line::styled(mark(&lines_in(&hidden), &hidden), theme.warn()));
    lines.extend(tail.into_iter().map(|(_, line)| line));
    lines
}

/// How many rows the last line takes, if it is not long.
fn end_of(rows: &Rows) -> usize {
    let Some((last, _)) = rows.last() else { return 0 };
    rows.iter().rev().take_while(|(nth, _)| nth == last).count().min(END)
}

/// The numbers of the lines that rows are parts of.
fn lines_in(rows: &Rows) -> Vec<usize> {
    let mut lines: Vec<usize> = rows.iter().map(|(nth, _)| *nth).collect();
    lines.dedup();
    lines
}

/// How much is not shown: lines, or what is missing of one.
fn mark(lines: &[usize], hidden: &Rows) -> String {
    match lines.len() {
        0 | 1 => {
            let text = hidden.iter().map(|(_, line)| line.to_string());
            let missing: usize = text.map(|row| row.trim().chars().count()).sum();
            format!("  … {missing} more characters: Ctrl+O shows them")
        }
        lines => format!("  … {lines} more lines: Ctrl+O shows them"),
    }
}

/// What can be pressed, and the answers.
fn keys(state: &State, asked: &Asked, seen: bool, columns: usize) -> Vec<Line<'static>> {
    let theme = state.look.theme;
    let text = match asked.question.kind {
        _ if asked.pattern => {
            let tool = asked.question.tool.as_ref().map_or("", Clean::as_str);
            format!("Enter allows {tool} what is like this, in this session; Esc goes back")
        }
        QuestionKind::Words => match &asked.question.default {
            Some(default) => format!("type your answer; Enter alone says: {default}"),
            None => "type your answer; /later leaves it".to_owned(),
        },
        QuestionKind::Approval if state.composer.editor.is_empty() => {
            let how = "arrows and Enter answer · words say no";
            let mut lines = match seen {
                true => wrap_keys(how, columns, theme),
                false => {
                    wrap_keys(&format!("Ctrl+O shows all of it first · {how}"), columns, theme)
                }
            };
            lines.extend(choices(asked, columns, theme));
            return lines;
        }
        QuestionKind::Approval if asked.replying => {
            "Enter says no, with these words as the reason · Tab puts them aside".to_owned()
        }
        QuestionKind::Approval => {
            "Enter sends these words as a message · Tab puts them aside, to answer".to_owned()
        }
    };
    wrap_keys(&text, columns, theme)
}
