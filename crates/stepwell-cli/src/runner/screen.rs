//! What a run shows as it goes: text and tools for people, events for programs.

use std::io::{self, Write};
use std::sync::Arc;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use stepwell::{Clock, Head, Message, Money, Outcome, Spent, Time, ToolCall};
use stepwell_agent::context::plan::Why;
use stepwell_agent::permission::{Rule, target};
use stepwell_agent::provider::{Delta, NO_ANSWER};
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
    /// Does a person see what happens as it does?
    live: bool,
    /// How many lines are drawn that are drawn over.
    drawn: usize,
    answer: Shown,
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
            live: show == Show::Words && app.terminal.output && can_ask,
            drawn: 0,
            answer: Shown::default(),
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
        self.wipe();
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

    /// Takes in a piece of an answer. A person sees it at once; in a pipe an answer is written when
    /// it is whole, and so never twice.
    fn hear(&mut self, delta: Delta) {
        match delta {
            Delta::Text(text) if self.live => {
                let next = self.answer.hear(&text);
                if next.anew {
                    self.end_line();
                }
                if !next.text.is_empty() {
                    self.words(&next.text);
                }
            }
            Delta::Void => self.answer.void(),
            Delta::Text(_) | Delta::Thinking(_) => {}
        }
    }

    fn answered(&mut self, message: &Message) {
        let text = message.text();
        if !self.live && text != NO_ANSWER && !text.is_empty() {
            self.words(&text);
        }
        self.answer = Shown::default();
        self.end_line();
    }

    /// Shows that something goes on, until anything else is shown.
    fn tick(&mut self, what: &str, took: Duration, lines: &str) {
        const SIGNS: [&str; 4] = ["-", "\\", "|", "/"];
        if !self.live || self.open_line {
            return;
        }
        self.wipe();
        let halves = usize::try_from(took.as_millis() / 500).unwrap_or_default();
        let sign = SIGNS[halves % SIGNS.len()];
        let first = format!("{sign} {what}, {}s", took.as_secs());
        for line in std::iter::once(first.as_str()).chain(lines.lines()) {
            let front = if self.drawn == 0 { "" } else { "  " };
            let line = cut(&format!("{front}{}", one_line(line)), self.width.saturating_sub(1));
            // Nobody is left to tell if stderr is closed.
            let _ = writeln!(io::stderr(), "{}", self.paint.paint(Style::Dim, &line));
            self.drawn += 1;
        }
    }

    /// Takes away what shows that something goes on.
    fn wipe(&mut self) {
        let drawn = std::mem::take(&mut self.drawn);
        if drawn > 0 {
            let _ = write!(io::stderr(), "\u{1b}[{drawn}A\u{1b}[J");
        }
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
        match &happening {
            Happening::Waiting(waited) => return self.tick("waiting for the model", *waited, ""),
            Happening::Running(call, ran, lines) => return self.tick(&call.name, *ran, lines),
            // What is recorded is shown by what follows it.
            Happening::Recorded(_) => {}
            _ => self.wipe(),
        }
        match (self.show, happening) {
            (Show::Events, Happening::Recorded(event)) => {
                if let Ok(line) = serde_json::to_string(event) {
                    self.say(&format!("{line}\n"));
                }
            }
            (Show::Words, Happening::Delta(delta)) => self.hear(delta),
            (Show::Words, Happening::Answered(message)) => self.answered(message),
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
        self.wipe();
        self.end_line();
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
            let choices = choices(question.call);
            let _ = write!(io::stderr(), "{allow} {choices}: ").and_then(|()| io::stderr().flush());
            let Some(answer) = typed(is_over) else {
                let _ = writeln!(io::stderr());
                return Reply::Later;
            };
            let (word, reason) = answer.trim().split_once(' ').unwrap_or((answer.trim(), ""));
            match word.to_lowercase().as_str() {
                "y" | "yes" => return Reply::Yes,
                "n" | "no" => return Reply::No(reason.to_owned()),
                "a" | "always" if reason.is_empty() => return Reply::Always,
                "v" | "never" if reason.is_empty() => return Reply::Never,
                word @ ("a" | "always" | "v" | "never") => {
                    let (pattern, allow) = (reason.trim().to_owned(), word.starts_with('a'));
                    let rule = Rule::new(question.call.name.as_str(), Some(pattern.clone()));
                    if rule.fits(question.call) {
                        return Reply::Like { pattern, allow };
                    }
                    let _ = writeln!(io::stderr(), "{pattern:?} does not fit this call");
                }
                _ => {}
            }
        }
    }
}

/// What can be answered to the question about a call. A pattern is shown for what it is about.
fn choices(call: &ToolCall) -> String {
    let name = visible(&call.name);
    let like = target(call).map(|target| {
        let words: Vec<&str> = target.split_whitespace().take(2).collect();
        let front = match words.as_slice() {
            // A path has no words: what lies in its folder is like it.
            [path] if path.contains('/') => path.rsplit_once('/').map_or("", |(folder, _)| folder),
            _ => return format!(" (or a pattern: a {}*)", cut(&words.join(" "), 30)),
        };
        format!(" (or a pattern: a {}/*)", cut(front, 30))
    });
    let like = visible(&like.unwrap_or_default());
    format!("[y]es, [n]o (and why), [a]lways {name} in this session{like}, ne[v]er")
}

/// What was shown of the answer that comes.
#[derive(Debug, Default)]
struct Shown {
    text: String,
    /// It broke off: the answer comes anew, as far as this.
    is_void: bool,
    anew: String,
}

/// What is to be shown next of an answer.
#[derive(Debug, Default, PartialEq, Eq)]
struct Next {
    text: String,
    /// Is it another answer than the one that was shown before?
    anew: bool,
}

impl Shown {
    /// The answer broke off, and comes anew.
    fn void(&mut self) {
        self.is_void = true;
        self.anew.clear();
    }

    /// Takes in a piece of text. What was shown before an answer broke off is not shown again.
    fn hear(&mut self, piece: &str) -> Next {
        if !self.is_void {
            self.text.push_str(piece);
            return Next { text: piece.to_owned(), anew: false };
        }
        self.anew.push_str(piece);
        if self.text.starts_with(&self.anew) {
            return Next::default();
        }
        let anew = std::mem::take(&mut self.anew);
        self.is_void = false;
        let next = match anew.strip_prefix(&self.text) {
            Some(rest) => Next { text: rest.to_owned(), anew: false },
            None => Next { text: anew.clone(), anew: true },
        };
        self.text = anew;
        next
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

#[cfg(test)]
mod tests {
    use super::*;

    /// What a person sees of pieces, of which `!` says that the answer broke off.
    fn seen(pieces: &[&str]) -> String {
        let mut shown = Shown::default();
        let mut seen = String::new();
        for piece in pieces {
            if *piece == "!" {
                shown.void();
                continue;
            }
            let next = shown.hear(piece);
            seen.push_str(if next.anew { "\n" } else { "" });
            seen.push_str(&next.text);
        }
        seen
    }

    #[test]
    fn half_an_answer_is_not_shown_twice() {
        assert_eq!(seen(&["Hel", "lo."]), "Hello.");
        assert_eq!(seen(&["Hel", "!", "H", "ell", "o."]), "Hello.");
        assert_eq!(seen(&["Hel", "!", "He", "!", "Hello."]), "Hello.");
        assert_eq!(seen(&["Hel", "!", "He", "y."]), "Hel\nHey.");
    }
}
