//! Other agents' sessions that were not imported, by title, first prompt and folder: an index that
//! only its user can read, and that only its user switches on.

use std::collections::BTreeMap;
use std::fs::Metadata;
use std::io::BufRead;
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use stepwell::log::Redactor;
use stepwell::model::{Change, Time};
use stepwell::{Event, Seq, SessionId};
use stepwell_formats::{
    Error as FormatError, Format, Input, Item, Mode, Opening, Sink, Wanted, Warning, find_news,
    take_in,
};

use crate::error::{Error, Result};
use crate::locked_file::{lock, read};
use crate::other_agents::places;
use crate::ownership;
use crate::workspace::Workspace;

/// How much of a title or a prompt is kept, in characters.
const KEPT: usize = 200;
/// After so many events of a session nothing more is looked for: titles come early.
const EVENTS: usize = 400;

/// A session of another agent.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct OtherSession {
    /// Whose it is: the word for its format.
    pub system: String,
    /// What its system calls it.
    pub id: String,
    /// What is read to import it.
    pub path: PathBuf,
    /// Its title; without one, what it is about.
    pub title: String,
    /// What was said first.
    pub prompt: String,
    /// The folder that it is about.
    pub folder: String,
    /// When it was last used, in microseconds since 1970.
    pub used: i64,
}

impl OtherSession {
    /// When it was last used.
    #[must_use]
    pub const fn used_at(&self) -> Time {
        Time::from_micros(self.used)
    }

    /// Does every one of these words occur in its title, its first prompt or its folder? Words in
    /// small letters fit capital ones.
    #[must_use]
    pub fn fits(&self, words: &[String]) -> bool {
        let texts = [&self.title, &self.prompt, &self.folder, &self.system, &self.id];
        words.iter().all(|word| texts.iter().any(|text| text.to_lowercase().contains(word)))
    }
}

/// What is known of all that lies where other agents keep their sessions.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct OtherSessions {
    /// By what was read.
    read: BTreeMap<PathBuf, Read>,
}

/// What was found in one file or folder, and how it looked then.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
struct Read {
    stamp: Stamp,
    sessions: Vec<OtherSession>,
}

/// What the file system says of something.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
struct Stamp {
    size: u64,
    seconds: i64,
    nanoseconds: i64,
}

impl Stamp {
    fn of(found: &Metadata) -> Self {
        Self { size: found.size(), seconds: found.mtime(), nanoseconds: found.mtime_nsec() }
    }
}

impl OtherSessions {
    /// Those that fit some words, the one that was used last first. Without words, all fit.
    #[must_use]
    pub fn find(&self, words: &str) -> Vec<&OtherSession> {
        let words: Vec<String> = words.split_whitespace().map(str::to_lowercase).collect();
        let all = self.read.values().flat_map(|read| &read.sessions);
        let mut found: Vec<_> = all.filter(|session| session.fits(&words)).collect();
        found.sort_by_key(|session| std::cmp::Reverse(session.used));
        found
    }

    /// Brings it up to date: only what changed is read. What cannot be read is left out.
    fn refresh(&mut self, places: &[(Format, PathBuf)]) {
        self.read.retain(|path, _| path.symlink_metadata().is_ok());
        for (format, place) in places {
            let before = &self.read;
            let mut found = Vec::new();
            let mut is_news = |path: &Path, now: &Metadata| {
                before.get(path).is_none_or(|read| read.stamp != Stamp::of(now))
            };
            let mut note = |it: stepwell_formats::Found| {
                found.push(it.path);
                Ok(())
            };
            // What cannot be looked at is not there for us.
            let _ = find_news(place, Some(*format), &mut is_news, &mut note, &mut |_| {});
            for path in found {
                let Ok(stamp) = path.metadata().map(|it| Stamp::of(&it)) else { continue };
                let sessions = glance(*format, &path);
                self.read.insert(path, Read { stamp, sessions });
            }
        }
    }
}

/// What lies at a path, by its beginning.
fn glance(format: Format, path: &Path) -> Vec<OtherSession> {
    let (path_read, redactor) = (path.to_owned(), Redactor::new([]));
    let mut seen = Glance { format, path: path_read, sessions: Vec::new(), events: 0, redactor };
    if let (Some(reader), Ok(input)) = (format.reader(), Input::at(path)) {
        // It ends with an error as soon as enough was seen; what was seen until then is kept.
        let _ = reader.read(&input, &mut seen);
    }
    seen.sessions
}

/// Looks at the beginning of sessions.
struct Glance {
    format: Format,
    path: PathBuf,
    sessions: Vec<OtherSession>,
    /// How many events of the last session were seen.
    events: usize,
    /// Keeps secrets out of what is kept.
    redactor: Redactor,
}

impl Glance {
    /// When what lies here was written last.
    fn written(&self) -> i64 {
        let written = self.path.metadata();
        written.map_or(0, |it| it.mtime() * 1_000_000 + it.mtime_nsec() / 1_000)
    }
}

impl Sink for Glance {
    fn begin(&mut self, opening: Opening) -> stepwell_formats::Result<Wanted> {
        self.events = 0;
        // A subagent's is found with the one that started it.
        if opening.parent.is_some() {
            return Ok(Wanted::Known);
        }
        let used = opening.updated_at.map_or_else(|| self.written(), Time::as_micros);
        self.sessions.push(OtherSession {
            system: self.format.as_str().to_owned(),
            id: opening.id,
            path: self.path.clone(),
            title: front(&self.redactor.redact(&opening.created.task)),
            prompt: String::new(),
            folder: opening.created.workspace,
            used,
        });
        Ok(Wanted::Yes)
    }

    fn push(&mut self, item: Item) -> stepwell_formats::Result<Seq> {
        self.events += 1;
        if let Some(session) = self.sessions.last_mut() {
            match &item.event {
                Event::Message(message) if message.is_from_user() && session.prompt.is_empty() => {
                    session.prompt = front(&self.redactor.redact(&message.text()));
                }
                Event::Edited(edited) => {
                    if let Change::Set(label) = &edited.label {
                        session.title = front(&self.redactor.redact(label));
                    }
                }
                _ => {}
            }
        }
        match self.events < EVENTS {
            true => Ok(Seq::new(self.events as u64 + 1)),
            false => Err(FormatError::Untold),
        }
    }

    fn end(&mut self) -> stepwell_formats::Result<()> {
        Ok(())
    }

    fn warn(&mut self, _warning: Warning) {}

    fn restore(&mut self, _from: &mut dyn BufRead) -> stepwell_formats::Result<()> {
        Err(FormatError::Untold)
    }
}

/// The front of a text, on one line.
fn front(text: &str) -> String {
    let line = text.split_whitespace().take(KEPT).collect::<Vec<_>>().join(" ");
    line.chars().take(KEPT).collect()
}

/// Other agents' sessions, if the user switched their index on: as they were found last.
///
/// # Errors
/// If the index cannot be read or understood.
pub fn known(workspace: &Workspace) -> Result<Option<OtherSessions>> {
    let Some(path) = index_file(workspace) else { return Ok(None) };
    let text = read(&path).map_err(Error::file(&path, "reading it"))?;
    // One of another version, or a damaged one, is made anew.
    let known = text.and_then(|text| serde_json::from_str(&text).ok());
    Ok(Some(known.unwrap_or_default()))
}

/// The same, brought up to date with what other agents did meanwhile.
///
/// # Errors
/// If the index cannot be read or written.
pub fn refresh(workspace: &Workspace) -> Result<Option<OtherSessions>> {
    let Some(path) = index_file(workspace) else { return Ok(None) };
    let fault = || Error::file(&path, "writing it");
    if let Some(folder) = path.parent() {
        let mut private = std::fs::DirBuilder::new();
        private.recursive(true).mode(0o700).create(folder).map_err(fault())?;
    }
    let held = lock(&path.with_extension("lock")).map_err(fault())?;
    let mut known = known(workspace)?.unwrap_or_default();
    let places = places(workspace, None).into_iter();
    let places: Vec<_> = places.map(|place| (place.format, place.path)).collect();
    known.refresh(&places);
    let text = serde_json::to_string(&known).unwrap_or_default();
    held.write(&path, &text).map_err(fault())?;
    Ok(Some(known))
}

/// Imports another agent's session that the index knows by the name that it would have here.
/// None, if it knows none of that name.
///
/// # Errors
/// If the index cannot be read, or the session cannot be imported.
pub fn import(workspace: &Workspace, id: &SessionId) -> Result<Option<SessionId>> {
    let Some(known) = refresh(workspace)? else { return Ok(None) };
    let found = known.find("").into_iter().find(|it| it.id == id.as_str()).cloned();
    let Some((OtherSession { path, .. }, format)) =
        found.and_then(|it| it.system.parse::<Format>().ok().map(|format| (it, format)))
    else {
        return Ok(None);
    };
    let well = workspace.open_or_create()?;
    let report = take_in(&well, Mode::Write, format, &path);
    ownership::mark_imported(
        workspace,
        &path,
        report.sessions.iter().map(|taken| taken.id.clone()),
    );
    let taken = report.sessions.into_iter().find(|taken| taken.id == *id);
    match (taken, report.fault) {
        (Some(taken), _) => Ok(Some(taken.id)),
        (None, Some(fault)) => Err(fault.into()),
        (None, None) => Ok(None),
    }
}

fn index_file(workspace: &Workspace) -> Option<PathBuf> {
    let state =
        workspace.host.state.as_deref().filter(|_| workspace.config.settings.index_others)?;
    Some(state.join("other-sessions.json"))
}
