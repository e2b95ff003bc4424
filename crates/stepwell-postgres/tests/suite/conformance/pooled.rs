//! The suite through pgbouncer in transaction mode.

use super::Namespace;
use crate::servers::{bouncer, fresh};

fn pooled() -> Namespace {
    Namespace(fresh(&bouncer().url()))
}

stepwell_conformance::suite!(pooled);
