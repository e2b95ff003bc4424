//! The append that is made all the time: one event, and nothing that goes with it.
//!
//! Its statement is the same text each time, and has values in place of lists: of a list the
//! server cannot tell how long it will be, and would plan the statement anew for each. Each
//! value costs both sides, so what the head already says is not sent again.

use stepwell::Epoch;
use tokio_postgres::types::Type;

use crate::draft::Entry;
use crate::fault::Trouble;
use crate::link::{Conn, Link, Param};
use crate::order::{Order, Sent};
use crate::rows::{number, signed, version_column};

/// What nearly every step of a run is. That the head is of this version says that its seq is
/// known, too; the event goes where the head then points. Its chain says that it is the same
/// session: a server that was put back to an earlier time gives keys and versions again.
const STEADY: &str = "WITH moved AS (UPDATE stepwell.heads SET version = version + 1, \
     seq = seq + 1, bytes = bytes + length($15), unindexed = true, updated = $4, cost = $5, \
     steps = $6, chain = $7, sum = $8, lane = $9, head = $10 \
     WHERE session = $1 AND version = $2 AND fence = $3 AND chain = $16 RETURNING seq, namespace) \
     INSERT INTO stepwell.events (session, seq, namespace, at, version, spilled, kind, chain, id, \
     mark, key, body) SELECT $1, seq, namespace, $4, 1, false, $11, $7, $12, $13, $14, $15 \
     FROM moved";

/// The same for one that changes the status or the model, brings its own time, or has no lease.
const STATEMENT: &str = "WITH moved AS (UPDATE stepwell.heads SET version = version + 1, \
     unindexed = true, bytes = bytes + $6, seq = $7, updated = $8, status = $9, cost = $10, \
     steps = $11, chain = $12, sum = $13, model = $14, lane = $15, head = $16 \
     WHERE session = $1 AND version = $3 AND seq = $4 AND ($5::bigint IS NULL OR fence = $5) \
     AND chain = $25 \
     RETURNING bytes), \
     said AS (INSERT INTO stepwell.events (session, seq, namespace, at, version, spilled, kind, \
     chain, id, mark, key, body) SELECT $1, $7, $2, $17, $18, $19, $20, $12, $21, $22, $23, $24 \
     FROM moved) \
     SELECT bytes, clock_timestamp() FROM moved";

/// Sends it. An error of the kind [`Trouble::Lost`] leaves open whether it was kept.
pub(crate) fn send(
    link: &Link,
    conn: &Conn,
    namespace: i32,
    (order, event): (&Order, &Entry),
) -> Result<Sent, Trouble> {
    match order.epoch {
        Some(epoch) if order.is_steady(event) => send_steady(conn, epoch, (order, event)),
        _ => send_any(link, conn, namespace, (order, event)),
    }
}

fn send_steady(
    conn: &Conn,
    epoch: Epoch,
    (order, event): (&Order, &Entry),
) -> Result<Sent, Trouble> {
    let (head, row) = (&order.columns, &event.row);
    let id = row.id.as_ref().map(|id| id.as_bytes().as_slice());
    debug_assert_eq!((number(row.seq), &row.chain.as_bytes()[..]), (head.seq, &head.chain[..]));
    let params: [Param<'_>; 16] = [
        (&order.known.row.key, Type::INT8),
        (&order.known.version, Type::INT8),
        (&signed(epoch.get()), Type::INT8),
        (&head.updated, Type::INT8),
        (&head.cost, Type::INT8),
        (&head.steps, Type::INT8),
        (&head.chain.as_slice(), Type::BYTEA),
        (&head.sum.as_slice(), Type::BYTEA),
        (&head.lane, Type::BYTEA),
        (&head.head, Type::BYTEA),
        (&row.kind.as_bytes(), Type::BYTEA),
        (&id, Type::BYTEA),
        (&order.mark.as_ref().map(<[u8; 16]>::as_slice), Type::BYTEA),
        (&event.key.as_ref().map(String::as_bytes), Type::BYTEA),
        (&&*row.body, Type::BYTEA),
        (&order.known.row.chain.as_bytes().as_slice(), Type::BYTEA),
    ];
    match conn.execute_hot(STEADY, &params)? {
        0 => Ok(Sent::Stale),
        _ => Ok(Sent::Done(signed(order.bytes()))),
    }
}

fn send_any(
    link: &Link,
    conn: &Conn,
    namespace: i32,
    (order, event): (&Order, &Entry),
) -> Result<Sent, Trouble> {
    let (head, row) = (&order.columns, &event.row);
    let id = row.id.as_ref().map(|id| id.as_bytes().as_slice());
    debug_assert_eq!((number(row.seq), &row.chain.as_bytes()[..]), (head.seq, &head.chain[..]));
    let params: [Param<'_>; 25] = [
        (&order.known.row.key, Type::INT8),
        (&namespace, Type::INT4),
        (&order.known.version, Type::INT8),
        (&number(order.known.row.head.seq), Type::INT8),
        (&order.fence(), Type::INT8),
        (&signed(order.draft.bytes), Type::INT8),
        (&head.seq, Type::INT8),
        (&head.updated, Type::INT8),
        (&head.status, Type::TEXT),
        (&head.cost, Type::INT8),
        (&head.steps, Type::INT8),
        (&head.chain.as_slice(), Type::BYTEA),
        (&head.sum.as_slice(), Type::BYTEA),
        (&order.model(), Type::BYTEA),
        (&head.lane, Type::BYTEA),
        (&head.head, Type::BYTEA),
        (&row.at.as_micros(), Type::INT8),
        (&version_column(row), Type::INT4),
        (&row.spilled, Type::BOOL),
        (&row.kind.as_bytes(), Type::BYTEA),
        (&id, Type::BYTEA),
        (&order.mark.as_ref().map(<[u8; 16]>::as_slice), Type::BYTEA),
        (&event.key.as_ref().map(String::as_bytes), Type::BYTEA),
        (&&*row.body, Type::BYTEA),
        (&order.known.row.chain.as_bytes().as_slice(), Type::BYTEA),
    ];
    let answer = conn.query_hot(STATEMENT, &params)?;
    let Some(answer) = answer.first() else { return Ok(Sent::Stale) };
    link.time.told(answer.get(1));
    Ok(Sent::Done(answer.get(0)))
}
