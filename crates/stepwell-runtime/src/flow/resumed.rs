//! A flow's session that is resumed.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::Value;
use stepwell::log::Head;
use stepwell::model::{Digest, FlowSettings, GateAnswered, Node, NodeState, Time, Who};
use stepwell::store::Span;
use stepwell::trust::Weighed;
use stepwell::{NewEvent, Remedy, Seq, Session, Stepwell};
use stepwell_flow::spec::Spec;
use stepwell_flow::{History, Stored};
use stepwell_workspace::{Prior, Settled};

use super::agents::{self, Crew, Hiring, not_yours};
use super::answers::Answering;
use super::budget::{below, check_budget, cost_limit};
use super::change::{self, Current};
use super::run::FlowRun;
use super::settings::{chosen, remembered, spec_path};
use super::stored::{read, refuse_finished, settled_spec};
use super::variables::{Revealing, revealed};
use crate::error::{Error, ErrorKind, Result};
use crate::handle::About;
use crate::notice::Notice;
use crate::prepare::Of;
use crate::report::RunReport;
use crate::request::{Given, ResumeRequest, RunOptions};
use crate::runtime::Runtime;
use crate::thread::Job;

/// A flow's session that is resumed.
pub(crate) struct FlowWork {
    history: History,
    spec: Arc<Spec>,
    /// The spec as it was stored when the flow was prepared.
    stored: Digest,
    /// A changed spec to be kept, and the nodes that begin anew by it.
    accepted: change::Accepted,
    hiring: Option<Hiring>,
    crew: Option<Crew>,
    variables: BTreeMap<String, Value>,
    /// The spec's file.
    path: Option<String>,
    /// The folder that its artifacts went to.
    output: Option<String>,
    /// Who resumes it, as the log names them.
    who: Who,
}

impl FlowWork {
    /// Reads what a flow did, and settles its spec and its agents.
    pub(crate) fn prepare(
        request: &ResumeRequest,
        well: &Stepwell,
        head: &Head,
        runtime: &Runtime,
    ) -> Result<Self> {
        let history = read(well, head)?;
        let prior = Prior { head, weighed: well.weigh(&head.id)? };
        refuse_others_spec(&history, &prior.weighed, request)?;
        let path = spec_path(&prior.weighed);
        let current = Current { path: path.clone(), wanted: request.flow.use_current_spec };
        let (spec, accepted, stored) = settled_spec(&history, head, &current, runtime)?;
        let output = chosen(&prior.weighed).and_then(|it| it.output.clone());
        let of = Of { session: Some(&prior), trust: request.trust };
        let hiring = Hiring::new(&spec, &request.options, of, runtime)?;
        let model = request.options.model.clone();
        let named = model.as_deref().or(prior.weighed.mine.model.as_deref()).unwrap_or_default();
        let settled = match prior.weighed.disregarded.is_empty() {
            true => Settled::default(),
            false => Settled::of_flow(&well.store().events(&head.id, Span::ALL)?.intact(&head.id)?),
        };
        for it in prior.disregarded(hiring.mode(), named, &settled) {
            let (namesake, mode) = (runtime.is_namesake(&it.who), hiring.mode());
            let (it, model) = (Box::new(it), model.clone());
            runtime.tell(Notice::Disregarded { it, mode, model, namesake });
        }
        let kept = history.described.as_ref().map(|flow| flow.variables.clone());
        let from = Revealing {
            session: &head.id,
            spec: &spec,
            typed: &request.flow.variables,
            redactor: hiring.redactor(),
        };
        let variables = revealed(&kept.unwrap_or_default(), &from)?;
        let (spec, hiring, who) = (Arc::new(spec), Some(hiring), runtime.who());
        let crew = None;
        Ok(Self { history, spec, stored, accepted, hiring, crew, variables, path, output, who })
    }

    /// The answer to one of the open questions.
    pub(crate) fn answer(
        &self,
        given: &Given,
        head: &Head,
        now: Time,
        runtime: &Runtime,
    ) -> Result<GateAnswered> {
        let redactor = agents::redactor(&self.spec, runtime)?;
        let (spec, memo, who) = (&*self.spec, &self.history.memo, runtime.who());
        Answering { session: &head.id, spec, memo, redactor: &redactor, who, now }.fit(given)
    }

    pub(crate) fn connect(&mut self, job: &mut Job) -> Result<()> {
        let Some(hiring) = self.hiring.take() else { return Ok(()) };
        let crew = job.tokio.block_on(hiring.connect(&job.interrupt, &job.runtime))?;
        job.keep(&crew.connected);
        self.crew = Some(crew);
        Ok(())
    }

    /// Takes in what was recorded until the lease was taken.
    pub(crate) fn check_again(&mut self, session: &Session) -> Result<()> {
        self.history.catch_up(session)?;
        refuse_finished(&self.history, session.id())?;
        let stored = self.history.stored.as_ref().map(Stored::digest);
        match stored == Some(self.stored) {
            true => Ok(()),
            false => {
                let why = format!("the spec of {} was changed meanwhile", session.id());
                Err(Error::refused(ErrorKind::Busy, why).helped_by(Remedy::Wait))
            }
        }
    }

    pub(crate) fn mark_running(
        &mut self,
        request: &ResumeRequest,
        session: &Session,
    ) -> Result<()> {
        if let Some(crew) = &self.crew {
            check_budget(&self.spec, &request.options, crew)?;
        }
        session.mark_running()?;
        if let Some(output) = request.flow.output.as_ref() {
            let output = std::path::absolute(output).unwrap_or(output.clone());
            self.output = Some(output.display().to_string());
        }
        let RunOptions { mode, model, budget_total, .. } = &request.options;
        let chose = mode.is_some() || model.is_some() || budget_total.is_some();
        let chose = chose || request.flow.use_current_spec || request.flow.output.is_some();
        if chose {
            let spec = match &self.accepted {
                Some((accepted, _)) => accepted.digest(),
                None => self.stored,
            };
            let flow = FlowSettings { spec, path: self.path.clone(), output: self.output.clone() };
            session.append(remembered(&request.options, flow, self.who.clone()))?;
        } else {
            session.sign_run()?;
        }
        if let Some((stored, anew)) = self.accepted.take() {
            let mut events: Vec<NewEvent> = vec![stored.checkpoint().into()];
            events.extend(anew.into_iter().map(|key| {
                let (state, output, usage) = (NodeState::Skipped, None, None);
                let error = Some("the spec describes it differently now".to_owned());
                NewEvent::from(Node { key, state, output, usage, error })
            }));
            session.append_all(events)?;
        }
        self.history.catch_up(session)?;
        if let Some(flow) = &mut self.history.described {
            flow.variables = std::mem::take(&mut self.variables);
        }
        Ok(())
    }

    pub(crate) fn run(
        self,
        request: &ResumeRequest,
        session: Session,
        resumed_from: Option<Seq>,
        job: &mut Job,
    ) -> Result<RunReport> {
        let Self { history, spec, crew, output, .. } = self;
        let Some(crew) = crew else { return Err(Error::Panicked) };
        let mut spent = history.spent;
        spent += below(&session)?;
        let budget = cost_limit(&spec, &request.options, spent.cost);
        job.begin(&session, About { spec: Some(Arc::clone(&spec)), budget });
        let run = FlowRun { session, history, spec, crew, output, resumed_from };
        run.drive(&request.options, &request.flow, job)
    }
}

/// A spec that somebody else stored in the user's session does what they want, and not what the
/// user allowed. Who takes the spec on disk in its place, or says when to be asked, goes on.
fn refuse_others_spec(history: &History, weighed: &Weighed, request: &ResumeRequest) -> Result<()> {
    let chosen = request.options.mode.is_some() || request.flow.use_current_spec;
    if !request.trust.is_own() || chosen {
        return Ok(());
    }
    let stored = history.stored.as_ref().map(Stored::digest);
    let others = match (&weighed.mine.flow, &weighed.theirs.flow) {
        (Some(mine), _) => Some(mine.spec) != stored,
        (None, theirs) => weighed.altered || theirs.is_some(),
    };
    match others {
        true => Err(not_yours("follow a spec that somebody else stored")),
        false => Ok(()),
    }
}
