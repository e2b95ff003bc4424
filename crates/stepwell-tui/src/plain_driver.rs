//! The loop where nothing is redrawn: lines in, lines out. For screen readers and dumb terminals.

use std::io::{self, BufRead, Write};

use tokio::sync::mpsc::UnboundedReceiver;
use tokio::time::Instant;

use crate::driver::{Backstage, Inputs};
use crate::effect::{Effect, Input};
use crate::page::{Content, Page};
use crate::plain::{plain_lines, plain_question, plain_start, resume_line};
use crate::signals;
use crate::state::State;

/// Shows a state as lines until the user leaves.
///
/// # Errors
/// If nobody reads any more.
pub fn run_plain(
    mut state: State,
    backstage: &mut dyn Backstage,
    (to_self, mut inputs): (Inputs, UnboundedReceiver<Input>),
    first: Vec<Effect>,
) -> io::Result<State> {
    signals::pass_on(&to_self);
    read_lines(to_self);
    let (mut out, began) = (io::stdout(), Instant::now());
    let mut shown = Shown::default();
    first.into_iter().for_each(|effect| backstage.carry_out(effect));
    while let Some(input) = inputs.blocking_recv() {
        for effect in state.update(began.elapsed(), input) {
            backstage.carry_out(effect);
        }
        for line in shown.next(&mut state) {
            writeln!(out, "{line}")?;
        }
        out.flush()?;
        if state.has_left() {
            break;
        }
    }
    backstage.close();
    Ok(state)
}

/// Reads lines on a thread of its own.
fn read_lines(to: Inputs) {
    std::thread::spawn(move || {
        for line in io::stdin().lock().lines() {
            let Ok(line) = line else { break };
            if to.send(Input::Line(line)).is_err() {
                return;
            }
        }
        let _ = to.send(Input::Closed);
    });
}

/// What was written already.
#[derive(Default)]
struct Shown {
    started: bool,
    question: Option<String>,
    flash: Option<String>,
}

impl Shown {
    /// The lines that are new.
    fn next(&mut self, state: &mut State) -> Vec<String> {
        let mut lines: Vec<String> = Vec::new();
        if !self.started && state.start.is_some() {
            self.started = true;
            lines.extend(plain_start(state));
        }
        lines.extend(state.take_printable().iter().flat_map(plain_lines));
        lines.extend(page(state));
        let question = state.asked().map(|asked| asked.question.gate.clone());
        if question != self.question {
            lines.extend(state.asked().map(plain_question).unwrap_or_default());
            self.question = question;
        }
        let flash = state.flash().map(ToString::to_string);
        if flash != self.flash {
            lines.extend(flash.clone());
            self.flash = flash;
        }
        lines
    }
}

/// A page's text is written once, and the page is gone.
fn page(state: &mut State) -> Vec<String> {
    match state.page.take() {
        Some(Page::Text(page)) => match page.content {
            Content::Helper(name) => {
                let named = state.helpers.iter().find(|helper| helper.name == name);
                let blocks = named.map(|helper| helper.transcript.blocks()).unwrap_or_default();
                blocks.iter().flat_map(plain_lines).collect()
            }
            Content::Transcript => state.transcript.blocks().iter().flat_map(plain_lines).collect(),
            Content::Diff(text) | Content::Plain(text) | Content::Markdown(text) => {
                text.as_str().lines().map(str::to_owned).collect()
            }
        },
        Some(Page::Picker(picker)) => match picker.rows {
            // It comes when it was found.
            None => {
                state.page = Some(Page::Picker(picker));
                Vec::new()
            }
            Some(rows) => rows.iter().take(20).map(resume_line).collect(),
        },
        Some(Page::Points(page)) => {
            let line = |point: &crate::session::Point| {
                format!("/rewind {}  ({}, {}) {}", point.seq, point.kind, point.when, point.text)
            };
            page.points.iter().take(20).map(line).collect()
        }
        Some(Page::Choice(page)) => page.items.iter().map(ToString::to_string).collect(),
        None => Vec::new(),
    }
}
