//! A run shown line by line, and its questions asked where it is shown.

mod agent;
mod flow;
mod questions;

pub use agent::{AgentLines, compaction};
pub use flow::FlowLines;
pub use questions::{Answers, Elsewhere, Show, attend, watch};
