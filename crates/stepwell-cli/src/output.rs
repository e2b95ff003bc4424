//! The answer: text for people, JSON for programs, on stdout and nowhere else.
//!
//! Secrets are taken out of it: imports and other programs' records are stored as they came.

use std::fmt::Display;
use std::io::{self, BufWriter, LineWriter, Write};

use rustix::event::{PollFd, PollFlags, Timespec};
use stepwell::Redactor;
use stepwell_wire::Answer;

use crate::failure::{Exit, Failure, Result};
use crate::terminal::Terminal;
use crate::text::visible;

/// How the answer is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Form {
    /// For people.
    Text,
    /// For programs: one object, or one per line.
    Json,
}

/// Who reads the answer, and whether they can be asked.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Console {
    pub(crate) terminal: Terminal,
    pub(crate) form: Form,
    pub(crate) paint: Paint,
}

impl Console {
    /// Does a person see what happens as it does?
    pub(crate) fn is_live(self) -> bool {
        self.terminal.output && self.terminal.can_ask
    }
}

/// Where the answer goes.
pub(crate) struct Output {
    to: Box<dyn Write + Send>,
    pub(crate) form: Form,
    pub(crate) paint: Paint,
    redactor: Redactor,
}

impl Output {
    pub(crate) fn new(form: Form, paint: Paint, terminal: Terminal, redactor: Redactor) -> Self {
        // Line by line where a person watches, so that notes stand where they belong.
        let to: Box<dyn Write + Send> = match terminal.output {
            true => Box::new(LineWriter::new(io::stdout())),
            false => Box::new(BufWriter::new(io::stdout())),
        };
        Self { to, form, paint, redactor }
    }

    pub(crate) fn is_json(&self) -> bool {
        self.form == Form::Json
    }

    /// Refuses to answer in JSON what is no JSON.
    pub(crate) fn refuse_json(&self) -> Result<()> {
        match self.form {
            Form::Json => Err(Failure::new(Exit::Usage, "this answer has no form in JSON")),
            Form::Text => Ok(()),
        }
    }

    /// Writes a line, without secrets.
    pub(crate) fn line(&mut self, line: impl Display) -> Result<()> {
        Ok(writeln!(self.to, "{}", self.redactor.redact(&line.to_string()))?)
    }

    /// Writes one JSON object on a line of its own, without secrets. Only what is described can be
    /// written.
    pub(crate) fn object(&mut self, object: &impl Answer) -> Result<()> {
        let json = serde_json::to_string(object).map_err(io::Error::from)?;
        let json = self.redactor.redact_json(&json).unwrap_or(json);
        Ok(writeln!(self.to, "{json}")?)
    }

    /// Writes it as an object or as a line, whichever was asked for.
    pub(crate) fn answer(&mut self, object: &impl Answer, line: impl Display) -> Result<()> {
        match self.form {
            Form::Json => self.object(object),
            Form::Text => self.line(line),
        }
    }

    /// The bytes of the answer, for whoever writes them as they are, secrets included.
    pub(crate) fn raw(&mut self) -> &mut dyn Write {
        &mut *self.to
    }

    /// Has whoever read the answer gone? A pipe tells without being written to.
    pub(crate) fn is_abandoned(&self) -> bool {
        let stdout = io::stdout();
        let mut watched = [PollFd::new(&stdout, PollFlags::empty())];
        let now = Timespec { tv_sec: 0, tv_nsec: 0 };
        let told = rustix::event::poll(&mut watched, Some(&now)).is_ok();
        told && watched[0].revents().contains(PollFlags::ERR)
    }

    /// Makes sure that all of it went out.
    pub(crate) fn flush(&mut self) -> Result<()> {
        Ok(self.to.flush()?)
    }
}

/// Tells something that is not the answer, on stderr.
pub(crate) fn note(text: impl Display) {
    // Nobody is left to tell if stderr is closed.
    let _ = writeln!(io::stderr(), "{}", visible(&text.to_string()));
}

/// Colours, if they are wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Paint {
    /// No.
    Plain,
    /// Yes.
    Colour,
}

/// How a piece of text stands out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Style {
    Plain,
    Bold,
    Dim,
    Red,
    Green,
    Yellow,
    Cyan,
}

impl Paint {
    /// The text in a style. Escapes take no room on the screen, so paint what was cut
    /// and padded already.
    pub(crate) fn paint(self, style: Style, text: &str) -> String {
        let code = match style {
            Style::Plain => "0",
            Style::Bold => "1",
            Style::Dim => "2",
            Style::Red => "31",
            Style::Green => "32",
            Style::Yellow => "33",
            Style::Cyan => "36",
        };
        match self {
            Self::Colour if style != Style::Plain => format!("\u{1b}[{code}m{text}\u{1b}[0m"),
            _ => text.to_owned(),
        }
    }
}
