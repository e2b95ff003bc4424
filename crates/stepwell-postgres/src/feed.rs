//! What changed in the whole store, by the transactions that changed it.
//!
//! Numbers of transactions are not in the order of their commits, so a cursor is not a number but
//! a snapshot: which transactions had ended. A change is new if its transaction had not. That
//! holds for one that began long ago and commits now, and nobody waits for one that goes on.

use stepwell::backend::TxnContext;
use stepwell::backend::changes::{HeldLease, Position, ended, in_order};
use stepwell::model::{Epoch, Time};
use stepwell::store::LeaseInfo;
use stepwell::store::changes::{ChangeCursor, ChangeKind, Changes, SessionChange};
use stepwell::{Result, SessionId};

use crate::rows::{PgRows, seq};
use crate::transport::params;

/// How many purged sessions a namespace remembers. A reader that was away for longer lists anew.
const REMEMBERED: i64 = 10_000;

/// Which database this is, and which of its lives. Transactions are numbered anew in another
/// cluster, and again from an earlier number on another timeline; a dump that was restored into
/// the same database lies in another file, and the numbers in it are those of its origin.
const STORE: &str = "SELECT 'postgres-' || (SELECT system_identifier FROM pg_control_system()) \
     || '-' || (SELECT oid FROM pg_database WHERE datname = current_database()) \
     || '-' || coalesce(pg_relation_filenode('stepwell.heads'), 0) || '-' || \
     CASE WHEN pg_is_in_recovery() \
     THEN (SELECT lpad(upper(to_hex(timeline_id)), 8, '0') FROM pg_control_checkpoint()) \
     ELSE substr(pg_walfile_name(pg_current_wal_lsn()), 1, 8) END AS store";

/// The transactions that had ended. On a standby the list of those that go on is not told:
/// there only those below the oldest of them count.
const SNAPSHOT: &str = "SELECT CASE WHEN pg_is_in_recovery() \
     THEN pg_snapshot_xmin(pg_current_snapshot()) || ':' || \
     pg_snapshot_xmin(pg_current_snapshot()) || ':' \
     ELSE pg_current_snapshot()::text END AS snapshot";

/// What changed since a cursor; without one, nothing but where the store is now. One statement,
/// so that all of it is of one moment.
pub(crate) fn since(
    rows: &PgRows<'_>,
    context: TxnContext<'_>,
    after: Option<&ChangeCursor>,
) -> Result<Changes> {
    let known = after.map(ChangeCursor::position);
    let seen = known.map(|known| known.change.as_str()).filter(|text| is_snapshot(text));
    let at = known.map_or(context.now, |known| known.at.min(context.now));
    let new = |change: &str| {
        format!(
            "{change} >= pg_snapshot_xmin($2::text::pg_snapshot) \
             AND NOT pg_visible_in_snapshot({change}, $2::text::pg_snapshot) \
             AND pg_visible_in_snapshot({change}, here.snapshot::pg_snapshot)"
        )
    };
    let sql = format!(
        "WITH here AS MATERIALIZED (SELECT * FROM ({STORE}) a, ({SNAPSHOT}) b) \
         SELECT 0, store || ' ' || snapshot, 0::bigint, false, 0::bigint, 0::bigint, ''::bytea, \
         0::bigint FROM here \
         UNION ALL SELECT 1, r.id, 0, false, 0, 0, '', 0 FROM stepwell.removed r, here \
         WHERE r.namespace = $1 AND {} \
         UNION ALL SELECT 2, s.id, h.seq, h.trashed IS NOT NULL, 0, 0, '', 0 \
         FROM here, stepwell.heads h JOIN stepwell.sessions s \
         ON s.namespace = h.namespace AND s.key = h.session \
         WHERE h.namespace = $1 AND {} \
         UNION ALL SELECT 3, s.id, h.seq, h.trashed IS NOT NULL, h.session, l.epoch, l.holder, \
         l.expires FROM stepwell.leases l \
         JOIN stepwell.heads h ON h.namespace = l.namespace AND h.session = l.session \
         JOIN stepwell.sessions s ON s.namespace = l.namespace AND s.key = l.session \
         WHERE l.namespace = $1 AND l.holder IS NOT NULL AND l.expires > $3",
        new("r.change"),
        new("h.change")
    );
    let params = params![rows.namespace => INT4, seen => TEXT, at.as_micros() => INT8];
    let mut found = Found::default();
    for row in rows.all(&sql, params)? {
        found.add(rows, &row)?;
    }
    let (store, change) = found.here.split_once(' ').unwrap_or_default();
    let (store, change) = (store.to_owned(), change.to_owned());
    let now = Position { store, change, at: context.now, gone: Vec::new() };
    let same = known.is_some_and(|known| known.store == now.store) && seen.is_some();
    let gap = known.is_some() && (!same || found.forgotten);
    let since = known.filter(|_| !gap).unwrap_or(&now);
    let (ended, gone) = ended(found.leases, since, context);
    let changes = if gap || known.is_none() {
        Vec::new()
    } else {
        found.updated.extend(ended);
        in_order(found.removed, found.updated)
    };
    Ok(Changes { changes, cursor: Position { gone, ..now }.into(), gap })
}

/// What the statement answers, by what each row is.
#[derive(Default)]
struct Found {
    here: String,
    removed: Vec<SessionId>,
    /// Purged sessions are not remembered so far back.
    forgotten: bool,
    updated: Vec<SessionChange>,
    leases: Vec<HeldLease>,
}

impl Found {
    fn add(&mut self, rows: &PgRows<'_>, row: &tokio_postgres::Row) -> Result<()> {
        let (what, id): (i32, &str) = (rows.get(row, 0)?, rows.get(row, 1)?);
        if what == 0 {
            self.here = id.to_owned();
            return Ok(());
        }
        let Ok(session) = id.parse::<SessionId>() else {
            self.forgotten |= what == 1;
            return Ok(());
        };
        if what == 1 {
            self.removed.push(session);
            return Ok(());
        }
        let updated = ChangeKind::Updated { seq: seq(rows.get(row, 2)?) };
        let kind = if rows.get(row, 3)? { ChangeKind::Trashed } else { updated };
        let change = SessionChange { session, kind };
        if what == 2 {
            self.updated.push(change);
        } else if let Ok(holder) = serde_json::from_slice(rows.get(row, 6)?) {
            let epoch = Epoch::new(rows.get::<i64>(row, 5)?.unsigned_abs());
            let expires = Time::from_micros(rows.get(row, 7)?);
            let held = LeaseInfo { epoch, holder, expires, login: None };
            self.leases.push(HeldLease { key: rows.get(row, 4)?, change, held });
        }
        Ok(())
    }
}

/// Is this a snapshot as servers write them: `10:20:10,14,15`?
fn is_snapshot(text: &str) -> bool {
    let mut parts = text.split(':');
    let number = |text: &str| text.parse::<u64>().is_ok();
    let (Some(low), Some(high), Some(open), None) =
        (parts.next(), parts.next(), parts.next(), parts.next())
    else {
        return false;
    };
    number(low) && number(high) && (open.is_empty() || open.split(',').all(number))
}

/// Forgets the oldest purged sessions, where there are many. An empty name says up to where.
pub(crate) fn forget_removed(rows: &PgRows<'_>) -> Result<()> {
    rows.run(
        "WITH oldest AS (SELECT change FROM stepwell.removed WHERE namespace = $1 \
         ORDER BY change DESC LIMIT 1 OFFSET $2), \
         gone AS (DELETE FROM stepwell.removed r USING oldest \
         WHERE r.namespace = $1 AND r.change <= oldest.change) \
         INSERT INTO stepwell.removed (namespace, change, id) SELECT $1, change, '' FROM oldest",
        params![rows.namespace => INT4, REMEMBERED => INT8],
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_snapshot_is_known_by_its_form() {
        for text in ["10:10:", "10:20:10", "10:20:10,14,15"] {
            assert!(is_snapshot(text), "{text}");
        }
        for text in ["", "10", "10:20", "a:20:", "10:20:x", "10:20:10,", "1:2:3:4", "-1:2:"] {
            assert!(!is_snapshot(text), "{text}");
        }
    }
}
