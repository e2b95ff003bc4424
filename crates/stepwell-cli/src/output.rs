//! The answer: text for people, JSON for programs, on stdout and nowhere else.
//!
//! Secrets are taken out of it: imports and other programs' records are stored as they came.

use std::borrow::Cow;
use std::fmt::Display;
use std::io::{self, BufWriter, LineWriter, Write};

use rustix::event::{PollFd, PollFlags, Timespec};
use stepwell::log::Redactor;
use stepwell_terminal::{Form, Paint, Terminal};
use stepwell_wire::Answer;

use crate::failure::{Exit, Failure, Result};

/// Where the answer goes.
pub(crate) struct Output {
    to: Box<dyn Write + Send>,
    pub(crate) form: Form,
    pub(crate) paint: Paint,
    redactor: Redactor,
    is_used: bool,
}

impl Output {
    pub(crate) fn new(form: Form, paint: Paint, terminal: Terminal, redactor: Redactor) -> Self {
        // Line by line where a person watches, so that notes stand where they belong.
        let to: Box<dyn Write + Send> = match terminal.output {
            true => Box::new(LineWriter::new(io::stdout())),
            false => Box::new(BufWriter::new(io::stdout())),
        };
        Self { to, form, paint, redactor, is_used: false }
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

    /// What takes secrets out of the answer.
    pub(crate) fn redactor(&self) -> Redactor {
        self.redactor.clone()
    }

    /// A text without secrets. What is cut is cut from this.
    pub(crate) fn redacted<'a>(&self, text: &'a str) -> Cow<'a, str> {
        self.redactor.redact(text)
    }

    /// Writes a line, without secrets.
    pub(crate) fn line(&mut self, line: impl Display) -> Result<()> {
        let line = self.redactor.redact(&line.to_string()).into_owned();
        Ok(writeln!(self.raw(), "{line}")?)
    }

    /// Writes one JSON object on a line of its own, without secrets. Only what is described can be
    /// written.
    pub(crate) fn object(&mut self, object: &impl Answer) -> Result<()> {
        self.json(&serde_json::to_string(object).map_err(io::Error::from)?)
    }

    /// Writes an object that is JSON already, without secrets.
    pub(crate) fn json(&mut self, json: &str) -> Result<()> {
        let hidden = self.redactor.redact_json(json);
        Ok(writeln!(self.raw(), "{}", hidden.as_deref().unwrap_or(json))?)
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
        self.is_used = true;
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
        // Whoever served on stdout themselves may still hold it, while nobody reads.
        if self.is_used { Ok(self.to.flush()?) } else { Ok(()) }
    }
}
