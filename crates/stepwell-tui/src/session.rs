//! What the terminal knows of sessions.

use std::path::PathBuf;

use stepwell::model::{Mode, Time};
use stepwell::{Seq, SessionId, Status};

use crate::clean::Clean;

/// The session that is open.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SessionCard {
    /// The session's id.
    pub id: SessionId,
    /// Its label, or what it is about.
    pub title: Clean,
    /// How it stands.
    pub status: Status,
    /// The model.
    pub model: Clean,
    /// When a person is asked.
    pub mode: Option<Mode>,
    /// The phase that its work is in.
    pub phase: Option<Clean>,
    /// What it cost, as it is shown.
    pub cost: Clean,
    /// What is left of its budget, as it is shown.
    pub left: Option<Clean>,
    /// How much of the model's window is used, in percent.
    pub context: Option<u8>,
    /// Is it a flow, which takes no words?
    pub is_flow: bool,
    /// Is it guided work?
    pub is_guided: bool,
}

/// How many sessions are listed.
pub(crate) const LISTED: usize = 200;

/// A session in a list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SessionRow {
    /// The session's id.
    pub id: SessionId,
    /// Which of the user's stores it is in; absent, this one.
    pub store: Option<PathBuf>,
    /// Its label.
    pub label: Option<Clean>,
    /// The front of its task.
    pub task: Clean,
    /// How it stands.
    pub status: Status,
    /// Was it cut off: did its process die?
    pub cut_off: bool,
    /// Was it forked or taken back, and not run since?
    pub rests: bool,
    /// How many questions wait.
    pub waiting: u64,
    /// When it was last used.
    pub used_at: Time,
    /// The same, as it is shown.
    pub when: Clean,
    /// Who works on it.
    pub agent: Clean,
    /// Its tags.
    pub tags: Vec<Clean>,
    /// Does cleanup stay away from it?
    pub pinned: bool,
    /// Where the words were found in it.
    pub hits: Vec<Clean>,
    /// If another agent keeps it and it was not imported: where it is read from.
    pub foreign: Option<Foreign>,
}

/// A session that another agent keeps, and that was not imported.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Foreign {
    /// Whose it is.
    pub system: Clean,
    /// What is imported.
    pub path: String,
    /// What was said first, and the folder that it is about.
    pub about: Clean,
}

impl SessionRow {
    /// Its label, else its task.
    #[must_use]
    pub fn title(&self) -> &Clean {
        self.label.as_ref().unwrap_or(&self.task)
    }

    /// How it stands, in the words of every list.
    #[must_use]
    pub fn standing(&self) -> &str {
        match (&self.foreign, self.status) {
            (Some(foreign), _) => foreign.system.as_str(),
            _ if self.waiting > 0 => "waits for you",
            _ if self.cut_off => "cut off",
            _ if self.rests => "ready",
            (None, Status::Interrupted) => "stopped",
            (None, status) => status.as_str(),
        }
    }
}

/// A point of a session, to go back to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Point {
    /// The last event that stays.
    pub seq: Seq,
    /// What kind of point it is, such as `you` or `checkpoint`.
    pub kind: &'static str,
    /// When, as it is shown.
    pub when: Clean,
    /// What happened there.
    pub text: Clean,
}

/// How far a search goes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Reach {
    /// The session that is open.
    Session,
    /// This workspace.
    #[default]
    Workspace,
    /// All of the user's stores.
    Everywhere,
}

impl Reach {
    /// The next wider one; after the widest, the narrowest that there is.
    #[must_use]
    pub const fn wider(self, session_open: bool) -> Self {
        match (self, session_open) {
            (Self::Workspace, _) => Self::Everywhere,
            (Self::Everywhere, true) => Self::Session,
            (Self::Session, _) | (Self::Everywhere, false) => Self::Workspace,
        }
    }

    /// Its name.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Session => "this session",
            Self::Workspace => "this workspace",
            Self::Everywhere => "everywhere",
        }
    }
}
