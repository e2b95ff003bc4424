//! The conformance suite against [`SqliteStore`].

use std::sync::Arc;

use stepwell::sqlite::{Access, SqliteOptions, SqliteStore};
use stepwell::{Seq, SessionId, Store};
use stepwell_conformance::{Damageable, Fixture, TestClock, TestProcesses};
use tempfile::TempDir;

struct Sqlite(TempDir);

fn sqlite() -> Sqlite {
    Sqlite(TempDir::new().unwrap())
}

impl Fixture for Sqlite {
    fn open(&mut self, clock: Arc<TestClock>, processes: Arc<TestProcesses>) -> Arc<dyn Store> {
        let options = SqliteOptions { access: Access::Write, clock, processes };
        Arc::new(SqliteStore::open_with(&self.0.path().join("store"), options).unwrap())
    }
}

impl Damageable for Sqlite {
    fn damage(&mut self, session: &SessionId, seq: Seq) {
        let path = self.0.path().join("store").join("stepwell.db");
        let conn = rusqlite::Connection::open(path).unwrap();
        let sql = "UPDATE events SET body = replace(body, 'user', 'tool') \
             WHERE pos = (SELECT key << 32 | ?2 FROM sessions WHERE id = ?1)";
        let changed = conn.execute(sql, rusqlite::params![session.as_str(), seq.get()]);
        assert_eq!(changed.unwrap(), 1);
    }
}

stepwell_conformance::suite!(sqlite);
stepwell_conformance::damage_suite!(sqlite);
