//! Lists and counts in PostgreSQL: a filter as SQL, a page by its key.

use stepwell::backend::{TxnContext, read};
use stepwell::model::{Driver, LEDGER_SCOPE, Owner};
use stepwell::store::query::{
    Cursor, Family, Filter, InScope, LedgerRows, Page, Query, Sort, TrashScope,
};
use stepwell::store::{Counts, Liveness, Order};
use stepwell::{Result, Status};
use tokio_postgres::types::{ToSql, Type};

use crate::rows::{PgRows, SESSION_COLUMNS, SESSION_TABLES, SESSION_WIDTH, Wide, read_session};
use crate::transport::{Param, Statement, params};

/// Conditions on `sessions s`, `heads h` and the lease `l`, with the values they compare to.
#[derive(Default)]
pub(crate) struct Conditions {
    clauses: Vec<String>,
    values: Vec<(Box<dyn ToSql + Sync>, Type)>,
    /// The status as everyone is to read it.
    status: String,
    /// The namespace's number.
    team: String,
}

impl Conditions {
    pub(crate) fn of(rows: &PgRows<'_>, context: TxnContext<'_>, filter: &Filter) -> Result<Self> {
        // Who lives matters only to a status that is asked for.
        let holders = match filter.status.is_empty() {
            true => Holders::default(),
            false => Holders::ask(rows, context)?,
        };
        Ok(Self::given(rows, context, holders, filter))
    }

    /// The same, for who knows which holders live.
    fn given(
        rows: &PgRows<'_>,
        context: TxnContext<'_>,
        holders: Holders,
        filter: &Filter,
    ) -> Self {
        let mut all = Self::default();
        let now = all.bind(context.now.as_micros(), Type::INT8);
        let gone = all.bind(holders.gone, Type::BYTEA_ARRAY);
        let alive = all.bind(holders.alive, Type::BYTEA_ARRAY);
        all.status = format!(
            "CASE WHEN h.status = 'running' AND NOT s.external AND NOT coalesce(\
             l.holder <> ALL ({gone}) AND (l.expires > {now} OR l.holder = ANY ({alive})), false) \
             THEN 'interrupted' ELSE h.status END"
        );
        all.team = all.bind(rows.namespace, Type::INT4);
        all.clauses.push(format!("h.namespace = {}", all.team));
        all.add(filter);
        all
    }

    fn add(&mut self, filter: &Filter) {
        match filter.place {
            TrashScope::Kept => self.require("h.trashed IS NULL".to_owned()),
            TrashScope::Trash => self.require("h.trashed IS NOT NULL".to_owned()),
            TrashScope::Anywhere => {}
        }
        if !filter.status.is_empty() {
            let wanted: Vec<String> =
                filter.status.iter().map(|status| status.as_str().to_owned()).collect();
            let wanted = self.bind(wanted, Type::TEXT_ARRAY);
            let status = self.status.clone();
            self.require(format!("{status} = ANY ({wanted})"));
        }
        self.equal("s.agent", filter.agent.as_deref());
        self.equal("h.model", filter.model.as_deref());
        self.equal("s.label", filter.label.as_deref());
        self.equal("s.workspace", filter.workspace.as_deref());
        self.equal("s.system", filter.system.as_deref());
        match &filter.scope {
            None => {}
            Some(InScope::Is(scope)) => self.equal("s.scope", Some(scope)),
            Some(InScope::StartsWith(front)) => {
                let from = self.bind(front.as_bytes().to_vec(), Type::BYTEA);
                let to = self.bind(format!("{front}\u{10ffff}").into_bytes(), Type::BYTEA);
                self.require(format!("s.scope >= {from} AND s.scope < {to}"));
            }
        }
        if filter.rows == LedgerRows::Hidden {
            let rows = self.bind(LEDGER_SCOPE.as_bytes().to_vec(), Type::BYTEA);
            self.require(format!("s.scope IS DISTINCT FROM {rows}"));
        }
        if let Some(driver) = filter.driver {
            let external = self.bind(driver == Driver::External, Type::BOOL);
            self.require(format!("s.external = {external}"));
        }
        if !filter.tags.is_empty() {
            let tags: Vec<Vec<u8>> =
                filter.tags.iter().map(|tag| tag.as_bytes().to_vec()).collect();
            let tags = self.bind(tags, Type::BYTEA_ARRAY);
            self.require(format!("s.tags @> {tags}"));
        }
        if let Some(task) = filter.task.as_ref().filter(|task| !task.is_empty()) {
            let task = self.bind(task.to_lowercase().into_bytes(), Type::BYTEA);
            self.require(format!("position({task} IN s.task) > 0"));
        }
        if filter.rewinding {
            self.require("s.rewinding".to_owned());
        }
        match &filter.family {
            Family::Any => {}
            Family::Roots => self.require("NOT s.subagent".to_owned()),
            Family::ChildrenOf(parent) => {
                let parent = self.bind(parent.as_str().to_owned(), Type::TEXT);
                self.require(format!("s.parent = {parent}"));
            }
            Family::Below(ids) => {
                let team = self.team.clone();
                let ids: Vec<String> = ids.iter().map(ToString::to_string).collect();
                let ids = self.bind(ids, Type::TEXT_ARRAY);
                self.require(format!(
                    "h.session IN (WITH RECURSIVE below (key, id) AS (\
                     SELECT key, id FROM stepwell.sessions \
                     WHERE namespace = {team} AND subagent AND parent = ANY ({ids}) \
                     UNION SELECT c.key, c.id FROM stepwell.sessions c \
                     JOIN below b ON c.parent = b.id WHERE c.subagent AND c.namespace = {team}) \
                     SELECT key FROM below)"
                ));
            }
        }
        if let Some(since) = filter.since {
            let since = self.bind(since.as_micros(), Type::INT8);
            self.require(format!("h.updated >= {since}"));
        }
        if let Some(until) = filter.until {
            let until = self.bind(until.as_micros(), Type::INT8);
            self.require(format!("h.updated < {until}"));
        }
        // An id has no other characters than these, and none of them is greater than ~.
        if let Some(prefix) = &filter.prefix {
            if prefix.contains('\0') {
                self.require("false".to_owned());
            } else {
                let from = self.bind(prefix.clone(), Type::TEXT);
                let to = self.bind(format!("{prefix}\u{10ffff}"), Type::TEXT);
                self.require(format!("s.id >= {from} AND s.id < {to}"));
            }
        }
        if let Some(part) = &filter.part {
            let part = self.bind(part.replace('\0', "\u{fffd}"), Type::TEXT);
            self.require(format!("position({part} IN s.id) > 0"));
        }
        if !filter.endings.is_empty() {
            let clean = |it: &String| it.replace('\0', "\u{fffd}");
            let endings: Vec<String> = filter.endings.iter().map(clean).collect();
            let endings = self.bind(endings, Type::TEXT_ARRAY);
            let ending = "reverse(split_part(reverse(s.id), '-', 1))";
            self.require(format!(
                "EXISTS (SELECT FROM unnest({endings}) e WHERE position(e IN {ending}) = 1)"
            ));
        }
    }

    /// Adds a value; the answer stands for it in a clause.
    pub(crate) fn bind(&mut self, value: impl ToSql + Sync + 'static, kind: Type) -> String {
        self.values.push((Box::new(value), kind));
        format!("${}", self.values.len())
    }

    /// Adds a condition.
    pub(crate) fn require(&mut self, clause: String) {
        self.clauses.push(clause);
    }

    fn equal(&mut self, column: &str, value: Option<&str>) {
        if let Some(value) = value {
            let value = self.bind(value.as_bytes().to_vec(), Type::BYTEA);
            self.require(format!("{column} = {value}"));
        }
    }

    /// All of them as one expression.
    pub(crate) fn sql(&self) -> String {
        self.clauses.join(" AND ")
    }

    pub(crate) fn params(&self) -> Vec<Param<'_>> {
        self.values.iter().map(|(value, kind)| (&**value, kind.clone())).collect()
    }
}

/// Asks for the holders of leases, and whether these have not run out; few are held at any time.
const HOLDERS: &str = "SELECT DISTINCT holder, expires > $2 FROM stepwell.leases \
     WHERE namespace = $1 AND holder IS NOT NULL";

/// What this machine knows of the holders of leases, and the server cannot know.
#[derive(Default)]
struct Holders {
    /// Those of leases that have not run out whose processes are gone.
    gone: Vec<Vec<u8>>,
    /// Those of leases that ran out whose processes run.
    alive: Vec<Vec<u8>>,
}

impl Holders {
    fn ask(rows: &PgRows<'_>, context: TxnContext<'_>) -> Result<Self> {
        let params = params![rows.namespace => INT4, context.now.as_micros() => INT8];
        Self::of(rows, context, &rows.all(HOLDERS, params)?)
    }

    fn of(
        rows: &PgRows<'_>,
        context: TxnContext<'_>,
        holders: &[tokio_postgres::Row],
    ) -> Result<Self> {
        let mut judged = Self::default();
        for row in holders {
            let (text, lasts): (Vec<u8>, bool) = (rows.get(row, 0)?, rows.get(row, 1)?);
            let holder: Option<Owner> = serde_json::from_slice(&text).ok();
            let pulse = holder.map_or(Liveness::Gone, |it| context.processes.pulse(&it));
            match (lasts, pulse) {
                (true, Liveness::Gone) => judged.gone.push(text),
                (false, Liveness::Alive) => judged.alive.push(text),
                _ => {}
            }
        }
        Ok(judged)
    }

    fn is_empty(&self) -> bool {
        self.gone.is_empty() && self.alive.is_empty()
    }
}

/// One page of sessions, in one round trip, unless a holder turns out to be gone, or alive.
pub(crate) fn page(rows: &PgRows<'_>, context: TxnContext<'_>, query: &Query) -> Result<Page> {
    let (sql, conditions) = statement(rows, context, query, Holders::default());
    let answer = if query.filter.status.is_empty() {
        rows.all(&sql, &conditions.params())?
    } else {
        let asked = params![rows.namespace => INT4, context.now.as_micros() => INT8];
        let (holders, answer) = rows.both(
            Statement { sql: HOLDERS, params: asked },
            Statement { sql: &sql, params: &conditions.params() },
        )?;
        match Holders::of(rows, context, &holders)? {
            judged if judged.is_empty() => answer,
            judged => {
                let (sql, conditions) = statement(rows, context, query, judged);
                rows.all(&sql, &conditions.params())?
            }
        }
    };
    let mut found = Vec::new();
    for row in answer {
        let Wide { row: session, .. } = read_session(rows, &row)?;
        let value: i64 = rows.get(&row, SESSION_WIDTH)?;
        found.push((session, value));
    }
    let more = found.len() > query.limit;
    found.truncate(query.limit);
    let next =
        found.last().filter(|_| more).map(|(row, value)| Cursor { value: *value, key: row.key });
    let sessions = found.into_iter().map(|(row, _)| read::info(row, context)).collect();
    Ok(Page { sessions, next })
}

/// The statement that asks for a page, with its values.
fn statement(
    rows: &PgRows<'_>,
    context: TxnContext<'_>,
    query: &Query,
    holders: Holders,
) -> (String, Conditions) {
    let mut conditions = Conditions::given(rows, context, holders, &query.filter);
    let column = match query.sort {
        Sort::Updated => "h.updated",
        Sort::Created => "s.created",
        Sort::Cost => "h.cost",
        Sort::Steps => "h.steps",
    };
    let (before, direction) = match query.order {
        Order::Newest => ("<", "DESC"),
        Order::Oldest => (">", "ASC"),
    };
    if let Some(Cursor { value, key }) = query.after {
        let value = conditions.bind(value, Type::INT8);
        let key = conditions.bind(key, Type::INT8);
        conditions.require(format!("({column}, h.session) {before} ({value}, {key})"));
    }
    // One more than asked for tells whether there is another page.
    let limit = i64::try_from(query.limit.saturating_add(1)).unwrap_or(i64::MAX);
    let limit = conditions.bind(limit, Type::INT8);
    let sql = format!(
        "SELECT {SESSION_COLUMNS}, {column} FROM {SESSION_TABLES} WHERE {} \
         ORDER BY {column} {direction}, h.session {direction} LIMIT {limit}",
        conditions.sql()
    );
    (sql, conditions)
}

/// Sessions by status.
pub(crate) fn count(rows: &PgRows<'_>, context: TxnContext<'_>, filter: &Filter) -> Result<Counts> {
    let conditions = Conditions::given(rows, context, Holders::ask(rows, context)?, filter);
    let sql = format!(
        "SELECT {}, count(*), count(h.damage_at) FROM {SESSION_TABLES} WHERE {} GROUP BY 1",
        conditions.status,
        conditions.sql()
    );
    let mut counts = Counts::default();
    for row in rows.all(&sql, &conditions.params())? {
        let status: &str = rows.get(&row, 0)?;
        let (count, damaged): (i64, i64) = (rows.get(&row, 1)?, rows.get(&row, 2)?);
        counts.damaged += damaged.unsigned_abs();
        // A status that is none is damage that the column, not the head, shows.
        match status.parse::<Status>() {
            Ok(status) => *counts.by_status.entry(status).or_default() += count.unsigned_abs(),
            Err(_) => counts.damaged += count.unsigned_abs(),
        }
    }
    Ok(counts)
}
