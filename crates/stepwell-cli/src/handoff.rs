//! Handing a session over to another agent: it is written where that agent looks for it, and
//! the command that continues it is told, or run.

use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde::Serialize;
use stepwell::{Event, EventId, Head, Lane, SessionId};
use stepwell_agent::run::Charge;
use stepwell_formats::{Existing, Format, Handoff, Handover, each_event, write_to};

use crate::app::{App, Well};
use crate::failure::{Exit, Failure, Result};
use crate::foreign::{Homestead, tell_losses};
use crate::output::note;

/// Who goes on, and how.
#[derive(Clone, Debug, Default, clap::Args)]
pub(crate) struct Elsewhere {
    /// Goes on in another agent: claude, codex or strands.
    #[arg(long, value_name = "AGENT")]
    pub(crate) with: Option<Format>,
    /// Runs the command that goes on there, in place of printing it.
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

#[derive(Serialize)]
struct Answer<'a> {
    session: &'a str,
    agent: &'a str,
    file: &'a Path,
    folder: &'a Path,
    command: &'a [String],
}

/// Hands a session over.
pub(crate) fn hand_over(
    (well, id): (&Well, &SessionId),
    to: Format,
    then: Then,
    app: &mut App,
) -> Result<Exit> {
    let standing = well.standing(id)?;
    if let Some(damage) = standing.damage {
        return Err(damage.into_error(id).into());
    }
    if let Some(held) = standing.held {
        let message = format!("{id} runs here, in {}", held.holder);
        let hint = format!("stepwell stop {id} stops it");
        return Err(Failure::new(Exit::Busy, message).hint(hint));
    }
    let head = standing.head;
    let to = meant(to, &head);
    let Some(writer) = to.writer() else { return Err(takes_none(to)) };
    let lanes = well.store().lanes(id)?;
    let silent = lanes.get(&Lane::main()).is_none_or(|lane| lane.messages == 0);
    if silent && to.as_str() != FLOWS {
        return Err(says_nothing(id, &head, to));
    }
    let workspace = workspace(&head, app);
    let untouched = untouched(well, &head, to)?;
    let uuid = match &untouched {
        Some(own) => own.clone(),
        // The same for the same session at the same point: what was written once is found again.
        None => EventId::derived(format!("{id}\0{}", head.seq).as_bytes()).to_string(),
    };
    let handover = Handover { head: &head, uuid: &uuid, workspace: &workspace };
    let homestead = Homestead::of(app);
    let Some(handoff) = homestead.ask(|homes| writer.handoff(&handover, homes)) else {
        return Err(takes_none(to));
    };
    let original = origin_of(&head).filter(|_| untouched.is_some());
    let file = match original.filter(|path| is_found(path, &handoff)) {
        Some(path) => path,
        None if then == Then::OnlySay => {
            note(format_args!("Would write {id} to {}", handoff.path.display()));
            handoff.path.clone()
        }
        None => write((well, id), to, &handoff)?,
    };
    let Handoff { command, folder, .. } = handoff;
    let answer = Answer {
        session: id.as_str(),
        agent: to.as_str(),
        file: &file,
        folder: &folder,
        command: &command,
    };
    if then == Then::Run {
        return run(&command, &folder);
    }
    let line = format!("cd {} && {}", quoted(&folder.to_string_lossy()), shell(&command));
    app.out.answer(&answer, line)?;
    Ok(Exit::Done)
}

fn write((well, id): (&Well, &SessionId), to: Format, handoff: &Handoff) -> Result<PathBuf> {
    let path = &handoff.path;
    let Some(writer) = to.writer() else { return Err(takes_none(to)) };
    if path.exists() {
        note(format_args!("{id} was written before, to {}", path.display()));
        return Ok(path.clone());
    }
    if let Some(parent) = path.parent() {
        let fault = |error| Failure::file(parent, "making it", &error);
        std::fs::create_dir_all(parent).map_err(fault)?;
    }
    let exported = write_to(path, Existing::Keep, writer, (well, id))?;
    tell_losses(to, &exported.losses);
    note(format_args!("Wrote {id} to {}", path.display()));
    Ok(path.clone())
}

/// The format of an agent that goes on with flows, and needs no conversation.
const FLOWS: &str = "strands-cli";

fn says_nothing(id: &SessionId, head: &Head, to: Format) -> Failure {
    let message = format!("{id} has no conversation that {to} could go on with");
    let failure = Failure::new(Exit::Failed, message);
    match head.flow {
        Some(_) => {
            failure.hint(format_args!("stepwell resume {id} --with strands goes on with a flow"))
        }
        None => failure.hint(format_args!("stepwell show {id} shows what it has")),
    }
}

/// Strands is two: a flow goes on in its command line, everything else with its SDK.
fn meant(to: Format, head: &Head) -> Format {
    match (to.as_str(), &head.flow) {
        ("strands-sdk", Some(_)) => FLOWS.parse().unwrap_or(to),
        _ => to,
    }
}

fn takes_none(format: Format) -> Failure {
    let message = format!("{format} does not go on with sessions of others");
    let names: Vec<&str> = Format::all().filter_map(taking).collect();
    Failure::new(Exit::Usage, message).hint(format_args!("use {}", one_of(&names)))
}

fn one_of(names: &[&str]) -> String {
    match names.split_last() {
        Some((last, [])) => (*last).to_owned(),
        Some((last, others)) => format!("{} or {last}", others.join(", ")),
        None => String::new(),
    }
}

fn taking(format: Format) -> Option<&'static str> {
    match format.as_str() {
        "claude-code" => Some("claude"),
        "codex" => Some("codex"),
        "strands-sdk" => Some("strands"),
        _ => None,
    }
}

/// The folder that a session works in: its own if that is there, else this one.
fn workspace(head: &Head, app: &App) -> PathBuf {
    if Charge::berths(head).is_some() {
        return app.workspace(Some(head)).unwrap_or_else(|_| app.place.root.clone());
    }
    let own = PathBuf::from(&head.workspace);
    if own.is_absolute() && own.is_dir() { own } else { app.place.root.clone() }
}

/// The session's name there, if it came from there and nothing was said here since.
fn untouched(well: &Well, head: &Head, to: Format) -> Result<Option<String>> {
    let Some(source) = head.source.as_ref().filter(|source| source.system == to.as_str()) else {
        return Ok(None);
    };
    // The name stands in a file that anybody may have made, and goes into a command.
    if !to.writer().is_some_and(|writer| writer.is_name(&source.id)) {
        return Ok(None);
    }
    let spoken = |event: &Event| {
        matches!(
            event,
            Event::Message(_)
                | Event::Rewound(_)
                | Event::Compacted(_)
                | Event::Node(_)
                | Event::GateAnswered(_)
        )
    };
    // What was imported bears an id; what was recorded here does not.
    let mut own = false;
    each_event(well, &head.id, &mut |it| {
        own |= it.id.is_none() && spoken(&it.event);
        Ok(())
    })?;
    Ok((!own).then(|| source.id.clone()))
}

/// Does the agent find the session where that file is?
fn is_found(path: &Path, handoff: &Handoff) -> bool {
    match (path.canonicalize(), handoff.found_below.canonicalize()) {
        (Ok(path), Ok(folder)) => path.starts_with(folder),
        _ => false,
    }
}

/// The file that a session came from.
fn origin_of(head: &Head) -> Option<PathBuf> {
    let from = head.metadata.get("imported")?.get("from")?.as_str()?;
    Some(PathBuf::from(from))
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
