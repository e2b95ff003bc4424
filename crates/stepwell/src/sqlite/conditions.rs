//! Filters as SQL.

use rusqlite::types::Value;

use crate::model::{Driver, LEDGER_SCOPE, SessionId};
use crate::store::query::{Family, Filter, InScope, LedgerRows, TrashScope};

/// The status as callers read it. `alive` is a function of ours; it is called only for running
/// sessions.
pub(super) const STATUS: &str = "CASE WHEN s.status = 'running' AND s.external = 0 \
     AND NOT alive(l.holder, l.expires) THEN 'interrupted' ELSE s.status END";

/// Conditions on `sessions s` and its lease `l`, with their values.
#[derive(Default)]
pub(super) struct Conditions {
    clauses: Vec<String>,
    values: Vec<Value>,
}

impl Conditions {
    pub(super) fn of(filter: &Filter) -> Self {
        let mut all = Self::default();
        // Conditions for which another index finds few rows.
        let few = filter.rewinding || filter.system.is_some() || filter.scope.is_some();
        match filter.place {
            // The plus keeps SQLite from walking the index of all sessions outside the trash.
            TrashScope::Kept if few => all.clauses.push("+s.trashed IS NULL".to_owned()),
            TrashScope::Kept => all.clauses.push("s.trashed IS NULL".to_owned()),
            TrashScope::Trash => all.clauses.push("s.trashed IS NOT NULL".to_owned()),
            TrashScope::Anywhere => {}
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
        all.equal("s.system", filter.system.as_ref());
        match &filter.scope {
            None => {}
            Some(InScope::Is(scope)) => all.equal("s.scope", Some(scope)),
            Some(InScope::StartsWith(front)) => all.starts_with("s.scope", front),
        }
        if filter.rows == LedgerRows::Hidden {
            all.clauses.push(format!("s.scope IS NOT '{LEDGER_SCOPE}'"));
        }
        if let Some(driver) = filter.driver {
            let external = all.bind(i64::from(driver == Driver::External));
            all.clauses.push(format!("s.external = {external}"));
        }
        for tag in &filter.tags {
            let tag = all.bind(tag.clone());
            all.clauses.push(format!("has_tag(s.head, {tag})"));
        }
        if let Some(task) = &filter.task {
            let task = all.bind(task.to_lowercase());
            all.clauses.push(format!("task_has(s.head, {task})"));
        }
        if filter.rewinding {
            // The first condition matches the partial index, which has few rows. The second one
            // excludes heads that have such a key only in their metadata.
            all.clauses.push("instr(s.head, '\"rewinding\":') > 0".to_owned());
            all.clauses.push("is_rewinding(s.head)".to_owned());
        }
        match &filter.family {
            Family::Any => {}
            Family::Roots => all.clauses.push("s.subagent = 0".to_owned()),
            Family::ChildrenOf(parent) => {
                all.equal("s.parent", Some(&parent.as_str().to_owned()));
            }
            Family::Below(ids) => {
                let ids: Vec<&str> = ids.iter().map(SessionId::as_str).collect();
                let ids = all.bind(serde_json::Value::from(ids).to_string());
                all.clauses.push(format!(
                    "s.key IN (WITH RECURSIVE below (key, id) AS ( \
                     SELECT key, id FROM sessions WHERE subagent = 1 \
                     AND parent IN (SELECT value FROM json_each({ids})) \
                     UNION SELECT c.key, c.id FROM sessions c JOIN below b ON c.parent = b.id \
                     WHERE c.subagent = 1) SELECT key FROM below)"
                ));
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
            all.starts_with("s.id", prefix);
        }
        if let Some(part) = &filter.part {
            let part = all.bind(part.clone());
            all.clauses.push(format!("instr(s.id, {part}) > 0"));
        }
        let begun = |it: &String| format!("instr(ending(s.id), {}) = 1", all.bind(it.clone()));
        let begun: Vec<_> = filter.endings.iter().map(begun).collect();
        if !begun.is_empty() {
            all.clauses.push(format!("({})", begun.join(" OR ")));
        }
        all
    }

    /// Adds a value, and returns its placeholder.
    pub(super) fn bind(&mut self, value: impl Into<Value>) -> String {
        self.values.push(value.into());
        format!("?{}", self.values.len())
    }

    /// Replaces the last value.
    pub(super) fn rebind_last(&mut self, value: impl Into<Value>) {
        if let Some(last) = self.values.last_mut() {
            *last = value.into();
        }
    }

    /// Adds a condition.
    pub(super) fn require(&mut self, clause: String) {
        self.clauses.push(clause);
    }

    /// Texts with a prefix lie between the prefix and the prefix followed by the last character.
    fn starts_with(&mut self, column: &str, front: &str) {
        let (from, to) = (self.bind(front.to_owned()), self.bind(format!("{front}\u{10ffff}")));
        self.clauses.push(format!("{column} >= {from} AND {column} < {to}"));
    }

    fn equal(&mut self, column: &str, value: Option<&String>) {
        if let Some(value) = value {
            let value = self.bind(value.clone());
            self.clauses.push(format!("{column} = {value}"));
        }
    }

    /// The conditions as one expression.
    pub(super) fn sql(&self) -> String {
        if self.clauses.is_empty() { "1".to_owned() } else { self.clauses.join(" AND ") }
    }

    pub(super) fn values(&self) -> impl Iterator<Item = &Value> {
        self.values.iter()
    }
}

#[cfg(test)]
mod tests {
    use rusqlite::params_from_iter;

    use super::*;
    use crate::sqlite::SqliteStore;

    #[test]
    fn running_rewinds_are_found_without_reading_every_head() {
        let plan = plan(&Filter { rewinding: true, ..Filter::default() });
        assert!(plan[0].contains("sessions_rewinding"), "{plan:?}");
    }

    #[test]
    fn a_programs_sessions_are_found_by_its_name_or_their_scope_newest_first() {
        let system = Some("langgraph".to_owned());
        let by_system = plan(&Filter { system, ..Filter::default() });
        assert!(by_system[0].contains("sessions_system (system=?)"), "{by_system:?}");
        let scope = |scope| plan(&Filter { scope: Some(scope), ..Filter::default() });
        let by_scope = scope(InScope::Is("adk/app".to_owned()));
        assert!(by_scope[0].contains("sessions_scope (scope=?)"), "{by_scope:?}");
        // Neither plan sorts its result.
        let sorted = |plan: &[String]| plan.iter().any(|step| step.contains("B-TREE"));
        assert!(!sorted(&by_system) && !sorted(&by_scope), "{by_system:?} {by_scope:?}");
        let by_front = scope(InScope::StartsWith("adk/".to_owned()));
        assert!(by_front[0].contains("sessions_scope (scope>? AND scope<?)"), "{by_front:?}");
    }

    /// SQLite's plan for a list.
    fn plan(filter: &Filter) -> Vec<String> {
        let folder = tempfile::tempdir().unwrap();
        let store = SqliteStore::open(folder.path()).unwrap();
        let conditions = Conditions::of(filter);
        let sql = format!(
            "EXPLAIN QUERY PLAN SELECT s.key FROM sessions s LEFT JOIN leases l ON \
             l.session = s.key WHERE {} ORDER BY s.updated DESC, s.key DESC LIMIT 10",
            conditions.sql()
        );
        let values = params_from_iter(conditions.values());
        store.read(|rows, _| rows.all(&sql, values, |row| row.get(3))).unwrap()
    }
}
