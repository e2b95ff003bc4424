//! Which of a session's files are read: what is broken in one is taken from another.

use std::path::{Path, PathBuf};

use super::kept::Files;
use super::salvage::salvage;
use super::session::{self, Knowledge, Session};
use super::sound::{recovered, sound, whole};
use super::{SESSION, is_sessions, ledger};
use crate::json::fields::{Fields, elements};
use crate::read::input::Input;
use crate::read::neutral::Sink;
use crate::snapshot::{text, warn};
use crate::{Error, Result};

/// The longest line of sessions that started each other which is followed.
const MAX_PARENTS: usize = 32;

/// Reads a session, or what the ledger says of many.
pub(super) fn read(input: &Input, sink: &mut dyn Sink) -> Result<()> {
    let root = input.root();
    if root.is_dir() {
        return in_folder(input, root, sink);
    }
    if root.file_name().is_some_and(|name| name == SESSION)
        && let Some(folder) = root.parent()
    {
        return in_folder(input, folder, sink);
    }
    let found = text(input, root)?;
    if ledger::is_ledger(&found) {
        return ledger::read(root, &found, sink);
    }
    let fields = sound(root, &found)?;
    let messages = fields.raw("messages").and_then(|raw| elements(raw).ok()).unwrap_or_default();
    let (path, files, file) = (root, Files::default(), Some(root.to_owned()));
    session::emit(&Session { fields, path, messages, files, file, known: Knowledge::Whole }, sink)
}

/// A session in a folder of its own. When it is broken, the conversation beside it, what was
/// saved before it stopped, and the one that was there before, are read in its place.
fn in_folder(input: &Input, folder: &Path, sink: &mut dyn Sink) -> Result<()> {
    let main = folder.join(SESSION);
    let fault = match whole(input, &main) {
        Ok(text) => {
            for parent in parents(input, folder, &text).into_iter().rev() {
                let path = parent.join(SESSION);
                if let Ok(text) = whole(input, &path) {
                    told(input, &path, &text, sink)?;
                }
            }
            return told(input, &main, &text, sink);
        }
        Err(error @ (Error::Store(_) | Error::Untold)) => return Err(error),
        Err(error) => error,
    };
    let mut names = Vec::new();
    let spoken = folder.join("messages.json");
    match salvage(input, folder) {
        Some(found) => {
            let (id, count) = (&found.id, found.count);
            // Which one it is if nothing names it, whoever takes it finds out.
            let name = if found.named { format!(", as {id}") } else { String::new() };
            let said = stepwell::model::counted(count, "message");
            let what = format!("{fault}; read from messages.json: {said}{name}");
            warn(sink, &main, what);
            let fields = Fields::parse(&found.session).unwrap_or_default();
            let messages = elements(&found.messages).unwrap_or_default();
            let files = Files::read(input, folder, sink);
            let (path, file, known) = (main.as_path(), None, Knowledge::Salvaged);
            session::emit(&Session { fields, path, messages, files, file, known }, sink)?;
            names.push(found.id);
        }
        None if spoken.symlink_metadata().is_ok() => {
            warn(sink, &spoken, "it cannot be read as the conversation of session.json");
        }
        None => {}
    }
    let recovery = folder.join("recovery.json");
    if let Ok(text) = text(input, &recovery)
        && let Some((id, session)) = recovered(&text)
        && !names.contains(&id)
        && sound(&recovery, &session).is_ok()
    {
        warn(sink, &main, format!("{fault}; what recovery.json saved of {id} is read"));
        alone(&recovery, &session, Knowledge::Saved, sink)?;
        names.push(id);
    }
    let backup = folder.join("session.json.bak");
    if let Ok(text) = whole(input, &backup) {
        let id = sound(&backup, &text)?.text("id").unwrap_or_default().into_owned();
        if !names.contains(&id) {
            warn(sink, &main, format!("{fault}; the session before it, {id}, is read"));
            alone(&backup, &text, Knowledge::Whole, sink)?;
            names.push(id);
        }
    }
    if names.is_empty() { Err(fault) } else { Ok(()) }
}

/// Tells a session that has files beside it.
fn told(input: &Input, path: &Path, text: &str, sink: &mut dyn Sink) -> Result<()> {
    let folder = path.parent().unwrap_or(path);
    let fields = sound(path, text)?;
    let spoken = folder.join("messages.json");
    let said = match spoken.symlink_metadata() {
        Ok(_) => crate::snapshot::text(input, &spoken).map_err(|error| error.to_string()),
        Err(_) => Err(format!("{} is not there", spoken.display())),
    };
    let listed = match &said {
        Ok(text) => elements(text)
            .map_err(|error| format!("{} holds no messages: {error}", spoken.display())),
        Err(why) => Err(why.clone()),
    };
    let messages = listed.unwrap_or_else(|why| {
        let copy = fields.raw("messages").and_then(|raw| elements(raw).ok());
        let instead = match &copy {
            Some(_) => "the copy in session.json is read",
            None => "there is no copy of the conversation",
        };
        warn(sink, path, format!("{why}; {instead}"));
        copy.unwrap_or_default()
    });
    let files = Files::read(input, folder, sink);
    let (file, known) = (None, Knowledge::Whole);
    session::emit(&Session { fields, path, messages, files, file, known }, sink)
}

/// Tells a session that stands in one file.
fn alone(path: &Path, text: &str, known: Knowledge, sink: &mut dyn Sink) -> Result<()> {
    let fields = sound(path, text)?;
    let messages = fields.raw("messages").and_then(|raw| elements(raw).ok()).unwrap_or_default();
    let (files, file) = (Files::default(), None);
    session::emit(&Session { fields, path, messages, files, file, known }, sink)
}

/// The folders of the sessions that started this one, the nearest first: they are to be told
/// before it.
fn parents(input: &Input, folder: &Path, text: &str) -> Vec<PathBuf> {
    let mut parents: Vec<PathBuf> = Vec::new();
    let parent_of = |text: &str| Some(Fields::parse(text).ok()?.text("parent_id")?.into_owned());
    let Some(beside) = folder.parent().filter(|it| is_sessions(it)) else { return parents };
    let mut next = parent_of(text);
    while let Some(name) = next.take() {
        // It is a name, whatever somebody wrote there, and no way to elsewhere.
        let plain = !name.is_empty() && name.bytes().all(|b| b.is_ascii_alphanumeric());
        let path = beside.join(&name);
        if !plain || path == folder || parents.contains(&path) || parents.len() >= MAX_PARENTS {
            break;
        }
        next = whole(input, &path.join(SESSION)).ok().and_then(|text| parent_of(&text));
        parents.push(path);
    }
    parents
}
