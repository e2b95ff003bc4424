//! Batches of writes: one append in one round trip where that can be, everything else in
//! a transaction.

use std::cell::{Cell, RefCell};

use stepwell::backend::{Rows as _, SessionRow, write};
use stepwell::model::Origin;
use stepwell::store::{Append, Create, Lease, Write, Written};
use stepwell::{NewEvent, Result, Seq};

use crate::append;
use crate::append_one;
use crate::draft::DraftRows;
use crate::engine::{Attempt, Doubt, Engine, Structure, Unsure};
use crate::fault::DbError;
use crate::head_cache::Known;
use crate::many_new;
use crate::order::{Order, Sent};
use crate::rows::{PgRows, number, seq};
use crate::transport::params;
use crate::write_token::Marks;

/// What came of the attempt to do with one statement.
enum Quick {
    Done(Written),
    /// It takes a transaction.
    Not,
    /// The connection was lost; its first event would be this.
    Lost(Option<Seq>),
}

/// Does several writes, all or none.
pub(crate) fn batch(engine: &Engine, writes: &[Write]) -> Result<Vec<Written>> {
    engine.writable()?;
    let marks = engine.marker.marks(writes.len());
    let mut doubt = Doubt::None;
    let tried: Vec<Cell<Option<Seq>>> = writes.iter().map(|_| Cell::new(None)).collect();
    if let [one] = writes
        && let Write::Append(append) = one
    {
        match quick(engine, one, append, marks)? {
            Quick::Done(written) => {
                engine.told(&append.session);
                return Ok(vec![written]);
            }
            Quick::Not => {}
            Quick::Lost(from) => {
                doubt = Doubt::Some;
                tried[0].set(from);
            }
        }
    }
    let structure = writes.iter().map(structure).max().unwrap_or(Structure::Open);
    let known = RefCell::new(None);
    let written = engine.change(
        Attempt { structure, unsure: Unsure::Repeat, doubt },
        |rows, context, doubt| {
            if doubt == Doubt::None
                && let Some(answers) = many_new::try_write(rows, context, writes, marks)?
            {
                return Ok(answers);
            }
            let mut answers = Vec::with_capacity(writes.len());
            for (n, one) in writes.iter().enumerate() {
                let mark = marks.of(n, one);
                if let (Doubt::Some, Some(mark)) = (doubt, mark)
                    && let Some(written) = recorded(rows, one, mark, tried[n].get())?
                {
                    answers.push(written);
                    continue;
                }
                rows.mark.set(mark);
                rows.marked_from.set(None);
                answers.push(write::write(rows, context, one.clone())?);
                // The first attempt that got so far began lowest.
                tried[n].set(tried[n].get().or(rows.marked_from.get()));
            }
            *known.borrow_mut() = match writes {
                [one] => stands(rows, one)?,
                _ => None,
            };
            Ok(answers)
        },
    )?;
    if let Some(known) = known.into_inner() {
        engine.heads.keep(Box::new(known));
    }
    writes.iter().for_each(|one| engine.told(one.session()));
    Ok(written)
}

/// Who must not move sessions about meanwhile: a session that belongs to another is made, or
/// events are emptied that no fork may come to share.
fn structure(write: &Write) -> Structure {
    match write {
        Write::Create(create) if create.created.origin != Origin::Root => Structure::Shared,
        Write::Prune(_) => Structure::Alone,
        _ => Structure::Open,
    }
}

/// Does an append with one statement, if this process knows how the session stands.
fn quick(engine: &Engine, one: &Write, append: &Append, marks: Marks) -> Result<Quick> {
    let Some(known) = engine.heads.take(&append.session) else { return Ok(Quick::Not) };
    // A holder may have renewed its lease since: whether it lives is the database's to say.
    let free = |event: &NewEvent| event.event.needs_no_lease();
    if append.epoch.is_none()
        && known.row.held().is_some()
        && !append.events.as_slice().iter().all(free)
    {
        return Ok(Quick::Not);
    }
    let rows = DraftRows::new(&known);
    let context = engine.context(engine.pool.time.now());
    let Ok(written) = write::write(&rows, context, one.clone()) else { return Ok(Quick::Not) };
    let Some(draft) = rows.into_draft() else { return Ok(Quick::Not) };
    let mark = marks.of(0, one);
    let Some(order) = Order::new(known, append.epoch, mark, draft) else {
        return Ok(Quick::Not);
    };
    let conn = engine.pool.connect(&mut engine.patience());
    let conn = conn.map_err(|trouble| engine.fault(trouble, "writing"))?;
    let sent = append_one::send(&conn, engine.namespace, &order)
        .unwrap_or_else(|| append::send(&engine.pool, &conn, engine.namespace, &order));
    match sent {
        Ok(Sent::Done(bytes)) => {
            engine.heads.keep(order.into_known(bytes));
            Ok(Quick::Done(written))
        }
        Ok(Sent::Stale) | Err(DbError::Again(_)) => Ok(Quick::Not),
        Err(DbError::Unprepared(_)) => {
            engine.pool.stop_preparing();
            Ok(Quick::Not)
        }
        Err(DbError::Lost(_)) => Ok(Quick::Lost(mark.map(|_| written.first))),
        Err(trouble) => Err(engine.fault(trouble, "writing")),
    }
}

/// What an earlier attempt wrote under a mark, if it was kept. The session's row is
/// locked first: an attempt that is still under way has then ended, or will find that the
/// session has moved on.
fn recorded(
    rows: &PgRows<'_>,
    write: &Write,
    mark: [u8; 16],
    from: Option<Seq>,
) -> Result<Option<Written>> {
    let Some(row) = rows.session(write.session())? else { return Ok(None) };
    let from = match write {
        Write::Create(_) => row.own_from(),
        Write::Append(_) | Write::Prune(_) => match from {
            Some(from) => from,
            None => return Ok(None),
        },
    };
    let sql = "SELECT min(seq), max(seq) FROM stepwell.events \
         WHERE namespace = $4 AND session = $1 AND seq >= $2 AND mark = $3";
    let params = params![
        row.key => INT8, number(from) => INT8, mark.as_slice() => BYTEA, rows.namespace => INT4,
    ];
    let Some(found) = rows.one(sql, params)? else { return Ok(None) };
    let (first, last): (Option<i64>, Option<i64>) = (rows.get(&found, 0)?, rows.get(&found, 1)?);
    let (Some(first), Some(last)) = (first, last) else { return Ok(None) };
    let lease = match write {
        Write::Create(create) => lease_of(&row, create),
        Write::Append(_) | Write::Prune(_) => None,
    };
    Ok(Some(Written { first: seq(first), last: seq(last), lease }))
}

fn lease_of(row: &SessionRow, create: &Create) -> Option<Lease> {
    let held = row.held()?;
    let same = create.claim.as_ref().is_some_and(|claim| claim.holder == held.holder);
    let (session, epoch, expires) = (row.head.id.clone(), held.epoch, held.expires);
    same.then_some(Lease { session, epoch, expires, stop_asked: false })
}

/// How the session stands that a transaction wrote to, for the next append to it.
fn stands(rows: &PgRows<'_>, write: &Write) -> Result<Option<Known>> {
    let Some((row, version)) = rows.last_written(write.session()) else { return Ok(None) };
    let alone = matches!(write, Write::Create(create) if create.created.origin == Origin::Root);
    let mut lanes = if alone { Default::default() } else { rows.lanes(row.key)? };
    if let Some((lane, _)) = &row.lane {
        lanes.remove(lane);
    }
    Ok(Some(Known { row, version, lanes }))
}
