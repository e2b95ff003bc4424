//! The agents that a run can dispatch: the built-in ones and the user's, on the run's own
//! terms.

use std::sync::{Arc, Mutex, PoisonError};

use stepwell::{Created, Effect, Head};
use stepwell_agent::run::{Dispatcher, Hired, Terms};
use stepwell_agent::selection::select;
use stepwell_agent::tool::{self, Tool};

use super::{Flags, MODEL, Prepared, find_agent};
use crate::app::App;
use crate::failure::{Failure, Result};
use crate::wire;

/// The agents that a run can dispatch.
pub(super) struct Crew {
    app: Mutex<App>,
    /// Tools of the run's own servers that only look: a server works where the run does.
    borrowed: Vec<Arc<dyn Tool>>,
    /// What must not be written anywhere, of what those servers need.
    secrets: Vec<String>,
}

impl Crew {
    pub(super) fn new(tools: &[Arc<dyn Tool>], secrets: &[String], app: &App) -> Self {
        let own = tool::builtin();
        let is_own = |name: &str| own.iter().any(|tool| tool.spec().name == name);
        let borrowed = tools.iter().filter(|tool| tool.effect() == Effect::Pure);
        let borrowed = borrowed.filter(|tool| !is_own(&tool.spec().name)).cloned().collect();
        let mut app = app.with_config(app.config.clone());
        // Subagents start no servers, and so nobody is asked for their keys again.
        app.config.mcp.clear();
        Self { app: Mutex::new(app), borrowed, secrets: secrets.to_vec() }
    }

    fn find(&self, terms: &Terms<'_>, app: &App) -> Result<Hired> {
        let name = terms.order.agent();
        let agent = find_agent(name, app)?;
        let model = match (terms.child, &agent.model) {
            (Some(child), _) => Some(model_of(child)),
            (None, Some(_)) => None,
            (None, None) => Some(model_of(terms.parent)),
        };
        let flags = Flags {
            agent: Some(name.to_owned()),
            model,
            mode: Some(agent.mode.map_or(terms.mode, |own| own.min(terms.mode))),
            budget_total: terms.reserve,
            ..Flags::default()
        };
        let mut prepared = Prepared::new(&flags, None, app)?;
        prepared.mcp.secrets.clone_from(&self.secrets);
        let mut all = tool::builtin();
        all.extend(self.borrowed.iter().cloned());
        let selection = select(&prepared.agent, all, &std::collections::BTreeMap::new());
        let selection = selection.map_err(|error| {
            Failure::new(crate::failure::Exit::Absent, format_args!("agents.{name}.tools: {error}"))
        })?;
        let task = &terms.order.task;
        let described = Created::new(terms.parent.id.clone(), prepared.redactor().redact(task));
        Ok(Hired {
            setup: prepared.setup_with(selection.tools, None, app),
            created: prepared.describe(described, app),
            begins: prepared.beginning(task, app),
            system: prepared.system(app),
        })
    }
}

impl Dispatcher for Crew {
    fn hire(&self, terms: &Terms<'_>) -> Result<Hired, String> {
        let app = self.app.lock().unwrap_or_else(PoisonError::into_inner);
        self.find(terms, &app).map_err(|failure| match failure {
            Failure::Said { message, hint: Some(hint), .. } => format!("{message} ({hint})"),
            failure => failure.to_string(),
        })
    }
}

/// The model that a session uses, as it can be typed again.
fn model_of(head: &Head) -> String {
    let kept = head.metadata.get(MODEL).and_then(|model| model.as_str()).map(str::to_owned);
    kept.unwrap_or_else(|| wire::model(&head.provider, &head.model))
}
