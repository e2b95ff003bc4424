//! Reading a session, including the prefix it shares, with every event checked.

use std::borrow::Cow;
use std::collections::{BTreeMap, HashMap};
use std::ops::ControlFlow;

use super::query::{NewestQuery, RecordQuery};
use super::replacements::{Replacements, UNRECORDED};
use super::rows::{Facts, Key, Rows, SessionRow, Stretch, TxnContext};
use super::slice::MISSING;
pub(crate) use super::slice::{slice, stretches};
use super::{Damage, Derived, Order, Place, Selection, SessionInfo, Slice, Span, Verdict};
use crate::error::{Error, Result};
use crate::log::codec::{Login, OwnRow, Row};
use crate::log::{LaneState, State};
use crate::model::event::HIDDEN;
use crate::model::{Digest, Event, EventId, Kind, Lane, Recorded, Seq, SeqRanges, SessionId};

/// The session's row, or an error that it does not exist.
pub fn find(rows: &dyn Rows, id: &SessionId) -> Result<SessionRow> {
    rows.session(id)?.ok_or_else(|| Error::NoSession(id.clone()))
}

/// A session's records by their keys.
fn records(rows: &dyn Rows, row: &SessionRow, query: &RecordQuery) -> Result<Vec<Recorded>> {
    let hidden = hidden(rows, row)?;
    let passed_over: u64 = hidden.iter().map(SeqRanges::count).sum();
    let passed_over = usize::try_from(passed_over).unwrap_or(usize::MAX);
    let limit = query.limit.saturating_add(passed_over);
    let asked = RecordQuery { limit, ..query.clone() };
    let stretches = stretches(rows, row, row.head.seq)?;
    let mut found = Vec::new();
    for stretch in &stretches {
        let own = rows.records(*stretch, &asked)?;
        // If the previous record is the event before, its chain's value need not be read again.
        let chains: HashMap<Seq, Digest> =
            own.iter().map(|record| (record.seq, record.chain)).collect();
        for record in own {
            if !hidden.iter().any(|hidden| hidden.contains(record.seq)) {
                found.push(match chains.get(&record.seq.prev()) {
                    Some(below) => checked_after(row, below, &record, rows)?,
                    None => checked(rows, row, *stretch, &record)?,
                });
            }
        }
    }
    if stretches.len() > 1 {
        found.sort_by_cached_key(|record| (record.event.key().map(Cow::into_owned), record.seq));
        if query.order == Order::Newest {
            found.reverse();
        }
    }
    found.truncate(query.limit);
    Ok(found)
}

/// The selected events of a session.
pub fn select(rows: &dyn Rows, id: &SessionId, selection: Selection<'_>) -> Result<Slice> {
    let row = find(rows, id)?;
    let mut chain = None;
    let events = match selection {
        Selection::Span(span) => return slice(rows, &row, span),
        Selection::Keyed(facts) => keyed_events(rows, &row, facts)?,
        Selection::Records(query) => records(rows, &row, query)?,
        Selection::Named(id) => event(rows, &row, id)?.into_iter().collect(),
        Selection::Newest(query) => {
            // In a fork, shared events may be erased without a change of its own chain.
            chain = row.base.is_none().then_some(row.chain);
            let is_known = chain.is_some() && chain == query.known;
            if is_known { Vec::new() } else { newest_record(rows, &row, query)? }
        }
    };
    Ok(Slice { events, chain, ..Slice::default() })
}

/// The record with the largest key, and the records that belong to it.
fn newest_record(
    rows: &dyn Rows,
    row: &SessionRow,
    query: NewestQuery<'_>,
) -> Result<Vec<Recorded>> {
    let mut found = records(rows, row, &RecordQuery::last(query.keys.clone(), 1))?;
    if let Some(newest) = found.first() {
        found.extend(records(rows, row, &RecordQuery::of((query.beside)(newest)))?);
    }
    Ok(found)
}

/// The events that prunes left to forks, and that no longer count in this session.
pub(crate) fn hidden(rows: &dyn Rows, row: &SessionRow) -> Result<Vec<SeqRanges>> {
    if !row.head.hides {
        return Ok(Vec::new());
    }
    let hiding = |event: Recorded| match event.event {
        Event::Scrubbed(scrubbed) => Some(scrubbed.hidden),
        _ => None,
    };
    let found = keyed(rows, row, Facts::under(&[Kind::Scrubbed], HIDDEN))?;
    Ok(found.into_iter().filter_map(hiding).collect())
}

/// A session's keyed events, in order.
pub(crate) fn keyed_events(
    rows: &dyn Rows,
    row: &SessionRow,
    facts: Facts<'_>,
) -> Result<Vec<Recorded>> {
    let mut found = keyed(rows, row, facts)?;
    if row.head.hides && facts.kinds.contains(&Kind::Record) {
        let hidden = hidden(rows, row)?;
        found.retain(|event| {
            let record = matches!(event.event, Event::Record(_));
            !record || !hidden.iter().any(|hidden| hidden.contains(event.seq))
        });
    }
    Ok(found)
}

fn keyed(rows: &dyn Rows, row: &SessionRow, facts: Facts<'_>) -> Result<Vec<Recorded>> {
    let mut found = Vec::new();
    for stretch in stretches(rows, row, row.head.seq)? {
        let wanted = Stretch { from: stretch.from.max(facts.from), ..stretch };
        if wanted.from > wanted.to {
            continue;
        }
        for fact in rows.keyed_events(wanted, facts)? {
            found.push(checked(rows, row, stretch, &fact)?);
        }
    }
    Ok(found)
}

/// A session's event with a client's id, own or shared.
fn event(rows: &dyn Rows, row: &SessionRow, id: &EventId) -> Result<Option<Recorded>> {
    let Some(found) = event_by_id(rows, row, row.head.seq, id)? else { return Ok(None) };
    let stretch = stretches(rows, row, found.seq)?.pop();
    let stretch = stretch.unwrap_or(Stretch { key: row.key, from: found.seq, to: found.seq });
    checked(rows, row, stretch, &found).map(Some)
}

/// Decodes one event of a stretch, checked against the row before it.
fn checked(
    rows: &dyn Rows,
    row: &SessionRow,
    stretch: Stretch,
    found: &Row<'_>,
) -> Result<Recorded> {
    // Within a stretch, the row before belongs to the same session.
    let below = found.seq.prev();
    let own = if below >= stretch.from { own_chain(rows, stretch.key, below)? } else { None };
    let prev = own.map_or_else(|| chain_at(rows, row, below), Ok)?;
    checked_after(row, &prev, found, rows)
}

/// Decodes one event, checked against the chain's value before it.
fn checked_after(
    row: &SessionRow,
    below: &Digest,
    found: &Row<'_>,
    rows: &dyn Rows,
) -> Result<Recorded> {
    let opened = found.follows(below).and_then(|()| found.open(&mut |digest| rows.blob(digest)));
    opened.map_err(|what| Damage { seq: found.seq, what }.into_error(&row.head.id))
}

/// Decodes an event whose row is known, with the chain's value before it.
pub fn opened(
    id: &SessionId,
    below: Option<Digest>,
    found: &Row<'_>,
    blob: &mut dyn FnMut(&Digest) -> Result<Vec<u8>>,
) -> Result<Recorded> {
    let damaged = |seq, what: String| Damage { seq, what }.into_error(id);
    let below = match below {
        Some(chain) => chain,
        None if found.seq == Seq::FIRST => Digest::GENESIS,
        None => return Err(damaged(found.seq.prev(), MISSING.to_owned())),
    };
    let opened = found.follows(&below).and_then(|()| found.open(blob));
    opened.map_err(|what| damaged(found.seq, what))
}

/// The error for a missing event.
#[must_use]
pub fn missing(id: &SessionId, seq: Seq) -> Error {
    Damage { seq, what: MISSING.to_owned() }.into_error(id)
}

/// The fold of a session's events up to `at`, from the nearest earlier snapshot.
pub(crate) fn state_at(rows: &dyn Rows, row: &SessionRow, at: Seq) -> Result<State> {
    if at == row.head.seq {
        return Ok(State { head: row.head.clone(), lanes: lanes(rows, row)? });
    }
    let mut state = None;
    for stretch in stretches(rows, row, at)?.iter().rev() {
        state = rows.snapshot(stretch.key, stretch.to)?;
        if state.is_some() {
            break;
        }
    }
    let from = state.as_ref().map_or(Seq::ZERO, |state: &State| state.head.seq);
    let span = Span { to: at, ..Span::after(from) };
    let events = slice(rows, row, span)?.intact(&row.head.id)?;
    match state {
        Some(mut state) => {
            events.iter().for_each(|event| state.apply(event));
            Ok(state)
        }
        None => State::fold(&events).ok_or_else(|| no_beginning().into_error(&row.head.id)),
    }
}

/// A session's event up to `to` with a client's id, own or shared.
pub(crate) fn event_by_id(
    rows: &dyn Rows,
    row: &SessionRow,
    to: Seq,
    id: &EventId,
) -> Result<Option<OwnRow>> {
    let within = |key: Key, to: Seq| -> Result<Option<OwnRow>> {
        Ok(rows.event_by_id(key, id)?.filter(|found| found.seq <= to))
    };
    let found = within(row.key, to)?;
    if found.is_some() || row.base.is_none() {
        return Ok(found);
    }
    for stretch in stretches(rows, row, to)? {
        let found = within(stretch.key, stretch.to)?;
        if found.is_some() {
            return Ok(found);
        }
    }
    Ok(None)
}

/// The first of several ids that an event of the session has, own or shared, with that event's seq.
pub(crate) fn any_by_id(
    rows: &dyn Rows,
    row: &SessionRow,
    ids: &[EventId],
) -> Result<Option<(EventId, Seq)>> {
    if !rows.has_any_id(row.key, ids)? && row.base.is_none() {
        return Ok(None);
    }
    for id in ids {
        if let Some(found) = event_by_id(rows, row, row.head.seq, id)? {
            return Ok(Some((*id, found.seq)));
        }
    }
    Ok(None)
}

/// The row of a session's own event.
pub fn own_row(rows: &dyn Rows, key: Key, seq: Seq) -> Result<Option<OwnRow>> {
    let mut found = None;
    let _ = rows.visit(Stretch { key, from: seq, to: seq }, Order::Oldest, &mut |row| {
        found = Some(row.into_owned());
        Ok(ControlFlow::Break(()))
    })?;
    Ok(found)
}

/// The chain's value at a session's own event.
fn own_chain(rows: &dyn Rows, key: Key, seq: Seq) -> Result<Option<Digest>> {
    let mut found = None;
    let _ = rows.visit(Stretch { key, from: seq, to: seq }, Order::Oldest, &mut |row| {
        found = Some(row.chain);
        Ok(ControlFlow::Break(()))
    })?;
    Ok(found)
}

/// The row of a session's event, own or shared.
pub(crate) fn row_at(rows: &dyn Rows, row: &SessionRow, at: Seq) -> Result<Option<OwnRow>> {
    let owner = stretches(rows, row, at)?.last().map_or(row.key, |stretch| stretch.key);
    own_row(rows, owner, at)
}

/// The chain's value at a seq of a session, from that row.
pub(crate) fn chain_at(rows: &dyn Rows, row: &SessionRow, at: Seq) -> Result<Digest> {
    if at == Seq::ZERO {
        return Ok(Digest::GENESIS);
    }
    let missing = || Damage { seq: at, what: MISSING.to_owned() }.into_error(&row.head.id);
    row_at(rows, row, at)?.map(|row| row.chain).ok_or_else(missing)
}

/// A session's info as callers read it: without a live runner, it is not running.
#[must_use]
pub fn info(row: SessionRow, world: TxnContext<'_>) -> SessionInfo {
    let (held, own_from) = (row.runner(world), row.own_from());
    let head = if held.is_some() { row.head } else { row.head.without_runner() };
    SessionInfo {
        head,
        held,
        own_from,
        trashed_at: row.trashed_at,
        damage: row.damage,
        bytes: row.bytes,
    }
}

/// The chain's value at a seq of a session's log, or at its end.
pub fn place(rows: &dyn Rows, row: &SessionRow, at: Option<Seq>) -> Result<Option<Place>> {
    let seq = match at {
        None => return Ok(Some(Place { seq: row.head.seq, chain: row.chain })),
        Some(seq) if seq > row.head.seq => return Ok(None),
        Some(seq) => seq,
    };
    Ok(row_at(rows, row, seq)?.map(|row| Place { seq, chain: row.chain }))
}

/// All lanes of a session.
pub fn lanes(rows: &dyn Rows, row: &SessionRow) -> Result<BTreeMap<Lane, LaneState>> {
    let mut lanes = rows.lanes(row.key)?;
    lanes.extend(row.lane.clone());
    Ok(lanes)
}

/// An event's author, as far as the server knows.
pub fn written_by(rows: &dyn Rows, row: &SessionRow, seq: Seq) -> Result<Login> {
    Ok(row_at(rows, row, seq)?.map_or(Login::Noted(None), |row| row.login))
}

/// The result of re-reading a session's whole log.
#[derive(Debug)]
pub struct Reread {
    /// The verdict.
    pub verdict: Verdict,
    /// The fold of the undamaged events.
    pub state: Option<State>,
    /// The chain's value at the last undamaged event.
    pub chain: Digest,
}

/// Events per read while verifying, to bound memory.
const VERIFY_STRIDE: u64 = 1_000;

/// Reads all of a session's events again, checks their digests, and folds them. An event that was
/// replaced without a record of it counts as damaged. The chain cannot show that, since it covers
/// the original's digest.
pub fn reread(rows: &dyn Rows, row: &SessionRow) -> Result<Reread> {
    let mut replacements = Replacements::default();
    let whole = reread_to(rows, row, row.head.seq, &mut replacements)?;
    if whole.verdict.damage.is_some() {
        return Ok(whole);
    }
    let Some(seq) = replacements.first_unrecorded(rows, row)? else { return Ok(whole) };
    let mut intact = reread_to(rows, row, seq.prev(), &mut Replacements::default())?;
    intact.verdict.damage = Some(Damage { seq, what: UNRECORDED.to_owned() });
    intact.verdict.derived = Derived::Wrong;
    Ok(intact)
}

fn reread_to(
    rows: &dyn Rows,
    row: &SessionRow,
    end: Seq,
    replacements: &mut Replacements,
) -> Result<Reread> {
    let mut state: Option<State> = None;
    let mut damage = None;
    let (mut intact, mut scrubbed, mut pruned) = (Seq::ZERO, 0, 0);
    while damage.is_none() && intact < end {
        let to = Seq::new(intact.get() + VERIFY_STRIDE).min(end);
        let slice = slice(rows, row, Span { to, ..Span::after(intact) })?;
        damage = slice.damage;
        scrubbed += slice.scrubbed;
        pruned += slice.pruned;
        replacements.note(&slice.events, slice.replaced);
        for event in &slice.events {
            let lost = event.event.blobs().into_iter().find_map(|blob| rows.blob(&blob).err());
            match &mut state {
                Some(state) => state.apply(event),
                None => state = State::fold([event]),
            }
            if let Some(error) = lost {
                damage = Some(Damage { seq: event.seq, what: error.to_string() });
            } else if state.is_none() {
                damage = Some(no_beginning());
            }
            if damage.as_ref().is_some_and(|damage| damage.seq == event.seq) {
                break;
            }
            intact = event.seq;
        }
    }
    let chain = chain_at(rows, row, intact)?;
    let right = damage.is_none()
        && chain == row.chain
        && state.as_ref().is_some_and(|state| state.head.is_stored_as(&row.head))
        && state.as_ref().map(|state| &state.lanes) == Some(&lanes(rows, row)?);
    let derived = if right { Derived::Right } else { Derived::Wrong };
    let verdict = Verdict { intact: intact.get(), scrubbed, pruned, damage, derived };
    Ok(Reread { verdict, state, chain })
}

fn no_beginning() -> Damage {
    Damage { seq: Seq::FIRST, what: "it does not begin a session".to_owned() }
}
