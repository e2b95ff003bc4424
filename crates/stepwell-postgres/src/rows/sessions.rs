//! A session's rows: what seldom changes of it, its head, its lease.

use stepwell::backend::{Base, Inserted, Key, LeaseRow, SessionRow, head_sum, stand_in};
use stepwell::log::Head;
use stepwell::model::{Digest, Driver, Epoch, Money, Origin, Owner, Time};
use stepwell::store::Damage;
use stepwell::{Result, SessionId};

use super::pg_rows::{Lock, PgRows, json, number, seq};
use crate::transport::{Param, Statement, params};

/// The columns that make up a session's row, in the order that [`read_session`] expects.
pub(crate) const SESSION_COLUMNS: &str = "s.key, s.id, h.head, h.chain, h.sum, s.base_key, \
     s.base_at, h.trashed, h.damage_at, h.damage, h.bytes, s.created, h.updated, h.seq, h.lane, \
     l.epoch, l.holder, l.expires, h.version, l.login";

/// How many they are.
pub(crate) const SESSION_WIDTH: usize = 20;

/// Where they come from.
pub(crate) const SESSION_TABLES: &str = "stepwell.heads h JOIN stepwell.sessions s \
     ON s.namespace = h.namespace AND s.key = h.session LEFT JOIN stepwell.leases l \
     ON l.namespace = h.namespace AND l.session = h.session";

/// A session's row with what only this store keeps of it.
pub(crate) struct Wide {
    pub(crate) row: SessionRow,
    pub(crate) version: i64,
}

/// Reads a session's row. A head that cannot be read is answered by a stand-in and the
/// damage, so that one broken row hides neither itself nor others.
pub(crate) fn read_session(rows: &PgRows<'_>, row: &tokio_postgres::Row) -> Result<Wide> {
    let id: &str = rows.get(row, 1)?;
    let text: &[u8] = rows.get(row, 2)?;
    let chain = digest(rows.get(row, 3)?);
    let stored: &[u8] = rows.get(row, 4)?;
    let intact = head_sum(text, &chain) == *stored;
    let head: Option<Head> = if intact { serde_json::from_slice(text).ok() } else { None };
    let base = match (rows.get(row, 5)?, rows.get::<Option<i64>>(row, 6)?) {
        (Some(key), Some(at)) => Some(Base { key, at: seq(at) }),
        _ => None,
    };
    let damage = match rows.get::<Option<i64>>(row, 8)? {
        Some(at) => {
            let what: Option<&[u8]> = rows.get(row, 9)?;
            let what = String::from_utf8_lossy(what.unwrap_or_default()).into_owned();
            Some(Damage { seq: seq(at), what })
        }
        None if head.is_none() => {
            let what = "its head does not match its checksum".to_owned();
            Some(Damage { seq: stepwell::Seq::ZERO, what })
        }
        None => None,
    };
    let created = Time::from_micros(rows.get(row, 11)?);
    let updated = Time::from_micros(rows.get(row, 12)?);
    let last = seq(rows.get(row, 13)?);
    let head = head.unwrap_or_else(|| Head { seq: last, ..stand_in(id, created, updated) });
    let lane: Option<&[u8]> = rows.get(row, 14)?;
    let row_of = SessionRow {
        key: rows.get(row, 0)?,
        head,
        chain,
        base,
        trashed_at: rows.get::<Option<i64>>(row, 7)?.map(Time::from_micros),
        damage,
        bytes: rows.get::<i64>(row, 10)?.unsigned_abs(),
        lane: lane.and_then(|text| serde_json::from_slice(text).ok()),
        lease: read_lease(rows, row)?,
    };
    Ok(Wide { row: row_of, version: rows.get(row, 18)? })
}

fn read_lease(rows: &PgRows<'_>, row: &tokio_postgres::Row) -> Result<Option<LeaseRow>> {
    let Some(epoch) = rows.get::<Option<i64>>(row, 15)? else { return Ok(None) };
    let holder: Option<&[u8]> = rows.get(row, 16)?;
    let holder: Option<Owner> = holder.and_then(|text| serde_json::from_slice(text).ok());
    let expires: Option<i64> = rows.get(row, 17)?;
    let held = holder.zip(expires.map(Time::from_micros));
    let login = rows.get(row, 19)?;
    Ok(Some(LeaseRow { epoch: Epoch::new(epoch.unsigned_abs()), held, login }))
}

/// A digest from a column; one of another length fails every check.
pub(crate) fn digest(bytes: &[u8]) -> Digest {
    Digest::from_slice(bytes).unwrap_or(Digest::from_bytes([0xff; 32]))
}

/// A cost as a column that sorts. Past nine million dollars they sort as equal.
pub(crate) fn cost_column(cost: Money) -> i64 {
    i64::try_from(cost.as_picos()).unwrap_or(i64::MAX)
}

/// The columns of a session that seldom change, as lists filter by them.
struct Cold {
    label: Option<Vec<u8>>,
    tags: Vec<Vec<u8>>,
    /// In lower case.
    task: Vec<u8>,
    agent: Vec<u8>,
    workspace: Vec<u8>,
    /// Does a move of its files go on?
    rewinding: bool,
    system: Option<Vec<u8>>,
    scope: Option<Vec<u8>>,
    base: Option<(i64, i64)>,
}

impl Cold {
    fn of(row: &SessionRow) -> Self {
        let head = &row.head;
        Self {
            label: head.label.as_ref().map(|label| label.as_bytes().to_vec()),
            tags: head.tags.iter().map(|tag| tag.as_bytes().to_vec()).collect(),
            task: head.task.to_lowercase().into_bytes(),
            agent: head.agent.as_bytes().to_vec(),
            workspace: head.workspace.as_bytes().to_vec(),
            rewinding: head.rewinding.is_some(),
            system: head.system().map(|system| system.as_bytes().to_vec()),
            scope: head.scope.as_ref().map(|scope| scope.as_bytes().to_vec()),
            base: row.base.map(|base| (base.key, number(base.at))),
        }
    }
}

/// Are the columns that seldom change the same in both rows?
pub(crate) fn same_cold(one: &SessionRow, other: &SessionRow) -> bool {
    let (a, b) = (&one.head, &other.head);
    one.base == other.base
        && a.label == b.label
        && a.tags == b.tags
        && a.task == b.task
        && a.agent == b.agent
        && a.workspace == b.workspace
        && a.rewinding.is_some() == b.rewinding.is_some()
        && a.system() == b.system()
        && a.scope == b.scope
}

impl PgRows<'_> {
    pub(super) fn find_session(
        &self,
        condition: &str,
        params: &[Param<'_>],
    ) -> Result<Option<SessionRow>> {
        Ok(self.find_sessions(condition, params)?.pop())
    }

    pub(super) fn find_sessions(
        &self,
        condition: &str,
        params: &[Param<'_>],
    ) -> Result<Vec<SessionRow>> {
        let read = format!("SELECT {SESSION_COLUMNS} FROM {SESSION_TABLES} WHERE {condition}");
        let found = match self.lock {
            Lock::None => self.all(&read, params)?,
            // The lock comes first: what is read after it is what nobody changes any more. Locks are
            // taken in one order, so that two that want the same do not wait for each other.
            Lock::Held => {
                let lock = format!(
                    "SELECT h.session FROM stepwell.heads h JOIN stepwell.sessions s \
                     ON s.namespace = h.namespace AND s.key = h.session \
                     WHERE {condition} ORDER BY h.session FOR UPDATE OF h"
                );
                let both = self
                    .conn
                    .query_both(Statement { sql: &lock, params }, Statement { sql: &read, params });
                both.map_err(|trouble| self.fault(trouble))?.1
            }
        };
        let mut versions = self.versions.borrow_mut();
        let read = |row| {
            let Wide { row, version } = read_session(self, row)?;
            versions.insert(row.key, version);
            Ok(row)
        };
        found.iter().map(read).collect()
    }

    pub(super) fn add_session(&self, row: &SessionRow) -> Result<Inserted> {
        let head = &row.head;
        let cold = Cold::of(row);
        let (base_key, base_at) = cold.base.unzip();
        let born = self.one(
            "INSERT INTO stepwell.sessions (namespace, id, parent, subagent, external, created, \
             base_key, base_at, label, tags, task, agent, workspace, rewinding, system, scope) \
             VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16) \
             RETURNING key",
            params![
                self.namespace => INT4,
                head.id.as_str() => TEXT,
                head.origin.parent().map(SessionId::as_str) => TEXT,
                matches!(head.origin, Origin::Subagent { .. }) => BOOL,
                (head.driver == Driver::External) => BOOL,
                head.created_at.as_micros() => INT8,
                base_key => INT8,
                base_at => INT8,
                cold.label => BYTEA,
                cold.tags => BYTEA_ARRAY,
                cold.task => BYTEA,
                cold.agent => BYTEA,
                cold.workspace => BYTEA,
                cold.rewinding => BOOL,
                cold.system => BYTEA,
                cold.scope => BYTEA,
            ],
        )?;
        let key: Key = match &born {
            Some(row) => self.get(row, 0)?,
            None => 0,
        };
        let text = json(head);
        // Apart from the statement before: a team's rows are checked against its session's, and the
        // server has noted by now which epoch its leases go on from.
        let noted = self.one(
            "WITH noted AS (INSERT INTO stepwell.indexed (session, namespace, seq) \
             VALUES ($1, $2, $13)) \
             INSERT INTO stepwell.heads (session, namespace, version, seq, fence, updated, status, \
             cost, steps, bytes, unindexed, chain, sum, model, lane, head) \
             VALUES ($1, $2, 1, $3, 0, $4, $5, $6, $7, $8, true, $9, $10, $11, NULL, $12) \
             RETURNING (SELECT epoch FROM stepwell.leases WHERE namespace = $2 AND session = $1)",
            params![
                key => INT8,
                self.namespace => INT4,
                number(head.seq) => INT8,
                head.updated_at.as_micros() => INT8,
                head.status.as_str() => TEXT,
                cost_column(head.spent.cost) => INT8,
                signed(head.steps) => INT8,
                signed(row.bytes) => INT8,
                row.chain.as_bytes().as_slice() => BYTEA,
                head_sum(&text, &row.chain).as_slice() => BYTEA,
                head.model.as_bytes() => BYTEA,
                text => BYTEA,
                base_at.unwrap_or(0) => INT8,
            ],
        )?;
        self.versions.borrow_mut().insert(key, 1);
        let last: Option<i64> = noted.map_or(Ok(None), |row| self.get(&row, 0))?;
        Ok(Inserted { key, last_epoch: last.map(|epoch| Epoch::new(epoch.unsigned_abs())) })
    }

    pub(super) fn put_session(&self, row: &SessionRow) -> Result<()> {
        let head = &row.head;
        let text = json(head);
        let (damage_at, damage) =
            row.damage.as_ref().map(|d| (number(d.seq), d.what.as_bytes())).unzip();
        let updated = self.one(
            "UPDATE stepwell.heads SET version = version + 1, seq = $2, updated = $3, status = $4, \
             cost = $5, steps = $6, bytes = $7, trashed = $8, damage_at = $9, damage = $10, \
             unindexed = true, chain = $11, sum = $12, model = $13, lane = $14, head = $15, \
             change = pg_current_xact_id() WHERE namespace = $16 AND session = $1 \
             RETURNING version",
            params![
                row.key => INT8,
                number(head.seq) => INT8,
                head.updated_at.as_micros() => INT8,
                head.status.as_str() => TEXT,
                cost_column(head.spent.cost) => INT8,
                signed(head.steps) => INT8,
                signed(row.bytes) => INT8,
                row.trashed_at.map(Time::as_micros) => INT8,
                damage_at => INT8,
                damage => BYTEA,
                row.chain.as_bytes().as_slice() => BYTEA,
                head_sum(&text, &row.chain).as_slice() => BYTEA,
                head.model.as_bytes() => BYTEA,
                row.lane.as_ref().map(json) => BYTEA,
                text => BYTEA,
                self.namespace => INT4,
            ],
        )?;
        if let Some(updated) = updated {
            self.versions.borrow_mut().insert(row.key, self.get(&updated, 0)?);
            self.written.borrow_mut().insert(head.id.clone(), row.clone());
        }
        let cold = Cold::of(row);
        let (base_key, base_at) = cold.base.unzip();
        self.run(
            "UPDATE stepwell.sessions SET base_key = $2, base_at = $3, label = $4, tags = $5, \
             task = $6, agent = $7, workspace = $8, rewinding = $9, system = $10, scope = $11 \
             WHERE namespace = $12 AND key = $1 AND (base_key, base_at, label, tags, task, agent, workspace, \
             rewinding, system, scope) \
             IS DISTINCT FROM ($2, $3, $4, $5, $6, $7, $8, $9, $10, $11)",
            params![
                row.key => INT8,
                base_key => INT8,
                base_at => INT8,
                cold.label => BYTEA,
                cold.tags => BYTEA_ARRAY,
                cold.task => BYTEA,
                cold.agent => BYTEA,
                cold.workspace => BYTEA,
                cold.rewinding => BOOL,
                cold.system => BYTEA,
                cold.scope => BYTEA,
                self.namespace => INT4,
            ],
        )
    }

    /// Notes damage without touching the head, which may be what is damaged.
    pub(crate) fn mark_damaged(&self, row: &SessionRow) -> Result<()> {
        let (seq, what) = row.damage.as_ref().map(|d| (number(d.seq), d.what.as_bytes())).unzip();
        self.changed(row.key);
        self.run(
            "UPDATE stepwell.heads SET damage_at = $2, damage = $3, version = version + 1, \
             change = pg_current_xact_id() WHERE namespace = $4 AND session = $1",
            params![row.key => INT8, seq => INT8, what => BYTEA, self.namespace => INT4],
        )
    }

    /// Writes a lease, and beside the head the epoch that appends are held against.
    pub(super) fn write_lease(&self, key: Key, lease: &LeaseRow) -> Result<()> {
        let epoch = signed(lease.epoch.get());
        let fence = if lease.held.is_some() { epoch } else { 0 };
        // Whoever follows the store learns of another holder, or of one that came back after its
        // lease had run out, and not of every renewal.
        let fenced = self.one(
            "UPDATE stepwell.heads SET fence = $2, version = version + 1, \
             change = pg_current_xact_id() WHERE namespace = $4 AND session = $1 \
             AND (fence <> $2 OR EXISTS (SELECT 1 FROM stepwell.leases l WHERE l.namespace = $4 \
             AND l.session = $1 AND l.holder IS NOT NULL AND l.expires <= $3)) RETURNING version",
            params![
                key => INT8, fence => INT8, self.now.as_micros() => INT8, self.namespace => INT4,
            ],
        )?;
        self.run(
            "INSERT INTO stepwell.leases (session, namespace, epoch, holder, expires) \
             VALUES ($1, $2, $3, $4, $5) ON CONFLICT (namespace, session) DO UPDATE \
             SET epoch = excluded.epoch, holder = excluded.holder, expires = excluded.expires",
            params![
                key => INT8,
                self.namespace => INT4,
                epoch => INT8,
                lease.held.as_ref().map(|(holder, _)| json(holder)) => BYTEA,
                lease.held.as_ref().map(|(_, expires)| expires.as_micros()) => INT8,
            ],
        )?;
        if let Some(fenced) = fenced {
            self.versions.borrow_mut().insert(key, self.get(&fenced, 0)?);
        }
        let mut written = self.written.borrow_mut();
        if let Some(row) = written.values_mut().find(|row| row.key == key) {
            row.lease = Some(lease.clone());
        }
        Ok(())
    }

    /// Keeps the row of a session that was read, as if it had been written.
    pub(crate) fn keep(&self, row: SessionRow) {
        self.written.borrow_mut().insert(row.head.id.clone(), row);
    }
}

/// A count as a column.
pub(crate) fn signed(n: u64) -> i64 {
    i64::try_from(n).unwrap_or(i64::MAX)
}
