//! The schema, its version, and how it comes to be there.
//!
//! Many nodes may start at once: whoever comes first holds the row of versions until its
//! transaction ends, and the others then find the work done.

use stepwell::sqlite::Access;
use stepwell::{Error, Result};

use crate::fault::DbError;
use crate::transport::{Conn, Patience, Pool, SERVER_TIME, params};

/// Each step brings the schema from version `i` to `i + 1`, all of it or nothing.
const STEPS: &[&str] = &[include_str!("sql/schema.sql")];

/// The version that this program works with.
pub const VERSION: u32 = STEPS.len() as u32;

/// The oldest server that it works with, as servers number themselves.
const OLDEST_SERVER: i32 = 150_000;

/// How often a start is tried again that met another node's.
const ATTEMPTS: usize = 50;

/// What opening a store found there.
#[derive(Clone, Debug)]
pub(crate) struct Found {
    pub(crate) namespace: i32,
    /// Where its notifications are.
    pub(crate) channel: String,
}

/// Makes sure that the schema and the namespace are there.
pub(crate) fn open(pool: &Pool, access: Access, patience: &mut Patience) -> Result<Found> {
    bring_to(STEPS, pool, access, patience)
}

/// Makes sure that the schema that some steps lead to is there, and the namespace.
fn bring_to(steps: &[&str], pool: &Pool, access: Access, patience: &mut Patience) -> Result<Found> {
    let known = u32::try_from(steps.len()).unwrap_or(u32::MAX);
    let fault = |trouble: DbError| trouble.on_opening(pool.path());
    for _ in 0..ATTEMPTS {
        let conn = pool.connect(patience).map_err(fault)?;
        match look(pool, &conn) {
            Ok(Looked { version, .. }) if version > i64::from(known) => {
                let (path, found) = (pool.path().to_owned(), u32::try_from(version).unwrap_or(0));
                return Err(Error::Newer { path, found, known });
            }
            Ok(Looked { version, namespace: Some(namespace), .. })
                if version == i64::from(known) =>
            {
                let (namespace, channel) = namespace;
                return Ok(Found { namespace, channel });
            }
            // The owner's first command upgrades the schema, also one that only reads: other roles wait
            // for that.
            Ok(found) if access == Access::Write || found.is_owners_to_upgrade(known) => {
                match prepare(steps, pool, &conn) {
                    Ok(()) | Err(DbError::Again(_)) => {}
                    Err(DbError::Lost(_)) if patience.pause() => {}
                    // Another node made it meanwhile.
                    Err(DbError::Refused { code, .. })
                        if matches!(code.as_str(), "42P06" | "42P07" | "XX000") => {}
                    Err(DbError::Refused { code, .. }) if code == "42501" => {
                        return Err(unprepared(pool, found.version, known));
                    }
                    Err(trouble) => return Err(fault(trouble)),
                }
            }
            Ok(found) if found.version > 0 && found.version < i64::from(known) => {
                return Err(unprepared(pool, found.version, known));
            }
            Ok(_) => return Err(Error::NoStore(pool.path().to_owned())),
            Err(DbError::Refused { code, .. }) if code == "42501" => return Err(barred(pool)),
            Err(DbError::Lost(_)) if patience.pause() => {}
            Err(trouble) => return Err(fault(trouble)),
        }
    }
    let (path, doing) = (pool.path().to_owned(), "opening the store");
    Err(Error::Database { path, doing, what: "others kept changing its schema".to_owned() })
}

/// This role may not change the schema, and the schema does not do as it is.
fn unprepared(pool: &Pool, version: i64, known: u32) -> Error {
    let what = match version {
        0 => "it is not set up, and this role may not do that; its owner opens it first".to_owned(),
        v if v < i64::from(known) => format!(
            "its schema has version {v}, this program needs {known}; its owner opens it first"
        ),
        _ => return barred(pool),
    };
    Error::Unsupported { path: pool.path().to_owned(), what }
}

/// This role may not see the namespace, or not even look.
fn barred(pool: &Pool) -> Error {
    let namespace = pool.address.namespace().to_owned();
    Error::NotAMember { path: pool.path().to_owned(), namespace }
}

struct Looked {
    /// Zero, if there is no schema.
    version: i64,
    namespace: Option<(i32, String)>,
    /// Does the schema belong to this role?
    owned: bool,
}

impl Looked {
    /// Is there an older schema, which its owner brings up to date?
    fn is_owners_to_upgrade(&self, known: u32) -> bool {
        self.owned && (1..i64::from(known)).contains(&self.version)
    }
}

fn look(pool: &Pool, conn: &Conn) -> Result<Looked, DbError> {
    let sql = format!(
        "SELECT (SELECT version::bigint FROM stepwell.meta), \
         (SELECT id FROM stepwell.namespaces WHERE name = $1), {SERVER_TIME}, {SERVER}, \
         (SELECT pg_has_role(nspowner, 'USAGE') AND NOT pg_is_in_recovery() \
         FROM pg_namespace WHERE nspname = 'stepwell'), \
         (SELECT channel::text FROM stepwell.namespaces WHERE name = $1)"
    );
    match conn.query(&sql, params![pool.address.namespace() => TEXT]) {
        Ok(rows) => {
            let row = rows.first();
            row.map_or(Ok(()), |row| fits(row.get(3), row.get(4)))?;
            if let Some(now) = row.map(|row| row.get(2)) {
                pool.time.told(now);
            }
            let version = row.and_then(|row| row.get::<_, Option<i64>>(0)).unwrap_or(0);
            let owned = row.and_then(|row| row.get(5)).unwrap_or(false);
            let id = row.and_then(|row| row.get::<_, Option<i32>>(1));
            let channel = row.and_then(|row| row.get::<_, Option<String>>(6));
            Ok(Looked { version, namespace: id.zip(channel), owned })
        }
        // Neither the table nor the schema is there.
        Err(DbError::Refused { code, .. }) if matches!(code.as_str(), "42P01" | "3F000") => {
            Ok(Looked { version: 0, namespace: None, owned: false })
        }
        Err(trouble) => Err(trouble),
    }
}

/// What a server must say of itself before it is used.
const SERVER: &str =
    "current_setting('server_version_num')::int, current_setting('server_encoding')";

/// Can a store be in this database?
fn fits(version: i32, encoding: &str) -> Result<(), DbError> {
    if version < OLDEST_SERVER {
        return Err(DbError::Unfit(format!(
            "its server is PostgreSQL {}, and must be {} or newer; pg_upgrade brings it there",
            version / 10_000,
            OLDEST_SERVER / 10_000
        )));
    }
    if encoding != "UTF8" {
        return Err(DbError::Unfit(format!(
            "the database's encoding is {encoding}, and must be UTF8; \
             createdb --encoding UTF8 --template template0 makes such a one"
        )));
    }
    Ok(())
}

/// Brings the schema to where the steps lead, and makes the namespace.
fn prepare(steps: &[&str], pool: &Pool, conn: &Conn) -> Result<(), DbError> {
    let run = || -> Result<(), DbError> {
        conn.run("BEGIN")?;
        let server = conn.query(&format!("SELECT {SERVER}"), &[])?;
        server.first().map_or(Ok(()), |row| fits(row.get(0), row.get(1)))?;
        conn.run(
            "CREATE SCHEMA IF NOT EXISTS stepwell; \
             CREATE TABLE IF NOT EXISTS stepwell.meta (version int NOT NULL); \
             LOCK TABLE stepwell.meta IN ACCESS EXCLUSIVE MODE",
        )?;
        let found = conn.query("SELECT version FROM stepwell.meta", &[])?;
        let found = found.first().map_or(0, |row| row.get::<_, i32>(0));
        for step in steps.iter().skip(usize::try_from(found).unwrap_or(0)) {
            conn.run(step)?;
        }
        conn.run(&format!(
            "DELETE FROM stepwell.meta; INSERT INTO stepwell.meta VALUES ({})",
            steps.len()
        ))?;
        let name = pool.address.namespace();
        conn.query(
            "INSERT INTO stepwell.namespaces (name) VALUES ($1) ON CONFLICT DO NOTHING",
            params![name => TEXT],
        )?;
        conn.query(
            "INSERT INTO stepwell.guards SELECT id FROM stepwell.namespaces WHERE name = $1 \
             ON CONFLICT DO NOTHING",
            params![name => TEXT],
        )?;
        conn.run("COMMIT")
    };
    run().inspect_err(|_| conn.roll_back())
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicI64;

    use stepwell_cluster::{Disk, Server};

    use super::*;
    use crate::address::Address;
    use crate::transport::TimeSource;

    #[test]
    fn an_old_server_and_another_encoding_are_refused() {
        assert_eq!(fits(150_018, "UTF8"), Ok(()));
        assert_eq!(fits(180_000, "UTF8"), Ok(()));
        for (version, encoding, word) in [
            (140_011, "UTF8", "PostgreSQL 14, and must be 15 or newer"),
            (90_624, "UTF8", "PostgreSQL 9,"),
            (150_000, "SQL_ASCII", "SQL_ASCII"),
        ] {
            let Err(DbError::Unfit(what)) = fits(version, encoding) else { panic!("{version}") };
            assert!(what.contains(word), "{what}");
        }
    }
    const GOOD: &str = "CREATE TABLE stepwell.two (x int)";
    const BAD: &str = "CREATE TABLE stepwell.three (x int); NONSENSE";

    fn opened(server: &Server, steps: &[&str], access: Access) -> Result<Found> {
        opened_at(&server.url(), steps, access)
    }

    fn opened_at(url: &str, steps: &[&str], access: Access) -> Result<Found> {
        let address = Address::parse(url).unwrap();
        let mut patience = Patience::new(address.opening);
        let pool = Pool::new(address, TimeSource::Server(AtomicI64::new(0)), None).unwrap();
        bring_to(steps, &pool, access, &mut patience)
    }

    #[test]
    fn a_server_that_restarts_during_a_migration_is_migrated_whole_or_not_at_all() {
        let server = Server::start(Disk::Lazy);
        opened(&server, STEPS, Access::Write).unwrap();
        let _ = server.sql("CREATE TABLE public.gate ()");
        let slow = "CREATE TABLE stepwell.two (x int); LOCK TABLE public.gate; \
             CREATE TABLE stepwell.three (x int)";
        let steps = [STEPS, &[slow]].concat();
        let shape = || {
            server.sql(
                "SELECT (SELECT version FROM stepwell.meta), to_regclass('stepwell.two') IS NULL, \
                 to_regclass('stepwell.three') IS NULL",
            )
        };
        for (patience, done) in [(0, false), (60, true)] {
            let address = Address::parse(&server.url()).unwrap();
            let pool = Pool::new(address, TimeSource::Server(AtomicI64::new(0)), None).unwrap();
            let holder = pool.connect(&mut Patience::new(pool.address.opening)).unwrap();
            holder.run("BEGIN; LOCK TABLE public.gate").unwrap();
            let url = format!("{}?patience={patience}", server.url());
            std::thread::scope(|threads| {
                let migrating = threads.spawn(|| opened_at(&url, &steps, Access::Write));
                // It is in the middle of the step, and one of its tables is made.
                while server.sql("SELECT count(*) FROM pg_locks WHERE NOT granted") == "0" {}
                server.kill();
                if !done {
                    assert!(migrating.join().unwrap().is_err());
                    server.run_on();
                    assert_eq!(shape(), "1|t|t");
                    return;
                }
                server.run_on();
                migrating.join().unwrap().unwrap();
                assert_eq!(shape(), "2|f|f");
            });
        }
    }

    #[test]
    fn an_older_schema_is_upgraded_once_or_not_at_all() {
        let server = Server::start(Disk::Lazy);
        let (good, bad) = ([STEPS, &[GOOD]].concat(), [STEPS, &[GOOD, BAD]].concat());
        opened(&server, STEPS, Access::Write).unwrap();
        let shape = || {
            server.sql(
                "SELECT (SELECT version FROM stepwell.meta), to_regclass('stepwell.two') IS NULL, \
                 to_regclass('stepwell.three') IS NULL",
            )
        };
        // A step that fails takes the steps before it along.
        opened(&server, &bad, Access::Write).unwrap_err();
        assert_eq!(shape(), "1|t|t");
        // A member's commands do not upgrade it, and say whose does.
        let _ = server.sql("CREATE ROLE member LOGIN");
        let _ = server.sql(&crate::script("default", "member").unwrap());
        for access in [Access::Read, Access::Write] {
            let url = server.url().replace("stepwell@", "member@");
            let refused = opened_at(&url, &good, access).unwrap_err();
            assert!(refused.to_string().contains("its owner opens it first"), "{refused}");
            assert_eq!(shape(), "1|t|t");
        }
        // Many nodes start at once.
        std::thread::scope(|threads| {
            for _ in 0..4 {
                threads.spawn(|| opened(&server, &good, Access::Write).unwrap());
            }
        });
        assert_eq!(shape(), "2|f|t");
        // The owner's first command does, whichever it is.
        let better = [&good[..], &["CREATE TABLE stepwell.four (x int)"]].concat();
        opened(&server, &better, Access::Read).unwrap();
        assert_eq!(server.sql("SELECT to_regclass('stepwell.four') IS NULL"), "f");
        // This version, which does not know the step, refuses it now.
        let refused = opened(&server, STEPS, Access::Write).unwrap_err();
        assert!(matches!(refused, Error::Newer { found: 3, known: 1, .. }), "{refused}");
    }
}
