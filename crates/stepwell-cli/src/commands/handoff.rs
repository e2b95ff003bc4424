//! How another agent goes on with a session: the command is printed, or run.

use std::collections::BTreeSet;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command as Process;

use stepwell::SessionId;
use stepwell_formats::Format;
use stepwell_runtime::Interrupt;
use stepwell_runtime::command::{Command, Reply, SessionCommand};
use stepwell_terminal::note;
use stepwell_terminal::reply::words;
use stepwell_workspace::handoff::HandOver;

use crate::app::App;
use crate::failure::{Exit, Failure, Result};

/// Who goes on, and how.
#[derive(Clone, Debug, Default, clap::Args)]
#[command(next_help_heading = "In another agent")]
pub(crate) struct Elsewhere {
    /// Continues in another agent: claude, codex, qwen, pi or strands.
    #[arg(long, value_name = "AGENT", value_parser = agent)]
    pub(crate) with: Option<Format>,
    /// Runs the command that continues there, instead of printing it.
    #[arg(long, requires = "with")]
    pub(crate) exec: bool,
}

/// What is done once it is known how another agent goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Then {
    /// The session is written, and the command printed.
    Print,
    /// The session is written, and the command run.
    Run,
    /// The command is printed, and nothing is done.
    OnlySay,
}

/// Where a session goes on.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Onward {
    /// The format of the agent that goes on.
    pub(crate) agent: Format,
    pub(crate) then: Then,
}

/// Hands a session over.
pub(crate) fn hand_over(
    id: &SessionId,
    Onward { agent, then }: Onward,
    app: &mut App,
) -> Result<Exit> {
    let how = if then == Then::OnlySay { HandOver::DryRun } else { HandOver::Write };
    let command = Command::Session(id.to_string(), SessionCommand::HandOver { agent, how });
    let reply = app.runtime().run(command, &Interrupt::default()).map_err(|error| {
        match error.holder() {
            Some(holder) => Failure::new(Exit::Busy, format_args!("{id} runs here, in {holder}"))
                .hint(format_args!("stepwell stop {id} stops it")),
            None => error.into(),
        }
    })?;
    match &reply {
        Reply::HandedOver(handed) if then == Then::Run => {
            words(&reply, &app.style()).notes.into_iter().for_each(note);
            run(&handed.command, &handed.folder)
        }
        reply => app.answer(reply),
    }
}

/// The format of an agent that sessions are handed over to, by the name of either.
fn agent(name: &str) -> std::result::Result<Format, String> {
    name.parse().ok().filter(|format: &Format| format.successor().is_some()).ok_or_else(|| {
        let agents = Format::all().filter_map(|format| Some(format.successor()?.agent));
        let names: Vec<&str> = agents.collect::<BTreeSet<_>>().into_iter().collect();
        format!("{name:?} does not go on with sessions of others; use {}", one_of(&names))
    })
}

fn one_of(names: &[&str]) -> String {
    match names.split_last() {
        Some((last, [])) => (*last).to_owned(),
        Some((last, others)) => format!("{} or {last}", others.join(", ")),
        None => String::new(),
    }
}

/// Becomes the other agent.
fn run(command: &[String], folder: &Path) -> Result<Exit> {
    let Some((program, args)) = command.split_first() else {
        return Err(Failure::new(Exit::Failed, "there is no command to run"));
    };
    let error = Process::new(program).args(args).current_dir(folder).exec();
    let message = format!("{program} could not be started: {error}");
    Err(Failure::new(Exit::Failed, message)
        .hint(format_args!("install {program}, or leave out --exec to see the command")))
}
