//! The one test binary of the crate.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

mod conformance;
mod damage;
mod golden;
mod long_reads;
mod options;
mod properties;
mod redact;
mod surface;
