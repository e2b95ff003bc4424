//! The store on real servers: the conformance suite, and what only servers can do.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

mod changes;
mod conformance;
mod failover;
mod hung;
mod large;
mod lines;
mod properties;
mod raw;
mod refusals;
mod servers;
mod sharing;
mod statements;
mod tenants;
mod trips;
mod writers;
