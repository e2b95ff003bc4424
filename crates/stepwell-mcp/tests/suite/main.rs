//! The MCP server, from outside: the one test binary of the crate.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

mod hostile;
mod inspector;
mod own_client;
mod reading;
mod test_env;
mod writing;
