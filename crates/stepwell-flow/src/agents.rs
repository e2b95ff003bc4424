//! What a flow's agents run with.

use std::sync::Arc;

use stepwell_agent::redact::Redactor;
use stepwell_agent::run::Setup;

/// Provides what a flow's agents run with: models, tools, keys.
pub trait Agents {
    /// The setup of one agent. `tools`, if given, replace the agent's own. The error says why
    /// the agent cannot run.
    fn setup(&self, agent: &str, tools: Option<&[String]>) -> Result<Arc<Setup>, String>;

    /// Removes secrets from everything that is written.
    fn redactor(&self) -> &Redactor;
}
