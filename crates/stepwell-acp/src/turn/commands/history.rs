//! Commands that go back, branch, and show or write out what a session did.

use std::path::Path;

use stepwell::log::Timeline;
use stepwell::model::{Checkpoint, CheckpointReason, Scope};
use stepwell::sqlite::Access;
use stepwell::store::Span;
use stepwell::{Event, Lane, Seq};
use stepwell_files::rewind::{Done, Foreign, Preview};
use stepwell_formats::{Destination, Existing, Format, Shape, Wishes, write_to};
use stepwell_runtime::detached::{DetachedRewind, RewindTo, rewind_asked};
use stepwell_runtime::files::finish_rewind;
use stepwell_runtime::{Error, ForkRequest, RewindRequest, inspect};
use stepwell_wire::FileVersionKind;
use stepwell_workspace::Estimates;
use stepwell_workspace::slash::Verb;

use super::super::narrate::NOT_SAID;
use super::{Conversation, Result, first_line, listed};

/// How many points are listed.
const POINTS: usize = 20;

/// Goes back, or takes going back back. Without a point nothing is moved: the points are listed.
pub(super) fn rewind(on: &Conversation, verb: Verb, typed: &str) -> Result<String> {
    let mut words: Vec<&str> = typed.split_whitespace().collect();
    let force = words.contains(&"--force");
    words.retain(|word| *word != "--force");
    let point = words.join(" ");
    let to = match verb {
        Verb::Undo | Verb::Redo if !point.is_empty() => {
            return Ok("It takes no point: /rewind goes back to one.".to_owned());
        }
        Verb::Undo => RewindTo::Undo,
        Verb::Redo => RewindTo::Redo,
        _ if point.is_empty() => return points(on),
        _ => RewindTo::Point(point),
    };
    let (session, scope) = (on.id().clone(), Scope::Both);
    let request = DetachedRewind { session, to: to.clone(), scope, force, dry_run: false };
    let asked = rewind_asked(&*on.runtime().existing(Access::Read)?, &request)?;
    let (session, seq) = (on.id().clone(), asked.to);
    Ok(match on.runtime().rewind(&RewindRequest { session, asked })? {
        Done::Refused(preview) => refused(&preview),
        Done::Rewound { preview, .. } => {
            let files = stepwell::model::counted(preview.plan.moves.len(), "file");
            let (what, back) = match to {
                RewindTo::Undo => ("The last rewind is taken back".to_owned(), "/redo"),
                RewindTo::Redo => ("The last undo is taken back".to_owned(), "/undo"),
                _ => (format!("Rewound to seq {seq}"), "/undo"),
            };
            format!(
                "{what}, with {files}. {back} takes that back. The model sees the session as \
                 it was there; the editor shows it so when it is loaded again."
            )
        }
    })
}

fn refused(preview: &Preview) -> String {
    let why = match preview.plan.conflicts.as_slice() {
        [] => "it would set aside what was done since".to_owned(),
        files => {
            let names: Vec<&str> = files.iter().map(|it| it.path.as_str()).collect();
            format!("someone else changed files since: {}", names.join(", "))
        }
    };
    format!("Nothing was done: {why}. With --force it is done all the same, and can be taken back.")
}

/// The points to go back to, the newest first.
fn points(on: &Conversation) -> Result<String> {
    let well = on.runtime().existing(Access::Read)?;
    let head = well.info(on.id())?.head.seq;
    let events = well.store().events(on.id(), Span::ALL)?.intact(on.id())?;
    let timeline = Timeline::at(head, events.iter());
    let redactor = on.runtime().redactor().with_own_count();
    let point = |event: &stepwell::Recorded| match &event.event {
        // Going back to what was said takes it back, to be said otherwise.
        Event::Message(it) if it.is_from_user() && it.lane == Lane::main() => {
            let text = it.text();
            let is_said = !text.is_empty() && !NOT_SAID.contains(&text.as_str());
            let text = first_line(&redactor.redact(&text));
            is_said.then(|| (event.seq.prev(), format!("before you said: {text}")))
        }
        Event::Checkpoint(it) => {
            Some((event.seq, format!("checkpoint {}", redactor.redact(&it.name))))
        }
        Event::Phase(it) => Some((event.seq, format!("phase {}", it.to))),
        _ => None,
    };
    let counts = events.iter().rev().filter(|event| timeline.contains(event.seq));
    let line = |(seq, what): (Seq, String)| format!("- `/rewind {seq}`: {what}");
    let lines: Vec<String> = counts.filter_map(point).map(line).take(POINTS).collect();
    Ok(listed(&lines, "There is no point to go back to yet."))
}

/// Names this point.
pub(super) fn checkpoint(on: &Conversation, name: &str) -> Result<String> {
    let well = on.runtime().existing(Access::Write)?;
    // What is recorded while files are half moved would be set aside.
    if well.info(on.id())?.head.rewinding.is_some() {
        finish_rewind(&mut well.lock(on.id())?, Foreign::Refused, on.runtime())?;
    }
    let (name, reason) = (name.to_owned(), CheckpointReason::Manual);
    let made = Checkpoint { name: name.clone(), reason, metadata: Default::default() };
    let seq = well.checkpoint(on.id(), made)?;
    Ok(format!("Checkpoint {name} at seq {seq}."))
}

/// The points that have names.
pub(super) fn checkpoints(on: &Conversation) -> Result<String> {
    let all = on.runtime().existing(Access::Read)?.checkpoints(on.id())?;
    let line = |it: &stepwell::work::RecordedCheckpoint| {
        format!("- seq {}: {}", it.seq, it.checkpoint.name)
    };
    let lines: Vec<String> = all.iter().map(line).collect();
    Ok(listed(&lines, "There are no checkpoints; /checkpoint NAME makes one."))
}

/// Makes a session that shares this one's past.
pub(super) fn fork(on: &Conversation, point: &str) -> Result<String> {
    let at = match point {
        "" => None,
        point => Some(on.runtime().existing(Access::Read)?.point(on.id(), point)?),
    };
    let request = ForkRequest { session: on.id().clone(), at, label: None };
    let forked = on.runtime().fork(&request)?;
    Ok(format!(
        "{} shares this session's past up to seq {}. Open it from the list of threads; here, this \
         session goes on.",
        forked.session, forked.at
    ))
}

/// What the session did to files, from a point on.
pub(super) fn diff(on: &Conversation, from: &str) -> Result<String> {
    let well = on.runtime().existing(Access::Read)?;
    let from = match from {
        "" => Seq::ZERO,
        point => well.point(on.id(), point)?,
    };
    let patches = inspect::patches(&well, on.id(), from, Seq::MAX)?;
    let patches = patches.into_iter().map(|patch| patch.diff).collect::<Vec<_>>();
    Ok(match patches.is_empty() {
        true => "No file was changed.".to_owned(),
        false => format!("```diff\n{}\n```", patches.join("\n")),
    })
}

/// The files that the session changed.
pub(super) fn files(on: &Conversation, path: &str) -> Result<String> {
    let path = Some(path.trim_start_matches("./")).filter(|path| !path.is_empty());
    let versions = inspect::versions(&*on.runtime().existing(Access::Read)?, on.id(), path)?;
    let line = |it: &stepwell_wire::FileVersion| {
        let change = match it.change {
            FileVersionKind::Created => "created",
            FileVersionKind::Deleted => "deleted",
            FileVersionKind::Renamed => "renamed",
            FileVersionKind::Changed => "changed",
            FileVersionKind::Found => "found",
        };
        format!("- seq {}: {change} {}", it.seq, it.path)
    };
    let lines: Vec<String> = versions.iter().map(line).collect();
    Ok(listed(&lines, "No file was changed."))
}

/// Writes the session to a file of the workspace.
pub(super) fn export(on: &Conversation, typed: &str) -> Result<String> {
    // A file that is there is replaced only if that is said.
    let (typed, existing) = match typed.strip_suffix("--force") {
        Some(rest) if rest.is_empty() || rest.ends_with(' ') => (rest.trim(), Existing::Replace),
        _ => (typed, Existing::Keep),
    };
    let (first, rest) = typed.split_once(' ').unwrap_or((typed, ""));
    let (format, path) = match first.parse::<Format>() {
        Ok(format) => (format, rest.trim()),
        Err(_) => {
            let ending = Path::new(typed).extension().and_then(|it| it.to_str()?.parse().ok());
            (ending.unwrap_or(Format::MARKDOWN), typed)
        }
    };
    let Some(writer) = format.writer().filter(|writer| writer.shape() == Shape::File) else {
        return Ok(format!("{format} is not written here; type markdown, html or json."));
    };
    let ending = if format == Format::MARKDOWN { "md" } else { format.as_str() };
    let name = if path.is_empty() { format!("{}.{ending}", on.id()) } else { path.to_owned() };
    let well = on.runtime().existing(Access::Read)?;
    let head = well.info(on.id())?.head;
    let estimate = Estimates::new(on.runtime()).of(&head, &head.spent);
    let (path, wishes) = (on.root().join(name), Wishes { estimate, ..Wishes::default() });
    let place = Destination { wishes, ..Destination::new(&path, existing) };
    write_to(&place, writer, &well, on.id()).map_err(|error| Error::Workspace(error.into()))?;
    Ok(format!("The session is in {}.", path.display()))
}
