//! Flows through the public API: the only test binary of the crate.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

mod dry_run;
mod guided;
mod guided_consent;
mod guided_kills;
mod guided_repairs;
mod guided_ship;
mod guided_visits;
mod harness;
mod hostile;
mod kills;
mod names;
mod samples;
mod schema;
mod specs;
mod stopping;
