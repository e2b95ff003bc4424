//! Workflows of agents: what a spec says, and its durable execution.

mod error;
pub mod plan;
mod schema;
pub mod spec;
pub mod template;

pub use error::{Error, Result};
pub use schema::{schema, schema_text};
