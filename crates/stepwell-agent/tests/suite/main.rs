//! The agent, end to end.
//! The one test binary of the crate.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

mod command;
mod redact;
mod tools;
//! The agent, from outside.
mod gemini;
mod providers;
