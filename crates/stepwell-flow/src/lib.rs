//! Workflows of agents: their specs, and durable execution of them.

mod agents;
mod answer;
mod artifact;
mod ask;
mod dry_run;
mod error;
mod execute;
mod flow;
mod gate;
pub mod guided;
mod halt;
mod history;
mod memo;
pub mod names;
mod node;
mod pattern;
pub mod plan;
pub mod revision;
mod schema;
pub mod spec;
pub mod template;
mod upcoming;
mod wire;

pub use agents::Agents;
pub use artifact::{Folder as OutputFolder, Over, Unwritten};
pub use dry_run::{DryRun, next_nodes};
pub use error::{Error, Result};
pub use execute::Ended;
pub use flow::{Flow, Parts};
pub use gate::{NO_PERSON, NOBODY, NoAnswer, accept};
pub use halt::NodeFailure;
pub use history::{History, Stored};
pub use memo::{Asked, Memo, Noted};
pub use schema::{schema, schema_text};
pub use stepwell_agent::run::Patience;
pub use upcoming::Upcoming;
