//! The suite against a server, under a role that has no more rights than `stepwell store role` gives.

use std::sync::Once;

use stepwell_postgres::{Address, PostgresStore, script};

use super::Namespace;
use crate::servers::{fresh, server};

/// The role that all of these tests have in common, each with a namespace of its own.
const ROLE: &str = "conforming";

fn direct() -> Namespace {
    static MADE: Once = Once::new();
    MADE.call_once(|| {
        drop(PostgresStore::open(Address::parse(&server().url()).unwrap()).unwrap());
        let _ = server().sql(&format!("CREATE ROLE {ROLE} LOGIN"));
    });
    let address = fresh(&server().url().replace("stepwell@", &format!("{ROLE}@")));
    let _ = server().sql(&script(address.namespace(), ROLE).unwrap());
    Namespace(address)
}

stepwell_conformance::suite!(direct);
stepwell_conformance::damage_suite!(direct);
