//! The conformance suite, against every store of this crate.

mod memory;
mod sqlite;
