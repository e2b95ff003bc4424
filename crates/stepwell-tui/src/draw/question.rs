//! A question of the run under the conversation. It is shown from its beginning; what does not fit
//! is cut at its end, and counted.

use ratatui::text::{Line, Span};

use super::{label, span};
use crate::diff;
use crate::state::{Asked, Refusal, State};
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
    let waiting = state.questions.len() - 1;
    if waiting > 0 {
        after.push(Line::styled(format!("  {waiting} more questions wait"), theme.faint()));
    }
    let wrapped = |text: &str| wrap_keys(text, columns, theme);
    let usual = wrapped(keys(state, asked, true).as_str());
    let most = BODY.max(usize::from(state.look.rows) * 2 / 3);
    let fits = |others: usize| room.saturating_sub(1 + others).min(most);
    if body.len() <= fits(after.len() + usual.len()) {
        let body = body.into_iter().map(|(_, line)| line);
        let lines = std::iter::once(Line::default()).chain(body).chain(after).chain(usual);
        return View { lines: lines.collect(), whole: true };
    }
    // It is allowed once all of it was shown.
    let keys = wrapped(keys(state, asked, asked.read).as_str());
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

/// What can be pressed, on as many lines as that takes: a key stays beside what it does.
fn wrap_keys(text: &str, columns: usize, theme: Theme) -> Vec<Line<'static>> {
    let mut lines: Vec<String> = Vec::new();
    for key in text.trim_start().split(" · ") {
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
    lines.push(Line::styled(mark(&lines_in(&hidden), &hidden, words), theme.warn()));
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
fn mark(lines: &[usize], hidden: &Rows, words: bool) -> String {
    let key = if words { "Ctrl+O" } else { "d" };
    match lines.len() {
        0 | 1 => {
            let text = hidden.iter().map(|(_, line)| line.to_string());
            let missing: usize = text.map(|row| row.trim().chars().count()).sum();
            format!("  … {missing} more characters: {key} shows them")
        }
        lines => format!("  … {lines} more lines: {key} shows them"),
    }
}

/// What can be pressed.
fn keys(state: &State, asked: &Asked, seen: bool) -> String {
    match (&asked.reason, asked.question.kind) {
        (Some(Refusal::Once), _) => "  why not? Enter says no, Esc goes back".to_owned(),
        (Some(Refusal::Never), _) => "  why never? Enter says never, Esc goes back".to_owned(),
        (None, _) if asked.pattern => {
            let tool = asked.question.always.as_ref().map_or("", |always| always.tool.as_str());
            format!("  Enter allows {tool} what is like this, in this session; Esc goes back")
        }
        (None, QuestionKind::Words) => match &asked.question.default {
            Some(default) => format!("  type your answer; Enter alone says: {default}"),
            None => "  type your answer; /later leaves it".to_owned(),
        },
        (None, QuestionKind::Approval) if !state.editor.is_empty() && !asked.focused => {
            "  Tab answers it; what you type is kept".to_owned()
        }
        (None, QuestionKind::Approval) if !seen => {
            format!(
                "  d shows all of it first · y once{} · n no · N never · l later",
                always(asked)
            )
        }
        (None, QuestionKind::Approval) => {
            format!("  y once{} · n no · N never · d details · l later", always(asked))
        }
    }
}

/// What "always" would be about; and the narrow form, where there is one.
fn always(asked: &Asked) -> String {
    let Some(always) = &asked.question.always else { return String::new() };
    let like = always.like().map(|like| format!(" · p always {like}"));
    format!(" · a always {} in this session{}", always.tool, like.unwrap_or_default())
}
