//! The server, as programs and browsers reach it.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that fails says so by panicking")]

mod attacks;
mod desk;
mod dice;
mod documented;
mod live;
mod reached;
mod steering;
