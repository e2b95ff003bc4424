//! The search index. It lags behind the log, so appends do not pay for it.
//!
//! Each session records how far it is indexed. A catch-up indexes missing events in order of time,
//! and updates those marks in the same transaction, so a crash leaves both or neither.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

use rusqlite::{params, params_from_iter};

use super::blob;
use super::conditions::Conditions;
use super::sql::{SqliteRows, pos, seq_of};
use crate::error::{Error, Result};
use crate::log::Redactor;
use crate::log::codec::Row;
use crate::model::{Seq, Time};
use crate::store::query::{Found, Hit, Rank, Search};
use crate::store::read;
use crate::store::rows::Key;
use crate::store::search::{Question, SEARCHABLE_KINDS, Shown, searchable, words};

/// The size of one indexing transaction: large enough to make its commit cheap, small enough that a
/// waiting append hardly notices.
const CHUNK_EVENTS: usize = 500;
const CHUNK_BYTES: u64 = 256 << 10;

/// How many of the newest hits are ranked.
const RANKED: usize = 10_000;

/// An event that is not indexed yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Pending {
    at: Time,
    pos: i64,
    /// The event of its session that must be indexed before it.
    after: Seq,
    /// Bytes to read for it.
    bytes: u64,
}

/// The events that are not indexed, in order of time and, within a session, of seq.
pub(super) fn pending(rows: &SqliteRows<'_>) -> Result<Vec<Pending>> {
    let sql = "SELECT key, indexed, seq FROM sessions WHERE unindexed = 1";
    let sessions: Vec<(Key, u64, u64)> =
        rows.all(sql, [], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))?;
    let mut found = Vec::new();
    for (key, indexed, seq) in sessions {
        let range = [pos(key, Seq::new(indexed + 1)), pos(key, Seq::new(seq))];
        let sql = "SELECT at, pos, octet_length(body) + CASE spilled WHEN 0 THEN 0 ELSE \
             (SELECT coalesce(sum(blobs.size), 0) FROM refs JOIN blobs USING (digest) \
             WHERE refs.pos = events.pos) END FROM events \
             WHERE pos BETWEEN ?1 AND ?2 ORDER BY pos";
        let events = rows.all(sql, range, |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)));
        let events: Vec<(i64, i64, u64)> = match events {
            Ok(events) => events,
            // An unreadable session does not keep the others from being indexed.
            Err(Error::DamagedStore { .. }) => continue,
            Err(error) => return Err(error),
        };
        // No event counts as older than the one before it. So the sorted list can be cut anywhere,
        // and each session is then indexed up to one seq.
        let (mut latest, mut after) = (Time::from_micros(i64::MIN), Seq::new(indexed));
        found.extend(events.into_iter().map(|(at, pos, bytes)| {
            latest = latest.max(Time::from_micros(at));
            Pending { at: latest, pos, after: std::mem::replace(&mut after, seq_of(pos)), bytes }
        }));
    }
    found.sort_unstable();
    Ok(found)
}

/// Splits pending events into chunks for one transaction each.
pub(super) fn chunks(pending: Vec<Pending>) -> Vec<Vec<Pending>> {
    let mut chunks: Vec<Vec<Pending>> = Vec::new();
    let mut bytes = 0;
    for event in pending {
        bytes += event.bytes;
        match chunks.last_mut() {
            Some(chunk) if bytes <= CHUNK_BYTES && chunk.len() < CHUNK_EVENTS => chunk.push(event),
            _ => {
                bytes = event.bytes;
                chunks.push(vec![event]);
            }
        }
    }
    chunks
}

/// Rewrites the index without deleted words, which only a mark hides until then.
pub(super) fn compact(rows: &SqliteRows<'_>) -> Result<()> {
    rows.run("INSERT INTO words (words) VALUES ('optimize')", [])?;
    Ok(())
}

/// Indexes [`pending`] events, if they still are: another process may have indexed them, or reset a
/// session.
pub(super) fn index(rows: &SqliteRows<'_>, chunk: &[Pending]) -> Result<()> {
    let mut marks: BTreeMap<Key, Seq> = BTreeMap::new();
    let mut last_doc = 0;
    for &Pending { at, pos, after, .. } in chunk {
        let key = pos >> 32;
        let mark = match marks.entry(key) {
            Entry::Occupied(mark) => mark.into_mut(),
            Entry::Vacant(place) => {
                let sql = "SELECT indexed FROM sessions WHERE key = ?1";
                let Some(indexed) = rows.one(sql, [key], |row| row.get(0))? else { continue };
                place.insert(Seq::new(indexed))
            }
        };
        if *mark == after {
            *mark = seq_of(pos);
            last_doc = add(rows, at, pos, last_doc)?;
        }
    }
    for (key, seq) in marks {
        rows.run(
            "UPDATE sessions SET indexed = ?2, unindexed = seq > ?2 WHERE key = ?1",
            params![key, seq.get()],
        )?;
    }
    Ok(())
}

/// Adds one event's words. Returns the number of the last document.
fn add(rows: &SqliteRows<'_>, at: Time, pos: i64, last_doc: i64) -> Result<i64> {
    let row = match read::own_row(rows, pos >> 32, seq_of(pos)) {
        Err(Error::DamagedStore { .. }) => None,
        row => row?,
    };
    let known = |row: &Row<'_>| SEARCHABLE_KINDS.iter().any(|kind| kind.as_str() == row.kind);
    // A damaged event has no words; verification reports it.
    let Some(row) = row.filter(known) else { return Ok(last_doc) };
    let Ok(event) = row.open(&mut |digest| blob::get(rows, digest)) else { return Ok(last_doc) };
    let Some(text) = searchable(&event.event) else { return Ok(last_doc) };
    let doc = free_doc(rows, at, last_doc)?;
    if rows.run("INSERT OR IGNORE INTO docs (doc, pos) VALUES (?1, ?2)", [doc, pos])? == 0 {
        return Ok(last_doc);
    }
    let mut folded = String::with_capacity(text.len());
    for word in words(&text) {
        folded.push_str(&word.text);
        folded.push(' ');
    }
    rows.run("INSERT INTO words (rowid, text) VALUES (?1, ?2)", params![doc, folded])?;
    Ok(doc)
}

/// The next free document number at a time. Numbers grow with time, so that the newest hits come
/// first without sorting: microseconds in the upper bits, a counter in the lower ones.
fn free_doc(rows: &SqliteRows<'_>, at: Time, last: i64) -> Result<i64> {
    const COUNTER_BITS: u32 = 11;
    const SECOND: i64 = 1_000_000 << COUNTER_BITS;
    let first = at.as_micros().clamp(0, (1 << 52) - 1) << COUNTER_BITS;
    let free_in = |from: i64, to: i64| -> Result<Option<i64>> {
        let newest = "SELECT max(doc) FROM docs WHERE doc BETWEEN ?1 AND ?2";
        let newest: Option<Option<i64>> = rows.one(newest, [from, to], |row| row.get(0))?;
        let free = newest.flatten().map_or(from, |doc| doc + 1);
        Ok(Some(free).filter(|free| *free <= to))
    };
    // Thousands of imported events may share one second. They then use the numbers of the next one.
    let next = if last >= first && last - first < 60 * SECOND { last + 1 } else { first };
    let of_this_moment = first | ((1 << COUNTER_BITS) - 1);
    if next <= of_this_moment
        && let Some(free) = free_in(next, of_this_moment)?
    {
        return Ok(free);
    }
    let free = free_in(next, next.saturating_add(60 * SECOND))?;
    Ok(free.unwrap_or(next))
}

/// Removes a range of events from the index.
pub(super) fn forget(rows: &SqliteRows<'_>, from: i64, to: i64) -> Result<()> {
    let sql = "DELETE FROM words WHERE rowid IN (SELECT doc FROM docs WHERE pos BETWEEN ?1 AND ?2)";
    rows.run(sql, [from, to])?;
    rows.run("DELETE FROM docs WHERE pos BETWEEN ?1 AND ?2", [from, to])?;
    Ok(())
}

/// Removes a session's events from `seq` on from the index, to be indexed again.
pub(super) fn reindex_from(rows: &SqliteRows<'_>, key: Key, seq: Seq) -> Result<()> {
    forget(rows, pos(key, seq), pos(key, Seq::MAX))?;
    rows.run(
        "UPDATE sessions SET unindexed = 1, indexed = min(indexed, ?2) WHERE key = ?1",
        params![key, seq.prev().get()],
    )?;
    Ok(())
}

/// Searches the index in its present state.
pub(super) fn find(
    rows: &SqliteRows<'_>,
    search: &Search,
    redactor: &Redactor,
) -> Result<Vec<Hit>> {
    let Some(question) = Question::parse(&search.text) else {
        return Ok(Vec::new());
    };
    question.answer(search.limit, |question| {
        let places = places(rows, search, question)?.into_iter();
        let hits =
            places.filter_map(|(id, pos)| hit(rows, (&id, pos), question, redactor).transpose());
        hits.collect()
    })
}

/// The sessions and positions of the events that the index finds.
fn places(
    rows: &SqliteRows<'_>,
    search: &Search,
    question: &Question,
) -> Result<Vec<(String, i64)>> {
    let mut conditions = Conditions::of(&search.filter);
    let asked = conditions.bind(question.to_fts5());
    let limit = conditions.bind(i64::try_from(search.limit).unwrap_or(i64::MAX));
    // CROSS JOIN fixes the order: words first, newest first.
    let (hits, order) = match search.rank {
        Rank::Newest => ("words", "w.rowid DESC".to_owned()),
        Rank::Relevance => ("hits", "w.rank, w.rowid DESC".to_owned()),
    };
    let matched = match search.rank {
        Rank::Newest => format!("words MATCH {asked} AND "),
        Rank::Relevance => String::new(),
    };
    let with = match search.rank {
        Rank::Newest => String::new(),
        Rank::Relevance => format!(
            "WITH hits AS MATERIALIZED (SELECT rowid, bm25(words) AS rank FROM words \
             WHERE words MATCH {asked} ORDER BY rowid DESC LIMIT {RANKED}) "
        ),
    };
    let sql = format!(
        "{with}SELECT s.id, d.pos FROM {hits} w CROSS JOIN docs d ON d.doc = w.rowid \
         CROSS JOIN sessions s ON s.key = d.pos >> 32 \
         LEFT JOIN leases l ON l.session = s.key \
         WHERE {matched}{} ORDER BY {order} LIMIT {limit}",
        conditions.sql()
    );
    rows.all(&sql, params_from_iter(conditions.values()), |row| Ok((row.get(0)?, row.get(1)?)))
}

/// The hit at a position; `None` if the event is damaged.
fn hit(
    rows: &SqliteRows<'_>,
    (id, pos): (&str, i64),
    question: &Question,
    redactor: &Redactor,
) -> Result<Option<Hit>> {
    let (Ok(session), seq) = (id.parse(), seq_of(pos)) else { return Ok(None) };
    let Some(row) = read::own_row(rows, pos >> 32, seq)? else { return Ok(None) };
    let Ok(event) = row.open(&mut |digest| blob::get(rows, digest)) else { return Ok(None) };
    let snippet = Shown::of(&event.event, redactor).snippet(question);
    let (role, kind) = (event.event.role(), row.kind.into_owned());
    Ok(Some(Hit { session, seq, at: event.at, kind, role, source: None, snippet }))
}

/// A search by a process that may not write: over what is indexed, with the number of events that
/// are not.
pub(super) fn find_only(
    rows: &SqliteRows<'_>,
    search: &Search,
    redactor: &Redactor,
) -> Result<Found> {
    let sql = "SELECT coalesce(sum(seq - indexed), 0) FROM sessions WHERE unindexed = 1";
    let unseen = rows.one(sql, [], |row| row.get(0))?.unwrap_or(0);
    Ok(Found { hits: find(rows, search, redactor)?, unseen })
}

/// Empties the index, so that it is rebuilt.
pub(super) fn reset(rows: &SqliteRows<'_>) -> Result<()> {
    rows.run("INSERT INTO words (words) VALUES ('delete-all')", [])?;
    rows.run("DELETE FROM docs", [])?;
    rows.run("UPDATE sessions SET unindexed = 1, indexed = coalesce(base_at, 0)", [])?;
    Ok(())
}

/// Checks the index for damage.
pub(super) fn check(rows: &SqliteRows<'_>) -> Result<()> {
    match rows.run("INSERT INTO words (words) VALUES ('integrity-check')", []) {
        Err(Error::DamagedStore { .. } | Error::Database { .. }) => Err(Error::DamagedStore {
            path: rows.path.to_owned(),
            what: "the search index is damaged".to_owned(),
        }),
        other => other.map(|_| ()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_chunk_ends_by_its_bytes_or_its_count_and_none_is_lost() {
        let event = |n: usize, bytes| Pending {
            at: Time::EPOCH,
            pos: i64::try_from(n).unwrap(),
            after: Seq::ZERO,
            bytes,
        };
        let sizes = |events: Vec<Pending>| -> Vec<usize> {
            let chunks = chunks(events.clone());
            assert_eq!(chunks.concat(), events);
            chunks.iter().map(Vec::len).collect()
        };
        assert!(sizes(vec![]).is_empty());
        let small = (0..CHUNK_EVENTS * 2 + 1).map(|n| event(n, 1)).collect();
        assert_eq!(sizes(small), [CHUNK_EVENTS, CHUNK_EVENTS, 1]);
        let half = (0..5).map(|n| event(n, CHUNK_BYTES / 2)).collect();
        assert_eq!(sizes(half), [2, 2, 1]);
        let huge = (0..3).map(|n| event(n, CHUNK_BYTES * 4)).collect();
        assert_eq!(sizes(huge), [1, 1, 1]);
    }
}
