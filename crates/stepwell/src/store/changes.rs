//! What changed in a whole store since somebody last looked.
//!
//! Each store numbers its changes in its own way; a cursor says up to where they are known. A
//! lease that ends by itself is written by nobody, so a cursor also says until when leases were
//! looked at.

use std::fmt;
use std::str::FromStr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};

use super::rows::{Key, TxnContext};
use crate::model::{Epoch, Seq, SessionId, Time};
use crate::store::lease::LeaseInfo;

/// How long a look at the changes waits for the first one.
#[derive(Clone, Copy, Debug, Default)]
pub struct Wait<'a> {
    /// The longest wait.
    pub longest: Duration,
    /// Ends the wait when it becomes true.
    pub broken_off: Option<&'a AtomicBool>,
}

impl Wait<'_> {
    /// No wait at all.
    pub const NONE: Self = Self::up_to(Duration::ZERO);

    /// A wait that nothing but a change ends earlier.
    #[must_use]
    pub const fn up_to(longest: Duration) -> Self {
        Self { longest, broken_off: None }
    }

    /// How much of a wait is left that began at `started`.
    #[must_use]
    pub fn left(&self, started: Instant) -> Duration {
        let is_over = self.broken_off.is_some_and(|flag| flag.load(Ordering::Relaxed));
        if is_over { Duration::ZERO } else { self.longest.saturating_sub(started.elapsed()) }
    }
}

/// What changed in a store. A session that changed several times is named once.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Changes {
    /// The changes: first what was purged, then the rest.
    pub changes: Vec<SessionChange>,
    /// Where to go on.
    pub cursor: ChangeCursor,
    /// Anything may have changed: the cursor is not of this store, or of a state that the store
    /// no longer has, as after a backup was restored. The caller lists all sessions anew.
    pub gap: bool,
}

impl Changes {
    /// Did nothing change?
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
    /// What became of it.
    pub kind: ChangeKind,
}

/// What became of a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ChangeKind {
    /// It was written to, came back from the trash, or its lease was taken, given back or ended.
    Updated {
        /// Its last event.
        seq: Seq,
    },
    /// It changed, and is in the trash.
    Trashed,
    /// It was purged.
    Removed,
}

/// Up to where the changes of a store are known. It can be kept as text, and used after a
/// restart.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChangeCursor(pub(crate) Position);

/// What a cursor holds, for those who write a store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Position {
    /// Which store, and which of its lives: a cursor of another one knows nothing.
    pub store: String,
    /// The last change that is known, in the store's own words, without spaces.
    pub change: String,
    /// Leases that had run out by then are known.
    pub at: Time,
    /// Leases that had not, but whose holders were known to be gone.
    pub gone: Vec<(Key, Epoch)>,
}

impl From<Position> for ChangeCursor {
    fn from(position: Position) -> Self {
        Self(position)
    }
}

impl ChangeCursor {
    /// What it holds.
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

/// A text is no cursor.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("this is no cursor of a store's changes")]
pub struct NotACursor;

/// A lease that somebody holds, as a store keeps it.
#[derive(Clone, Debug)]
pub struct HeldLease {
    /// The session's number.
    pub key: Key,
    /// How the session is told of, if its lease ended.
    pub change: SessionChange,
    /// Who holds it.
    pub held: LeaseInfo,
}

/// The leases that ended since a position, out of those that had not run out by then, and the
/// ones whose holders are gone now.
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

/// Brings changes into order: what was purged first, and each session once.
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
