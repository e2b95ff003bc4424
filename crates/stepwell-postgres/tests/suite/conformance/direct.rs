//! The suite against a server.

use super::Namespace;
use crate::world::{fresh, server};

fn direct() -> Namespace {
    Namespace(fresh(&server().url()))
}

stepwell_conformance::suite!(direct);
stepwell_conformance::damage_suite!(direct);
