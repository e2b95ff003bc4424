//! What is left of a store after kills, failing disks, lost power and rivals.
//!
//! Each test runs the `torture` binary and compares the store with what that process
//! said was acknowledged. `STEPWELL_TORTURE_ROUNDS` sets how long the crash, fault and
//! power tests go on (default 12; a night's run takes thousands), and
//! `STEPWELL_TORTURE_SEED` where their dice begin; a failure names its seed.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stderr,
    reason = "every file here is a test's, and a test may panic and print its figures"
)]

mod child;
mod crash;
#[cfg(target_os = "linux")]
mod fault;
mod forks;
mod ledger;
#[cfg(target_os = "linux")]
mod power;
mod processes;
#[cfg(target_os = "linux")]
mod shim;

use std::time::{Duration, Instant};

/// How long the tests with dice go on.
fn rounds() -> u64 {
    number("STEPWELL_TORTURE_ROUNDS", 12)
}

/// Where their dice begin.
fn seed() -> u64 {
    number("STEPWELL_TORTURE_SEED", 20_260_223)
}

#[expect(
    clippy::disallowed_methods,
    reason = "only the environment reaches a test from the command line"
)]
fn number(name: &str, default: u64) -> u64 {
    match std::env::var(name) {
        Ok(text) => text.parse().unwrap_or_else(|_| panic!("{name}={text} is no number")),
        Err(_) => default,
    }
}

#[expect(clippy::disallowed_methods, reason = "`at once` is a claim about real time")]
fn timed<T>(work: impl FnOnce() -> T) -> (T, Duration) {
    let begun = Instant::now();
    let done = work();
    (done, begun.elapsed())
}
