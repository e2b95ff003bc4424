//! The one test binary of the crate. No test has a terminal.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

mod approvals;
mod attached;
mod budgets;
mod counting;
mod flows;
mod live;
mod meant;
mod notify;
mod runs;
mod slash;
mod subagent_gates;
mod talk;
mod test_env;
mod work;
mod work_kills;
