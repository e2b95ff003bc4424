//! The conformance suite, directly and through a pooler in transaction mode.

mod direct;
mod pooled;

use std::sync::Arc;

use stepwell::{Seq, SessionId, Store};
use stepwell_conformance::{Damageable, Fixture, TestClock, TestProcesses};
use stepwell_postgres::{Address, PostgresOptions, PostgresStore};

use crate::servers::server;

/// One namespace.
struct Namespace(Address);

impl Fixture for Namespace {
    fn open(&mut self, clock: Arc<TestClock>, processes: Arc<TestProcesses>) -> Arc<dyn Store> {
        let options =
            PostgresOptions { clock: Some(clock), processes, ..PostgresOptions::default() };
        Arc::new(PostgresStore::open_with(self.0.clone(), options).unwrap())
    }
}

impl Damageable for Namespace {
    fn damage(&mut self, session: &SessionId, seq: Seq) {
        let changed = server().sql(&format!(
            "WITH changed AS (UPDATE stepwell.events e \
             SET body = replace(convert_from(body, 'UTF8'), 'user', 'tool')::bytea \
             FROM stepwell.sessions s JOIN stepwell.namespaces n ON n.id = s.namespace \
             WHERE e.namespace = s.namespace AND e.session = s.key AND s.id = '{session}' AND n.name = '{}' AND e.seq = {seq} \
             RETURNING 1) SELECT count(*) FROM changed",
            self.0.namespace()
        ));
        assert_eq!(changed, "1");
    }
}
