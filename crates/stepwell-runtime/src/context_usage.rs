//! What a session's next request would be measured by, found without asking anyone.

use std::sync::Arc;

use stepwell::log::Head;
use stepwell_agent::agent::Agent;
use stepwell_agent::context::Context;
use stepwell_agent::provider::ToolSpec;
use stepwell_agent::selection::may_have;
use stepwell_agent::tool::{self, Tool};

use crate::next_run::find_agent;
use crate::runtime::Runtime;
use crate::{context, model, model_name};

/// What a session's next request would be measured by.
pub struct ContextUsage {
    /// The model's name, as the user would type it; none, if the session knows of none.
    pub model: Option<String>,
    /// How large a conversation may be, and how it is counted.
    pub context: Context,
    /// The tools that the agent has without a server.
    pub tools: Vec<ToolSpec>,
}

impl ContextUsage {
    /// The gauge of a session. What its configuration no longer knows counts for nothing.
    #[must_use]
    pub fn of(head: &Head, runtime: &Runtime) -> Self {
        let set = head.settings.clone().unwrap_or_default();
        let named = || model_name(head.model_provider(), &head.model);
        let model = Some(set.model.unwrap_or_else(named)).filter(|name| !name.is_empty());
        let found = model.as_deref().map(|named| model::length(named, runtime));
        let (length, provider, name) = match found {
            Some(Ok(found)) => found,
            _ => (None, head.model_provider().to_owned(), head.model.clone()),
        };
        let agent = find_agent(&head.agent, runtime).ok();
        let tools = agent.iter().flat_map(own_tools).map(|tool| tool.spec().clone()).collect();
        let context = context::unasked(length, &provider, &name, runtime);
        Self { model, context, tools }
    }
}

/// The tools of an agent that need no server.
pub(crate) fn own_tools(agent: &Agent) -> Vec<Arc<dyn Tool>> {
    tool::builtin().into_iter().filter(|tool| may_have(agent, &**tool)).collect()
}
