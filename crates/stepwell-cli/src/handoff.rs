//! Handing a session over to another agent: it is written where that agent looks for it, and
//! the command that continues it is told, or run.

use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use stepwell::{Event, EventId, Head, Lane, SessionId};
use stepwell_agent::run::Charge;
use stepwell_formats::{
    Existing, Format, Handoff, Handover, Purpose, Wishes, each_event, holds_all, write_wishing,
};
use stepwell_wire::HandedOver;

use crate::app::{App, Well};
use crate::failure::{Exit, Failure, Result};
use crate::foreign::tell_losses;
use crate::output::note;

/// Who goes on, and how.
#[derive(Clone, Debug, Default, clap::Args)]
#[command(next_help_heading = "In another agent")]
pub(crate) struct Elsewhere {
    /// Goes on in another agent: claude, codex or strands.
    #[arg(long, value_name = "AGENT", value_parser = agent)]
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
    let ask = |uuid: &str| {
        let handover = Handover { head: &head, uuid, workspace: &workspace };
        app.ask_homes(|homes| writer.handoff(&handover, homes)).ok_or_else(|| takes_none(to))
    };
    let (handoff, lies) = match untouched(well, &head, to)? {
        Some(own) => match ask(&own)? {
            handoff if is_free(&handoff, &head) => (handoff, None),
            handoff => match found((well, &head), to, &handoff)? {
                Some(path) => (handoff, Some(path)),
                // What lies under its name is older, or another one.
                None => anew(&head, ask)?,
            },
        },
        None => anew(&head, ask)?,
    };
    let file = match lies {
        Some(path) => path,
        None if then == Then::OnlySay => {
            note(format_args!("Would write {id} to {}", handoff.path.display()));
            handoff.path.clone()
        }
        None => write((well, id), to, &handoff)?,
    };
    let Handoff { command, folder, .. } = handoff;
    if then == Then::Run {
        return run(&command, &folder);
    }
    let line = format!("cd {} && {}", quoted(&folder.to_string_lossy()), shell(&command));
    let answer = HandedOver {
        session: id.clone(),
        agent: to.as_str().to_owned(),
        file: file.display().to_string(),
        folder: folder.display().to_string(),
        command,
    };
    app.out.answer(&answer, line)?;
    Ok(Exit::Done)
}

fn write((well, id): (&Well, &SessionId), to: Format, handoff: &Handoff) -> Result<PathBuf> {
    let path = &handoff.path;
    let Some(writer) = to.writer() else { return Err(takes_none(to)) };
    if let Some(parent) = path.parent() {
        let fault = |error| Failure::file(parent, "making it", &error);
        std::fs::create_dir_all(parent).map_err(fault)?;
    }
    let wishes = Wishes { purpose: Purpose::Continue, ..Wishes::default() };
    let exported = write_wishing(path, Existing::Keep, wishes, writer, (well, id))?;
    tell_losses(to, &exported.losses);
    note(format_args!("Wrote {id} to {}", path.display()));
    Ok(path.clone())
}

/// A name that is the same for the same session at the same point, and the file that was
/// written under it before.
fn anew(head: &Head, ask: impl Fn(&str) -> Result<Handoff>) -> Result<(Handoff, Option<PathBuf>)> {
    let uuid = EventId::derived(format!("{}\0{}", head.id, head.seq).as_bytes()).to_string();
    let handoff = ask(&uuid)?;
    let lies = handoff.path.exists().then(|| written_before(head, &handoff.path));
    Ok((handoff, lies))
}

fn written_before(head: &Head, path: &Path) -> PathBuf {
    note(format_args!("{} was written before, to {}", head.id, path.display()));
    path.to_owned()
}

/// Does nothing bear the session's own name there?
fn is_free(handoff: &Handoff, head: &Head) -> bool {
    !handoff.path.exists() && origin_of(head).is_none_or(|path| !is_found(&path, handoff))
}

/// The file under the session's own name there, if it holds all that is here: the one that the
/// session came from, or a copy of it.
fn found((well, head): (&Well, &Head), to: Format, handoff: &Handoff) -> Result<Option<PathBuf>> {
    if let Some(path) = origin_of(head).filter(|path| is_found(path, handoff)) {
        // Transcripts only grow: one that is shorter now is another one.
        let read = head.metadata.get("imported").and_then(|it| it.get("bytes")?.as_u64());
        let shorter = path.metadata().is_ok_and(|it| it.is_file() && read > Some(it.len()));
        return Ok((!shorter).then_some(path));
    }
    let holds = holds_all(well, &head.id, to, &handoff.path)?;
    Ok(holds.then(|| written_before(head, &handoff.path)))
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
    let name = match (to.as_str(), &head.flow) {
        ("strands-sdk", Some(_)) => FLOWS,
        (FLOWS, None) => "strands-sdk",
        _ => return to,
    };
    name.parse().unwrap_or(to)
}

/// The format of an agent that sessions are handed over to, by the name of either.
fn agent(name: &str) -> std::result::Result<Format, String> {
    let taken = |format: &Format| taking(*format).is_some() || format.as_str() == FLOWS;
    name.parse().ok().filter(taken).ok_or_else(|| {
        let names: Vec<&str> = Format::all().filter_map(taking).collect();
        format!("{name:?} does not go on with sessions of others; use {}", one_of(&names))
    })
}

fn takes_none(format: Format) -> Failure {
    let message = format!("it is not known where {format} would look for the session");
    Failure::new(Exit::Absent, message).hint("set HOME")
}

fn one_of(names: &[&str]) -> String {
    match names.split_last() {
        Some((last, [])) => (*last).to_owned(),
        Some((last, others)) => format!("{} or {last}", others.join(", ")),
        None => String::new(),
    }
}

/// What an agent that takes up sessions of others is called.
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
        return app.session_folder(Some(head)).unwrap_or_else(|_| app.place.root.clone());
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
