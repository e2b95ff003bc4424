//! Events' rows: written, walked in order, moved to a fork.

use std::ops::ControlFlow;

use stepwell::backend::{Base, Facts, Key, Login, OwnRow, Row, Sealed, SessionRow, Stretch};
use stepwell::model::{Digest, EventId, Time};
use stepwell::store::Order;
use stepwell::store::query::RecordQuery;
use stepwell::{Result, Seq};

use super::blob;
use super::pg_rows::{PgRows, number, seq};
use super::sessions::digest;
use crate::transport::params;

/// The columns that make up an event's row, in the order that [`read_event`] expects. What was
/// copied, or replaced by a scrub, was not said by whom the server knows.
pub(crate) const EVENT_COLUMNS: &str = "seq, at, kind, version, chain, id, spilled, erased, body, \
     CASE WHEN copied OR erased IS NOT NULL THEN NULL ELSE login END, key";

/// How many these are.
pub(crate) const EVENT_WIDTH: usize = 11;

/// How many rows are fetched at first, and at most, when a stretch is walked: whoever
/// wants the last few does not wait for a thousand.
const FIRST_CHUNK: i64 = 64;
const LARGEST_CHUNK: i64 = 1024;

/// Reads an event's row. A column that cannot be read makes a row that fails its check,
/// so that the damage is told at its seq.
pub(crate) fn read_event<'a>(rows: &PgRows<'_>, row: &'a tokio_postgres::Row) -> Result<Row<'a>> {
    let place = seq(rows.get(row, 0)?);
    let id: Option<&[u8]> = rows.get(row, 5)?;
    let erased: Option<&[u8]> = rows.get(row, 7)?;
    let kind: &[u8] = rows.get(row, 2)?;
    let body: &[u8] = rows.get(row, 8)?;
    let id = id.map(<[u8; 16]>::try_from).transpose();
    let key: Option<&[u8]> = rows.get(row, EVENT_WIDTH - 1)?;
    let key = key.map(std::str::from_utf8).transpose();
    let (Ok(kind), Ok(key), Ok(id)) = (std::str::from_utf8(kind), key, id) else {
        return Ok(unreadable(place));
    };
    Ok(Row {
        seq: place,
        at: Time::from_micros(rows.get(row, 1)?),
        kind: kind.into(),
        key: key.map(Into::into),
        version: rows.get::<i32>(row, 3)?.unsigned_abs(),
        chain: digest(rows.get(row, 4)?),
        id: id.map(EventId::from_bytes),
        spilled: rows.get(row, 6)?,
        erased: erased.map(digest),
        body: body.into(),
        login: Login::Noted(rows.get(row, 9)?),
    })
}

fn unreadable(seq: Seq) -> Row<'static> {
    Row {
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
    }
}

impl PgRows<'_> {
    pub(super) fn add_event(&self, key: Key, sealed: &Sealed<'_>) -> Result<u64> {
        let row = &sealed.row;
        let mark = self.mark.get();
        if mark.is_some() && self.marked_from.get().is_none() {
            self.marked_from.set(Some(row.seq));
        }
        self.run(
            "INSERT INTO stepwell.events (session, seq, namespace, at, version, spilled, kind, \
             chain, id, mark, key, body, copied) \
             VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13)",
            params![
                key => INT8,
                number(row.seq) => INT8,
                self.namespace => INT4,
                row.at.as_micros() => INT8,
                version_column(row) => INT4,
                row.spilled => BOOL,
                row.kind.as_bytes() => BYTEA,
                row.chain.as_bytes().as_slice() => BYTEA,
                row.id.as_ref().map(|id| id.as_bytes().as_slice()) => BYTEA,
                mark.as_ref().map(<[u8; 16]>::as_slice) => BYTEA,
                row.key.as_deref().map(str::as_bytes) => BYTEA,
                &*row.body => BYTEA,
                row.login.is_nobody() => BOOL,
            ],
        )?;
        Ok(row.body.len() as u64 + blob::attach(self, key, sealed)?)
    }

    pub(super) fn walk(
        &self,
        stretch: Stretch,
        order: Order,
        visitor: &mut dyn FnMut(Row<'_>) -> Result<ControlFlow<()>>,
    ) -> Result<ControlFlow<()>> {
        if stretch.from == stretch.to
            && let Some(row) = self.ahead.borrow_mut().remove(&(stretch.key, stretch.from))
        {
            return visitor(row);
        }
        let direction = if order == Order::Oldest { "ASC" } else { "DESC" };
        let sql = format!(
            "SELECT {EVENT_COLUMNS} FROM stepwell.events WHERE namespace = $5 AND session = $1 \
             AND seq BETWEEN $2 AND $3 ORDER BY seq {direction} LIMIT $4"
        );
        let (mut from, mut to) = (number(stretch.from), number(stretch.to));
        let mut chunk = FIRST_CHUNK;
        let mut dense = true;
        while from <= to {
            // Events have no gaps, so a chunk is named by its ends: a server that has no
            // statistics yet would sort the whole session for a limit.
            let (low, high) = match order {
                _ if !dense => (from, to),
                Order::Oldest => (from, to.min(from.saturating_add(chunk - 1))),
                Order::Newest => (from.max(to.saturating_sub(chunk - 1)), to),
            };
            let rest = (low, high) == (from, to);
            let params = params![
                stretch.key => INT8, low => INT8, high => INT8, chunk => INT8,
                self.namespace => INT4,
            ];
            let found = self.all(&sql, params)?;
            for row in &found {
                let event = read_event(self, row)?;
                match order {
                    Order::Oldest => from = number(event.seq) + 1,
                    Order::Newest => to = number(event.seq) - 1,
                }
                if visitor(event)? == ControlFlow::Break(()) {
                    return Ok(ControlFlow::Break(()));
                }
            }
            let full = found.len() >= usize::try_from(chunk).unwrap_or(usize::MAX);
            if !full && rest {
                break;
            }
            // Rows are missing: what is left is found by asking for all of it.
            dense = dense && full;
            chunk = (chunk * 4).min(LARGEST_CHUNK);
        }
        Ok(ControlFlow::Continue(()))
    }

    /// Keyed events of some kinds, with the rows before them, which checking them needs.
    pub(super) fn keyed(&self, stretch: Stretch, facts: Facts<'_>) -> Result<Vec<OwnRow>> {
        let kinds: Vec<&[u8]> = facts.kinds.iter().map(|kind| kind.as_str().as_bytes()).collect();
        let key = facts.key.map(str::as_bytes);
        let under = match key {
            Some(_) => " AND substr(key, 1, 1024) = substr($5, 1, 1024) AND key = $5",
            None => " AND $5::bytea IS NULL",
        };
        let sql = format!(
            "WITH found AS (SELECT seq AS place FROM stepwell.events \
             WHERE namespace = $6 AND session = $1 AND kind = ANY ($2) AND seq BETWEEN $3 AND $4 AND key IS NOT NULL{under}) \
             SELECT {EVENT_COLUMNS}, seq IN (SELECT place FROM found) FROM stepwell.events \
             WHERE namespace = $6 AND session = $1 AND seq IN \
             (SELECT place FROM found UNION SELECT place - 1 FROM found) ORDER BY seq"
        );
        let params = params![
            stretch.key => INT8, kinds => BYTEA_ARRAY, number(stretch.from) => INT8,
            number(stretch.to) => INT8, key => BYTEA, self.namespace => INT4,
        ];
        let mut found = Vec::new();
        let mut ahead = self.ahead.borrow_mut();
        ahead.clear();
        for row in self.all(&sql, params)? {
            let event = read_event(self, &row)?.into_owned();
            if self.get(&row, EVENT_WIDTH)? {
                found.push(event.clone());
            }
            ahead.insert((stretch.key, event.seq), event);
        }
        Ok(found)
    }

    /// Records by their keys, with the rows before them, which checking them needs. The index
    /// has the front of each key, and a record's is never longer than that.
    pub(super) fn by_key(&self, stretch: Stretch, query: &RecordQuery) -> Result<Vec<OwnRow>> {
        let direction = if query.order == Order::Oldest { "ASC" } else { "DESC" };
        let (first, last) = query.keys.ends();
        let sql = format!(
            "WITH found AS MATERIALIZED (SELECT seq AS place, row_number() OVER () AS n FROM (\
             SELECT seq FROM stepwell.events WHERE namespace = $7 AND session = $1 \
             AND kind = 'record'::bytea \
             AND key IS NOT NULL AND substr(key, 1, 1024) >= $2 AND substr(key, 1, 1024) < $3 \
             AND seq BETWEEN $4 AND $5 \
             ORDER BY substr(key, 1, 1024) {direction}, seq {direction} LIMIT $6) ordered) \
             SELECT {EVENT_COLUMNS}, n FROM found \
             JOIN stepwell.events ON namespace = $7 AND session = $1 AND seq = place \
             UNION ALL SELECT {EVENT_COLUMNS}, NULL FROM found \
             JOIN stepwell.events ON namespace = $7 AND session = $1 AND seq = place - 1 ORDER BY n"
        );
        let limit = i64::try_from(query.limit).unwrap_or(i64::MAX);
        let params = params![
            stretch.key => INT8, first.as_bytes() => BYTEA, last.as_bytes() => BYTEA,
            number(stretch.from) => INT8, number(stretch.to) => INT8, limit => INT8,
            self.namespace => INT4,
        ];
        let mut found = Vec::new();
        let mut ahead = self.ahead.borrow_mut();
        ahead.clear();
        for row in self.all(&sql, params)? {
            let event = read_event(self, &row)?.into_owned();
            if self.get::<Option<i64>>(&row, EVENT_WIDTH)?.is_some() {
                found.push(event.clone());
            }
            ahead.insert((stretch.key, event.seq), event);
        }
        Ok(found)
    }

    /// Empties events, however many, with few statements.
    pub(super) fn empty_events(&self, key: Key, emptied: &[Sealed<'_>]) -> Result<u64> {
        if emptied.is_empty() {
            return Ok(0);
        }
        self.changed(key);
        let seqs: Vec<i64> = emptied.iter().map(|sealed| number(sealed.row.seq)).collect();
        let bodies: Vec<&[u8]> = emptied.iter().map(|sealed| &*sealed.row.body).collect();
        let erased = |sealed: &'_ Sealed<'_>| sealed.row.erased;
        let erased: Vec<Option<Digest>> = emptied.iter().map(erased).collect();
        let erased: Vec<Option<&[u8]>> =
            erased.iter().map(|it| it.as_ref().map(|it| it.as_bytes().as_slice())).collect();
        let freed = self.one(
            "WITH old AS (SELECT coalesce(sum(length(body)), 0)::bigint AS bytes \
             FROM stepwell.events WHERE namespace = $5 AND session = $1 AND seq = ANY ($2)), \
             emptied AS (UPDATE stepwell.events e SET body = n.body, erased = n.erased, \
             key = NULL, spilled = false \
             FROM unnest($2, $3, $4) AS n (seq, body, erased) \
             WHERE e.namespace = $5 AND e.session = $1 AND e.seq = n.seq), \
             forgotten AS (DELETE FROM stepwell.docs \
             WHERE namespace = $5 AND session = $1 AND seq = ANY ($2)) \
             SELECT bytes FROM old",
            params![
                key => INT8, seqs => INT8_ARRAY, bodies => BYTEA_ARRAY, erased => BYTEA_ARRAY,
                self.namespace => INT4,
            ],
        )?;
        let old: i64 = match &freed {
            Some(row) => self.get(row, 0)?,
            None => 0,
        };
        let new: usize = bodies.iter().map(|body| body.len()).sum();
        let bodies = old.unsigned_abs().saturating_sub(new as u64);
        Ok(bodies + blob::detach_all(self, key, &seqs)?)
    }

    /// Moves a session's own events up to a seq to one of its forks.
    pub(super) fn hand_events(&self, fork: Base, from: &SessionRow) -> Result<()> {
        self.changed(fork.key);
        let moved = self.one(
            "SELECT coalesce(sum(length(body)), 0)::bigint FROM stepwell.events \
             WHERE namespace = $3 AND session = $1 AND seq <= $2",
            params![from.key => INT8, number(fork.at) => INT8, self.namespace => INT4],
        )?;
        let moved: i64 = match &moved {
            Some(row) => self.get(row, 0)?,
            None => 0,
        };
        for table in ["events", "snapshots", "refs", "docs"] {
            let sql = format!(
                "UPDATE stepwell.{table} SET session = $3 \
                 WHERE namespace = $4 AND session = $1 AND seq <= $2"
            );
            let params = params![
                from.key => INT8, number(fork.at) => INT8, fork.key => INT8,
                self.namespace => INT4,
            ];
            self.run(&sql, params)?;
        }
        self.run(
            "UPDATE stepwell.sessions SET base_key = $2, base_at = $3 \
             WHERE namespace = $4 AND key = $1",
            params![
                fork.key => INT8,
                from.base.map(|base| base.key) => INT8,
                from.base.map(|base| number(base.at)) => INT8,
                self.namespace => INT4,
            ],
        )?;
        self.run(
            "UPDATE stepwell.indexed SET seq = least(seq, \
             (SELECT seq FROM stepwell.indexed WHERE namespace = $3 AND session = $2)) \
             WHERE namespace = $3 AND session = $1",
            params![fork.key => INT8, from.key => INT8, self.namespace => INT4],
        )?;
        self.run(
            "UPDATE stepwell.heads SET bytes = bytes + $2, unindexed = true, \
             version = version + 1 WHERE namespace = $3 AND session = $1",
            params![fork.key => INT8, moved => INT8, self.namespace => INT4],
        )
    }
}

/// The version of an event's body as a column.
pub(crate) fn version_column(row: &Row<'_>) -> i32 {
    i32::try_from(row.version).unwrap_or(i32::MAX)
}
