//! A coding agent whose every step is durable.
//!
//! What happens next is decided by a pure state machine ([`machine`]); a driver
//! performs what it asks for and records each event before the next thing begins, so that
//! a run that stops for any reason is taken up exactly there.

pub mod context;
mod error;
pub mod machine;
pub mod mcp;
pub mod permission;
pub mod phases;
pub mod provider;
pub mod run;
pub mod selection;
pub mod tool;

pub use error::{Error, Result};
/// Agents and prices, as runs take them.
pub use stepwell_catalog::{agent, price};
