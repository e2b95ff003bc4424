//! What can be wished for when a session is made or the trash is emptied. Each comes from the plain
//! thing as well, for those who wish for nothing else.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use crate::model::{Created, NewEvent, Seq, SessionId};

/// A session to be made.
#[derive(Clone, Debug)]
pub struct NewSession {
    /// Its description.
    pub created: Created,
    /// What it begins with.
    pub events: Vec<NewEvent>,
}

impl From<Created> for NewSession {
    fn from(created: Created) -> Self {
        Self { created, events: Vec::new() }
    }
}

/// Where a fork begins.
#[derive(Clone, Debug, Default)]
pub struct ForkAt {
    /// The last event that it shares; absent, the parent's last.
    pub at: Option<Seq>,
    /// What it begins with, behind those.
    pub begins: Vec<NewEvent>,
}

impl From<Option<Seq>> for ForkAt {
    fn from(at: Option<Seq>) -> Self {
        Self { at, begins: Vec::new() }
    }
}

impl From<Seq> for ForkAt {
    fn from(at: Seq) -> Self {
        Some(at).into()
    }
}

/// What goes from the trash.
#[derive(Clone, Debug, Default)]
pub struct EmptyTrash {
    /// What has been there for at least so long.
    pub older_than: Duration,
    /// But not these.
    pub keep: BTreeSet<SessionId>,
    /// How many commits each made, as far as that is known: for its row of the ledger.
    pub commits: BTreeMap<SessionId, usize>,
}

impl From<Duration> for EmptyTrash {
    fn from(older_than: Duration) -> Self {
        Self { older_than, ..Self::default() }
    }
}
