//! The agents that a run can dispatch: the built-in ones and the user's, never freer than the run
//! itself.

use std::sync::Arc;

use stepwell::error::Listing;
use stepwell::log::Head;
use stepwell::model::Effect;
use stepwell::{Created, Remedy};
use stepwell_agent::run::{Dispatcher, Setup, SubagentRequest, SubagentSetup};
use stepwell_agent::selection::select;
use stepwell_agent::tool::{self, Isolation, Tool};

use crate::error::{Error, Result};
use crate::mcp::Connected;
use crate::next_run::find_agent;
use crate::prepare::{Of, Prepared};
use crate::request::RunOptions;
use crate::runtime::Runtime;

/// The agents that a run can dispatch.
pub(crate) struct Crew {
    runtime: Runtime,
    /// Tools of the run's own servers that only look: a server works where the run does.
    borrowed: Vec<Arc<dyn Tool>>,
    /// What must not be written anywhere, of what those servers need.
    secrets: Vec<String>,
    /// The run's own model, as it can be given again.
    model: String,
}

impl Crew {
    pub(crate) fn new(tools: &[Arc<dyn Tool>], prepared: &Prepared, runtime: &Runtime) -> Self {
        let own = tool::builtin();
        let is_own = |name: &str| own.iter().any(|tool| tool.spec().name == name);
        let borrowed = tools.iter().filter(|tool| tool.effect() == Effect::Pure);
        let borrowed = borrowed.filter(|tool| !is_own(&tool.spec().name)).cloned().collect();
        // Subagents start no servers, and so nobody is asked for their keys again.
        let mut config = runtime.workspace().config.clone();
        config.mcp.clear();
        let runtime = runtime.in_workspace(runtime.workspace().with_config(config));
        let (secrets, model) = (prepared.mcp.secrets.clone(), prepared.model_name());
        Self { runtime, borrowed, secrets, model }
    }

    fn find(&self, request: &SubagentRequest<'_>) -> Result<SubagentSetup> {
        let runtime = &self.runtime;
        let name = request.order.agent();
        let agent = find_agent(name, runtime)?;
        let model = match (&request.model, &agent.model) {
            (Some(before), _) => Some(before.clone()),
            (None, Some(_)) => None,
            (None, None) => Some(self.model.clone()),
        };
        let options = RunOptions {
            agent: Some(name.to_owned()),
            model,
            mode: Some(agent.mode.map_or(request.mode, |own| own.min(request.mode))),
            budget_total: request.reserve,
            ..RunOptions::default()
        };
        let mut prepared = Prepared::new(&options, Of::NEW, runtime)?;
        prepared.mcp.secrets.clone_from(&self.secrets);
        let mut all = tool::builtin();
        all.extend(self.borrowed.iter().cloned());
        let selection = select(&prepared.agent, all, &std::collections::BTreeMap::new());
        let selection = selection.map_err(|error| {
            Error::config(format!("agents.{name}.tools: {error}"))
                .helped_by(Remedy::List(Listing::Servers))
        })?;
        let (task, name) = (&request.order.task, request.order.name());
        let described = Created::new(request.parent.id.clone(), prepared.redactor().redact(name));
        Ok(SubagentSetup {
            setup: prepared.setup_with(selection.tools, runtime),
            created: prepared.describe(described, runtime),
            begins: prepared.beginning(task, runtime),
            system: prepared.system(runtime),
        })
    }
}

impl Dispatcher for Crew {
    fn set_up(&self, request: &SubagentRequest<'_>) -> Result<SubagentSetup, String> {
        self.find(request).map_err(|error| match &error.remedies()[..] {
            [names @ Remedy::Choose(_)] => format!("{error} ({names})"),
            _ => error.to_string(),
        })
    }
}

impl Prepared {
    /// What a run in a session works with.
    pub(crate) fn setup(&self, head: &Head, connected: &Connected, runtime: &Runtime) -> Setup {
        let mut tools = connected.selection.tools.clone();
        let crew = Crew::new(&tools, self, runtime);
        if let Some(set) = head.phases {
            tools.push(tool::phases(set));
        }
        let isolation = head.facts.subagent.as_ref().map(|record| record.isolation);
        // A subagent that is resumed by hand may do what it might before.
        if isolation == Some(Isolation::ReadOnly) {
            tools.retain(|tool| tool.effect() == Effect::Pure);
        }
        let mut setup = self.setup_with(tools, runtime);
        setup.dispatcher = Some(Arc::new(crew));
        // A worktree lies in the store, and nothing of the store lies in it.
        if isolation == Some(Isolation::Worktree) {
            setup.place.grounds = setup.place.store.take();
        }
        setup
    }
}
