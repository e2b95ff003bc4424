//! What a run shows as it goes: text and tools for people, events for programs.

use std::io::{self, Write};
use std::sync::Arc;
use std::time::Duration;

use stepwell::clock::Clock;
use stepwell::model::{Compacted, Money, Outcome, Role, Spent, Time};
use stepwell::{Event, Lane, Message, Recorded};
use stepwell_agent::context::plan::Why;
use stepwell_agent::provider::{Delta, NO_ANSWER};
use stepwell_runtime::RunEvent;

use crate::console::{Console, Form, Paint, Style};
use crate::text::{cost, cut, grouped, one_line, took, visible};
use crate::wording;

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
pub struct AgentLines {
    show: Show,
    paint: Paint,
    width: usize,
    /// What the session may have cost in the end, by the nearest of its limits.
    budget: Option<Money>,
    clock: Arc<dyn Clock>,
    begun: Time,
    /// Does a person see what happens as it does?
    live: bool,
    /// How many lines are drawn that are drawn over.
    drawn: usize,
    answer: ShownAnswer,
    /// Was something said that no line break followed?
    open_line: bool,
    /// Why the answer could not be written, if it could not.
    unwritten: Option<io::Error>,
}

impl AgentLines {
    /// `budget` is what the session may have cost in the end, by the nearest of its limits.
    pub fn new(
        console: Console,
        clock: Arc<dyn Clock>,
        wants_events: bool,
        budget: Option<Money>,
    ) -> Self {
        let show = match (wants_events, console.form) {
            (true, _) => Show::Events,
            (_, Form::Json) => Show::Nothing,
            _ => Show::Words,
        };
        Self {
            show,
            paint: console.paint,
            width: console.terminal.width.unwrap_or(100),
            budget,
            begun: clock.now(),
            clock,
            live: show == Show::Words && console.is_live(),
            drawn: 0,
            answer: ShownAnswer::default(),
            open_line: false,
            unwritten: None,
        }
    }

    /// Shows an event that was recorded: to programs as it is, to people what the model said.
    fn recorded(&mut self, event: &Recorded) {
        match (self.show, &event.event) {
            (Show::Events, _) => {
                if let Ok(line) = serde_json::to_string(event) {
                    self.say(&format!("{line}\n"));
                }
            }
            (Show::Words, Event::Message(message))
                if message.role == Role::Assistant && message.lane == Lane::main() =>
            {
                self.wipe();
                self.answered(message);
            }
            _ => {}
        }
    }

    fn budget_left(&self, spent: &Spent) -> String {
        let Some(budget) = self.budget else { return String::new() };
        format!(", ${:.4} left", budget.minus(spent.cost).max(Money::ZERO))
    }

    /// Ends what was begun. An error says that the answer could not be written.
    pub fn finish(mut self) -> io::Result<()> {
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
    fn hear(&mut self, delta: &Delta) {
        match delta {
            Delta::Text(text) if self.live => {
                let next = self.answer.hear(text);
                if next.anew {
                    self.end_line();
                }
                if !next.text.is_empty() {
                    self.words(&next.text);
                }
            }
            Delta::Void => self.answer.void(),
            Delta::Text(_) | Delta::Thinking(_) | Delta::Call => {}
        }
    }

    fn answered(&mut self, message: &Message) {
        let text = message.text();
        // Of a run elsewhere, nothing may have come before it was whole.
        let is_shown = self.live && !self.answer.text.is_empty();
        if !is_shown && text != NO_ANSWER && !text.is_empty() {
            self.words(&text);
        }
        self.answer = ShownAnswer::default();
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
    fn below(&mut self, show: Show, id: &str, event: &RunEvent) {
        let front = format!("  {id} ");
        match (show, event) {
            (Show::Words, RunEvent::ToolStarted { preview, .. }) => {
                self.aside(Style::Dim, &front, &format!("> {preview}"));
            }
            (Show::Words, RunEvent::ToolCutOff { tool, .. }) => {
                self.aside(Style::Yellow, &front, &format!("{tool}: cut off"));
            }
            (_, RunEvent::Notice(notice)) => {
                self.advise(&front, &wording::run_notice(notice));
            }
            (show, RunEvent::Child { session, event }) => self.below(show, session.as_str(), event),
            _ => {}
        }
    }

    /// Shows what a person should know, whole: advice that is cut is none.
    fn advise(&mut self, front: &str, text: &str) {
        self.line(Style::Yellow, &format!("{front}{}", one_line(text)));
    }

    fn aside(&mut self, style: Style, front: &str, text: &str) {
        let line = cut(&format!("{front}{}", one_line(text)), self.width);
        self.line(style, &line);
    }

    fn line(&mut self, style: Style, line: &str) {
        self.end_line();
        let line = self.paint.paint(style, line);
        // Nobody is left to tell if stderr is closed.
        let _ = writeln!(io::stderr(), "{line}");
    }
}

impl super::questions::Show for AgentLines {
    fn see(&mut self, event: &RunEvent) {
        match event {
            RunEvent::Waiting(waited) => return self.tick("waiting for the model", *waited, ""),
            RunEvent::ToolOutput { tool, ran, tail, .. } => return self.tick(tool, *ran, tail),
            // What is recorded is shown by what follows it.
            RunEvent::Recorded(event) => return self.recorded(event),
            _ => self.wipe(),
        }
        match (self.show, event) {
            (Show::Words, RunEvent::Delta(delta)) => self.hear(delta),
            (Show::Words, RunEvent::ToolStarted { preview, .. }) => {
                self.aside(Style::Cyan, "> ", preview);
            }
            (Show::Words, RunEvent::ToolFinished { tool, outcome, told, .. }) => {
                let (style, how) = match outcome {
                    Outcome::Done => (Style::Dim, ""),
                    Outcome::Failed => (Style::Red, "failed: "),
                    Outcome::Denied => (Style::Yellow, "not allowed: "),
                    Outcome::TimedOut => (Style::Red, "took too long: "),
                    Outcome::Unknown => (Style::Yellow, "cut off: "),
                };
                self.aside(style, "  ", &format!("{tool}: {how}{told}"));
            }
            (Show::Words, RunEvent::Step { steps, spent }) => {
                let left = self.budget_left(spent);
                let (tokens, cost) = (grouped(spent.usage.total()), cost(spent));
                let time = took(self.clock.now().since(self.begun));
                let line = format!("step {steps}, {tokens} tokens, {cost}, {time}{left}");
                self.aside(Style::Dim, "  ", &line);
            }
            (Show::Words, RunEvent::ToolCutOff { tool, .. }) => {
                self.aside(Style::Yellow, "  ", &format!("{tool}: cut off"));
            }
            (show, RunEvent::Compacted { compacted, why })
                // Whoever asked for it is answered.
                if (show == Show::Words && *why != Why::Asked) || compacted.fault.is_some() =>
            {
                let (style, line) = compaction(compacted, *why);
                self.aside(style, "  ", &line);
            }
            (_, RunEvent::Notice(notice)) => {
                self.advise("", &wording::run_notice(notice));
            }
            (show, RunEvent::Child { session, event }) => self.below(show, session.as_str(), event),
            _ => {}
        }
    }

    fn make_room(&mut self) {
        self.wipe();
        self.end_line();
    }

    fn paint(&self) -> Paint {
        self.paint
    }
}

/// What a person is told when a conversation shrank.
pub fn compaction(compacted: &Compacted, why: Why) -> (Style, String) {
    let why = match why {
        Why::Near => "it is near to what fits",
        Why::Long => "it has many messages",
        Why::Phase => "a new phase began",
        Why::Refused => "the provider said that it does not fit",
        Why::Asked => "as you wished",
    };
    let (before, after) = (grouped(compacted.tokens_before), grouped(compacted.tokens_after));
    let how = match (&compacted.fault, compacted.is_truncation()) {
        (Some(fault), _) => format!("truncated, not compacted ({fault})"),
        (None, true) => "truncated".to_owned(),
        (None, false) => "compacted".to_owned(),
    };
    let style = if compacted.fault.is_some() { Style::Yellow } else { Style::Dim };
    (style, format!("the conversation was {how}, from {before} to {after} tokens: {why}"))
}

/// What was shown of the answer that comes.
#[derive(Debug, Default)]
struct ShownAnswer {
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

impl ShownAnswer {
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

#[cfg(test)]
mod tests {
    use super::*;

    /// What a person sees of pieces, of which `!` says that the answer broke off.
    fn seen(pieces: &[&str]) -> String {
        let mut shown = ShownAnswer::default();
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
