//! Finds what a flow would do next, without running or recording anything.
//!
//! The pattern is walked over the recorded results, as in a run. Each node without a result is
//! noted instead of run.

use std::cell::RefCell;

use stepwell::Session;
use stepwell::log::Redactor;
use stepwell_agent::run::{Allowed, FrontEnd, Setup, SharedBudget};

use crate::error::Result;
use crate::flow::{Agents, Flow, Parts, Upcoming};
use crate::halt::Halt;
use crate::history::History;
use crate::spec::Spec;
use crate::template::Scope;
use crate::walk::walk;

/// What [`next_nodes`] needs.
pub struct DryRun<'a> {
    /// The flow's session.
    pub session: &'a Session,
    /// The session's history.
    pub history: History,
    /// The checked spec.
    pub spec: &'a Spec,
    /// The values of its variables.
    pub variables: Scope,
    /// Removes secrets from the prompts.
    pub redactor: &'a Redactor,
}

/// The nodes that a flow would run next; none if all of them are done.
pub async fn next_nodes(dry_run: DryRun<'_>) -> Result<Vec<Upcoming>> {
    let DryRun { session, history, spec, variables, redactor } = dry_run;
    let agents = NoAgents(redactor);
    let (_stop, interrupt) = tokio::sync::watch::channel(false);
    let shared_budget = SharedBudget::new(Allowed::default(), history.spent, history.calls);
    let parts = Parts {
        session,
        spec,
        agents: &agents,
        variables,
        front: FrontEnd::nobody(),
        interrupt,
        shared_budget,
    };
    let mut flow = Flow::new(parts, history);
    flow.dry_run = Some(RefCell::default());
    let walked = walk(&flow).await;
    match walked {
        Err(Halt::Broken(error)) => Err(error),
        _ => Ok(flow.dry_run.take().map(RefCell::into_inner).unwrap_or_default()),
    }
}

/// A dry run asks no agents.
struct NoAgents<'a>(&'a Redactor);

impl Agents for NoAgents<'_> {
    fn setup(
        &self,
        agent: &str,
        _: Option<&[String]>,
    ) -> std::result::Result<std::sync::Arc<Setup>, String> {
        Err(format!("{agent} is not asked in a dry run"))
    }

    fn redactor(&self) -> &Redactor {
        self.0
    }
}
