//! Lists and counts in SQLite.

use std::collections::BTreeMap;

use rusqlite::params_from_iter;

use super::conditions::{Conditions, STATUS};
use super::rows::{SESSION_COLUMNS, SESSION_TABLES, read_session};
use super::sql::SqliteRows;
use crate::error::{Error, Result};
use crate::model::{Origin, Seq, SessionId, Status, Time};
use crate::store::query::{Cursor, Family, Filter, Page, Query, Sort};
use crate::store::rows::{Rows, TxnContext, stand_in};
use crate::store::{Counts, Damage, Order, SessionInfo, read};

fn column(sort: Sort) -> &'static str {
    match sort {
        Sort::Updated => "updated",
        Sort::Created => "created",
        Sort::Cost => "cost",
        Sort::Steps => "steps",
    }
}

/// One page of sessions.
pub(super) fn page(rows: &SqliteRows<'_>, world: TxnContext<'_>, query: &Query) -> Result<Page> {
    match fast_page(rows, world, query) {
        Err(Error::DamagedStore { .. }) => slow_page(rows, world, query),
        answer => answer,
    }
}

fn fast_page(rows: &SqliteRows<'_>, world: TxnContext<'_>, query: &Query) -> Result<Page> {
    let mut conditions = Conditions::of(&query.filter);
    let column = column(query.sort);
    let (before, direction) = match query.order {
        Order::Newest => ("<", "DESC"),
        Order::Oldest => (">", "ASC"),
    };
    if let Some(Cursor { value, key }) = query.after {
        let (value, key) = (conditions.bind(value), conditions.bind(key));
        conditions.require(format!("(s.{column}, s.key) {before} ({value}, {key})"));
    }
    // One more than requested shows whether there is a next page.
    let limit = i64::try_from(query.limit.saturating_add(1)).unwrap_or(i64::MAX);
    let limit = conditions.bind(limit);
    let sql = format!(
        "SELECT {SESSION_COLUMNS}, s.{column} FROM {SESSION_TABLES} WHERE {} \
         ORDER BY s.{column} {direction}, s.key {direction} LIMIT {limit}",
        conditions.sql()
    );
    let mut cursors = Vec::new();
    let read = |row: &rusqlite::Row<'_>| {
        let session = read_session(row)?;
        cursors.push(Cursor { value: row.get(18)?, key: session.key });
        Ok(read::info(session, world))
    };
    let mut sessions = rows.all(&sql, params_from_iter(conditions.values()), read)?;
    let more = sessions.len() > query.limit;
    sessions.truncate(query.limit);
    cursors.truncate(query.limit);
    Ok(Page { sessions, next: cursors.pop().filter(|_| more) })
}

/// A list over a damaged file reads each session alone. Readable ones are listed as usual, and
/// unreadable ones are in every list, for any filter.
fn slow_page(rows: &SqliteRows<'_>, world: TxnContext<'_>, query: &Query) -> Result<Page> {
    if let Family::Below(ids) = &query.filter.family {
        return slowly_below(rows, world, ids, query);
    }
    // The ids have their own index, which may be intact if the rows are not.
    let ids: Vec<(i64, String)> =
        rows.all("SELECT key, id FROM sessions ORDER BY id", [], |row| {
            Ok((row.get(0)?, row.get(1)?))
        })?;
    let mut wanted = Conditions::of(&query.filter);
    let key = wanted.bind(0_i64);
    let mut sessions: Vec<(i64, SessionInfo)> = Vec::new();
    for (number, id) in ids {
        wanted.rebind_last(number);
        let sql = format!(
            "SELECT s.key FROM sessions s LEFT JOIN leases l ON l.session = s.key \
             WHERE s.key = {key} AND {}",
            wanted.sql()
        );
        let info = match rows.one(&sql, params_from_iter(wanted.values()), |_| Ok(())) {
            Ok(None) => continue,
            Ok(Some(())) => {
                rows.session_by_key(number).map(|row| row.map(|row| read::info(row, world)))
            }
            Err(error) => Err(error),
        };
        let info = match info {
            Ok(None) => continue,
            Ok(Some(info)) => info,
            Err(Error::DamagedStore { what, .. }) => unreadable(&id, what),
            Err(error) => return Err(error),
        };
        sessions.push((number, info));
    }
    Ok(Page::cut(sessions, query))
}

/// The same for subagents, parent by parent. An unreadable session is listed under no parent.
fn slowly_below(
    rows: &SqliteRows<'_>,
    world: TxnContext<'_>,
    ids: &[SessionId],
    query: &Query,
) -> Result<Page> {
    let mut found: BTreeMap<SessionId, SessionInfo> = BTreeMap::new();
    let mut waiting = ids.to_vec();
    while let Some(parent) = waiting.pop() {
        let family = Family::ChildrenOf(parent);
        let filter = Filter { family, ..query.filter.clone() };
        let query = Query { filter, limit: usize::MAX, after: None, ..query.clone() };
        for child in slow_page(rows, world, &query)?.sessions {
            let is_subagent = matches!(child.head.origin, Origin::Subagent { .. });
            if is_subagent && found.insert(child.head.id.clone(), child.clone()).is_none() {
                waiting.push(child.head.id);
            }
        }
    }
    let place =
        |info: SessionInfo| Ok((rows.session(&info.head.id)?.map_or(0, |row| row.key), info));
    Ok(Page::cut(found.into_values().map(place).collect::<Result<_>>()?, query))
}

/// The info of a session with an unreadable row.
fn unreadable(id: &str, what: String) -> SessionInfo {
    SessionInfo {
        head: stand_in(id, Time::EPOCH, Time::EPOCH),
        held: None,
        own_from: Seq::FIRST,
        trashed_at: None,
        damage: Some(Damage { seq: Seq::ZERO, what }),
        bytes: 0,
    }
}

/// Sessions by status.
pub(super) fn count(rows: &SqliteRows<'_>, filter: &Filter) -> Result<Counts> {
    let conditions = Conditions::of(filter);
    let sql = format!(
        "SELECT {STATUS}, count(*), count(s.damage_at) FROM sessions s \
         LEFT JOIN leases l ON l.session = s.key WHERE {} GROUP BY 1",
        conditions.sql()
    );
    let read = |row: &rusqlite::Row<'_>| {
        Ok((row.get::<_, String>(0)?, row.get::<_, u64>(1)?, row.get::<_, u64>(2)?))
    };
    let mut counts = Counts::default();
    for (status, count, damaged) in rows.all(&sql, params_from_iter(conditions.values()), read)? {
        counts.damaged += damaged;
        // An unknown status means that the column is damaged, though the head is not.
        match status.parse::<Status>() {
            Ok(status) => *counts.by_status.entry(status).or_default() += count,
            Err(_) => counts.damaged += count,
        }
    }
    Ok(counts)
}
