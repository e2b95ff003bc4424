//! What a run shows as it goes: text and tools for people, events for programs.

use std::io::{self, Write};
use std::sync::Arc;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use stepwell::{Clock, Head, Money, Outcome, Spent, Time};
use stepwell_agent::context::plan::Why;
use stepwell_agent::provider::Delta;
use stepwell_agent::run::{Happening, Question, Reply, Watcher};

use super::{Prepared, context};
use crate::app::App;
use crate::output::{Form, Paint, Style};
use crate::text::{cost, cut, grouped, one_line, took, visible};

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
    /// What the session may have cost in the end, by the nearest of its limits.
    budget: Option<Money>,
    clock: Arc<dyn Clock>,
    begun: Time,
    /// Was something said that no line break followed?
    open_line: bool,
    /// Why the answer could not be written, if it could not.
    unwritten: Option<io::Error>,
}

/// How often someone who is asked is looked after: a wish to stop is heard within this time.
const LOOK: Timespec = Timespec { tv_sec: 0, tv_nsec: 100_000_000 };

impl Screen {
    /// `spent` is what the session cost so far, with its subagents.
    pub(super) fn new(app: &App, prepared: &Prepared, head: &Head, spent: Money) -> Self {
        let flags = &prepared.flags;
        let show = match (flags.events, app.out.form) {
            (true, _) => Show::Events,
            (_, Form::Json) => Show::Nothing,
            _ => Show::Words,
        };
        let width = app.terminal.width.unwrap_or(100);
        let can_ask = app.terminal.can_ask;
        let here = prepared.budget().map(|budget| spent.plus(budget));
        let budget = here.into_iter().chain(flags.budget_total.or(head.budget)).min();
        Self {
            show,
            paint: app.out.paint,
            width,
            can_ask,
            budget,
            clock: Arc::clone(&app.host.clock),
            begun: app.now(),
            open_line: false,
            unwritten: None,
        }
    }

    fn budget_left(&self, spent: &Spent) -> String {
        let Some(budget) = self.budget else { return String::new() };
        format!(", ${:.4} left", budget.minus(spent.cost).max(Money::ZERO))
    }

    /// Ends what was begun. An error says that the answer could not be written.
    pub(super) fn finish(mut self) -> io::Result<()> {
        self.end_line();
        self.unwritten.map_or(Ok(()), Err)
    }

    fn end_line(&mut self) {
        if std::mem::take(&mut self.open_line) {
            self.say("\n");
        }
    }

    fn words(&mut self, text: &str) {
        self.say(&visible(text));
        self.open_line = !text.ends_with('\n');
    }

    /// Writes to stdout. A run does not stop because nobody reads it: its work is saved all
    /// the same. A closed pipe is no error; anything else is told at the end.
    fn say(&mut self, text: &str) {
        if self.unwritten.is_some() {
            return;
        }
        let mut out = io::stdout();
        let written = out.write_all(text.as_bytes()).and_then(|()| out.flush());
        let failed = written.err().filter(|error| error.kind() != io::ErrorKind::BrokenPipe);
        self.unwritten = failed;
    }

    /// Shows what a subagent does: its words are its parent's to repeat.
    fn below(&mut self, show: Show, id: &str, happening: &Happening<'_>) {
        let front = format!("  {id} ");
        match (show, happening) {
            (Show::Words, Happening::ToolStarted(_, preview)) => {
                self.aside(Style::Dim, &front, &format!("> {preview}"));
            }
            (Show::Words, Happening::CutOff(call)) => {
                self.aside(Style::Yellow, &front, &format!("{}: cut off", call.name));
            }
            (_, Happening::Notice(text)) => self.aside(Style::Yellow, &front, text),
            (show, Happening::Below(id, happening)) => self.below(show, id.as_str(), happening),
            _ => {}
        }
    }

    fn aside(&mut self, style: Style, front: &str, text: &str) {
        self.end_line();
        let line = cut(&format!("{front}{}", one_line(text)), self.width);
        let line = self.paint.paint(style, &line);
        // Nobody is left to tell if stderr is closed.
        let _ = writeln!(io::stderr(), "{line}");
    }
}

impl Watcher for Screen {
    fn saw(&mut self, happening: Happening<'_>) {
        match (self.show, happening) {
            (Show::Events, Happening::Recorded(event)) => {
                if let Ok(line) = serde_json::to_string(event) {
                    self.say(&format!("{line}\n"));
                }
            }
            (Show::Words, Happening::Delta(Delta::Text(text))) => self.words(&text),
            (Show::Words, Happening::Answered(_)) => self.end_line(),
            (Show::Words, Happening::ToolStarted(_, preview)) => {
                self.aside(Style::Cyan, "> ", preview);
            }
            (Show::Words, Happening::ToolFinished(call, outcome, told)) => {
                let (style, how) = match outcome {
                    Outcome::Done => (Style::Dim, ""),
                    Outcome::Failed => (Style::Red, "failed: "),
                    Outcome::Denied => (Style::Yellow, "not allowed: "),
                    Outcome::TimedOut => (Style::Red, "took too long: "),
                    Outcome::Unknown => (Style::Yellow, "cut off: "),
                };
                self.aside(style, "  ", &format!("{}: {how}{told}", call.name));
            }
            (Show::Words, Happening::Step(steps, spent)) => {
                let left = self.budget_left(spent);
                let (tokens, cost) = (grouped(spent.usage.total()), cost(spent));
                let time = took(self.clock.now().since(self.begun));
                let line = format!("step {steps}, {tokens} tokens, {cost}, {time}{left}");
                self.aside(Style::Dim, "  ", &line);
            }
            (Show::Words, Happening::CutOff(call)) => {
                self.aside(Style::Yellow, "  ", &format!("{}: cut off", call.name));
            }
            (show, Happening::Compacted(compacted, why))
                // Whoever asked for it is answered.
                if (show == Show::Words && why != Why::Asked) || compacted.fault.is_some() =>
            {
                let (style, line) = context::told(compacted, why);
                self.aside(style, "  ", &line);
            }
            (_, Happening::Notice(text)) => self.aside(Style::Yellow, "", text),
            (show, Happening::Below(id, happening)) => self.below(show, id.as_str(), happening),
            _ => {}
        }
    }

    fn ask(&mut self, question: &Question<'_>, is_over: &dyn Fn() -> bool) -> Reply {
        if !self.can_ask {
            return Reply::Later;
        }
        self.end_line();
        let name = visible(&question.call.name);
        // What was typed before the question is no answer to it.
        let _ = rustix::termios::tcflush(io::stdin(), rustix::termios::QueueSelector::IFlush);
        for line in question.detail.iter().flat_map(|detail| detail.lines()) {
            let style = match line.bytes().next() {
                Some(b'+') => Style::Green,
                Some(b'-') => Style::Red,
                _ => Style::Dim,
            };
            let _ = writeln!(io::stderr(), "{}", self.paint.paint(style, line));
        }
        let allow = format!("Allow {}?", one_line(question.preview));
        let allow = self.paint.paint(Style::Bold, &allow);
        loop {
            let choices = format!("[y]es, [n]o, [a]lways {name} in this session, ne[v]er");
            let _ = write!(io::stderr(), "{allow} {choices}: ").and_then(|()| io::stderr().flush());
            let Some(answer) = typed(is_over) else {
                let _ = writeln!(io::stderr());
                return Reply::Later;
            };
            let (word, reason) = answer.trim().split_once(' ').unwrap_or((answer.trim(), ""));
            match word.to_lowercase().as_str() {
                "y" | "yes" => return Reply::Yes,
                "n" | "no" => return Reply::No(reason.to_owned()),
                "a" | "always" => return Reply::Always,
                "v" | "never" => return Reply::Never,
                _ => {}
            }
        }
    }
}

/// A line that the user types; none, if there will be none or nobody waits for it any more.
pub(super) fn typed(is_over: &dyn Fn() -> bool) -> Option<String> {
    let stdin = io::stdin();
    loop {
        if is_over() {
            return None;
        }
        let mut waiting = [PollFd::new(&stdin, PollFlags::IN)];
        match poll(&mut waiting, Some(&LOOK)) {
            Ok(0) | Err(rustix::io::Errno::INTR) => continue,
            Ok(_) => {}
            Err(_) => return None,
        }
        // A terminal gives a whole line at once.
        let mut line = [0; 4096];
        return match rustix::io::read(&stdin, &mut line) {
            Ok(0) | Err(_) => None,
            Ok(len) => Some(String::from_utf8_lossy(&line[..len]).into_owned()),
        };
    }
}
