//! What is left of a store after kills, failing disks, power cuts and contention.
//!
//! Each test runs the `torture` binary and compares the store with what that process reported
//! as acknowledged. `STEPWELL_TORTURE_ROUNDS` sets how long the crash, fault and power tests
//! run (default 12; thousands for a night), and `STEPWELL_TORTURE_SEED` their seed; a failure
//! prints its seed. `STEPWELL_TORTURE_WORDS` and `STEPWELL_TORTURE_KILLS` set how many messages are
//! said to a session while its runner is killed how often (default 1,000 and 50).
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "these are tests, which may panic and print their figures"
)]

mod answers;
mod child;
mod contention;
mod crash;
#[cfg(target_os = "linux")]
mod fault;
mod forks;
mod ledger;
#[cfg(target_os = "linux")]
mod power;
mod program;
#[cfg(target_os = "linux")]
mod shim;
mod talker;
mod terminal;
mod words;

use std::time::{Duration, Instant};

/// How many rounds the randomized tests run.
fn rounds() -> u64 {
    number("STEPWELL_TORTURE_ROUNDS", 12)
}

/// The seed of the randomized tests.
fn seed() -> u64 {
    number("STEPWELL_TORTURE_SEED", 20_260_223)
}

#[expect(clippy::disallowed_methods, reason = "a test can only get options from the environment")]
fn number(name: &str, default: u64) -> u64 {
    match std::env::var(name) {
        Ok(text) => text.parse().unwrap_or_else(|_| panic!("{name}={text} is not a number")),
        Err(_) => default,
    }
}

#[expect(clippy::disallowed_methods, reason = "the tests make claims about real time")]
fn timed<T>(work: impl FnOnce() -> T) -> (T, Duration) {
    let started = Instant::now();
    let done = work();
    (done, started.elapsed())
}
