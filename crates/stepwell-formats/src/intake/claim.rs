//! Two files that tell of one session: which of them is believed.

use std::path::{Path, PathBuf};
use std::time::SystemTime;

use stepwell::{Event, Head, Recorded};

use crate::neutral::PROVENANCE;

/// How the file that tells of a session stands to the one that told of it last.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Claim {
    /// It is the same, or the only one that is left.
    Sole,
    /// It was changed later.
    Later,
    /// It was not.
    Earlier,
}

impl Claim {
    /// That of the file at a path.
    pub(super) fn of(path: &Path, head: &Head) -> Self {
        let Some(last) = told_by(head).filter(|last| last != path) else { return Self::Sole };
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
            Self::Later => matches!(told, Event::Status(_)) || is_front(told, &known.event),
        }
    }
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
