//! Two files that tell of one session: which of them is believed.

use std::path::{Path, PathBuf};
use std::time::SystemTime;

use stepwell::{Event, Head, Recorded, Time};

use crate::read::neutral::PROVENANCE;

/// What is remembered of when a session changed last, by its files.
pub(super) const UPDATED_AT: &str = "updated_at";

/// How the file that tells of a session stands to what was told of it before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Claim {
    /// It is the same file, or the only one that is left, or it says itself that it is newer.
    Sole,
    /// Another file, which was changed later; or the same one, which has become shorter.
    Later,
    /// It says itself that it is older, or is another file that was not changed later.
    Earlier,
}

impl Claim {
    /// That of the file at a path, which says that the session changed last at `updated_at`.
    pub(super) fn of(path: &Path, updated_at: Option<Time>, head: &Head) -> Self {
        match (updated_at, known_update(head)) {
            (Some(this), Some(known)) if this > known => return Self::Sole,
            (Some(this), Some(known)) if this < known => return Self::Earlier,
            // It lost what it said of itself before: it is torn.
            (None, Some(_)) => return Self::Earlier,
            _ => {}
        }
        let Some(last) = told_by(head).filter(|last| last != path) else {
            return if is_shorter(path, head) { Self::Later } else { Self::Sole };
        };
        // Nothing that they say tells them apart.
        match (changed(&last), changed(path)) {
            (None, _) => Self::Sole,
            (Some(last), Some(this)) if this > last => Self::Later,
            _ => Self::Earlier,
        }
    }

    /// Must this not take the place of what is known? What only goes on always may, and what
    /// only ends earlier never: it is an older copy, whenever it was made.
    pub(super) fn yields(self, known: &Recorded, told: &Event) -> bool {
        match self {
            Self::Sole => false,
            _ if is_front(&known.event, told) => false,
            Self::Earlier => true,
            Self::Later => is_trailer(told) || is_front(told, &known.event),
        }
    }
}

/// Is it told at the end, and anew each time?
pub(super) fn is_trailer(event: &Event) -> bool {
    matches!(
        event,
        Event::Status(_) | Event::Edited(_) | Event::Foreign(_) | Event::GateAnswered(_)
    )
}

/// When a session had changed last, by the files that told of it.
fn known_update(head: &Head) -> Option<Time> {
    head.metadata.get(PROVENANCE)?.get(UPDATED_AT)?.as_str()?.parse().ok()
}

/// Is the file shorter than it was when it was read? Sessions grow; one that says nothing of
/// when it changed may have been put back.
fn is_shorter(path: &Path, head: &Head) -> bool {
    let known = || head.metadata.get(PROVENANCE)?.get("bytes")?.as_u64();
    let found = path.metadata().ok().filter(std::fs::Metadata::is_file);
    known().is_some_and(|known| found.is_some_and(|found| found.len() < known))
}

/// The file that told of a session last.
pub(super) fn told_by(head: &Head) -> Option<PathBuf> {
    head.metadata.get(PROVENANCE)?.get("from")?.as_str().map(PathBuf::from)
}

fn changed(path: &Path) -> Option<SystemTime> {
    path.metadata().and_then(|found| found.modified()).ok()
}

/// Is one message the front of another?
fn is_front(one: &Event, other: &Event) -> bool {
    match (one, other) {
        (Event::Message(one), Event::Message(other)) => {
            one.role == other.role
                && one.lane == other.lane
                && one.parts.len() < other.parts.len()
                && other.parts.starts_with(&one.parts)
        }
        _ => false,
    }
}
