//! The suite through pgbouncer in transaction mode.

use super::Namespace;
use crate::world::{bouncer, fresh};

fn pooled() -> Namespace {
    Namespace(fresh(&bouncer().url()))
}

stepwell_conformance::suite!(pooled);
