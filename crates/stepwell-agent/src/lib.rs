//! A coding agent whose every step is durable.
//!
//! A pure state machine ([`machine`]) decides the next move. A driver makes the move and records
//! each event before the next one begins, so that an interrupted run resumes exactly where it
//! stopped.

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
/// The agents and prices of the catalog, under the names that runs use.
pub use stepwell_catalog::{agent, price};
