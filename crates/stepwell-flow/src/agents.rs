//! Agents: who knows what a flow's agents work with.

use std::sync::Arc;

use stepwell_agent::redact::Redactor;
use stepwell_agent::run::Setup;

/// Knows what a flow's agents work with: models, tools, keys.
pub trait Agents {
    /// What an agent works with, with these tools in place of its own if any are given. The
    /// error says why it cannot work.
    fn setup(&self, agent: &str, tools: Option<&[String]>) -> Result<Arc<Setup>, String>;

    /// Keeps secrets out of what is written.
    fn redactor(&self) -> &Redactor;
}
