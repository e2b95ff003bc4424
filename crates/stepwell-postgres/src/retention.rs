//! How long a namespace keeps what is in its trash: a setting of the store, which its owner makes.

use std::collections::BTreeSet;

use stepwell::{Result, SessionId};

use crate::engine::Attempt;
use crate::store::PostgresStore;
use crate::transport::params;

/// How long a team's store keeps what is in its trash, and whether it cleans up by itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Retention {
    /// After how many days a session in the trash may be erased; at least one.
    pub days: u32,
    /// After how many days without activity a session is moved to the trash; absent, never.
    pub cleanup_after_days: Option<u32>,
}

impl Default for Retention {
    fn default() -> Self {
        Self { days: 30, cleanup_after_days: None }
    }
}

/// Who may change what a team's store is set to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoreOwner {
    /// The role that the schema belongs to.
    pub role: String,
    /// Do this login's rights suffice?
    pub may_change: bool,
}

impl PostgresStore {
    /// How long this namespace keeps what is in its trash.
    pub fn retention(&self) -> Result<Retention> {
        self.engine.glance(|rows| {
            let sql = "SELECT retention_days, cleanup_after_days FROM stepwell.policies \
                 WHERE namespace = $1";
            let Some(row) = rows.one(sql, params![rows.namespace => INT4])? else {
                return Ok(Retention::default());
            };
            let days: i32 = rows.get(&row, 0)?;
            let cleanup: Option<i32> = rows.get(&row, 1)?;
            let cleanup_after_days = cleanup.map(i32::unsigned_abs);
            Ok(Retention { days: days.unsigned_abs(), cleanup_after_days })
        })
    }

    /// Sets it. The server refuses whoever is not the owner of the schema.
    pub fn set_retention(&self, retention: Retention) -> Result<()> {
        let Retention { days, cleanup_after_days } = retention;
        let column = |days: u32| i32::try_from(days).unwrap_or(i32::MAX);
        let once = Attempt::ONCE;
        self.engine.change(once, |rows, _, _| {
            let sql = "INSERT INTO stepwell.policies (namespace, retention_days, \
                 cleanup_after_days) VALUES ($1, $2, $3) \
                 ON CONFLICT (namespace) DO UPDATE SET retention_days = excluded.retention_days, \
                 cleanup_after_days = excluded.cleanup_after_days";
            let params = params![
                rows.namespace => INT4,
                column(days) => INT4,
                cleanup_after_days.map(column) => INT4,
            ];
            rows.run(sql, params)
        })
    }

    /// Who may set it.
    pub fn owner(&self) -> Result<StoreOwner> {
        self.engine.glance(|rows| {
            let sql = "SELECT pg_get_userbyid(nspowner)::text, \
                 has_table_privilege('stepwell.policies', 'INSERT, UPDATE') \
                 FROM pg_namespace WHERE nspname = 'stepwell'";
            let row = rows.one(sql, &[])?;
            let row = row.ok_or_else(|| stepwell::Error::NoStore(rows.path.to_owned()))?;
            Ok(StoreOwner { role: rows.get(&row, 0)?, may_change: rows.get(&row, 1)? })
        })
    }

    /// Those of some sessions that another login began.
    pub fn begun_by_others(&self, ids: &[SessionId]) -> Result<BTreeSet<SessionId>> {
        let sql = "SELECT id, id, login FROM stepwell.sessions \
             WHERE namespace = $1 AND id = ANY ($2)";
        self.others(sql, ids)
    }

    /// Those of some sessions that another login began, or below which another login began one.
    pub fn with_others(&self, ids: &[SessionId]) -> Result<BTreeSet<SessionId>> {
        let sql = "SELECT id, id, login FROM stepwell.sessions \
             WHERE namespace = $1 AND id = ANY ($2) \
             UNION SELECT f.root, s.id, s.login FROM stepwell.sessions s \
             JOIN family f ON s.parent = f.id WHERE s.subagent AND s.namespace = $1";
        self.others(sql, ids)
    }

    /// Of the families that a statement finds, those that have a session of another login. One of
    /// which nobody noted who began it is the owner's.
    fn others(&self, family: &str, ids: &[SessionId]) -> Result<BTreeSet<SessionId>> {
        if ids.is_empty() {
            return Ok(BTreeSet::new());
        }
        let names: Vec<&str> = ids.iter().map(SessionId::as_str).collect();
        let sql = format!(
            "WITH RECURSIVE family (root, id, login) AS ({family}) \
             SELECT DISTINCT root FROM family WHERE session_user IS DISTINCT FROM coalesce(\
             login, (SELECT pg_get_userbyid(nspowner)::text FROM pg_namespace \
             WHERE nspname = 'stepwell'))"
        );
        self.engine.glance(|rows| {
            let params = params![rows.namespace => INT4, names => TEXT_ARRAY];
            let mut others = BTreeSet::new();
            for row in rows.all(&sql, params)? {
                others.extend(rows.get::<&str>(&row, 0)?.parse::<SessionId>());
            }
            Ok(others)
        })
    }
}
