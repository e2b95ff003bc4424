//! The agent, from outside: the one test binary of the crate.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

mod command;
mod context;
mod crash;
mod endings;
mod gemini;
mod lanes;
mod mcp;
mod odd_answers;
mod pictures;
mod provider_faults;
mod providers;
mod redact;
mod shrinking;
mod subagents;
mod thrashing;
mod tools;
