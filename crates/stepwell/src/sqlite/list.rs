//! Lists and counts in SQLite.

use rusqlite::params_from_iter;
use rusqlite::types::Value;

use super::rows::{SESSION_COLUMNS, SESSION_TABLES, SqliteRows, read_session, stand_in};
use crate::store::query::{Cursor, Family, Filter, Page, Place, Query, Sort};
use crate::store::rows::{Rows, SessionRow, World};
use crate::store::{Counts, Damage, Order, Standing, read};
use crate::{Error, Result, Seq, Status, Time};

/// The status as everyone is to read it. `alive` is a function that the connection
/// gets from us; it is asked only where the answer matters.
const STATUS: &str = "CASE WHEN s.status = 'running' AND s.external = 0 \
     AND NOT alive(l.holder, l.expires) THEN 'interrupted' ELSE s.status END";

/// Conditions on `sessions s` and its lease `l`, with the values they compare to.
#[derive(Default)]
pub(super) struct Conditions {
    clauses: Vec<String>,
    values: Vec<Value>,
}

impl Conditions {
    pub(super) fn of(filter: &Filter) -> Self {
        let mut all = Self::default();
        match filter.place {
            Place::Kept => all.clauses.push("s.trashed IS NULL".to_owned()),
            Place::Trash => all.clauses.push("s.trashed IS NOT NULL".to_owned()),
            Place::Anywhere => {}
        }
        if !filter.status.is_empty() {
            let wanted: Vec<_> =
                filter.status.iter().map(|status| all.bind(status.as_str().to_owned())).collect();
            all.clauses.push(format!("{STATUS} IN ({})", wanted.join(", ")));
        }
        all.equal("s.agent", filter.agent.as_ref());
        all.equal("s.model", filter.model.as_ref());
        all.equal("s.label", filter.label.as_ref());
        all.equal("s.workspace", filter.workspace.as_ref());
        for tag in &filter.tags {
            let tag = all.bind(tag.clone());
            all.clauses.push(format!(
                "EXISTS (SELECT 1 FROM json_each(s.head, '$.tags') WHERE value = {tag})"
            ));
        }
        if let Some(task) = &filter.task {
            let task = all.bind(task.to_lowercase());
            all.clauses.push(format!("task_has(s.head, {task})"));
        }
        match &filter.family {
            Family::Any => {}
            Family::Roots => all.clauses.push("s.subagent = 0".to_owned()),
            Family::ChildrenOf(parent) => {
                all.equal("s.parent", Some(&parent.as_str().to_owned()));
            }
        }
        if let Some(since) = filter.since {
            let since = all.bind(since.as_micros());
            all.clauses.push(format!("s.updated >= {since}"));
        }
        if let Some(until) = filter.until {
            let until = all.bind(until.as_micros());
            all.clauses.push(format!("s.updated < {until}"));
        }
        if let Some(prefix) = &filter.prefix {
            // The ids that begin so lie between it and it with the last character behind.
            let (from, to) = (all.bind(prefix.clone()), all.bind(format!("{prefix}\u{10ffff}")));
            all.clauses.push(format!("s.id >= {from} AND s.id < {to}"));
        }
        all
    }

    /// Adds a value; the answer stands for it in a clause.
    pub(super) fn bind(&mut self, value: impl Into<Value>) -> String {
        self.values.push(value.into());
        format!("?{}", self.values.len())
    }

    fn equal(&mut self, column: &str, value: Option<&String>) {
        if let Some(value) = value {
            let value = self.bind(value.clone());
            self.clauses.push(format!("{column} = {value}"));
        }
    }

    /// All of them as one expression.
    pub(super) fn sql(&self) -> String {
        if self.clauses.is_empty() { "1".to_owned() } else { self.clauses.join(" AND ") }
    }

    pub(super) fn values(&self) -> impl Iterator<Item = &Value> {
        self.values.iter()
    }
}

fn column(sort: Sort) -> &'static str {
    match sort {
        Sort::Updated => "updated",
        Sort::Created => "created",
        Sort::Cost => "cost",
        Sort::Steps => "steps",
    }
}

/// One page of sessions.
pub(super) fn page(rows: &SqliteRows<'_>, world: World<'_>, query: &Query) -> Result<Page> {
    match fast_page(rows, world, query) {
        Err(Error::DamagedStore { .. }) => slow_page(rows, world, query),
        answer => answer,
    }
}

fn fast_page(rows: &SqliteRows<'_>, world: World<'_>, query: &Query) -> Result<Page> {
    let mut conditions = Conditions::of(&query.filter);
    let column = column(query.sort);
    let (before, direction) = match query.order {
        Order::Newest => ("<", "DESC"),
        Order::Oldest => (">", "ASC"),
    };
    if let Some(Cursor { value, key }) = query.after {
        let (value, key) = (conditions.bind(value), conditions.bind(key));
        conditions.clauses.push(format!("(s.{column}, s.key) {before} ({value}, {key})"));
    }
    // One more than asked for tells whether there is another page.
    let limit = i64::try_from(query.limit.saturating_add(1)).unwrap_or(i64::MAX);
    let limit = conditions.bind(limit);
    let sql = format!(
        "SELECT {SESSION_COLUMNS}, s.{column} FROM {SESSION_TABLES} WHERE {} \
         ORDER BY s.{column} {direction}, s.key {direction} LIMIT {limit}",
        conditions.sql()
    );
    let read = |row: &rusqlite::Row<'_>| Ok((read_session(row)?, row.get::<_, i64>(18)?));
    let mut found = rows.all(&sql, params_from_iter(conditions.values()), read)?;
    let more = found.len() > query.limit;
    found.truncate(query.limit);
    let cursor = |(row, value): &(SessionRow, i64)| Cursor { value: *value, key: row.key };
    let next = found.last().filter(|_| more).map(cursor);
    let sessions = found.into_iter().map(|(row, _)| read::standing(row, world)).collect();
    Ok(Page { sessions, next })
}

/// A list over a damaged file: every session by itself, so that those that can be
/// read are, and the others are named. Filters and pages apply to what was read; a
/// session that cannot be read is in every list.
fn slow_page(rows: &SqliteRows<'_>, world: World<'_>, query: &Query) -> Result<Page> {
    // The ids have an index of their own, which may be whole where the rows are not.
    let ids: Vec<(i64, String)> =
        rows.all("SELECT key, id FROM sessions ORDER BY id", [], |row| {
            Ok((row.get(0)?, row.get(1)?))
        })?;
    let mut wanted = Conditions::of(&query.filter);
    let key = wanted.bind(0_i64);
    let mut sessions: Vec<(i64, Standing)> = Vec::new();
    for (number, id) in ids {
        *wanted.values.last_mut().expect("the key was bound") = Value::from(number);
        let sql = format!(
            "SELECT s.key FROM sessions s LEFT JOIN leases l ON l.session = s.key \
             WHERE s.key = {key} AND {}",
            wanted.sql()
        );
        let standing = match rows.one(&sql, params_from_iter(wanted.values()), |_| Ok(())) {
            Ok(None) => continue,
            Ok(Some(())) => {
                rows.session_by_key(number).map(|row| row.map(|row| read::standing(row, world)))
            }
            Err(error) => Err(error),
        };
        let standing = match standing {
            Ok(None) => continue,
            Ok(Some(standing)) => standing,
            Err(Error::DamagedStore { what, .. }) => unreadable(&id, what),
            Err(error) => return Err(error),
        };
        sessions.push((number, standing));
    }
    Ok(Page::cut(sessions, query))
}

/// How a session stands whose row cannot be read.
fn unreadable(id: &str, what: String) -> Standing {
    Standing {
        head: stand_in(id, Time::EPOCH, Time::EPOCH),
        held: None,
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
        // A status that is none is damage that the column, not the head, shows.
        match status.parse::<Status>() {
            Ok(status) => *counts.by_status.entry(status).or_default() += count,
            Err(_) => counts.damaged += count,
        }
    }
    Ok(counts)
}
