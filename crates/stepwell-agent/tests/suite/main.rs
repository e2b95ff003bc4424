//! The agent, from outside: the one test binary of the crate.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

mod command;
mod context;
mod crash;
mod cut_off;
mod endings;
mod files;
mod gemini;
mod git_attacks;
mod lanes;
mod mcp;
mod providers;
mod redact;
mod shrinking;
mod subagents;
mod thrashing;
mod tools;
