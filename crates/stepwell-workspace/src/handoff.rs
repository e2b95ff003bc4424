//! Handing a session over to another agent: it is written where that agent looks for it, and the
//! command that continues it is told.

use std::path::{Path, PathBuf};

use stepwell::error::Action;
use stepwell::log::Head;
use stepwell::model::EventId;
use stepwell::store::Span;
use stepwell::{Error as StoreError, Event, Lane, Remedy, SessionId, Stepwell};
use stepwell_files::worktree::worktrees_of;
use stepwell_formats::{
    Destination, Existing, Format, Handoff, Handover, Losses, Purpose, Takes, Wishes, holds_all,
    write_to,
};

use crate::error::{Error, ErrorKind, Result};
use crate::other_agents::with_homes;
use crate::workspace::Workspace;

/// A session that another agent can go on with.
#[derive(Debug)]
pub struct Handed {
    /// The session.
    pub session: SessionId,
    /// The other agent's format.
    pub format: Format,
    /// The file that the other agent reads.
    pub file: PathBuf,
    /// The folder to run the command in.
    pub folder: PathBuf,
    /// The command that goes on, word by word.
    pub command: Vec<String>,
    /// What became of the file.
    pub wrote: Wrote,
}

/// What became of the file that another agent reads.
#[derive(Debug)]
pub enum Wrote {
    /// It was written, without what the format cannot hold.
    Now(Losses),
    /// It lay there before, and holds all that is here.
    Before,
    /// It is the one that the session came from.
    Origin,
    /// It would be written.
    Would,
}

/// Whether the session is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HandOver {
    /// The session is written.
    Write,
    /// Only what would be done is said.
    DryRun,
}

/// Where a file lies already, and what it is.
type Lies = Option<(PathBuf, Wrote)>;

/// Hands a session over to another agent.
///
/// # Errors
/// If the session runs, is damaged or has no conversation to continue, or the other agent has no
/// place for it.
pub fn hand_over(
    workspace: &Workspace,
    well: &Stepwell,
    id: &SessionId,
    to: Format,
    how: HandOver,
) -> Result<Handed> {
    let info = well.info(id)?;
    if let Some(damage) = info.damage {
        return Err(damage.into_error(id).into());
    }
    well.refuse_altered(id)?;
    if let Some(held) = info.held {
        return Err(StoreError::Held {
            session: id.clone(),
            holder: Box::new(held.holder),
            expires: held.expires,
        }
        .into());
    }
    let head = info.head;
    let to = to.for_session(&head);
    let no_place = || no_handoff(to);
    let writer = to.writer().ok_or_else(no_place)?;
    let lanes = well.store().lanes(id)?;
    let silent = lanes.get(&Lane::main()).is_none_or(|lane| lane.messages == 0);
    let takes_flows = to.successor().is_some_and(|it| it.takes == Takes::Flows);
    if silent && !takes_flows {
        let why = format!("{id} has no conversation that {to} could continue");
        let action = if head.flow.is_some() { Action::HandOver } else { Action::Show };
        return Err(Error::invalid(why).helped_by(Remedy::Session(action, id.clone())));
    }
    let folder = folder_for(workspace, &head);
    let ask = |uuid: &str| {
        let handover = Handover { head: &head, uuid, workspace: &folder };
        with_homes(workspace, |homes| writer.handoff(&handover, homes)).ok_or_else(no_place)
    };
    let (handoff, lies) = match untouched(well, &head, to)? {
        Some(own) => match ask(&own)? {
            handoff if is_free(&handoff, &head) => (handoff, None),
            handoff => match found(well, &head, to, &handoff)? {
                Some(lies) => (handoff, Some(lies)),
                // What lies under its name is older, or another one.
                None => anew(&head, ask)?,
            },
        },
        None => anew(&head, ask)?,
    };
    let (file, wrote) = match (lies, how) {
        (Some(lies), _) => lies,
        (None, HandOver::DryRun) => (handoff.path.clone(), Wrote::Would),
        (None, HandOver::Write) => (handoff.path.clone(), write(well, id, to, &handoff)?),
    };
    let Handoff { command, folder, .. } = handoff;
    Ok(Handed { session: id.clone(), format: to, file, folder, command, wrote })
}

/// The folder that a session works in: its own if that is there, else this one.
fn folder_for(workspace: &Workspace, head: &Head) -> PathBuf {
    if worktrees_of(head).is_some() {
        return workspace
            .session_folder(Some(head))
            .unwrap_or_else(|_| workspace.place.root.clone());
    }
    let own = PathBuf::from(&head.workspace);
    if own.is_absolute() && own.is_dir() { own } else { workspace.place.root.clone() }
}

fn no_handoff(to: Format) -> Error {
    let why = format!("it is not known where {to} would look for the session");
    Error::refused(ErrorKind::Absent, why).helped_by(Remedy::SetVariable("HOME".to_owned()))
}

fn write(well: &Stepwell, id: &SessionId, to: Format, handoff: &Handoff) -> Result<Wrote> {
    let path = &handoff.path;
    let writer = to.writer().ok_or_else(|| no_handoff(to))?;
    if let Some(parent) = path.parent() {
        std::fs::create_dir_all(parent).map_err(Error::file(parent, "making it"))?;
    }
    let wishes = Wishes { purpose: Purpose::Continue, ..Wishes::default() };
    let workspace = Some(&*handoff.folder);
    let destination = Destination { wishes, workspace, ..Destination::new(path, Existing::Keep) };
    let exported = write_to(&destination, writer, well, id)?;
    Ok(Wrote::Now(exported.losses))
}

/// A name that is the same for the same session at the same point, and the file that was
/// written under it before.
fn anew(head: &Head, ask: impl Fn(&str) -> Result<Handoff>) -> Result<(Handoff, Lies)> {
    let uuid = EventId::named(format!("{}\0{}", head.id, head.seq).as_bytes()).to_string();
    let handoff = ask(&uuid)?;
    let lies = handoff.path.exists().then(|| (handoff.path.clone(), Wrote::Before));
    Ok((handoff, lies))
}

/// Does nothing bear the session's own name there?
fn is_free(handoff: &Handoff, head: &Head) -> bool {
    !handoff.path.exists() && origin_of(head).is_none_or(|path| !is_found(&path, handoff))
}

/// The file under the session's own name there, if it holds all that is here: the one that the
/// session came from, or a copy of it.
fn found(well: &Stepwell, head: &Head, to: Format, handoff: &Handoff) -> Result<Lies> {
    if let Some(path) = origin_of(head).filter(|path| is_found(path, handoff)) {
        // Transcripts only grow: one that is shorter now is another one.
        let read = head.facts.provenance.as_ref().and_then(|it| it.bytes);
        let shorter = path.metadata().is_ok_and(|it| it.is_file() && read > Some(it.len()));
        return Ok((!shorter).then_some((path, Wrote::Origin)));
    }
    let holds = holds_all(well, &head.id, to, &handoff.path)?;
    Ok(holds.then(|| (handoff.path.clone(), Wrote::Before)))
}

/// The session's name there, if it came from there and nothing was said here since.
fn untouched(well: &Stepwell, head: &Head, to: Format) -> Result<Option<String>> {
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
    for event in well.log(&head.id, Span::ALL) {
        let event = event?;
        if event.id.is_none() && spoken(&event.event) {
            return Ok(None);
        }
    }
    Ok(Some(source.id.clone()))
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
    Some(PathBuf::from(&head.facts.provenance.as_ref()?.from))
}
