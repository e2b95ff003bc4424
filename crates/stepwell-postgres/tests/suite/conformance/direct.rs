//! The suite against a server.

use super::Namespace;
use crate::servers::{fresh, server};

fn direct() -> Namespace {
    Namespace(fresh(&server().url()))
}

stepwell_conformance::suite!(direct);
stepwell_conformance::damage_suite!(direct);
