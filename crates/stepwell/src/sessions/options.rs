//! Options for creating a session, forking, and emptying the trash. Each converts from its plain
//! form, for callers without further wishes.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use crate::model::{Created, NewEvent, Seq, SessionId};

/// A session to create.
#[derive(Clone, Debug)]
pub struct NewSession {
    /// Its first event.
    pub created: Created,
    /// The events that follow at once.
    pub events: Vec<NewEvent>,
}

impl From<Created> for NewSession {
    fn from(created: Created) -> Self {
        Self { created, events: Vec::new() }
    }
}

/// Where a fork starts.
#[derive(Clone, Debug, Default)]
pub struct ForkAt {
    /// The last shared event; absent for the parent's last.
    pub at: Option<Seq>,
    /// The events that follow the fork's own first event.
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

/// What to erase from the trash.
#[derive(Clone, Debug, Default)]
pub struct EmptyTrash {
    /// Sessions that were deleted at least this long ago.
    pub older_than: Duration,
    /// Sessions to leave there.
    pub keep: BTreeSet<SessionId>,
    /// How many commits each session made, if known, for its ledger row.
    pub commits: BTreeMap<SessionId, usize>,
}

impl From<Duration> for EmptyTrash {
    fn from(older_than: Duration) -> Self {
        Self { older_than, ..Self::default() }
    }
}
