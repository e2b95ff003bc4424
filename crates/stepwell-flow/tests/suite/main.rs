//! What holds for flows: the one test binary of the crate.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

mod hostile;
mod kills;
mod names;
mod rehearsing;
mod schema;
mod shop;
mod small;
mod specs;
mod stopping;
