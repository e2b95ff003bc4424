//! Files and worktrees through the public API: the only test binary of the crate.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

mod cut_off;
mod files;
mod git_attacks;
mod moves;
mod uncommitted;
