//! What a run shows as it goes: text and tools for people, events for programs.

use std::io::{self, BufRead, Write};
use std::sync::atomic::{AtomicBool, Ordering};

use stepwell::{Money, Outcome, Spent, ToolCall};
use stepwell_agent::provider::Delta;
use stepwell_agent::run::{Happening, Reply, Watcher};

use super::Flags;
use crate::app::App;
use crate::output::{Form, Paint, Style};
use crate::text::{cost, cut, grouped, one_line, visible};

/// How a run is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Show {
    /// Not at all: the answer comes at the end.
    Nothing,
    /// The model's words on stdout, the rest on stderr.
    Words,
    /// Every event on stdout.
    Events,
}

/// Shows a run.
pub(super) struct Screen {
    show: Show,
    paint: Paint,
    width: usize,
    can_ask: bool,
    /// What the session may cost.
    budget: Option<Money>,
    /// Was something said that no line break followed?
    open_line: bool,
}

/// Is someone being asked? A signal then ends the process: the question cannot be taken
/// back.
static ASKING: AtomicBool = AtomicBool::new(false);

pub(super) fn is_asking() -> bool {
    ASKING.load(Ordering::SeqCst)
}

impl Screen {
    pub(super) fn new(app: &App, flags: &Flags) -> Self {
        let show = match (flags.events, app.out.form) {
            (true, _) => Show::Events,
            (_, Form::Json) => Show::Nothing,
            _ => Show::Words,
        };
        let width = app.world.terminal.width.unwrap_or(100);
        let can_ask = app.world.terminal.can_ask;
        let budget = flags.budget_total;
        Self { show, paint: app.out.paint, width, can_ask, budget, open_line: false }
    }

    fn budget_left(&self, spent: &Spent) -> String {
        let Some(budget) = self.budget else { return String::new() };
        let left = budget.as_picos().saturating_sub(spent.cost.as_picos());
        format!(", ${:.4} left", Money::from_picos(left))
    }

    /// Ends what was begun.
    pub(super) fn finish(&mut self) {
        self.end_line();
    }

    fn end_line(&mut self) {
        if std::mem::take(&mut self.open_line) {
            say("\n");
        }
    }

    fn words(&mut self, text: &str) {
        say(&visible(text));
        self.open_line = !text.ends_with('\n');
    }

    fn aside(&mut self, style: Style, front: &str, text: &str) {
        self.end_line();
        let line = cut(&format!("{front}{}", one_line(text)), self.width);
        let line = self.paint.paint(style, &line);
        // Nobody is left to tell if stderr is closed.
        let _ = writeln!(io::stderr(), "{line}");
    }
}

/// Writes to stdout. A closed pipe does not stop a run: its work is saved all the same.
fn say(text: &str) {
    let mut out = io::stdout();
    let _ = out.write_all(text.as_bytes()).and_then(|()| out.flush());
}

impl Watcher for Screen {
    fn saw(&mut self, happening: Happening<'_>) {
        match (self.show, happening) {
            (Show::Events, Happening::Recorded(event)) => {
                if let Ok(line) = serde_json::to_string(event) {
                    say(&format!("{line}\n"));
                }
            }
            (Show::Words, Happening::Delta(Delta::Text(text))) => self.words(&text),
            (Show::Words, Happening::Answered(_)) => self.end_line(),
            (Show::Words, Happening::ToolStarted(_, preview)) => {
                self.aside(Style::Cyan, "> ", preview);
            }
            (Show::Words, Happening::ToolFinished(call, done)) => {
                let (style, how) = match done.outcome {
                    Outcome::Done => (Style::Dim, ""),
                    Outcome::Failed => (Style::Red, "failed: "),
                    Outcome::Denied => (Style::Yellow, "not allowed: "),
                    Outcome::TimedOut => (Style::Red, "took too long: "),
                    Outcome::Unknown => (Style::Yellow, "cut off: "),
                };
                self.aside(style, "  ", &format!("{}: {how}{}", call.name, done.text));
            }
            (Show::Words, Happening::Step(steps, spent)) => {
                let left = self.budget_left(spent);
                let (tokens, cost) = (grouped(spent.usage.total()), cost(spent));
                self.aside(
                    Style::Dim,
                    "  ",
                    &format!("step {steps}, {tokens} tokens, {cost}{left}"),
                );
            }
            _ => {}
        }
    }

    fn ask(&mut self, call: &ToolCall, preview: &str) -> Reply {
        if !self.can_ask {
            return Reply::Later;
        }
        self.end_line();
        let name = visible(&call.name);
        ASKING.store(true, Ordering::SeqCst);
        // What was typed before the question is no answer to it.
        let _ = rustix::termios::tcflush(io::stdin(), rustix::termios::QueueSelector::IFlush);
        let reply = loop {
            let question = format!(
                "{} [y]es, [n]o, [a]lways {name} in this session, ne[v]er: ",
                self.paint.paint(Style::Bold, &format!("Allow {}?", one_line(preview)))
            );
            let _ = write!(io::stderr(), "{question}").and_then(|()| io::stderr().flush());
            let mut answer = String::new();
            match io::stdin().lock().read_line(&mut answer) {
                Ok(0) | Err(_) => break Reply::Later,
                Ok(_) => {}
            }
            let (word, reason) = answer.trim().split_once(' ').unwrap_or((answer.trim(), ""));
            match word.to_lowercase().as_str() {
                "y" | "yes" => break Reply::Yes,
                "n" | "no" => break Reply::No(reason.to_owned()),
                "a" | "always" => break Reply::Always,
                "v" | "never" => break Reply::Never,
                _ => {}
            }
        };
        ASKING.store(false, Ordering::SeqCst);
        reply
    }
}
