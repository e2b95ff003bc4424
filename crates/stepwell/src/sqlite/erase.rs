//! Erasing a session's rows, and what stays of it: its newest epoch.

use rusqlite::params;

use super::blob;
use super::schema::NEXT_CHANGE;
use super::sql::{SqliteRows, pos};
use crate::error::Result;
use crate::model::{Epoch, Seq, SessionId};
use crate::store::rows::{Key, LeaseRow, Rows as _};

/// Erases a session. Another one of the same id goes on with its epochs: a runner that slept
/// through all of this must not hold the lease of that one.
pub(super) fn erase(rows: &SqliteRows<'_>, key: Key) -> Result<()> {
    let (from, to) = (pos(key, Seq::ZERO), pos(key, Seq::MAX));
    super::search::forget(rows, from, to)?;
    blob::detach(rows, from, to)?;
    rows.run("DELETE FROM events WHERE pos BETWEEN ?1 AND ?2", [from, to])?;
    rows.drop_snapshots(key)?;
    rows.run("DELETE FROM lanes WHERE session = ?1", [key])?;
    rows.run(
        "INSERT INTO epochs (id, epoch) SELECT s.id, l.epoch FROM sessions s \
         JOIN leases l ON l.session = s.key WHERE s.key = ?1 \
         ON CONFLICT (id) DO UPDATE SET epoch = excluded.epoch",
        [key],
    )?;
    rows.run("DELETE FROM leases WHERE session = ?1", [key])?;
    let removed = format!(
        "INSERT INTO removed (change, id) SELECT {NEXT_CHANGE}, id FROM sessions WHERE key = ?1"
    );
    rows.run(&removed, [key])?;
    rows.run("DELETE FROM sessions WHERE key = ?1", [key])?;
    Ok(())
}

/// Lets a new session go on with the epochs of the one that bore its id before.
pub(super) fn go_on_with_epochs(
    rows: &SqliteRows<'_>,
    key: Key,
    id: &SessionId,
) -> Result<Option<Epoch>> {
    let sql = "SELECT epoch FROM epochs WHERE id = ?1";
    let last: Option<u64> = rows.one(sql, params![id.as_str()], |row| row.get(0))?;
    let last = last.map(Epoch::new);
    if let Some(epoch) = last {
        rows.put_lease(key, &LeaseRow { epoch, held: None, login: None })?;
    }
    Ok(last)
}
