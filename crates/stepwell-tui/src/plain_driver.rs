//! The loop where nothing is redrawn: lines in, lines out. For screen readers and dumb terminals.

use std::collections::BTreeSet;
use std::io::{self, BufRead, Write};

use tokio::time::Instant;

use crate::driver::{Backstage, InputChannel, Inputs, drain_inputs};
use crate::effect::{Effect, Input};
use crate::page::{Content, Page};
use crate::plain::{plain_lines, plain_question, plain_start, resume_line};
use crate::signals;
use crate::state::State;
use crate::transcript::Block;

/// Shows a state as lines until the user leaves.
///
/// # Errors
/// If nobody reads any more.
pub fn run_plain(
    mut state: State,
    backstage: &mut dyn Backstage,
    channel: InputChannel,
    first: Vec<Effect>,
) -> io::Result<State> {
    let InputChannel { to: to_self, from: mut inputs } = channel;
    signals::pass_on(&to_self);
    read_lines(to_self);
    let (mut out, began) = (io::stdout(), Instant::now());
    let mut shown = Printed::default();
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
    drain_inputs(&mut state, &mut inputs);
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
struct Printed {
    started: bool,
    question: Option<String>,
    flash: Option<String>,
    /// Blocks that were written before one that still changes, by their places.
    early: BTreeSet<usize>,
    /// How many blocks were written in their order.
    printed: usize,
}

impl Printed {
    /// The lines that are new.
    fn next(&mut self, state: &mut State) -> Vec<String> {
        let mut lines: Vec<String> = Vec::new();
        if !self.started && state.start_list().is_some() {
            self.started = true;
            lines.extend(plain_start(state));
        }
        lines.extend(self.blocks(state).iter().flat_map(plain_lines));
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

impl Printed {
    /// The blocks that are new. While a question waits, what goes wrong and what is to be known
    /// does not wait for the call that it is about.
    fn blocks(&mut self, state: &mut State) -> Vec<Block> {
        let first = state.transcript.printed();
        if first < self.printed {
            // It is another conversation.
            self.early.clear();
        }
        let thinking = state.view.thinking;
        let is_new = |(_, block): &(usize, Block)| thinking || !matches!(block, Block::Thinking(_));
        let printable = (first..).zip(state.transcript.take_printable()).filter(is_new);
        let mut blocks: Vec<Block> =
            printable.filter(|(at, _)| !self.early.remove(at)).map(|(_, block)| block).collect();
        self.printed = state.transcript.printed();
        if state.asked().is_some() {
            let live = state.transcript.blocks().iter().enumerate().skip(self.printed);
            for (at, block) in live {
                let is_told = matches!(block, Block::Note(_) | Block::Trouble(_));
                if is_told && self.early.insert(at) {
                    blocks.push(block.clone());
                }
            }
        }
        blocks
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

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::clean::Clean;
    use crate::effect::Reply;
    use crate::state::Look;
    use crate::theme::Theme;
    use crate::told::{Question, QuestionKind, Told, ToolRun};

    #[test]
    fn what_goes_wrong_while_a_question_waits_is_written_at_once_and_once() {
        let look = Look {
            columns: 60,
            rows: 20,
            theme: Theme::PLAIN,
            model: Clean::default(),
            mode: stepwell::model::Mode::ConfirmAll,
            folder: Clean::default(),
        };
        let mut state = State::new(look);
        let mut shown = Printed::default();
        let run =
            ToolRun { call: "c".into(), tool: Clean::new("t"), preview: Clean::new("a call") };
        let told = Told::ToolStarted(run);
        state.update(Duration::ZERO, Input::Run(told));
        let question = Question {
            session: "s-one".parse().unwrap(),
            gate: "g".to_owned(),
            prompt: Clean::new("May it?"),
            kind: QuestionKind::Approval,
            detail: None,
            asker: None,
            default: None,
            tool: None,
            always: None,
        };
        state.update(Duration::ZERO, Input::Run(Told::Asked(Box::new(question))));
        shown.next(&mut state);
        let failed = Reply::Failed { why: Clean::new("no such thing"), hint: None };
        state.update(Duration::ZERO, Input::Reply(failed));
        let lines = shown.next(&mut state).join("\n");
        assert!(lines.contains("no such thing"), "{lines}");
        assert!(!shown.next(&mut state).join("\n").contains("no such thing"));
    }
}
