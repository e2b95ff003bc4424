//! Replaced events, and the `scrubbed` events that record them.
//!
//! A scrub or a prune keeps the original's digest, so that the chain verifies. Anyone who can write
//! to the database can do the same. So each replacement must be recorded by a `scrubbed` event,
//! which the chain covers: it holds the event's seq and the digest of its new body.

use std::collections::BTreeMap;
use std::ops::ControlFlow;

use super::rows::{Key, Rows, SessionRow, Stretch};
use super::slice::stretches;
use super::{Order, Replaced};
use crate::error::Result;
use crate::model::{Digest, Event, Kind, Origin, Recorded, Seq, SeqRanges};

/// The damage of an event that was replaced without a record of it.
pub(super) const UNRECORDED: &str = "it was replaced without a record";

/// The replaced events in a log, and what the log records of them.
#[derive(Debug, Default)]
pub(super) struct Replacements {
    found: Vec<Found>,
    told: Told,
}

#[derive(Debug)]
struct Found {
    replaced: Replaced,
    emptied: bool,
}

/// What `scrubbed` events record.
#[derive(Debug, Default)]
struct Told {
    erased: BTreeMap<Seq, Digest>,
    pruned: Vec<SeqRanges>,
}

impl Told {
    fn note(&mut self, event: &Event) {
        let Event::Scrubbed(scrubbed) = event else { return };
        self.erased.extend(scrubbed.erased.iter().map(|it| (it.seq, it.body)));
        self.pruned.push(scrubbed.pruned.clone());
    }

    fn has(&self, found: &Found) -> bool {
        let Replaced { seq, body } = &found.replaced;
        let pruned = || self.pruned.iter().any(|pruned| pruned.contains(*seq));
        self.erased.get(seq).is_some_and(|told| told.matches(body)) || found.emptied && pruned()
    }
}

impl Replacements {
    /// Adds events of the log, with those among them that were replaced.
    pub(super) fn note(&mut self, events: &[Recorded], replaced: Vec<Replaced>) {
        events.iter().for_each(|event| self.told.note(&event.event));
        let is_emptied = |seq: Seq| {
            let at = events.binary_search_by_key(&seq, |event| event.seq);
            at.is_ok_and(|at| events[at].event.is_emptied())
        };
        let found = |it: Replaced| Found { emptied: is_emptied(it.seq), replaced: it };
        self.found.extend(replaced.into_iter().map(found));
    }

    /// The first event that was replaced without a record of it.
    pub(super) fn first_unrecorded(
        &self,
        rows: &dyn Rows,
        row: &SessionRow,
    ) -> Result<Option<Seq>> {
        for found in self.found.iter().filter(|found| !self.told.has(found)) {
            if !told_elsewhere(rows, row, found)? {
                return Ok(Some(found.replaced.seq));
            }
        }
        Ok(None)
    }
}

/// Is a replacement recorded where a fork cannot see it? The session that keeps a shared event may
/// have been scrubbed after the fork. If that session was purged since, its record went with it.
fn told_elsewhere(rows: &dyn Rows, row: &SessionRow, found: &Found) -> Result<bool> {
    let seq = found.replaced.seq;
    let owner = stretches(rows, row, seq)?.last().map_or(row.key, |stretch| stretch.key);
    if owner != row.key && told_after(rows, owner, seq)?.has(found) {
        return Ok(true);
    }
    let Some(owner) = rows.session_by_key(owner)? else { return Ok(false) };
    match &owner.head.origin {
        Origin::Fork { parent, at } if seq <= *at => Ok(rows.session(parent)?.is_none()),
        _ => Ok(false),
    }
}

/// What a session's own events after a seq record.
fn told_after(rows: &dyn Rows, key: Key, seq: Seq) -> Result<Told> {
    let mut told = Told::default();
    let to = rows.last_own(key)?.unwrap_or(seq);
    let stretch = Stretch { key, from: seq.next(), to };
    let _ = rows.visit(stretch, Order::Oldest, &mut |row| {
        if row.kind == Kind::Scrubbed.as_str()
            && let Ok(opened) = row.open(&mut |digest| rows.blob(digest))
        {
            told.note(&opened.event);
        }
        Ok(ControlFlow::Continue(()))
    })?;
    Ok(told)
}
