//! Random histories against a plain model.

use std::cell::RefCell;
use std::sync::Arc;

use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};
use stepwell::Store;
use stepwell_conformance::history::{histories, op};
use stepwell_postgres::PostgresStore;

use crate::servers::{fresh, server};

/// How many random cases there are at least; `PROPTEST_CASES` asks for more. Each takes
/// some hundred round trips.
const CASES: u32 = 40;

#[test]
fn random_histories_on_a_server_equal_the_plain_model() {
    let usual = Config::default();
    let cases = if usual.cases == 256 { CASES } else { usual.cases };
    let mut runner = TestRunner::new(Config { cases, failure_persistence: None, ..usual });
    // Cases share a namespace for a while, so that they also meet each other's sessions.
    let shared: RefCell<Option<(Arc<dyn Store>, u32)>> = RefCell::new(None);
    runner
        .run(&prop::collection::vec(op(), 1..30), |ops| {
            let mut shared = shared.borrow_mut();
            if shared.as_ref().is_none_or(|(_, uses)| *uses >= 10) {
                let store = PostgresStore::open(fresh(&server().url())).unwrap();
                *shared = Some((Arc::new(store), 0));
            }
            let (store, uses) = shared.as_mut().unwrap();
            *uses += 1;
            histories(store, &ops);
            Ok(())
        })
        .unwrap();
}
