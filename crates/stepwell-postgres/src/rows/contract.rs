//! What every store does with its rows, done in PostgreSQL.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::ControlFlow;

use stepwell::backend::{
    Base, Facts, Inserted, Key, LeaseRow, OwnRow, Row, Rows, Sealed, SessionRow, Stretch,
};
use stepwell::log::{LaneState, State};
use stepwell::model::{Digest, EventId, Time};
use stepwell::store::Order;
use stepwell::store::query::RecordQuery;
use stepwell::{Lane, Result, Seq, SessionId};

use super::blob;
use super::events::{EVENT_COLUMNS, read_event};
use super::pg_rows::{PgRows, json, number, seq};
use crate::transport::params;

impl Rows for PgRows<'_> {
    fn session(&self, id: &SessionId) -> Result<Option<SessionRow>> {
        self.find_session(
            "s.namespace = $1 AND s.id = $2",
            params![
                self.namespace => INT4, id.as_str() => TEXT,
            ],
        )
    }

    fn session_by_key(&self, key: Key) -> Result<Option<SessionRow>> {
        self.find_session(
            "s.namespace = $1 AND s.key = $2",
            params![self.namespace => INT4, key => INT8],
        )
    }

    fn sessions(&self, ids: &[SessionId]) -> Result<Vec<SessionRow>> {
        let ids: Vec<&str> = ids.iter().map(SessionId::as_str).collect();
        self.find_sessions(
            "s.namespace = $1 AND s.id = ANY ($2)",
            params![self.namespace => INT4, ids => TEXT_ARRAY],
        )
    }

    fn insert_session(&self, row: &SessionRow) -> Result<Inserted> {
        self.add_session(row)
    }

    fn update_session(&self, row: &SessionRow) -> Result<()> {
        self.put_session(row)
    }

    fn set_trashed(&self, keys: &[Key], when: Time) -> Result<()> {
        keys.iter().for_each(|key| self.changed(*key));
        self.run(
            "UPDATE stepwell.heads SET trashed = $2, version = version + 1, \
             change = pg_current_xact_id() WHERE namespace = $3 AND session = ANY($1)",
            params![
                keys => INT8_ARRAY, when.as_micros() => INT8, self.namespace => INT4,
            ],
        )
    }

    fn put_lease(&self, key: Key, lease: &LeaseRow) -> Result<()> {
        self.write_lease(key, lease)
    }

    fn lanes(&self, key: Key) -> Result<BTreeMap<Lane, LaneState>> {
        let sql = "SELECT lane, state FROM stepwell.lanes WHERE namespace = $1 AND session = $2";
        let mut lanes = BTreeMap::new();
        for row in self.all(sql, params![self.namespace => INT4, key => INT8])? {
            let (lane, state): (&[u8], &[u8]) = (self.get(&row, 0)?, self.get(&row, 1)?);
            // A lane that cannot be read is left out, which verification notices.
            let lane = std::str::from_utf8(lane).ok().and_then(|lane| lane.parse().ok());
            if let (Some(lane), Ok(state)) = (lane, serde_json::from_slice(state)) {
                lanes.insert(lane, state);
            }
        }
        Ok(lanes)
    }

    fn lane(&self, key: Key, lane: &Lane) -> Result<LaneState> {
        let sql = "SELECT state FROM stepwell.lanes \
             WHERE namespace = $1 AND session = $2 AND lane = $3";
        let name = lane.as_str().as_bytes();
        let params = params![self.namespace => INT4, key => INT8, name => BYTEA];
        let row = self.one(sql, params)?;
        let Some(row) = row else { return Ok(LaneState::default()) };
        Ok(serde_json::from_slice(self.get(&row, 0)?).unwrap_or_default())
    }

    fn put_lane(&self, key: Key, lane: &Lane, state: &LaneState) -> Result<()> {
        self.run(
            "INSERT INTO stepwell.lanes (session, namespace, lane, state) VALUES ($1, $2, $3, $4) \
             ON CONFLICT (namespace, session, lane) DO UPDATE SET state = excluded.state",
            params![
                key => INT8, self.namespace => INT4, lane.as_str().as_bytes() => BYTEA,
                json(state) => BYTEA,
            ],
        )
    }

    fn insert_event(&self, key: Key, sealed: &Sealed<'_>) -> Result<u64> {
        self.add_event(key, sealed)
    }

    fn replace_event(&self, key: Key, sealed: &Sealed<'_>) -> Result<()> {
        self.changed(key);
        let row = &sealed.row;
        self.run(
            "UPDATE stepwell.events SET body = $3, key = $4, spilled = $5, erased = $6 \
             WHERE namespace = $7 AND session = $1 AND seq = $2",
            params![
                key => INT8, number(row.seq) => INT8, &*row.body => BYTEA,
                row.key.as_deref().map(str::as_bytes) => BYTEA, row.spilled => BOOL,
                row.erased.as_ref().map(|it| it.as_bytes().as_slice()) => BYTEA,
                self.namespace => INT4,
            ],
        )?;
        blob::reattach(self, key, sealed)?;
        reindex_from(self, key, row.seq)
    }

    fn event_by_id(&self, key: Key, id: &EventId) -> Result<Option<OwnRow>> {
        let sql = format!(
            "SELECT {EVENT_COLUMNS} FROM stepwell.events \
             WHERE namespace = $1 AND session = $2 AND id = $3"
        );
        let id = id.as_bytes().as_slice();
        let row = self.one(&sql, params![self.namespace => INT4, key => INT8, id => BYTEA])?;
        row.map(|row| read_event(self, &row).map(Row::into_owned)).transpose()
    }

    fn visit(
        &self,
        stretch: Stretch,
        order: Order,
        visitor: &mut dyn FnMut(Row<'_>) -> Result<ControlFlow<()>>,
    ) -> Result<ControlFlow<()>> {
        self.walk(stretch, order, visitor)
    }

    fn keyed_events(&self, stretch: Stretch, facts: Facts<'_>) -> Result<Vec<OwnRow>> {
        self.keyed(stretch, facts)
    }

    fn records(&self, stretch: Stretch, query: &RecordQuery) -> Result<Vec<OwnRow>> {
        self.by_key(stretch, query)
    }

    fn prune(&self, key: Key, emptied: &[Sealed<'_>]) -> Result<u64> {
        self.empty_events(key, emptied)
    }

    fn blob(&self, digest: &Digest) -> Result<Vec<u8>> {
        blob::get(self, digest)
    }

    fn snapshot(&self, key: Key, at: Seq) -> Result<Option<State>> {
        let sql = "SELECT state FROM stepwell.snapshots \
             WHERE namespace = $1 AND session = $2 AND seq <= $3 ORDER BY seq DESC LIMIT 1";
        let params = params![self.namespace => INT4, key => INT8, number(at) => INT8];
        let row = self.one(sql, params)?;
        let Some(row) = row else { return Ok(None) };
        // One that cannot be read is passed over: the fold begins earlier.
        Ok(serde_json::from_slice(self.get(&row, 0)?).ok())
    }

    fn put_snapshot(&self, key: Key, state: &State) -> Result<()> {
        self.run(
            "INSERT INTO stepwell.snapshots (session, seq, namespace, state) \
             VALUES ($1, $2, $3, $4) \
             ON CONFLICT (namespace, session, seq) DO UPDATE SET state = excluded.state",
            params![
                key => INT8, number(state.head.seq) => INT8, self.namespace => INT4,
                json(state) => BYTEA,
            ],
        )
    }

    fn drop_snapshots(&self, key: Key) -> Result<()> {
        let sql = "DELETE FROM stepwell.snapshots WHERE namespace = $1 AND session = $2";
        self.run(sql, params![self.namespace => INT4, key => INT8])
    }

    fn subagents(&self, id: &SessionId) -> Result<Vec<Key>> {
        let sql = "WITH RECURSIVE below (key, id) AS ( \
             SELECT key, id FROM stepwell.sessions \
             WHERE parent = $1 AND subagent AND namespace = $2 \
             UNION SELECT s.key, s.id FROM stepwell.sessions s JOIN below b ON s.parent = b.id \
             WHERE s.subagent AND s.namespace = $2) SELECT key FROM below";
        let rows = self.all(sql, params![id.as_str() => TEXT, self.namespace => INT4])?;
        rows.iter().map(|row| self.get(row, 0)).collect()
    }

    fn parents_among(&self, ids: &[SessionId]) -> Result<BTreeSet<SessionId>> {
        let names: Vec<&str> = ids.iter().map(SessionId::as_str).collect();
        let sql = "SELECT DISTINCT parent FROM stepwell.sessions \
             WHERE namespace = $1 AND subagent AND parent = ANY ($2)";
        let mut parents = BTreeSet::new();
        for row in self.all(sql, params![self.namespace => INT4, names => TEXT_ARRAY])? {
            parents.extend(self.get::<&str>(&row, 0)?.parse::<SessionId>());
        }
        Ok(parents)
    }

    fn last_own(&self, key: Key) -> Result<Option<Seq>> {
        let sql = "SELECT max(seq) FROM stepwell.events WHERE namespace = $1 AND session = $2";
        let params = params![self.namespace => INT4, key => INT8];
        let Some(row) = self.one(sql, params)? else { return Ok(None) };
        Ok(self.get::<Option<i64>>(&row, 0)?.map(seq))
    }

    fn forks(&self, key: Key) -> Result<Vec<Base>> {
        let sql = "SELECT key, base_at FROM stepwell.sessions \
             WHERE namespace = $1 AND base_key = $2";
        let rows = self.all(sql, params![self.namespace => INT4, key => INT8])?;
        let base = |row| Ok(Base { key: self.get(row, 0)?, at: seq(self.get(row, 1)?) });
        rows.iter().map(base).collect()
    }

    fn adopt(&self, fork: Base, from: &SessionRow) -> Result<()> {
        self.hand_events(fork, from)
    }

    fn rebase(&self, fork: Key, base: Base) -> Result<()> {
        self.changed(fork);
        self.run(
            "WITH moved AS (UPDATE stepwell.sessions SET base_key = $2, base_at = $3 \
             WHERE namespace = $4 AND key = $1) UPDATE stepwell.heads SET version = version + 1 \
             WHERE namespace = $4 AND session = $1",
            params![
                fork => INT8, base.key => INT8, number(base.at) => INT8, self.namespace => INT4,
            ],
        )
    }

    fn forked_among(&self, keys: &[Key]) -> Result<BTreeSet<Key>> {
        let sql = "SELECT DISTINCT base_key FROM stepwell.sessions \
             WHERE namespace = $1 AND base_key = ANY ($2)";
        let rows = self.all(sql, params![self.namespace => INT4, keys => INT8_ARRAY])?;
        rows.iter().map(|row| self.get(row, 0)).collect()
    }

    fn erase(&self, keys: &[Key]) -> Result<()> {
        blob::detach_sessions(self, keys)?;
        for table in ["docs", "events", "snapshots", "lanes", "indexed", "heads"] {
            let sql =
                format!("DELETE FROM stepwell.{table} WHERE namespace = $1 AND session = ANY ($2)");
            self.run(&sql, params![self.namespace => INT4, keys => INT8_ARRAY])?;
        }
        // Their leases go with them.
        self.run(
            "WITH gone AS (DELETE FROM stepwell.sessions WHERE namespace = $1 AND key = ANY ($2) \
             RETURNING namespace, id) \
             INSERT INTO stepwell.removed (namespace, id) SELECT namespace, id FROM gone",
            params![self.namespace => INT4, keys => INT8_ARRAY],
        )
    }

    fn reindex(&self, row: &SessionRow) -> Result<()> {
        reindex_from(self, row.key, row.own_from())
    }

    fn replace_lanes(&self, key: Key, lanes: &BTreeMap<Lane, LaneState>) -> Result<()> {
        let sql = "DELETE FROM stepwell.lanes WHERE namespace = $1 AND session = $2";
        self.run(sql, params![self.namespace => INT4, key => INT8])?;
        lanes.iter().try_for_each(|(lane, state)| self.put_lane(key, lane, state))
    }
}

/// Takes a session's events from `seq` on out of the index, to be read in again.
fn reindex_from(rows: &PgRows<'_>, key: Key, seq: Seq) -> Result<()> {
    rows.run(
        "DELETE FROM stepwell.docs WHERE namespace = $3 AND session = $1 AND seq >= $2",
        params![key => INT8, number(seq) => INT8, rows.namespace => INT4],
    )?;
    rows.run(
        "UPDATE stepwell.indexed SET seq = least(seq, $2) WHERE namespace = $3 AND session = $1",
        params![key => INT8, number(seq) - 1 => INT8, rows.namespace => INT4],
    )?;
    rows.run(
        "UPDATE stepwell.heads SET unindexed = true WHERE namespace = $2 AND session = $1",
        params![key => INT8, rows.namespace => INT4],
    )
}
