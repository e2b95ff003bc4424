//! A flow at work in its session, and how it ended.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;
use stepwell::model::{Node, NodeKey, Usage};
use stepwell::{Event, Seq, Session};
use stepwell_flow::revision::agent_of;
use stepwell_flow::spec::Spec;
use stepwell_flow::template::Scope;
use stepwell_flow::{Agents as _, Ended, Flow, History, OutputFolder, Over, Parts};
use stepwell_workspace::{Estimates, ownership};

use super::agents::Crew;
use super::budget::{below, shared_budget};
use super::settings::output;
use crate::drive::{Watched, record_script};
use crate::error::Result;
use crate::report::{Failure, FlowReport, RunReport};
use crate::request::{FlowOptions, RunOptions};
use crate::thread::Job;

/// A flow that is ready to run in its session.
pub(super) struct FlowRun {
    pub(super) session: Session,
    pub(super) history: History,
    pub(super) spec: Arc<Spec>,
    pub(super) crew: Crew,
    /// The folder that its artifacts went to.
    pub(super) output: Option<String>,
    pub(super) resumed_from: Option<Seq>,
}

impl FlowRun {
    /// Runs it until something stops it.
    pub(super) fn drive(
        self,
        options: &RunOptions,
        flow: &FlowOptions,
        job: &mut Job,
    ) -> Result<RunReport> {
        let runtime = job.runtime.clone();
        let begun = runtime.workspace().now();
        if self.crew.trust.is_own() {
            ownership::mark(runtime.workspace(), self.session.id());
        }
        let variables = self.history.described.as_ref().map(|flow| flow.variables.clone());
        let mut scope = Scope::new();
        for (name, value) in variables.unwrap_or_default() {
            scope.set(name, value);
        }
        // Where someone else wanted files is not where the user does.
        let kept = self.output.clone().filter(|_| self.crew.trust.is_own());
        let root = output(flow, kept, &runtime);
        let over = if flow.force { Over::Replace } else { Over::Refuse };
        let folder =
            OutputFolder { root, over, store: Some(runtime.workspace().place.store.clone()) };
        let watched = Watched::new(&self.session, job.sink(), &runtime)?;
        watched.replay(&self.session, self.resumed_from)?;
        let Self { session, history, spec, crew, resumed_from, .. } = self;
        let parts = Parts {
            session: &session,
            spec: &spec,
            agents: &crew,
            variables: scope,
            front: job.front_end(watched.sink.clone(), options.patience),
            interrupt: job.interrupt.receiver(),
            shared_budget: shared_budget(&spec, options, &history, below(&session)?),
        };
        let ended = job.tokio.block_on(Flow::new(parts, history).run(options.patience, &folder));
        job.tokio.block_on(crew.connected.close());
        let took = runtime.workspace().now().since(begun);
        let ended = match ended {
            Ok(ended) => ended,
            Err(error) => return Err(watched.unsaved("flow", error.into(), took, resumed_from)),
        };
        let flow = flow_report(&session, &ended, &spec, folder.root)?;
        let report = report(&session, &ended, &crew, flow)?;
        let estimate = Estimates::new(runtime.workspace()).of(&session.info()?.head, &report.spent);
        if let Some(path) = &options.record_script {
            record_script(path, &session)?;
        }
        let saved = runtime.workspace().config.settings.auto_save;
        Ok(RunReport { took, resumed_from, saved, estimate, ..report })
    }
}

fn report(session: &Session, ended: &Ended, crew: &Crew, flow: FlowReport) -> Result<RunReport> {
    let head = session.info()?.head;
    let plain = |text: &str| crew.redactor().redact(text).into_owned();
    let output = match &ended.output {
        Value::String(text) => text.clone(),
        Value::Null => String::new(),
        value => value.to_string(),
    };
    let lanes = session.lanes()?.into_iter().map(|(lane, it)| (lane.to_string(), it.spent));
    Ok(RunReport {
        session: session.id().clone(),
        status: ended.status,
        reason: ended.reason,
        error: ended.error.as_ref().map(|error| Failure {
            message: plain(&error.to_string()),
            fault: error.fault,
            unwritten: error.unwritten,
            node: Some(error.node.clone()),
        }),
        redacted_output: plain(&output),
        output,
        tools_used: Vec::new(),
        files_modified: Vec::new(),
        steps: head.steps,
        model: head.model.clone(),
        took: Duration::ZERO,
        spent: head.spent,
        estimate: None,
        by_source: lanes.collect(),
        waiting: ended.open.clone(),
        budget_total: head.budget,
        resumed_from: None,
        was_done: false,
        saved: true,
        flow: Some(flow),
    })
}

fn flow_report(
    session: &Session,
    ended: &Ended,
    spec: &Spec,
    folder: PathBuf,
) -> Result<FlowReport> {
    let described = session.info()?.head.flow;
    let (name, pattern) = described.map(|flow| (flow.name, flow.pattern)).unwrap_or_default();
    Ok(FlowReport {
        name,
        pattern,
        output: ended.output.clone(),
        artifacts: ended.artifacts.iter().map(|it| it.path.clone()).collect(),
        folder,
        by_agent: by_agent(session, spec)?,
    })
}

/// What each agent used, over all of the flow's runs.
fn by_agent(session: &Session, spec: &Spec) -> Result<BTreeMap<String, Usage>> {
    let mut used: BTreeMap<String, Usage> = BTreeMap::new();
    for fact in session.keyed_events(&[stepwell::model::Kind::Node])? {
        let Event::Node(Node { key, usage: Some(usage), .. }) = fact.event else { continue };
        let key = key.parse::<NodeKey>().ok();
        if let Some(agent) = key.and_then(|key| agent_of(spec, &key)) {
            *used.entry(agent.to_owned()).or_default() += usage;
        }
    }
    Ok(used)
}
