//! The change feed: what changed in a whole store since a cursor.
//!
//! Each store numbers its changes in its own way, and a cursor holds the last known change. No
//! write marks the end of a lease that expires, so a cursor also holds the time up to which expired
//! leases are known.

use std::fmt;
use std::str::FromStr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};

use super::rows::{Key, TxnContext};
use crate::model::{Epoch, Seq, SessionId, Time};
use crate::store::lease::LeaseInfo;

/// How long a poll for changes waits for the first one.
#[derive(Clone, Copy, Debug, Default)]
pub struct Wait<'a> {
    /// The longest wait.
    pub longest: Duration,
    /// Ends the wait early when it becomes true.
    pub broken_off: Option<&'a AtomicBool>,
}

impl Wait<'_> {
    /// No wait.
    pub const NONE: Self = Self::up_to(Duration::ZERO);

    /// A wait that only a change ends early.
    #[must_use]
    pub const fn up_to(longest: Duration) -> Self {
        Self { longest, broken_off: None }
    }

    /// The rest of a wait that began at `started`.
    #[must_use]
    pub fn left(&self, started: Instant) -> Duration {
        let is_over = self.broken_off.is_some_and(|flag| flag.load(Ordering::Relaxed));
        if is_over { Duration::ZERO } else { self.longest.saturating_sub(started.elapsed()) }
    }
}

/// Changes of a store. A session that changed several times is listed once.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Changes {
    /// The changes: purged sessions first, then the others.
    pub changes: Vec<SessionChange>,
    /// The cursor for the next poll.
    pub cursor: ChangeCursor,
    /// Anything may have changed: the cursor is from another store, or from a state that the store
    /// no longer has, for example before a backup was restored. The caller must list all sessions
    /// again.
    pub gap: bool,
}

impl Changes {
    /// Is there no change?
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.changes.is_empty() && !self.gap
    }
}

/// One changed session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SessionChange {
    /// The session.
    pub session: SessionId,
    /// The kind of change.
    pub kind: ChangeKind,
}

/// What happened to a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ChangeKind {
    /// It was written to, restored from the trash, or its lease was acquired, released, or ended.
    Updated {
        /// Its last event.
        seq: Seq,
    },
    /// It changed, and is in the trash.
    Trashed,
    /// It was purged.
    Removed,
}

/// The position up to which a store's changes are known. It can be stored as text and used after a
/// restart.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChangeCursor(pub(crate) Position);

/// The content of a cursor, for implementations of a store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Position {
    /// The store, and its incarnation: a cursor from another one is a gap.
    pub store: String,
    /// The last known change, in the store's own form, without spaces.
    pub change: String,
    /// Leases that had expired by then are known.
    pub at: Time,
    /// Leases that had not expired, but whose runners were known to be dead.
    pub gone: Vec<(Key, Epoch)>,
}

impl From<Position> for ChangeCursor {
    fn from(position: Position) -> Self {
        Self(position)
    }
}

impl ChangeCursor {
    /// The cursor's content.
    #[must_use]
    pub fn position(&self) -> &Position {
        &self.0
    }
}

impl fmt::Display for ChangeCursor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Position { store, change, at, gone } = &self.0;
        write!(f, "{store} {change} {}", at.as_micros())?;
        for (key, epoch) in gone {
            write!(f, " {key}.{}", epoch.get())?;
        }
        Ok(())
    }
}

impl FromStr for ChangeCursor {
    type Err = NotACursor;

    fn from_str(text: &str) -> Result<Self, NotACursor> {
        let mut words = text.split(' ');
        let mut word = || words.next().filter(|word| !word.is_empty()).ok_or(NotACursor);
        let (store, change) = (word()?.to_owned(), word()?.to_owned());
        let at = Time::from_micros(word()?.parse().map_err(|_| NotACursor)?);
        let gone = |word: &str| {
            let (key, epoch) = word.split_once('.')?;
            Some((key.parse().ok()?, Epoch::new(epoch.parse().ok()?)))
        };
        let gone: Option<Vec<(Key, Epoch)>> = words.map(gone).collect();
        Ok(Self(Position { store, change, at, gone: gone.ok_or(NotACursor)? }))
    }
}

impl Serialize for ChangeCursor {
    fn serialize<S: serde::Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for ChangeCursor {
    fn deserialize<D: serde::Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let text = String::deserialize(from)?;
        text.parse().map_err(serde::de::Error::custom)
    }
}

/// A text that is not a cursor.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("this is not a cursor of a store's changes")]
pub struct NotACursor;

/// A lease that is held, as a store keeps it.
#[derive(Clone, Debug)]
pub struct HeldLease {
    /// The session's number.
    pub key: Key,
    /// The change to report if the lease has ended.
    pub change: SessionChange,
    /// The runner and the expiry.
    pub held: LeaseInfo,
}

/// The leases that ended since a position, among those that had not expired by then; and the leases
/// whose runners are dead now.
#[must_use]
pub fn ended(
    leases: Vec<HeldLease>,
    since: &Position,
    world: TxnContext<'_>,
) -> (Vec<SessionChange>, Vec<(Key, Epoch)>) {
    let (mut changes, mut gone) = (Vec::new(), Vec::new());
    for HeldLease { key, change, held } in leases {
        if !held.is_dead(world.now, world.processes) {
            continue;
        }
        let ran_out = world.now >= held.expires;
        let holding = (key, held.epoch);
        if !since.gone.contains(&holding) {
            changes.push(change);
        }
        if !ran_out {
            gone.push(holding);
        }
    }
    (changes, gone)
}

/// Orders changes: purged sessions first, each session once.
#[must_use]
pub fn in_order(removed: Vec<SessionId>, updated: Vec<SessionChange>) -> Vec<SessionChange> {
    let mut named = std::collections::HashSet::new();
    let removed =
        removed.into_iter().map(|session| SessionChange { session, kind: ChangeKind::Removed });
    let mut all: Vec<SessionChange> =
        removed.filter(|gone| named.insert(gone.session.clone())).collect();
    named.clear();
    all.extend(updated.into_iter().filter(|change| named.insert(change.session.clone())));
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cursor_is_read_back_as_it_was_written() {
        let cursor = ChangeCursor(Position {
            store: "sqlite".to_owned(),
            change: "17".to_owned(),
            at: Time::from_micros(-5),
            gone: vec![(3, Epoch::new(2)), (4, Epoch::new(1))],
        });
        assert_eq!(cursor.to_string().parse(), Ok(cursor.clone()));
        let json = serde_json::to_string(&cursor).unwrap();
        assert_eq!(serde_json::from_str::<ChangeCursor>(&json).unwrap(), cursor);
        for text in ["", "sqlite", "sqlite 1", "sqlite 1 x", "sqlite 1 2 3", " 1 2"] {
            assert_eq!(text.parse::<ChangeCursor>(), Err(NotACursor), "{text}");
        }
    }
}
