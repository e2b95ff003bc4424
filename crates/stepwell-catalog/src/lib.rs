//! The named parts of runs: models with prices and context lengths, sources of keys, agents, and
//! MCP servers. Configuration describes them; agents use them.

pub mod agent;
mod environment;
mod model;
pub mod price;
pub mod server;
mod wire;

pub use environment::{IN_RUN, is_private_variable};
pub use model::{KeySource, model_name};
