//! How another agent goes on with a session: the command is printed, or run.

use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;

use stepwell::{Error as StoreError, SessionId};
use stepwell_formats::Format;
use stepwell_terminal::note;
use stepwell_wire::HandedOver;
use stepwell_workspace::Error;
use stepwell_workspace::handoff::{HandOver, Wrote, agent_name, takes_sessions};

use crate::app::{App, Well};
use crate::failure::{Exit, Failure, Result};
use crate::foreign::tell_losses;

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
    well: &Well,
    id: &SessionId,
    Onward { agent: to, then }: Onward,
    app: &mut App,
) -> Result<Exit> {
    let how = if then == Then::OnlySay { HandOver::DryRun } else { HandOver::Write };
    let handed = app.hand_over(well, id, to, how).map_err(|error| match &error {
        Error::Store(StoreError::Held { holder, .. }) => {
            Failure::new(Exit::Busy, format_args!("{id} runs here, in {holder}"))
                .hint(format_args!("stepwell stop {id} stops it"))
        }
        _ => error.into(),
    })?;
    let file = handed.file.display();
    match &handed.wrote {
        Wrote::Now(losses) => {
            tell_losses(handed.format, losses);
            note(format_args!("Wrote {id} to {file}"));
        }
        Wrote::Before => note(format_args!("{id} was written before, to {file}")),
        Wrote::Would => note(format_args!("Would write {id} to {file}")),
        Wrote::Origin => {}
    }
    if then == Then::Run {
        return run(&handed.command, &handed.folder);
    }
    let folder = quoted(&handed.folder.to_string_lossy());
    let line = format!("cd {folder} && {}", shell(&handed.command));
    app.out.answer(&HandedOver::from(&handed), line)?;
    Ok(Exit::Done)
}

/// The format of an agent that sessions are handed over to, by the name of either.
fn agent(name: &str) -> std::result::Result<Format, String> {
    name.parse().ok().filter(|format| takes_sessions(*format)).ok_or_else(|| {
        let names: Vec<&str> = Format::all().filter_map(agent_name).collect();
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
    let error = Command::new(program).args(args).current_dir(folder).exec();
    let message = format!("{program} could not be started: {error}");
    Err(Failure::new(Exit::Failed, message)
        .hint(format_args!("install {program}, or leave out --exec to see the command")))
}

/// A command as it is typed.
fn shell(command: &[String]) -> String {
    let words: Vec<String> = command.iter().map(|word| quoted(word)).collect();
    words.join(" ")
}

fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_alphanumeric() || "-_./:=@%+,".contains(c);
    match !word.is_empty() && word.chars().all(plain) {
        true => word.to_owned(),
        false => format!("'{}'", word.replace('\'', "'\\''")),
    }
}
