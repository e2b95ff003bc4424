//! The one test binary of the crate.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

mod bad_input;
mod crash;
mod damage;
mod forks;
mod hostile;
mod mortal;
mod pages;
mod round_trip;
mod support;
mod work;
