//! The MCP server through its public API: the only test binary of the crate.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

mod hostile;
mod inspector;
mod own_client;
mod reading;
mod test_env;
mod writing;
