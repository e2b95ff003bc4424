//! The store on real servers: the conformance suite, and what only servers can do.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a panic is how a test fails")]

mod conformance;
mod world;
