//! The server, through HTTP.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that fails says so by panicking")]

mod attacks;
mod dice;
mod documented;
mod importing;
mod live;
mod reached;
mod steering;
mod test_env;
