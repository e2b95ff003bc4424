//! The append that is made all the time, as nearly every step of a run is: one event, and nothing
//! that goes with it. Another program's records come without a lease; that nobody holds one is
//! known from the head's version, which a lease that is taken or given back moves on.
//!
//! Its statement is the same text each time, and has values in place of lists: of a list the
//! server cannot tell how long it will be, and would plan the statement anew for each. Each
//! value costs both sides, so what the head already says is not sent again.

use tokio_postgres::types::Type;

use crate::draft::Entry;
use crate::fault::DbError;
use crate::order::{Order, Sent};
use crate::rows::{number, signed};
use crate::transport::{Conn, Param};

/// That the head is of this version says that its seq is known, too; the event goes where the
/// head then points. Its chain says that it is the same session: a server that was put back
/// to an earlier time gives keys and versions again.
const STATEMENT: &str = "WITH moved AS (UPDATE stepwell.heads SET version = version + 1, \
     change = pg_current_xact_id(), seq = seq + 1, bytes = bytes + length($15), unindexed = true, updated = $4, cost = $5, \
     steps = $6, chain = $7, sum = $8, lane = $9, head = $10 \
     WHERE namespace = $17 AND session = $1 AND version = $2 AND fence = coalesce($3, fence) \
     AND chain = $16 RETURNING seq) \
     INSERT INTO stepwell.events (session, seq, namespace, at, version, spilled, kind, chain, id, \
     mark, key, body) SELECT $1, seq, $17, $4, 1, false, $11, $7, $12, $13, $14, $15 \
     FROM moved";

/// Sends it, if the append is one. An error of the kind [`DbError::Lost`] leaves open whether
/// it was kept.
pub(crate) fn send(conn: &Conn, namespace: i32, order: &Order) -> Option<Result<Sent, DbError>> {
    let event = order.only_event()?;
    Some(write(conn, namespace, order, event))
}

fn write(conn: &Conn, namespace: i32, order: &Order, event: &Entry) -> Result<Sent, DbError> {
    let (head, row) = (&order.columns, &event.row);
    let id = row.id.as_ref().map(|id| id.as_bytes().as_slice());
    debug_assert_eq!((number(row.seq), row.chain), (head.seq, head.chain));
    let params: [Param<'_>; 17] = [
        (&order.known.row.key, Type::INT8),
        (&order.known.version, Type::INT8),
        (&order.fence(), Type::INT8),
        (&head.updated, Type::INT8),
        (&head.cost, Type::INT8),
        (&head.steps, Type::INT8),
        (&head.chain.as_bytes().as_slice(), Type::BYTEA),
        (&head.sum.as_slice(), Type::BYTEA),
        (&head.lane, Type::BYTEA),
        (&head.head, Type::BYTEA),
        (&row.kind.as_bytes(), Type::BYTEA),
        (&id, Type::BYTEA),
        (&order.mark.as_ref().map(<[u8; 16]>::as_slice), Type::BYTEA),
        (&row.key.as_deref().map(str::as_bytes), Type::BYTEA),
        (&&*row.body, Type::BYTEA),
        (&order.known.row.chain.as_bytes().as_slice(), Type::BYTEA),
        (&namespace, Type::INT4),
    ];
    match conn.execute_hot(STATEMENT, &params)? {
        0 => Ok(Sent::Stale),
        _ => Ok(Sent::Done(signed(order.bytes()))),
    }
}
