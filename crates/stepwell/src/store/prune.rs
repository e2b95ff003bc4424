//! Emptying events that are no longer needed.

use std::collections::BTreeSet;
use std::ops::ControlFlow;

use super::read::{self, find};
use super::record::{check_epoch, check_expected, record, refuse_damaged};
use super::rows::{Rows, SessionRow, Stretch, TxnContext};
use super::{Order, Prune, Written};
use crate::error::{Error, Result};
use crate::log::codec::{self, Body, OwnRow, Sealed};
use crate::model::{Digest, Driver, Event, Kind, Recorded, Scrubbed, Seq, SeqRanges};
use crate::store::lease::LeaseInfo;

/// Events at most this far apart are read together.
const RUN: u64 = 32;

/// Empties events, and records which.
pub(super) fn prune(rows: &dyn Rows, world: TxnContext<'_>, prune: Prune) -> Result<Written> {
    let mut row = find(rows, &prune.session)?;
    check(&row, world, &prune)?;
    check_expected(rows, &row, prune.expected)?;
    let shared = rows.forks(row.key)?.into_iter().map(|fork| fork.at).max().unwrap_or(Seq::ZERO);
    let ours = |seq: &Seq| *seq >= row.own_from() && *seq > shared;
    let hidden = read::hidden(rows, &row)?;
    let is_hidden = |seq: &Seq| hidden.iter().any(|hidden| hidden.contains(*seq));
    // An earlier prune may have left events to a fork that has since been purged. They are emptied
    // now.
    let left: Vec<Seq> = hidden.iter().flat_map(seqs).filter(ours).collect();
    let wanted: BTreeSet<Seq> = prune.seqs.iter().copied().chain(left).collect();
    let (erase, hide): (Vec<Seq>, Vec<Seq>) = wanted.into_iter().partition(ours);
    let hide: Vec<Seq> = hide.into_iter().filter(|seq| !is_hidden(seq)).collect();
    for seq in &hide {
        let found = read::row_at(rows, &row, *seq)?;
        may_go(&row, *seq, found.as_ref())?;
    }
    let emptied = emptied(rows, &row, &erase)?;
    if emptied.is_empty() && hide.is_empty() {
        return Ok(Written { first: row.head.seq, last: row.head.seq, lease: None });
    }
    let pruned = emptied.iter().map(|sealed| sealed.row.seq).collect();
    row.bytes = row.bytes.saturating_sub(rows.prune(row.key, &emptied)?);
    let hidden: SeqRanges = hide.into_iter().collect();
    let scrubbed = Scrubbed { rule: prune.rule, pruned, hidden, ..Scrubbed::default() };
    let event = Event::Scrubbed(scrubbed);
    let body = Body::of(&event)?;
    let seq = record(rows, world, &mut row, event.into(), body)?;
    rows.update_session(&row)?;
    Ok(Written { first: seq, last: seq, lease: None })
}

/// May the caller prune this session?
fn check(row: &SessionRow, world: TxnContext<'_>, prune: &Prune) -> Result<()> {
    let session = || prune.session.clone();
    if row.trashed_at.is_some() {
        return Err(Error::Trashed(session()));
    }
    refuse_damaged(row, row.head.seq)?;
    match prune.epoch {
        Some(epoch) => check_epoch(row, epoch)?,
        None if row.head.driver != Driver::External => {
            return Err(Error::NeedsLease { session: session(), kind: "a prune".to_owned() });
        }
        None => {
            if let Some(LeaseInfo { holder, expires, .. }) = row.runner(world) {
                return Err(Error::Held { session: session(), holder: Box::new(holder), expires });
            }
        }
    }
    match prune.seqs.iter().find(|seq| **seq == Seq::ZERO || **seq > row.head.seq) {
        None => Ok(()),
        Some(seq) => Err(refused(row, format!("it has no event {seq}"))),
    }
}

fn refused(row: &SessionRow, why: String) -> Error {
    Error::Illegal { session: row.head.id.clone(), kind: "a prune".to_owned(), why }
}

/// Only records may be pruned, and messages of a session that another program drives.
fn may_go(row: &SessionRow, seq: Seq, found: Option<&OwnRow>) -> Result<()> {
    let Some(found) = found else {
        return Err(refused(row, format!("event {seq} is missing")));
    };
    let external = row.head.driver == Driver::External;
    match &*found.kind {
        kind if kind == Kind::Record.as_str() => Ok(()),
        kind if kind == Kind::Message.as_str() && external => Ok(()),
        kind => Err(refused(row, format!("event {seq} is a {kind}, which is not pruned"))),
    }
}

/// The emptied rows of events, without those that are empty already.
fn emptied(rows: &dyn Rows, row: &SessionRow, seqs: &[Seq]) -> Result<Vec<Sealed<'static>>> {
    let mut emptied = Vec::with_capacity(seqs.len());
    for run in seqs.chunk_by(|one, next| next.get() - one.get() <= RUN) {
        let (Some(from), Some(to)) = (run.first(), run.last()) else { continue };
        let stretch = Stretch { key: row.key, from: *from, to: *to };
        let mut old = Vec::with_capacity(run.len());
        let _ = rows.visit(stretch, Order::Oldest, &mut |found| {
            if run.binary_search(&found.seq).is_ok() {
                old.push(found.into_owned());
            }
            Ok(ControlFlow::Continue(()))
        })?;
        for seq in run {
            let found = old.binary_search_by_key(seq, |old| old.seq).ok().map(|at| &old[at]);
            may_go(row, *seq, found)?;
        }
        for old in old {
            emptied.extend(empty(row, &old)?);
        }
    }
    Ok(emptied)
}

/// A row without its contents; `None` if it has none.
fn empty(row: &SessionRow, old: &OwnRow) -> Result<Option<Sealed<'static>>> {
    // Texts in blobs are not needed, so they are not fetched.
    let opened = old.open(&mut |_| Ok(Vec::new()));
    let opened =
        opened.map_err(|what| super::Damage { seq: old.seq, what }.into_error(&row.head.id))?;
    if opened.event.is_emptied() {
        return Ok(None);
    }
    let Some(event) = opened.event.emptied() else { return Ok(None) };
    let recorded = Recorded { event, ..opened };
    let mut sealed = codec::seal(&recorded, Body::of(&recorded.event)?, &Digest::GENESIS);
    sealed.row.chain = old.chain;
    sealed.row.erased = Some(old.body_digest());
    // It can no longer be found by its key.
    sealed.row.key = None;
    Ok(Some(sealed))
}

fn seqs(ranges: &SeqRanges) -> impl Iterator<Item = Seq> + '_ {
    ranges.iter().flat_map(|(first, last)| (first.get()..=last.get()).map(Seq::new))
}
