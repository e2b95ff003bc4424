//! [`Rows`] over SQLite.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::ControlFlow;
use std::sync::LazyLock;

use rusqlite::params;
use rusqlite::types::{ToSqlOutput, ValueRef};

use super::blob;
use super::schema::NEXT_CHANGE;
use super::sql::{SqliteRows, pos, seq_of};
use crate::error::Result;
use crate::failpoint::failpoint;
use crate::log::codec::{Login, OwnRow, Row, Sealed};
use crate::log::{Head, LaneState, State};
use crate::model::{
    Digest, Driver, Epoch, EventId, Lane, Money, Origin, Owner, Seq, SessionId, Time,
};
use crate::store::query::RecordQuery;
use crate::store::rows::{Base, Key, LeaseRow, Rows, SessionRow, Stretch, head_sum, stand_in};
use crate::store::{Damage, Facts, Order};

/// The columns of a [`SessionRow`], in the order that [`read_session`] expects.
pub(super) const SESSION_COLUMNS: &str = "s.key, s.id, s.head, s.chain, s.sum, s.base_key, \
     s.base_at, s.trashed, s.damage_at, s.damage, s.bytes, s.created, s.updated, s.seq, s.lane, \
     l.epoch, l.holder, l.expires";

/// The tables of these columns.
pub(super) const SESSION_TABLES: &str = "sessions s LEFT JOIN leases l ON l.session = s.key";

impl SqliteRows<'_> {
    /// Stores damage without writing the head, which may be the damaged part.
    pub(super) fn mark_damaged(&self, row: &SessionRow) -> Result<()> {
        let (seq, what) = row.damage.as_ref().map(|d| (d.seq.get(), &d.what)).unzip();
        let sql = format!(
            "UPDATE sessions SET damage_at = ?2, damage = ?3, change = {NEXT_CHANGE} WHERE key = ?1"
        );
        self.run(&sql, params![row.key, seq, what])?;
        Ok(())
    }
}

/// Reads a session's row. For an unreadable head it returns a placeholder with the damage, so that
/// one broken row hides neither itself nor others.
pub(super) fn read_session(row: &rusqlite::Row<'_>) -> rusqlite::Result<SessionRow> {
    let id: String = row.get(1)?;
    let text = row.get_ref(2)?.as_bytes_or_null()?.unwrap_or_default();
    let chain = digest_column(row, 3)?;
    let stored: Vec<u8> = row.get(4)?;
    let text = std::str::from_utf8(text).unwrap_or_default();
    let intact = head_sum(text.as_bytes(), &chain) == *stored;
    let head: Option<Head> = if intact { serde_json::from_str(text).ok() } else { None };
    let base = match (row.get(5)?, row.get::<_, Option<u64>>(6)?) {
        (Some(key), Some(at)) => Some(Base { key, at: Seq::new(at) }),
        _ => None,
    };
    let damage = match row.get::<_, Option<u64>>(8)? {
        Some(at) => Some(Damage { seq: Seq::new(at), what: row.get(9)? }),
        None if head.is_none() => {
            let what = "its head does not match its checksum".to_owned();
            Some(Damage { seq: Seq::ZERO, what })
        }
        None => None,
    };
    let (created, updated) = (Time::from_micros(row.get(11)?), Time::from_micros(row.get(12)?));
    let seq = Seq::new(row.get(13)?);
    let head = head.unwrap_or_else(|| Head { seq, ..stand_in(&id, created, updated) });
    let trashed_at = row.get::<_, Option<i64>>(7)?.map(Time::from_micros);
    let lane: Option<String> = row.get(14)?;
    let lane = lane.and_then(|text| serde_json::from_str(&text).ok());
    let lease = read_lease(row)?;
    let (key, bytes) = (row.get(0)?, row.get(10)?);
    Ok(SessionRow { key, head, chain, base, trashed_at, damage, bytes, lane, lease })
}

/// Reads an event's row. An unreadable column gives a row that fails its check, so that the damage
/// is reported at its seq.
fn read_event<'a>(row: &'a rusqlite::Row<'_>) -> rusqlite::Result<Row<'a>> {
    let seq = seq_of(row.get(0)?);
    Ok(read_event_columns(seq, row).unwrap_or_else(|_| Row {
        seq,
        at: Time::EPOCH,
        id: None,
        kind: "".into(),
        key: None,
        version: 0,
        spilled: false,
        body: Vec::new().into(),
        chain: Digest::GENESIS,
        erased: None,
        login: Login::Unknown,
    }))
}

fn own_event(row: &rusqlite::Row<'_>) -> rusqlite::Result<OwnRow> {
    read_event(row).map(Row::into_owned)
}

fn read_event_columns<'a>(seq: Seq, row: &'a rusqlite::Row<'_>) -> rusqlite::Result<Row<'a>> {
    let id: Option<[u8; 16]> = row.get(5)?;
    Ok(Row {
        seq,
        at: Time::from_micros(row.get(1)?),
        kind: row.get_ref(2)?.as_str()?.into(),
        key: row.get_ref(9)?.as_str_or_null()?.map(Into::into),
        version: row.get(3)?,
        chain: digest_column(row, 4)?,
        id: id.map(EventId::from_bytes),
        spilled: row.get(6)?,
        erased: match row.get_ref(7)? {
            ValueRef::Null => None,
            _ => Some(digest_column(row, 7)?),
        },
        body: row.get_ref(8)?.as_bytes()?.into(),
        login: Login::Unknown,
    })
}

/// A digest. A column without one is damage.
fn digest_column(row: &rusqlite::Row<'_>, at: usize) -> rusqlite::Result<Digest> {
    let column = row.get_ref(at)?;
    Digest::from_slice(column.as_blob()?).ok_or_else(|| {
        rusqlite::Error::InvalidColumnType(at, "digest".to_owned(), column.data_type())
    })
}

/// The longest stretch that is read without an index.
const SHORT_STRETCH: u64 = 256;

const EVENT_COLUMNS: &str = "pos, at, kind, version, chain, id, spilled, erased, body, key";

/// The update for nearly every append.
static HOT_UPDATE: LazyLock<String> = LazyLock::new(|| {
    format!(
        "UPDATE sessions SET head = ?2, chain = ?3, sum = ?4, seq = ?5, bytes = ?6, \
         updated = ?7, cost = ?8, steps = ?9, model = ?11, lane = ?15, agent = ?16, \
         workspace = ?17, change = {NEXT_CHANGE} WHERE key = ?1 AND status = ?10 AND \
         label IS ?12 AND unindexed = 1 AND trashed IS ?13 AND damage_at IS ?14 AND \
         system IS ?18 AND scope IS ?19"
    )
});

/// Each session gets a distinct change number: the next one, plus the distance of its key from the
/// first.
static SET_TRASHED: LazyLock<String> = LazyLock::new(|| {
    format!(
        "UPDATE sessions SET trashed = ?2, change = {NEXT_CHANGE} + key - ?3 \
         WHERE key IN (SELECT value FROM json_each(?1))"
    )
});

static SESSION_BY_ID: LazyLock<String> = LazyLock::new(|| session_where("s.id = ?1"));
static SESSION_BY_KEY: LazyLock<String> = LazyLock::new(|| session_where("s.key = ?1"));

fn session_where(condition: &str) -> String {
    format!("SELECT {SESSION_COLUMNS} FROM {SESSION_TABLES} WHERE {condition}")
}

/// A cost as a sortable column. Costs above nine million dollars sort as equal.
fn cost_column(cost: Money) -> i64 {
    i64::try_from(cost.as_picos()).unwrap_or(i64::MAX)
}

fn json<T: serde::Serialize>(value: &T) -> String {
    serde_json::to_string(value).expect("our own types have string keys and finite numbers")
}

impl Rows for SqliteRows<'_> {
    fn session(&self, id: &SessionId) -> Result<Option<SessionRow>> {
        match self.recent.and_then(|recent| recent.take(id)) {
            Some(row) => Ok(Some(row)),
            None => self.one(&SESSION_BY_ID, [id.as_str()], read_session),
        }
    }

    fn session_by_key(&self, key: Key) -> Result<Option<SessionRow>> {
        self.one(&SESSION_BY_KEY, [key], read_session)
    }

    fn insert_session(&self, row: &SessionRow) -> Result<Key> {
        let parent = row.head.origin.parent();
        let subagent = matches!(row.head.origin, Origin::Subagent { .. });
        let head = json(&row.head);
        self.run(
            &format!(
                "INSERT INTO sessions (id, head, chain, sum, seq, base_key, base_at, bytes, \
                 status, external, agent, model, workspace, label, parent, subagent, created, \
                 updated, cost, steps, trashed, damage_at, damage, indexed, unindexed, system, \
                 scope, change) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, \
                 ?14, ?15, ?16, ?17, ?18, ?19, ?20, NULL, NULL, NULL, ?21, 1, ?22, ?23, \
                 {NEXT_CHANGE})"
            ),
            params![
                row.head.id.as_str(),
                head,
                row.chain.as_bytes().as_slice(),
                head_sum(head.as_bytes(), &row.chain),
                row.head.seq.get(),
                row.base.map(|base| base.key),
                row.base.map(|base| base.at.get()),
                row.bytes,
                row.head.status.as_str(),
                row.head.driver == Driver::External,
                row.head.agent,
                row.head.model,
                row.head.workspace,
                row.head.label,
                parent.map(SessionId::as_str),
                subagent,
                row.head.created_at.as_micros(),
                row.head.updated_at.as_micros(),
                cost_column(row.head.spent.cost),
                row.head.steps,
                row.base.map_or(0, |base| base.at.get()),
                row.head.system(),
                row.head.scope,
            ],
        )?;
        Ok(self.conn.last_insert_rowid())
    }

    fn update_session(&self, row: &SessionRow) -> Result<()> {
        let head = json(&row.head);
        let sum = head_sum(head.as_bytes(), &row.chain);
        let lane = row.lane.as_ref().map(json);
        // Most appends change no indexed column but `updated` and `change`. Setting the others
        // would make SQLite rewrite their indexes, a page each.
        let hot = self.run_keeping(
            HOT_UPDATE.as_str(),
            params![
                row.key,
                head,
                row.chain.as_bytes().as_slice(),
                sum,
                row.head.seq.get(),
                row.bytes,
                row.head.updated_at.as_micros(),
                cost_column(row.head.spent.cost),
                row.head.steps,
                row.head.status.as_str(),
                row.head.model,
                row.head.label,
                row.trashed_at.map(Time::as_micros),
                row.damage.as_ref().map(|damage| damage.seq.get()),
                lane,
                row.head.agent,
                row.head.workspace,
                row.head.system(),
                row.head.scope,
            ],
        )?;
        if hot == 1 {
            if let Some(recent) = self.recent {
                recent.keep(row);
            }
            return Ok(());
        }
        self.run(
            &format!(
                "UPDATE sessions SET head = ?2, chain = ?3, sum = ?4, seq = ?5, bytes = ?6, \
                 updated = ?7, cost = ?8, steps = ?9, status = ?10, model = ?11, label = ?12, \
                 trashed = ?13, damage_at = ?14, damage = ?15, base_key = ?16, base_at = ?17, \
                 agent = ?18, workspace = ?19, lane = ?20, system = ?21, scope = ?22, \
                 unindexed = 1, change = {NEXT_CHANGE} WHERE key = ?1"
            ),
            params![
                row.key,
                head,
                row.chain.as_bytes().as_slice(),
                sum,
                row.head.seq.get(),
                row.bytes,
                row.head.updated_at.as_micros(),
                cost_column(row.head.spent.cost),
                row.head.steps,
                row.head.status.as_str(),
                row.head.model,
                row.head.label,
                row.trashed_at.map(Time::as_micros),
                row.damage.as_ref().map(|damage| damage.seq.get()),
                row.damage.as_ref().map(|damage| &damage.what),
                row.base.map(|base| base.key),
                row.base.map(|base| base.at.get()),
                row.head.agent,
                row.head.workspace,
                lane,
                row.head.system(),
                row.head.scope,
            ],
        )?;
        Ok(())
    }

    fn set_trashed(&self, keys: &[Key], when: Time) -> Result<()> {
        let first = keys.iter().min();
        self.run(&SET_TRASHED, params![json(&keys), when.as_micros(), first])?;
        Ok(())
    }

    fn put_lease(&self, key: Key, lease: &LeaseRow) -> Result<()> {
        let holder = lease.held.as_ref().map(|(holder, _)| json(holder));
        // Followers learn of a new holder, or of one that returned after its lease expired, but not
        // of every renewal.
        self.run(
            &format!(
                "UPDATE sessions SET change = {NEXT_CHANGE} WHERE key = ?1 AND NOT EXISTS \
                 (SELECT 1 FROM leases WHERE session = ?1 AND epoch = ?2 AND holder IS ?3 \
                 AND (holder IS NULL OR expires > ?4))"
            ),
            params![key, lease.epoch.get(), holder, self.now.as_micros()],
        )?;
        self.run(
            "INSERT INTO leases (session, epoch, holder, expires) VALUES (?1, ?2, ?3, ?4) \
             ON CONFLICT (session) DO UPDATE SET epoch = ?2, holder = ?3, expires = ?4",
            params![
                key,
                lease.epoch.get(),
                holder,
                lease.held.as_ref().map(|(_, expires)| expires.as_micros()),
            ],
        )?;
        Ok(())
    }

    fn lanes(&self, key: Key) -> Result<BTreeMap<Lane, LaneState>> {
        let sql = "SELECT lane, state FROM lanes WHERE session = ?1";
        let found: Vec<(String, String)> =
            self.all(sql, [key], |row| Ok((row.get(0)?, row.get(1)?)))?;
        let read = |(lane, state): (String, String)| -> Option<(Lane, LaneState)> {
            Some((lane.parse().ok()?, serde_json::from_str(&state).ok()?))
        };
        // An unreadable lane is left out; verification notices.
        Ok(found.into_iter().filter_map(read).collect())
    }

    fn lane(&self, key: Key, lane: &Lane) -> Result<LaneState> {
        let sql = "SELECT state FROM lanes WHERE session = ?1 AND lane = ?2";
        let state: Option<String> = self.one(sql, params![key, lane.as_str()], |row| row.get(0))?;
        Ok(state.and_then(|state| serde_json::from_str(&state).ok()).unwrap_or_default())
    }

    fn put_lane(&self, key: Key, lane: &Lane, state: &LaneState) -> Result<()> {
        self.run(
            "INSERT INTO lanes (session, lane, state) VALUES (?1, ?2, ?3) \
             ON CONFLICT (session, lane) DO UPDATE SET state = ?3",
            params![key, lane.as_str(), json(state)],
        )?;
        Ok(())
    }

    fn insert_event(&self, key: Key, sealed: &Sealed<'_>) -> Result<u64> {
        let row = &sealed.row;
        let pos = pos(key, row.seq);
        self.insert(
            "INSERT INTO events (pos, at, kind, version, chain, id, key, spilled, body) \
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)",
            params![
                pos,
                row.at.as_micros(),
                row.kind,
                row.version,
                row.chain.as_bytes().as_slice(),
                row.id.as_ref().map(|id| id.as_bytes().as_slice()),
                row.key.as_deref(),
                row.spilled,
                body_text(row),
            ],
        )?;
        failpoint("append.after_event");
        Ok(row.body.len() as u64 + blob::attach(self, pos, sealed)?)
    }

    fn replace_event(&self, key: Key, sealed: &Sealed<'_>) -> Result<()> {
        let row = &sealed.row;
        let pos = pos(key, row.seq);
        self.run(
            "UPDATE events SET body = ?2, key = ?3, spilled = ?4, erased = ?5 WHERE pos = ?1",
            params![
                pos,
                body_text(row),
                row.key.as_deref(),
                row.spilled,
                row.erased.as_ref().map(Digest::as_bytes),
            ],
        )?;
        blob::reattach(self, pos, sealed)?;
        super::search::reindex_from(self, key, row.seq)
    }

    fn event_by_id(&self, key: Key, id: &EventId) -> Result<Option<OwnRow>> {
        let sql = format!("SELECT {EVENT_COLUMNS} FROM events WHERE pos >> 32 = ?1 AND id = ?2");
        self.one(&sql, params![key, id.as_bytes().as_slice()], own_event)
    }

    /// Ids that were given in ascending order are adjacent in the index, so one lookup of their
    /// range suffices.
    fn has_any_id(&self, key: Key, ids: &[EventId]) -> Result<bool> {
        let (Some(first), Some(last)) = (ids.iter().min(), ids.iter().max()) else {
            return Ok(false);
        };
        let sql = "SELECT 1 FROM events WHERE pos >> 32 = ?1 AND id BETWEEN ?2 AND ?3 LIMIT 1";
        let range = params![key, first.as_bytes().as_slice(), last.as_bytes().as_slice()];
        Ok(self.one(sql, range, |_| Ok(()))?.is_some())
    }

    fn visit(
        &self,
        stretch: Stretch,
        order: Order,
        visitor: &mut dyn FnMut(Row<'_>) -> Result<ControlFlow<()>>,
    ) -> Result<ControlFlow<()>> {
        let direction = if order == Order::Oldest { "ASC" } else { "DESC" };
        let sql = format!(
            "SELECT {EVENT_COLUMNS} FROM events WHERE pos BETWEEN ?1 AND ?2 ORDER BY pos {direction}"
        );
        let fault = |error| self.fault(&error);
        let mut statement = self.conn.prepare_cached(&sql).map_err(fault)?;
        let (from, to) = (pos(stretch.key, stretch.from), pos(stretch.key, stretch.to));
        let mut rows = statement.query([from, to]).map_err(fault)?;
        while let Some(row) = rows.next().map_err(fault)? {
            if visitor(read_event(row).map_err(fault)?)? == ControlFlow::Break(()) {
                return Ok(ControlFlow::Break(()));
            }
        }
        Ok(ControlFlow::Continue(()))
    }

    fn keyed_events(&self, stretch: Stretch, facts: Facts<'_>) -> Result<Vec<OwnRow>> {
        let key = if facts.key.is_some() { "key = ?5" } else { "?5 IS NULL" };
        // The index sorts all events of a kind by key. A short range at the log's end is cheaper to
        // scan.
        let is_end = facts.key.is_none() && facts.from > Seq::FIRST && {
            stretch.to.get().saturating_sub(stretch.from.get()) < SHORT_STRETCH
        };
        let by = if is_end { "NOT INDEXED" } else { "" };
        let sql = format!(
            "SELECT {EVENT_COLUMNS} FROM events {by} WHERE pos >> 32 = ?1 AND kind = ?2 \
             AND pos BETWEEN ?3 AND ?4 AND key IS NOT NULL AND {key}"
        );
        let (from, to) = (pos(stretch.key, stretch.from), pos(stretch.key, stretch.to));
        let mut found = Vec::new();
        for kind in facts.kinds {
            let params = params![stretch.key, kind.as_str(), from, to, facts.key];
            found.extend(self.all(&sql, params, own_event)?);
        }
        found.sort_by_key(|row| row.seq);
        Ok(found)
    }

    fn records(&self, stretch: Stretch, query: &RecordQuery) -> Result<Vec<OwnRow>> {
        let sql = records_sql(query.order);
        let (first, last) = query.keys.ends();
        let (from, to) = (pos(stretch.key, stretch.from), pos(stretch.key, stretch.to));
        let limit = i64::try_from(query.limit).unwrap_or(i64::MAX);
        self.all(&sql, params![stretch.key, first, last, from, to, limit], own_event)
    }

    fn prune(&self, key: Key, emptied: &[Sealed<'_>]) -> Result<u64> {
        let mut freed = 0;
        for sealed in emptied {
            let row = &sealed.row;
            let pos = pos(key, row.seq);
            let sql = "SELECT octet_length(body) FROM events WHERE pos = ?1";
            let size: u64 = self.one(sql, [pos], |row| row.get(0))?.unwrap_or(0);
            self.run_keeping(
                "UPDATE events SET body = ?2, key = NULL, spilled = 0, erased = ?3 WHERE pos = ?1",
                params![pos, body_text(row), row.erased.as_ref().map(Digest::as_bytes)],
            )?;
            freed += size.saturating_sub(row.body.len() as u64);
            freed += blob::detach(self, pos, pos)?;
            super::search::forget(self, pos, pos)?;
        }
        Ok(freed)
    }

    fn blob(&self, digest: &Digest) -> Result<Vec<u8>> {
        blob::get(self, digest)
    }

    fn snapshot(&self, key: Key, at: Seq) -> Result<Option<State>> {
        let sql =
            "SELECT state FROM snapshots WHERE pos BETWEEN ?1 AND ?2 ORDER BY pos DESC LIMIT 1";
        let state: Option<String> =
            self.one(sql, [pos(key, Seq::ZERO), pos(key, at)], |row| row.get(0))?;
        // An unreadable snapshot is skipped: the fold then starts earlier.
        Ok(state.and_then(|state| serde_json::from_str(&state).ok()))
    }

    fn put_snapshot(&self, key: Key, state: &State) -> Result<()> {
        self.run(
            "INSERT OR REPLACE INTO snapshots (pos, state) VALUES (?1, ?2)",
            params![pos(key, state.head.seq), json(state)],
        )?;
        Ok(())
    }

    fn drop_snapshots(&self, key: Key) -> Result<()> {
        let (from, to) = (pos(key, Seq::ZERO), pos(key, Seq::MAX));
        self.run("DELETE FROM snapshots WHERE pos BETWEEN ?1 AND ?2", [from, to])?;
        Ok(())
    }

    fn subagents(&self, id: &SessionId) -> Result<Vec<Key>> {
        // Most sessions have none, and this check is cheaper than the recursion.
        let any = "SELECT 1 FROM sessions WHERE parent = ?1 AND subagent = 1 LIMIT 1";
        if self.one(any, [id.as_str()], |_| Ok(()))?.is_none() {
            return Ok(Vec::new());
        }
        let sql = "WITH RECURSIVE below (key, id) AS ( \
             SELECT key, id FROM sessions WHERE parent = ?1 AND subagent = 1 \
             UNION SELECT s.key, s.id FROM sessions s JOIN below b ON s.parent = b.id \
             WHERE s.subagent = 1) SELECT key FROM below";
        self.all(sql, [id.as_str()], |row| row.get(0))
    }

    fn parents_among(&self, ids: &[SessionId]) -> Result<BTreeSet<SessionId>> {
        let sql = "SELECT DISTINCT parent FROM sessions WHERE subagent = 1 \
             AND parent IN (SELECT value FROM json_each(?1))";
        let parents: Vec<String> = self.all(sql, [json(&ids)], |row| row.get(0))?;
        let parents: BTreeSet<String> = parents.into_iter().collect();
        Ok(ids.iter().filter(|id| parents.contains(id.as_str())).cloned().collect())
    }

    fn last_own(&self, key: Key) -> Result<Option<Seq>> {
        let sql = "SELECT max(pos) FROM events WHERE pos BETWEEN ?1 AND ?2";
        let range = [pos(key, Seq::ZERO), pos(key, Seq::MAX)];
        let last: Option<Option<i64>> = self.one(sql, range, |row| row.get(0))?;
        Ok(last.flatten().map(seq_of))
    }

    fn forks(&self, key: Key) -> Result<Vec<Base>> {
        let sql = "SELECT key, base_at FROM sessions WHERE base_key = ?1";
        self.all(sql, [key], |row| Ok(Base { key: row.get(0)?, at: Seq::new(row.get(1)?) }))
    }

    fn adopt(&self, fork: Base, from: &SessionRow) -> Result<()> {
        let (first, last) = (pos(from.key, Seq::ZERO), pos(from.key, fork.at));
        let shift = (fork.key - from.key) << 32;
        let measure = "SELECT coalesce(sum(length(CAST(body AS BLOB))), 0) FROM events \
             WHERE pos BETWEEN ?1 AND ?2";
        let moved: u64 = self.one(measure, [first, last], |row| row.get(0))?.unwrap_or(0);
        for table in ["events", "snapshots", "refs", "docs"] {
            let sql = format!("UPDATE {table} SET pos = pos + ?3 WHERE pos BETWEEN ?1 AND ?2");
            self.run(&sql, [first, last, shift])?;
        }
        self.run(
            "UPDATE sessions SET base_key = ?2, base_at = ?3, bytes = bytes + ?4, unindexed = 1, \
             indexed = min(indexed, (SELECT indexed FROM sessions WHERE key = ?5)) WHERE key = ?1",
            params![
                fork.key,
                from.base.map(|base| base.key),
                from.base.map(|base| base.at.get()),
                moved,
                from.key,
            ],
        )?;
        Ok(())
    }

    fn rebase(&self, fork: Key, base: Base) -> Result<()> {
        self.run(
            "UPDATE sessions SET base_key = ?2, base_at = ?3 WHERE key = ?1",
            params![fork, base.key, base.at.get()],
        )?;
        Ok(())
    }

    fn erase(&self, key: Key) -> Result<()> {
        let (from, to) = (pos(key, Seq::ZERO), pos(key, Seq::MAX));
        super::search::forget(self, from, to)?;
        blob::detach(self, from, to)?;
        self.run("DELETE FROM events WHERE pos BETWEEN ?1 AND ?2", [from, to])?;
        self.drop_snapshots(key)?;
        self.run("DELETE FROM lanes WHERE session = ?1", [key])?;
        self.run("DELETE FROM leases WHERE session = ?1", [key])?;
        let removed = format!(
            "INSERT INTO removed (change, id) SELECT {NEXT_CHANGE}, id FROM sessions WHERE key = ?1"
        );
        self.run(&removed, [key])?;
        self.run("DELETE FROM sessions WHERE key = ?1", [key])?;
        Ok(())
    }

    fn reindex(&self, row: &SessionRow) -> Result<()> {
        super::search::reindex_from(self, row.key, row.own_from())
    }

    fn replace_lanes(&self, key: Key, lanes: &BTreeMap<Lane, LaneState>) -> Result<()> {
        self.run("DELETE FROM lanes WHERE session = ?1", [key])?;
        lanes.iter().try_for_each(|(lane, state)| self.put_lane(key, lane, state))
    }
}

/// The query for records of a stretch, by the index of keys.
pub(super) fn records_sql(order: Order) -> String {
    let direction = if order == Order::Oldest { "ASC" } else { "DESC" };
    format!(
        "SELECT {EVENT_COLUMNS} FROM events WHERE pos >> 32 = ?1 AND kind = 'record' \
         AND key IS NOT NULL AND key >= ?2 AND key < ?3 AND pos BETWEEN ?4 AND ?5 \
         ORDER BY key {direction}, pos {direction} LIMIT ?6"
    )
}

fn read_lease(row: &rusqlite::Row<'_>) -> rusqlite::Result<Option<LeaseRow>> {
    let Some(epoch) = row.get(15)? else { return Ok(None) };
    let holder: Option<String> = row.get(16)?;
    let holder: Option<Owner> = holder.and_then(|text| serde_json::from_str(&text).ok());
    let expires: Option<i64> = row.get(17)?;
    let held = holder.zip(expires.map(Time::from_micros));
    Ok(Some(LeaseRow { epoch: Epoch::new(epoch), held, login: None }))
}

/// Bodies are JSON, stored as text so that any SQLite tool shows them. `serde_json` writes valid
/// UTF-8.
fn body_text<'a>(row: &'a Row<'_>) -> ToSqlOutput<'a> {
    ToSqlOutput::Borrowed(ValueRef::Text(&row.body))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_are_found_by_the_index_of_keys_in_its_own_order() {
        let folder = tempfile::tempdir().unwrap();
        let store = crate::sqlite::SqliteStore::open(folder.path()).unwrap();
        for order in [Order::Oldest, Order::Newest] {
            let sql = format!("EXPLAIN QUERY PLAN {}", records_sql(order));
            let read = |rows: &SqliteRows<'_>| {
                rows.all(&sql, params![1, "a", "b", 0, 1, 1], |row| row.get::<_, String>(3))
            };
            let plan = store.read(|rows, _| read(rows)).unwrap();
            assert!(plan.len() == 1 && plan[0].contains("events_facts"), "{plan:?}");
            assert!(plan[0].contains("key>"), "{plan:?}");
        }
    }
}
