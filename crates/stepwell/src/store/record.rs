//! Recording one event, after all checks.

use super::read;
use super::rows::{Rows, SessionRow, TxnContext};
use super::{Damage, Expected};
use crate::error::{Error, Result};
use crate::log::codec::{self, Body, Login};
use crate::log::{LaneState, State};
use crate::model::{Epoch, Lane, NewEvent, Recorded, Seq};

/// The number of events between snapshots of the fold. So the state at any seq, where a fork may
/// begin, is at most this far away.
const SNAPSHOT_STRIDE: u64 = 256;

/// This many lanes double the distance between snapshots, so that their size stays in proportion to
/// the events.
const SNAPSHOT_LANES: u64 = 32;

/// Records one event: its row, its lane, and the head in `row`, which the caller saves.
pub(super) fn record(
    rows: &dyn Rows,
    world: TxnContext<'_>,
    row: &mut SessionRow,
    new: NewEvent,
    body: Body<'_>,
) -> Result<Seq> {
    let seq = row.head.seq.next();
    if seq > Seq::MAX {
        return Err(Error::TooLarge {
            what: format!("session {}", row.head.id),
            size: seq.get(),
            limit: Seq::MAX.get(),
        });
    }
    let event = Recorded { seq, at: new.at.unwrap_or(world.now), id: new.id, event: new.event };
    let mut sealed = codec::seal(&event, body, &row.chain);
    if new.copied {
        sealed.row.login = Login::Noted(None);
    }
    row.bytes += rows.insert_event(row.key, &sealed)?;
    row.chain = sealed.row.chain;
    row.head.apply(&event);
    if let Some(lane) = event.event.lane().filter(|_| LaneState::takes(&event.event)) {
        turn_to(rows, row, lane)?.apply(&event.event);
    }
    if seq.get().is_multiple_of(SNAPSHOT_STRIDE) {
        let lanes = read::lanes(rows, row)?;
        // A snapshot holds every lane, so more lanes mean fewer snapshots.
        let stride = SNAPSHOT_STRIDE * (1 + lanes.len() as u64 / SNAPSHOT_LANES);
        if seq.get().is_multiple_of(stride) {
            rows.put_snapshot(row.key, &State { head: row.head.clone(), lanes })?;
        }
    }
    Ok(seq)
}

/// Moves a lane's state into the session's row, and the previous lane's out of it.
fn turn_to<'a>(rows: &dyn Rows, row: &'a mut SessionRow, lane: &Lane) -> Result<&'a mut LaneState> {
    let there = row.lane.take();
    let (_, state) = match there {
        Some(there) if there.0 == *lane => row.lane.insert(there),
        there => {
            if let Some((left, state)) = there {
                rows.put_lane(row.key, &left, &state)?;
            }
            row.lane.insert((lane.clone(), rows.lane(row.key, lane)?))
        }
    };
    Ok(state)
}

/// Fails unless the session's newest lease is held under this epoch.
pub(super) fn check_epoch(row: &SessionRow, epoch: Epoch) -> Result<()> {
    let held = row.lease.as_ref().filter(|lease| lease.held.is_some());
    match held.map(|lease| lease.epoch) {
        Some(current) if current == epoch => Ok(()),
        current => Err(Error::Fenced { session: row.head.id.clone(), epoch, current }),
    }
}

/// Fails unless the write's condition holds.
pub(super) fn check_expected(
    rows: &dyn Rows,
    row: &SessionRow,
    expected: Option<Expected>,
) -> Result<()> {
    let session = || row.head.id.clone();
    let actual = row.head.seq;
    match expected {
        Some(Expected::At(expected)) if expected != actual => {
            Err(Error::UnexpectedSeq { session: session(), expected, actual })
        }
        Some(Expected::Intact(seq)) if !is_intact(rows, row, seq)? => {
            Err(Error::Pruned { session: session(), seq })
        }
        _ => Ok(()),
    }
}

/// Does an event still have its contents?
fn is_intact(rows: &dyn Rows, row: &SessionRow, seq: Seq) -> Result<bool> {
    if read::hidden(rows, row)?.iter().any(|hidden| hidden.contains(seq)) {
        return Ok(false);
    }
    let Some(found) = read::row_at(rows, row, seq)? else { return Ok(false) };
    // Texts in blobs are not needed, so they are not fetched.
    let opened = found.open(&mut |_| Ok(Vec::new()));
    let opened = opened.map_err(|what| Damage { seq, what }.into_error(&row.head.id))?;
    Ok(!opened.event.is_emptied())
}

/// Fails if the session is damaged at or before `upto`.
pub(super) fn refuse_damaged(row: &SessionRow, upto: Seq) -> Result<()> {
    match &row.damage {
        Some(Damage { seq, what }) if *seq <= upto => {
            Err(Damage { seq: *seq, what: what.clone() }.into_error(&row.head.id))
        }
        _ => Ok(()),
    }
}
