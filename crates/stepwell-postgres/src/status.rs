//! What a server is, and whether what it acknowledges is really durable there.

use stepwell::Result;

use crate::rows::PgRows;
use crate::schema;

/// How a server stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Status {
    /// Its version, in its own words.
    pub server: String,
    /// The schema's version.
    pub schema: u32,
    /// Does it write, or follow another?
    pub role: Role,
    /// `synchronous_commit`.
    pub synchronous_commit: String,
    /// `fsync`: does a commit reach the disk at all?
    pub fsync: bool,
    /// `full_page_writes`: does a page that was half written survive?
    pub full_page_writes: bool,
    /// `synchronous_standby_names`: who has to acknowledge a commit.
    pub synchronous_standby_names: String,
    /// Those that follow it. Only some roles see them.
    pub standbys: Vec<Standby>,
    /// May this role see them?
    pub sees_standbys: bool,
    /// Sessions of this namespace.
    pub sessions: u64,
}

/// Does a server write, or follow another?
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// It takes writes.
    Primary,
    /// It follows a primary.
    Standby,
}

/// A server that follows another.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Standby {
    /// Its name.
    pub name: String,
    /// `streaming`, `catchup` and so on.
    pub state: String,
    /// `sync`, `quorum`, `potential` or `async`.
    pub sync: String,
    /// Bytes of the primary's log that it has not flushed.
    pub behind: u64,
}

/// What an acknowledged append survives.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Durability {
    /// Nothing for certain: not even the server's own crash. Why.
    None(String),
    /// The server's crash and loss of power, but not the loss of its disk.
    Local(String),
    /// The loss of the primary: another server has it on disk.
    Replicated(String),
    /// It cannot be told from here. Why.
    Unknown(String),
}

impl Status {
    /// What an acknowledged append survives. Replication that nobody waits for is not
    /// counted: what the primary acknowledged last is lost with it.
    #[must_use]
    pub fn durability(&self) -> Durability {
        // A standby's own settings say nothing of who waits for it.
        if self.role == Role::Standby {
            return Durability::Unknown(
                "this is a standby, and its primary acknowledges; ask the primary".to_owned(),
            );
        }
        if !self.fsync {
            return Durability::None("fsync is off".to_owned());
        }
        if !self.full_page_writes {
            return Durability::None("full_page_writes is off".to_owned());
        }
        if self.synchronous_commit == "off" {
            return Durability::None("synchronous_commit is off".to_owned());
        }
        let waited: Vec<&Standby> = self
            .standbys
            .iter()
            .filter(|standby| matches!(standby.sync.as_str(), "sync" | "quorum"))
            .collect();
        let named = !self.synchronous_standby_names.is_empty();
        match (self.synchronous_commit.as_str(), named) {
            ("local", _) => Durability::Local(
                "synchronous_commit is local: no standby is waited for".to_owned(),
            ),
            (_, false) if !self.sees_standbys => Durability::Local(
                "no standby is waited for; whether there are others this role may not see \
                 (an administrator runs: GRANT pg_monitor TO …)"
                    .to_owned(),
            ),
            (_, false) if self.standbys.is_empty() => {
                Durability::Local("there is no synchronous standby".to_owned())
            }
            (_, false) => Durability::Local(
                "its standbys are asynchronous: what was acknowledged last is lost with the primary"
                    .to_owned(),
            ),
            ("remote_write", true) => Durability::Local(
                "synchronous_commit is remote_write: the standby need not have flushed it"
                    .to_owned(),
            ),
            (_, true) if waited.is_empty() && self.sees_standbys => Durability::Replicated(
                "no synchronous standby is connected: commits wait until one is".to_owned(),
            ),
            (_, true) => {
                let names: Vec<&str> = waited.iter().map(|standby| standby.name.as_str()).collect();
                let names = if names.is_empty() { "a standby".to_owned() } else { names.join(", ") };
                Durability::Replicated(format!("{names} has each commit on disk before it is acknowledged"))
            }
        }
    }
}

/// Asks the server.
pub(crate) fn ask(rows: &PgRows<'_>) -> Result<Status> {
    let sql = "SELECT current_setting('server_version'), pg_is_in_recovery(), \
         current_setting('synchronous_commit'), current_setting('fsync') = 'on', \
         current_setting('full_page_writes') = 'on', current_setting('synchronous_standby_names'), \
         pg_has_role('pg_read_all_stats', 'USAGE') OR \
         (SELECT rolsuper FROM pg_roles WHERE rolname = current_user), \
         (SELECT count(*) FROM stepwell.heads WHERE namespace = $1 AND trashed IS NULL)";
    let row = rows.one(sql, crate::transport::params![rows.namespace => INT4])?;
    let row = row.ok_or_else(|| stepwell::Error::Database {
        path: rows.path.to_owned(),
        doing: "asking for its status",
        what: "the server gave no answer".to_owned(),
    })?;
    let role = if rows.get(&row, 1)? { Role::Standby } else { Role::Primary };
    let standbys = match role {
        Role::Standby => Vec::new(),
        Role::Primary => {
            let sql = "SELECT application_name, state, sync_state, \
                 coalesce(pg_wal_lsn_diff(pg_current_wal_lsn(), flush_lsn), 0)::bigint \
                 FROM pg_stat_replication WHERE state IS NOT NULL ORDER BY 1";
            let standby = |row: &tokio_postgres::Row| {
                Ok(Standby {
                    name: rows.get(row, 0)?,
                    state: rows.get(row, 1)?,
                    sync: rows.get(row, 2)?,
                    behind: rows.get::<i64>(row, 3)?.max(0).unsigned_abs(),
                })
            };
            rows.all(sql, &[])?.iter().map(standby).collect::<Result<_>>()?
        }
    };
    Ok(Status {
        server: rows.get(&row, 0)?,
        schema: schema::VERSION,
        role,
        synchronous_commit: rows.get(&row, 2)?,
        fsync: rows.get(&row, 3)?,
        full_page_writes: rows.get(&row, 4)?,
        synchronous_standby_names: rows.get(&row, 5)?,
        standbys,
        sees_standbys: rows.get(&row, 6)?,
        sessions: rows.get::<i64>(&row, 7)?.unsigned_abs(),
    })
}
