//! The live part under the conversation: what streams, questions, what is typed, the status.

use ratatui::style::Style;
use ratatui::text::{Line, Span};
use stepwell::model::Mode;

use super::block::{self, seconds};
use super::question::{self, View};
use super::{Picture, fitted, label, span};
use crate::clean::Clean;
use crate::completion::MOST;
use crate::helper::Helper;
use crate::session::SessionRow;
use crate::state::{State, Work};
use crate::transcript::Block;
use crate::wrap::{cut, width};

/// How many rows what is typed takes at most.
const TYPED: usize = 8;
/// How many sessions the start shows at most.
const STARTS: usize = 8;
/// The fewest rows of a question: its beginning, what is missing, and its keys.
const QUESTION: usize = 3;
/// How many of those who work for the session are shown.
const HELPERS: usize = 4;
const SPINNER: [&str; 4] = ["◐", "◓", "◑", "◒"];

pub(super) fn picture(state: &State) -> Picture {
    let columns = usize::from(state.look.columns);
    let room = room(state);
    let mut bottom = bottom(state, columns);
    let question = asked(state, columns, bottom.lines.len()).map(|view| view.lines);
    let question = question.unwrap_or_default();
    // What is asked is seen, whatever is typed.
    bottom.drop_first((question.len() + bottom.lines.len()).saturating_sub(room));
    let left = room - question.len() - bottom.lines.len();
    let mut after = queue(state, columns);
    after.extend(start(state, columns));
    after.drain(..after.len().saturating_sub(left));
    let left = left - after.len();
    let mut lines = streaming(state, columns);
    lines.extend(helpers(state, columns));
    lines.extend(working(state));
    lines.drain(..lines.len().saturating_sub(left));
    lines.extend(question);
    lines.extend(after);
    let cursor = bottom.cursor.map(|(x, y)| (x, y + lines.len() as u16));
    lines.extend(bottom.lines);
    let lines = lines.iter().map(|line| fitted(line, columns)).collect();
    Picture { lines, cursor, full: false }
}

/// Is all of what is asked on the screen, as it is drawn now?
pub(super) fn shows_all_of_question(state: &State) -> bool {
    let columns = usize::from(state.look.columns);
    let below = bottom(state, columns).lines.len();
    asked(state, columns, below).is_none_or(|view| view.whole)
}

/// How many rows there are.
fn room(state: &State) -> usize {
    usize::from(state.look.rows).saturating_sub(1)
}

/// The question, if there is one, above so many rows.
fn asked(state: &State, columns: usize, below: usize) -> Option<View> {
    let room = room(state);
    let free = room.saturating_sub(below).max(QUESTION).min(room);
    state.asked().map(|asked| question::view(state, asked, columns, free))
}

/// What is typed, what completes it, and the status.
fn bottom(state: &State, columns: usize) -> Typed {
    let mut bottom = typed(state, columns);
    bottom.lines.insert(0, Line::styled("─".repeat(columns), state.look.theme.faint()));
    bottom.cursor = bottom.cursor.map(|(x, y)| (x, y + 1));
    bottom.lines.extend(completion(state, columns));
    bottom.lines.push(status(state, columns));
    bottom
}

/// What may still change.
fn streaming(state: &State, columns: usize) -> Vec<Line<'static>> {
    let shown = |block: &&Block| state.view.thinking || !matches!(block, Block::Thinking(_));
    let mut lines = Vec::new();
    let streaming = state.transcript.streaming();
    for block in state.transcript.live().iter().chain(&streaming).filter(shown) {
        lines.extend(block::lines(block, columns, state.look.theme, state.view.details));
    }
    lines
}

/// Those who work for the session, a line each; the ones that began last, if they are many.
fn helpers(state: &State, columns: usize) -> Vec<Line<'static>> {
    let theme = state.look.theme;
    let working: Vec<&Helper> =
        state.helpers.iter().filter(|helper| helper.ended.is_none()).collect();
    let hidden = working.len().saturating_sub(HELPERS);
    let mut lines = Vec::new();
    if hidden > 0 {
        lines.push(Line::styled(format!("  ├ {hidden} more: /agents shows them"), theme.faint()));
    }
    for helper in &working[hidden..] {
        let line = Line::from(vec![
            label("  ├ ", theme.faint()),
            span(&helper.name, theme.accent()),
            label(" ", Style::new()),
            span(&helper.does, theme.faint()),
        ]);
        lines.push(fitted(&line, columns));
    }
    lines
}

fn working(state: &State) -> Option<Line<'static>> {
    let theme = state.look.theme;
    let (since, stopping) = match &state.work {
        Work::Idle if state.is_opening() => {
            (state.passage.opening()?.since, state.passage.is_leaving())
        }
        Work::Idle if state.shells.running > 0 => (state.shells.since, state.passage.is_leaving()),
        Work::Idle => return None,
        Work::Working { since, stopping, .. } => (*since, *stopping),
        Work::Watching { since, .. } => (*since, false),
    };
    let ran = state.now.saturating_sub(since);
    let spinner = SPINNER[(ran.as_millis() / 250) as usize % SPINNER.len()];
    let (what, hint) = match (stopping, state.asked().is_some()) {
        (true, _) => ("stopping", ""),
        (false, true) => ("waiting for you", ""),
        (false, false) if state.is_opening() => ("opening", ""),
        (false, false) if state.is_watching() => ("works elsewhere", " · /stop stops it"),
        (false, false) if state.shells.running > 0 && !state.is_busy() => {
            ("your command runs", " · Esc stops")
        }
        (false, false) => ("working", " · Esc stops"),
    };
    Some(Line::from(vec![
        label(spinner, theme.accent()),
        Span::styled(format!(" {what} {}", seconds(ran)), Style::new()),
        label(hint, theme.faint()),
    ]))
}

fn queue(state: &State, columns: usize) -> Vec<Line<'static>> {
    let theme = state.look.theme;
    let line = |said: &Clean| {
        let line = Line::from(vec![label("» ", theme.accent()), span(said, theme.faint())]);
        fitted(&line, columns)
    };
    let early = state.passage.opening().into_iter().flat_map(|opening| &opening.early);
    let early = early.map(|typed| line(&Clean::line(typed)));
    state.composer.queue.iter().map(line).chain(early).collect()
}

/// What to begin with.
fn start(state: &State, columns: usize) -> Vec<Line<'static>> {
    let (theme, Some(start)) = (state.look.theme, state.start_list()) else { return Vec::new() };
    let mut lines = vec![Line::from(vec![
        label("Stepwell", theme.accent().patch(theme.strong())),
        label(" in ", theme.faint()),
        span(state.folder(), Style::new()),
    ])];
    if start.rows.is_empty() {
        lines.push(Line::styled(
            "Say what to do. Every step is saved; ? shows the keys.",
            theme.faint(),
        ));
        return lines;
    }
    lines.push(Line::styled("Say what to do, or go on with (Up, Down, Enter):", theme.faint()));
    for (nth, row) in start.rows.iter().take(STARTS).enumerate() {
        let style = if start.selected == Some(nth) { theme.selected() } else { Style::new() };
        lines.push(session_line(row, columns, state).patch_style(style));
    }
    lines
}

/// A session on one line.
pub(super) fn session_line(row: &SessionRow, columns: usize, state: &State) -> Line<'static> {
    let theme = state.look.theme;
    let style = match row {
        SessionRow { foreign: Some(_), .. } => theme.accent(),
        SessionRow { waiting: 1.., .. } => theme.warn(),
        SessionRow { cut_off: true, .. } => theme.bad(),
        _ => theme.faint(),
    };
    let word = row.standing();
    let when = row.when.as_str();
    let mark = if row.pinned { "✦ " } else { "  " };
    // On a narrow screen, what it is about matters most.
    let right = match columns {
        0..30 => when.to_owned(),
        30..48 => word.to_owned(),
        _ => format!("{word} · {when}"),
    };
    let room = columns.saturating_sub(width(&right) + width(mark) + 1);
    let mut title = row.title().as_str().replace('\n', " ");
    if !row.tags.is_empty() && columns >= 60 {
        let tags: Vec<&str> = row.tags.iter().map(Clean::as_str).collect();
        title.push_str(&format!(" [{}]", tags.join(" ")));
    }
    let title = cut(&title, room);
    let blank = " ".repeat(room - width(&title) + 1);
    Line::from(vec![
        label(mark, theme.accent()),
        Span::styled(title, Style::new()),
        Span::raw(blank),
        Span::styled(right, style),
    ])
}

struct Typed {
    lines: Vec<Line<'static>>,
    cursor: Option<(u16, u16)>,
}

impl Typed {
    /// Leaves the first lines out.
    fn drop_first(&mut self, count: usize) {
        self.lines.drain(..count.min(self.lines.len()));
        self.cursor = self.cursor.and_then(|(x, y)| Some((x, y.checked_sub(count as u16)?)));
    }
}

fn typed(state: &State, columns: usize) -> Typed {
    let theme = state.look.theme;
    let prompt = match state.composer.editor.text().starts_with('!') {
        true => label("! ", theme.warn()),
        false => label("› ", theme.accent()),
    };
    if state.composer.editor.is_empty() {
        let hint = match (state.asked(), state.is_busy(), state.session()) {
            (Some(_), ..) => "",
            (None, true, _) => "say something: it is told before its next step",
            (None, false, None) => "what is to be done?",
            (None, false, Some(_)) => "what next?",
        };
        let line = Line::from(vec![prompt, label(hint, theme.faint())]);
        return Typed { lines: vec![line], cursor: Some((2, 0)) };
    }
    let rows = state.composer.editor.rows(columns.saturating_sub(3).max(2));
    let at = rows.iter().position(|row| row.cursor.is_some()).unwrap_or(0);
    let most = TYPED.min(usize::from(state.look.rows) / 2).max(1);
    let first = at.saturating_sub(most - 1);
    let mut typed = Typed { lines: Vec::new(), cursor: None };
    for (nth, row) in rows.iter().enumerate().skip(first).take(most) {
        let mark = if nth == 0 { prompt.clone() } else { label("  ", Style::new()) };
        if let Some(column) = row.cursor {
            typed.cursor = Some((column as u16 + 2, (nth - first) as u16));
        }
        typed.lines.push(Line::from(vec![mark, span(&row.text, Style::new())]));
    }
    typed
}

fn completion(state: &State, columns: usize) -> Vec<Line<'static>> {
    let (theme, Some(completion)) = (state.look.theme, &state.composer.completion) else {
        return Vec::new();
    };
    let first = completion.selected.saturating_sub(MOST - 1);
    let wide = completion.offers.iter().map(|offer| width(offer.text.as_str())).max().unwrap_or(0);
    let mut lines = Vec::new();
    for (nth, offer) in completion.offers.iter().enumerate().skip(first).take(MOST) {
        let style = if nth == completion.selected { theme.selected() } else { Style::new() };
        let room = " ".repeat(wide.min(columns / 2).saturating_sub(width(offer.text.as_str())) + 1);
        let line = Line::from(vec![
            label("  ", Style::new()),
            span(&offer.text, style),
            Span::raw(room),
            span(&offer.help, theme.faint()),
        ]);
        lines.push(fitted(&line, columns));
    }
    lines
}

/// A part of the status line.
struct Part {
    text: Clean,
    style: Style,
    /// What matters more is kept before what matters less; the least is the first.
    rank: u8,
    /// Does its front say something?
    can_be_cut: bool,
}

impl Part {
    fn new(text: Clean, style: Style, rank: u8) -> Self {
        Self { text, style, rank, can_be_cut: false }
    }

    fn or_its_front(self) -> Self {
        Self { can_be_cut: true, ..self }
    }
}

/// Model, mode, context, cost, phase, title: as much as fits. The mode matters most, then what was
/// spent and what is left.
fn status(state: &State, columns: usize) -> Line<'static> {
    let theme = state.look.theme;
    if let Some(flash) = state.flash() {
        return fitted(&Line::from(span(flash, theme.accent())), columns);
    }
    let card = state.session();
    let kept = card.map(|card| &card.model).filter(|model| !model.is_empty());
    let model = match &state.settings.model {
        Some(model) => Clean::line(model),
        None => kept.unwrap_or(state.default_model()).clone(),
    };
    let mode = state.mode();
    let loud = if mode == Mode::Yolo { theme.warn() } else { theme.faint() };
    let mut parts = vec![
        Part::new(model, Style::new(), 2).or_its_front(),
        Part::new(Clean::new(mode.as_str()), loud, 0).or_its_front(),
    ];
    if let Some(card) = card {
        if let Some(percent) = card.context {
            let style = if percent >= 80 { theme.warn() } else { theme.faint() };
            parts.push(Part::new(Clean::new(&format!("{percent}% of context")), style, 4));
        }
        // A dash says that nothing was spent.
        if !matches!(card.cost.as_str(), "" | "-") {
            let cost = match &card.left {
                Some(left) => format!("{} ({left} left)", card.cost),
                None => card.cost.to_string(),
            };
            parts.push(Part::new(Clean::line(&cost), theme.faint(), 1));
        }
        if let Some(phase) = &card.phase {
            parts.push(Part::new(phase.clone(), theme.accent(), 3));
        }
        parts.push(Part::new(card.title.clone(), theme.faint(), 5).or_its_front());
    }
    let mut spans: Vec<Span<'static>> = Vec::new();
    for (text, style) in fitting(&parts, columns) {
        if !spans.is_empty() {
            spans.push(label(" · ", theme.faint()));
        }
        spans.push(Span::styled(text, style));
    }
    Line::from(spans)
}

/// The parts that fit between marks of three columns, in their order.
fn fitting(parts: &[Part], columns: usize) -> Vec<(String, Style)> {
    let mut by_rank: Vec<&Part> = parts.iter().filter(|part| !part.text.is_empty()).collect();
    by_rank.sort_by_key(|part| part.rank);
    let (mut used, mut taken) = (0, std::collections::BTreeMap::new());
    for part in by_rank {
        let between = if taken.is_empty() { 0 } else { 3 };
        let room = columns.saturating_sub(used + between);
        let fits = width(part.text.as_str()) <= room;
        // A piece of a word says nothing; of a title, its front does.
        if fits || (part.can_be_cut && (room >= 12 || taken.is_empty())) {
            let text = cut(part.text.as_str(), room);
            used += between + width(&text);
            taken.insert(part.rank, text);
        }
    }
    let shown = |part: &Part| taken.remove(&part.rank).map(|text| (text, part.style));
    parts.iter().filter_map(shown).collect()
}
