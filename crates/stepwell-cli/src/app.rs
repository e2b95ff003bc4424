//! What every command works with: the configuration, the store, the answer.

use std::path::{Path, PathBuf};

use stepwell_runtime::command::{Command, Reply, SessionCommand};
use stepwell_runtime::{Interrupt, Runtime};
use stepwell_terminal::reply::{self, Refusal, Rendered, Style};
use stepwell_terminal::table::Table;
use stepwell_terminal::{Console, Form, Paint, Terminal, note, text, wording};
use stepwell_workspace::config::Override;
use stepwell_workspace::{Host, Notices, Wanted, Workspace};

use crate::failure::{Exit, Failure, Result, exit_of_run};
use crate::global::{Colour, Global};
use crate::output::Output;
use crate::runner::{self, RunView};

/// What every command works with: the workspace, and where the answer goes.
pub(crate) struct App {
    /// The workspace that it works in.
    pub(crate) workspace: Workspace,
    /// What was typed that every command takes.
    pub(crate) global: Global,
    /// Which workspace was asked for.
    pub(crate) wanted: Wanted,
    /// Why the configuration is not the user's, for those who go on without it.
    pub(crate) config_fault: Option<String>,
    pub(crate) terminal: Terminal,
    pub(crate) out: Output,
    /// All that can be typed, for completions and man pages.
    pub(crate) definition: fn() -> clap::Command,
}

/// What a command needs before it can begin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Needs {
    /// A folder that is there, and a configuration without faults.
    Workspace,
    /// Nothing: it helps where everything else is wrong.
    Nothing,
}

impl App {
    pub(crate) fn new(
        global: &Global,
        mut host: Host,
        terminal: Terminal,
        needs: Needs,
        definition: fn() -> clap::Command,
    ) -> Result<Self> {
        if let Some(folder) = &global.folder {
            let gone = |error| format!("-C {}: {error}", folder.display());
            let there = go_to(folder).map_err(|error| Failure::new(Exit::Absent, gone(error)))?;
            host.folder = Some(there);
        }
        let named = global.store.clone();
        let store = named.or_else(|| host.variable("STEPWELL_STORE").map(PathBuf::from));
        if let Some(store) = &store {
            refuse_file(store)?;
        }
        let (overrides, misspelt) = match overrides(&global.settings) {
            Ok(overrides) => (overrides, None),
            Err(failure) => (Vec::new(), Some(failure)),
        };
        let wanted = Wanted { folder: host.folder.clone(), store, overrides };
        let notices = Notices::to(|notice| note(wording::notice(notice)));
        let asked = wanted.clone();
        let (workspace, fault) = match needs {
            Needs::Workspace => (Workspace::locate(host, wanted, notices)?, None),
            Needs::Nothing => Workspace::locate_or_defaults(host, wanted, notices)?,
        };
        let fault = fault.map(Failure::from);
        let config_fault = match (misspelt, needs) {
            (Some(failure), Needs::Workspace) => return Err(failure),
            (misspelt, _) => misspelt.or(fault).map(|failure| failure.to_string()),
        };
        let colour = match global.color {
            Colour::Always => true,
            Colour::Never => false,
            Colour::Auto => terminal.output && !terminal.plain,
        };
        let paint = if colour { Paint::Colour } else { Paint::Plain };
        let form = if global.json { Form::Json } else { Form::Text };
        text::hide_secrets_of(workspace.redactor());
        let out = Output::new(form, paint, terminal, workspace.redactor().with_own_count());
        let (global, wanted) = (global.clone(), asked);
        Ok(Self { workspace, global, wanted, config_fault, terminal, out, definition })
    }

    /// Who reads the answer, and whether they can be asked.
    pub(crate) fn console(&self) -> Console {
        Console { terminal: self.terminal, form: self.out.form, paint: self.out.paint }
    }

    /// What runs are started and talked to with.
    pub(crate) fn runtime(&self) -> Runtime {
        runner::runtime(&self.workspace, self.console())
    }

    /// Where a run is shown.
    pub(crate) fn run_view(&mut self) -> RunView<'_> {
        let console = self.console();
        RunView { out: &mut self.out, console, host: &self.workspace.host }
    }

    /// Carries a command out.
    pub(crate) fn carry_out(&self, command: Command) -> Result<Reply> {
        Ok(self.runtime().run(command, &Interrupt::default())?)
    }

    /// Carries a command out that is about one session.
    pub(crate) fn of_session(&self, session: &str, what: SessionCommand) -> Result<Reply> {
        self.carry_out(Command::Session(session.to_owned(), what))
    }

    /// Carries a command out that is about one session, and gives the answer.
    pub(crate) fn do_to(&mut self, session: &str, what: SessionCommand) -> Result<Exit> {
        let reply = self.of_session(session, what)?;
        self.answer(&reply)
    }

    /// Gives an answer, in words or as JSON.
    pub(crate) fn answer(&mut self, reply: &Reply) -> Result<Exit> {
        let Rendered { lines, notes, hints, refused } = reply::words(reply, &self.style());
        match self.out.is_json() {
            true => {
                let objects = reply::json(reply).map_err(std::io::Error::from)?;
                objects.iter().try_for_each(|object| self.out.json(object))?;
            }
            false => lines.into_iter().try_for_each(|line| self.out.line(line))?,
        }
        notes.into_iter().for_each(note);
        if !self.out.is_json() {
            hints.into_iter().for_each(note);
        }
        match refused {
            Some(Refusal { why, kind }) => Err(Failure::explained(why, exit_of_run(kind))),
            None => Ok(Exit::Done),
        }
    }

    /// How answers are shown.
    pub(crate) fn style(&self) -> Style {
        let (paint, columns) = (self.out.paint, self.terminal.width);
        Style { paint, columns, redactor: self.out.redactor(), now: self.workspace.now() }
    }

    /// A line without secrets, no wider than the terminal.
    pub(crate) fn cut(&self, line: &str) -> String {
        self.style().cut(line)
    }

    /// Prints a table without secrets, as wide as the terminal.
    pub(crate) fn print(&mut self, table: &Table) -> Result<()> {
        self.style().table(table).into_iter().try_for_each(|line| self.out.line(line))
    }
}

/// Settings that were typed for this one time.
fn overrides(typed: &[String]) -> Result<Vec<Override>> {
    let read = |typed: &String| match typed.split_once('=') {
        Some((key, value)) => Ok(Override { key: key.to_owned(), value: value.to_owned() }),
        None => {
            // It may be an address with a password, where a key was meant.
            let typed = if typed.contains("://") { "…" } else { typed };
            Err(Failure::new(Exit::Usage, format_args!("--config {typed}: use KEY=VALUE")))
        }
    };
    typed.iter().map(read).collect()
}

/// A store is a folder. Its database may be named in its place; a backup may not.
fn refuse_file(store: &Path) -> Result<()> {
    let is_database = store.file_name().is_some_and(|name| name == "stepwell.db");
    if is_database || !store.is_file() {
        return Ok(());
    }
    let shown = store.display();
    let message = format!("{shown} is a file, and a store is a folder");
    Err(Failure::new(Exit::Absent, message).hint(format_args!(
        "if it is a backup, stepwell --store FOLDER restore {shown} makes a store of it"
    )))
}

/// Goes to a folder, so that every path that was typed is meant from there.
fn go_to(folder: &Path) -> std::io::Result<PathBuf> {
    std::env::set_current_dir(folder)?;
    std::fs::canonicalize(".")
}
