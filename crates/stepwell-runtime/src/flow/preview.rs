//! Dry runs of flows: what would be done, with nothing done, recorded or asked.

use stepwell::SessionId;
use stepwell_flow::plan::Plan;
use stepwell_flow::template::Scope;
use stepwell_flow::{DryRun, Upcoming, next_nodes};

use super::change::Current;
use super::settings::spec_path;
use super::stored::{read, settled_spec};
use super::{agents, variables};
use crate::error::{Error, Result};
use crate::request::{FlowOptions, FlowRequest};
use crate::runtime::Runtime;

impl Runtime {
    /// The plan of a flow that would begin, with its variables filled in.
    ///
    /// # Errors
    /// If a secret that it needs is not set.
    pub fn plan_flow(&self, request: &FlowRequest) -> Result<Plan> {
        let spec = &request.reading.spec;
        let redactor = agents::redactor(spec, self)?;
        let mut plan = Plan::of(spec).filled(&variables::kept(&request.variables, &redactor));
        // What the user names takes the place of what the spec does.
        plan.model = request.options.model.clone().or(plan.model);
        Ok(plan)
    }

    /// What a flow would go on with.
    ///
    /// # Errors
    /// If it is finished, or somebody else runs it.
    pub fn next_nodes(&self, id: &SessionId, flow: &FlowOptions) -> Result<Vec<Upcoming>> {
        let well = self.writing()?;
        let session = well.lock(id).map_err(Error::of_lock)?;
        let head = session.info()?.head;
        let history = read(&well, &head)?;
        let path = spec_path(&well.weigh(id)?);
        let current = Current { path, wanted: flow.use_current_spec };
        let (spec, ..) = settled_spec(&history, &head, &current, self)?;
        let redactor = agents::redactor(&spec, self)?;
        let mut scope = Scope::new();
        let known = history.described.as_ref().map(|flow| flow.variables.clone());
        for (name, value) in variables::with_defaults(&known.unwrap_or_default(), &spec) {
            scope.set(name, value);
        }
        let tokio = tokio::runtime::Builder::new_current_thread().build();
        let tokio = tokio.map_err(Error::Thread)?;
        let session = &session;
        let dry_run =
            DryRun { session, history, spec: &spec, variables: scope, redactor: &redactor };
        Ok(tokio.block_on(next_nodes(dry_run))?)
    }
}
