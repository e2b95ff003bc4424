//! Workflows of agents: what a spec says, and its durable execution.

mod answer;
mod artifact;
mod ask;
mod audience;
mod error;
mod execute;
mod flow;
mod gate;
mod halt;
mod history;
mod memo;
mod node;
mod pattern;
pub mod plan;
pub mod revision;
mod schema;
pub mod spec;
mod staff;
pub mod template;

pub use artifact::{Folder as OutputFolder, Over, Unwritten};
pub use audience::{Audience, News, Standing};
pub use error::{Error, Result};
pub use execute::{Ended, Patience};
pub use flow::{Flow, Parts};
pub use gate::{NOBODY, NoAnswer, accept};
pub use halt::Fallen;
pub use history::{History, Stored};
pub use memo::{Asked, Memo, Noted};
pub use schema::{schema, schema_text};
pub use staff::Staff;
