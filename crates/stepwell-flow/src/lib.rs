//! Workflows of agents: their specs, and durable execution of them.

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
pub mod spec;
pub mod template;
mod text;
mod walk;
mod wire;

pub use artifact::{Folder as OutputFolder, Over, Unwritten};
pub use dry_run::{DryRun, next_nodes};
pub use error::{Error, Result};
pub use execute::Ended;
pub use flow::{Agents, Flow, Parts, Upcoming};
pub use gate::{NO_PERSON, NOBODY, NoAnswer, accept};
pub use halt::NodeFailure;
pub use history::{History, Stored};
pub use memo::{Asked, Memo, Noted};
pub use spec::{schema, schema_text};
pub use stepwell_agent::run::Patience;
