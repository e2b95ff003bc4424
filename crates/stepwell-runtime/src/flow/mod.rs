//! Running flows: a spec and variables become a session and a run over its pattern.

mod agents;
mod change;
mod preview;
mod tools;
mod variables;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;
use stepwell::gates::Gates;
use stepwell::trust::Weighed;
use stepwell::{
    Created, Digest, Edited, Event, Flow as Described, FlowSettings, Gate, GateAnswered, Head,
    Money, NewEvent, Node, NodeKey, NodeState, PhaseSet, Query, Seq, Session, SessionId, Settings,
    Span, Spent, Status, Stepwell, Time, Usage, Who,
};
use stepwell_agent::run::{Allowed, SharedBudget};
use stepwell_flow::guided::{GOAL, Survey};
use stepwell_flow::revision::agent_of;
use stepwell_flow::spec::{Pattern, Spec};
use stepwell_flow::template::Scope;
use stepwell_flow::{Agents as _, Ended, Flow, History, Memo, OutputFolder, Over, Parts, Stored};
use stepwell_workspace::{Prior, Well};

use crate::answer::{Fitting, Given, answered_before};
use crate::drive::{Watched, record_script};
use crate::error::{Error, Result, TokenLimit};
use crate::handle::RunHandle;
use crate::notice::Notice;
use crate::prepare::Of;
use crate::readiness::make_ready;
use crate::report::{Failure, FlowReport, RunReport};
use crate::request::{FlowOptions, FlowRequest, ResumeRequest, RunOptions};
use crate::runtime::{NewWell, Runtime};
use crate::thread::{About, Job, spawn};
use agents::{Crew, Hiring};
use change::Current;

/// The metadata key under which a flow's session remembers where its spec and its artifacts
/// are.
const FLOW: &str = "flow";

impl Runtime {
    /// Starts a flow, in a session of its own. Returns when the session is there.
    ///
    /// # Errors
    /// If an agent, a model or a tool of it cannot be had, or the session cannot be made. Then
    /// nothing was recorded.
    pub fn start_flow(&self, request: FlowRequest) -> Result<RunHandle> {
        let interrupt = request.interrupt.clone();
        spawn(self, interrupt, move |job| start(&request, job))
    }

    /// The newest session of the same spec and variables that is not finished. One that somebody
    /// runs is one too: whoever goes on with it is told, and does not pay for it twice.
    ///
    /// # Errors
    /// If the store cannot be read.
    pub fn unfinished_flow(&self, request: &FlowRequest) -> Result<Option<SessionId>> {
        let well = self.writing()?;
        let hash = Digest::of(request.text.as_bytes());
        let spec = &request.reading.spec;
        let kept = variables::kept(&request.variables, &agents::redactor(spec, self)?);
        for info in well.sessions(Query::default()) {
            let head = info?.head;
            let over = matches!(head.status, Status::Success | Status::Abandoned);
            if over || head.flow.as_ref().is_none_or(|flow| flow.name != spec.name) {
                continue;
            }
            let history = History::of(well.store().events(&head.id, Span::ALL)?.intact(&head.id)?);
            let same = history.stored.as_ref().is_some_and(|stored| stored.hash == hash)
                && history.described.is_some_and(|flow| flow.variables == kept);
            // Somebody else's is theirs to go on with.
            if same && self.began(&well, &head)? {
                return Ok(Some(head.id));
            }
        }
        Ok(None)
    }
}

/// Does a gate ask whether a tool may run? Other questions are named after their nodes.
#[must_use]
pub fn is_permission(gate: &Gate) -> bool {
    gate.call.is_some() || gate.id.parse::<NodeKey>().is_err()
}

fn start(request: &FlowRequest, job: &mut Job) -> Result<RunReport> {
    let (runtime, options) = (job.runtime.clone(), &request.options);
    let spec = Arc::new(request.reading.spec.clone());
    let hiring = Hiring::new(&spec, options, Of::NEW, &runtime)?;
    let crew = job.tokio.block_on(hiring.connect(&job.interrupt, &runtime))?;
    job.keep(&crew.connected);
    check_budget(&spec, options, &crew)?;
    job.check_interrupt()?;
    let well: Stepwell = match runtime.well_for_new()? {
        NewWell::Kept(well) => {
            make_ready(options.touch(), &well, None, &runtime)?;
            Stepwell::clone(&well)
        }
        NewWell::InMemory(well) => {
            runtime.tell(Notice::NotSaved { is_flow: true });
            well
        }
    };
    let session = begin(request, &crew, &well, &runtime)?;
    let mut history = History::read(&session)?;
    if let Some(flow) = &mut history.described {
        // As they were given: what is recorded lacks their secrets.
        flow.variables.clone_from(&request.variables);
    }
    let budget = cost_limit(&spec, options, history.spent.cost);
    job.begin(&session, About { spec: Some(Arc::clone(&spec)), budget });
    let run = FlowRun { session, history, spec, crew, output: None, resumed_from: None };
    run.drive(options, &request.flow, job)
}

/// Makes the session of a flow, with all that it begins with.
fn begin(
    request: &FlowRequest,
    crew: &Crew,
    well: &Stepwell,
    runtime: &Runtime,
) -> Result<Session> {
    let spec = &request.reading.spec;
    let stored = Stored::new(&request.text, spec.files());
    let plain = |text: &str| crew.redactor().redact(text).into_owned();
    let flow = Described {
        name: spec.name.clone(),
        pattern: spec.pattern.name().to_owned(),
        spec: stored.spec.clone(),
        hash: stored.hash,
        variables: variables::kept(&request.variables, crew.redactor()),
    };
    let task = match (is_guided(spec), request.variables.get(GOAL).and_then(Value::as_str)) {
        (true, Some(goal)) => goal.to_owned(),
        _ => spec.description.clone().unwrap_or_else(|| format!("flow {}", spec.name)),
    };
    let created = well
        .draft(plain(&task))
        .with_model(&crew.model.0, &crew.model.1)
        .in_workspace(runtime.place.root.display().to_string());
    let mut created = Created { flow: Some(flow), ..created };
    if is_guided(spec) {
        created.phases = Some(PhaseSet::Workflow);
        created.project = Survey::of(&runtime.place.root).project();
    }
    let folder = output(&request.flow, None, runtime);
    let mut kept = serde_json::json!({ "output": folder.display().to_string() });
    // A spec that was made for a goal lies in no file.
    if !request.path.as_os_str().is_empty() {
        let at = std::path::absolute(&request.path).unwrap_or_else(|_| request.path.clone());
        kept["spec"] = at.display().to_string().into();
    }
    let word = |key: &str| kept.get(key).and_then(Value::as_str).map(str::to_owned);
    let given = FlowSettings { spec: stored.digest(), path: word("spec"), output: word("output") };
    let metadata = BTreeMap::from([(FLOW.to_owned(), kept)]);
    let tag = spec.tags.iter().cloned().collect();
    let mut events: Vec<NewEvent> = vec![
        remembered(&request.options, given, well.who()).into(),
        Edited { metadata, tag, ..Edited::default() }.into(),
    ];
    // The files that a spec was read from may change: what was read is what counts.
    if !stored.files.is_empty() {
        events.push(stored.checkpoint().into());
    }
    Ok(well.create_with(created, events)?)
}

/// Does a flow lead through the phases of the workflow set?
const fn is_guided(spec: &Spec) -> bool {
    matches!(spec.pattern, Pattern::Guided(_))
}

/// What is remembered of what was asked for, for those to come.
fn remembered(options: &RunOptions, flow: FlowSettings, who: &Who) -> Settings {
    let model = options.model.as_ref().map(|model| match model.strip_prefix("script:") {
        Some(path) => {
            let path = std::path::absolute(path).unwrap_or_else(|_| path.into());
            format!("script:{}", path.display())
        }
        None => model.clone(),
    });
    let (mode, budget, who) = (options.mode, options.budget_total, who.clone());
    Settings { agent: None, model, mode, budget, flow: Some(flow), who }
}

/// Where artifacts go.
fn output(flow: &FlowOptions, kept: Option<String>, runtime: &Runtime) -> PathBuf {
    let here = || runtime.host.folder.clone().unwrap_or_else(|| runtime.place.root.clone());
    let given = flow.output.as_ref().map(|path| std::path::absolute(path).unwrap_or(path.clone()));
    given.or_else(|| kept.map(PathBuf::from)).unwrap_or_else(here)
}

/// Where the user keeps a flow's spec, or has its artifacts written. Anyone can change a session's
/// metadata: what it says counts only where the user has not said it in any other way.
fn place_of(key: &str, weighed: &Weighed, head: &Head) -> Option<String> {
    match (&weighed.mine.flow, key) {
        (Some(mine), "output") => mine.output.clone(),
        (Some(mine), _) => mine.path.clone(),
        (None, _) => Some(head.metadata.get(FLOW)?.get(key)?.as_str()?.to_owned()),
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
        true => {
            Err(Error::NotYours { does: "go on by a spec that somebody else stored".to_owned() })
        }
        false => Ok(()),
    }
}

/// A budget on a model whose price nobody knows cannot be kept.
fn check_budget(spec: &Spec, options: &RunOptions, crew: &Crew) -> Result<()> {
    let limited = spec.runtime.budgets.max_cost_usd.is_some()
        || options.budget.is_some()
        || options.budget_total.is_some();
    match limited && !crew.priced {
        true => {
            let what = "some agent's model".to_owned();
            Err(Error::NoPrice { what, limit: TokenLimit::Spec })
        }
        false => Ok(()),
    }
}

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
}

impl FlowWork {
    /// Reads what a flow did, and settles its spec and its agents.
    pub(crate) fn prepare(
        request: &ResumeRequest,
        well: &Well,
        head: &Head,
        runtime: &Runtime,
    ) -> Result<Self> {
        let history = read(well, head)?;
        let prior = Prior { head, weighed: well.weigh(&head.id)? };
        refuse_others_spec(&history, &prior.weighed, request)?;
        let path = place_of("spec", &prior.weighed, head);
        let current = Current { path: path.clone(), wanted: request.flow.use_current_spec };
        let (spec, accepted, stored) = settled_spec(&history, head, &current, runtime)?;
        let output = place_of("output", &prior.weighed, head);
        let of = Of { session: Some(&prior), trust: request.trust };
        let hiring = Hiring::new(&spec, &request.options, of, runtime)?;
        let model = request.options.model.clone();
        let named = model.as_deref().or(prior.weighed.mine.model.as_deref()).unwrap_or_default();
        for it in prior.disregarded(hiring.mode(), named, Seq::ZERO) {
            let (it, mode) = (Box::new(it), hiring.mode());
            runtime.tell(Notice::Disregarded { it, mode, model: model.clone() });
        }
        let kept = history.described.as_ref().map(|flow| flow.variables.clone());
        let given = (&request.flow.variables, &spec);
        let variables =
            variables::revealed(&kept.unwrap_or_default(), given, (hiring.redactor(), &head.id))?;
        let (spec, hiring) = (Arc::new(spec), Some(hiring));
        Ok(Self { history, spec, stored, accepted, hiring, crew: None, variables, path, output })
    }

    /// The answer to one of the open questions.
    pub(crate) fn answer(
        &self,
        given: &Given,
        (head, now): (&Head, Time),
        runtime: &Runtime,
    ) -> Result<GateAnswered> {
        let redactor = agents::redactor(&self.spec, runtime)?;
        fitting(given, &self.history.memo, (&self.spec, head), (&redactor, runtime, now))
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
            false => Err(Error::SpecMoved { session: session.id().clone() }),
        }
    }

    pub(crate) fn mark_running(
        &mut self,
        request: &ResumeRequest,
        session: &Session,
        well: &Well,
        head: &Head,
    ) -> Result<()> {
        if let Some(crew) = &self.crew {
            check_budget(&self.spec, &request.options, crew)?;
        }
        session.mark_running()?;
        let mut metadata = BTreeMap::new();
        if let Some(output) = request.flow.output.as_ref() {
            let output = std::path::absolute(output).unwrap_or(output.clone());
            let mut kept = head.metadata.get(FLOW).cloned().unwrap_or_default();
            kept["output"] = output.display().to_string().into();
            metadata.insert(FLOW.to_owned(), kept);
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
            session.append(remembered(&request.options, flow, well.who()))?;
        }
        if !metadata.is_empty() {
            well.edit(session.id(), Edited { metadata, ..Edited::default() })?;
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

/// What a flow did so far; one that is finished is refused.
fn read(well: &Stepwell, head: &Head) -> Result<History> {
    let history = History::judged(well, &head.id)?;
    refuse_finished(&history, &head.id)?;
    Ok(history)
}

/// The spec to go on with, what is new in it, and the digest of the stored one.
fn settled_spec(
    history: &History,
    head: &Head,
    current: &Current,
    runtime: &Runtime,
) -> Result<(Spec, change::Accepted, Digest)> {
    let no_flow = || stepwell_flow::Error::NoFlow(head.id.clone());
    let stored = history.stored.as_ref().ok_or_else(no_flow)?;
    let old = (stored, stored.read()?.spec);
    let (spec, accepted) = change::settle(old, (head, &history.memo), current, runtime)?;
    Ok((spec, accepted, stored.digest()))
}

fn refuse_finished(history: &History, id: &SessionId) -> Result<()> {
    match history.finished {
        true => Err(Error::Finished { session: id.clone() }),
        false => Ok(()),
    }
}

/// The answer to a question of a flow that somebody else may run. It needs no agents.
pub(crate) fn fitting_answer(
    runtime: &Runtime,
    well: &Well,
    head: &Head,
    given: &Given,
    flow: &FlowOptions,
) -> Result<GateAnswered> {
    // Whoever comes late is told who was first.
    if let Some(name) = &given.gate
        && !Gates::of(&**well.store(), &head.id)?.open().any(|asked| asked.gate.id == *name)
        && let Some(before) = answered_before(well, &head.id, name)?
    {
        return Err(before);
    }
    let history = read(well, head)?;
    if history.memo.open().is_empty() {
        let session = head.id.clone();
        return Err(match well.info(&session)?.held {
            Some(_) => Error::NotWaitingElsewhere { session },
            None => Error::NotWaiting { session },
        });
    }
    let path = place_of("spec", &well.weigh(&head.id)?, head);
    let current = Current { path, wanted: flow.use_current_spec };
    let (spec, ..) = settled_spec(&history, head, &current, runtime)?;
    let redactor = agents::redactor(&spec, runtime)?;
    fitting(given, &history.memo, (&spec, head), (&redactor, runtime, well.now()))
}

/// The answer to one of the open questions, made to fit it.
fn fitting(
    given: &Given,
    memo: &Memo,
    (spec, head): (&Spec, &Head),
    (redactor, runtime, now): (&stepwell_agent::redact::Redactor, &Runtime, Time),
) -> Result<GateAnswered> {
    let open = memo.open();
    let gate = chosen(given.gate.as_deref(), &open, &head.id)?;
    let fitting = Fitting { session: &head.id, gate, spec: Some(spec) };
    let answer = fitting.answer(&given.answer, now)?;
    let plain = |text: &str| redactor.redact(text).into_owned();
    let answer = match answer {
        stepwell::Answer::Text(text) => stepwell::Answer::Text(plain(&text)),
        stepwell::Answer::Deny { reason, never } => {
            stepwell::Answer::Deny { reason: reason.as_deref().map(plain), never }
        }
        answer => answer,
    };
    Ok(GateAnswered::new(gate.id.clone(), answer, runtime.who()))
}

/// The question that is meant: the named one, or the only one.
fn chosen<'a>(named: Option<&str>, open: &[&'a Gate], id: &SessionId) -> Result<&'a Gate> {
    let (session, all) = (id.clone(), || open.iter().map(|gate| (*gate).clone()).collect());
    match (named, open) {
        (_, []) => Err(Error::NotWaiting { session }),
        (Some(name), open) => open
            .iter()
            .find(|gate| gate.id == name)
            .copied()
            .ok_or_else(|| Error::NoGate { session, name: name.to_owned(), open: all() }),
        (None, [gate]) => Ok(gate),
        (None, _) => Err(Error::SeveralGates { session, open: all() }),
    }
}

/// What a flow may use: what its spec says of all of it, or what was asked for of this run.
fn shared_budget(
    spec: &Spec,
    options: &RunOptions,
    history: &History,
    below: Spent,
) -> SharedBudget {
    let budgets = &spec.runtime.budgets;
    let mut spent = history.spent;
    spent += below;
    let given = options.max_tokens.map(|most| spent.usage.total().saturating_add(most));
    let left = match (options.timeout, budgets.max_duration_s) {
        (Some(given), _) => Some(given),
        (None, Some(most)) => Some(Duration::from_secs(most.get()).saturating_sub(history.ran())),
        (None, None) => None,
    };
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "from 0 to 1000")]
    let warn_at = (budgets.warn_threshold().clamp(0.0, 1.0) * 1000.0) as u64;
    let allowed = Allowed {
        calls: match options.max_steps {
            Some(most) => Some(history.calls.saturating_add(most)),
            None => budgets.max_steps.map(std::num::NonZeroU64::get),
        },
        tokens: given.or(budgets.max_tokens.map(std::num::NonZeroU64::get)),
        cost: cost_limit(spec, options, spent.cost),
        warn_at: Some(warn_at),
        until: left.and_then(|left| tokio::time::Instant::now().checked_add(left)),
    };
    SharedBudget::new(allowed, spent, history.calls)
}

/// What a flow may have cost in the end, by the nearest of its limits.
fn cost_limit(spec: &Spec, options: &RunOptions, spent: Money) -> Option<Money> {
    let here = options.budget.map(|most| spent.plus(most));
    let of_spec = spec.runtime.budgets.max_cost_usd.filter(|_| here.is_none());
    here.into_iter().chain(options.budget_total.or(of_spec)).min()
}

/// What the subagents of a session spent.
fn below(session: &Session) -> Result<Spent> {
    let mut spent = Spent::default();
    let all = session.well().subagents(session.id())?;
    all.iter().for_each(|info| spent += info.head.spent);
    Ok(spent)
}

/// A flow that is ready to run in its session.
struct FlowRun {
    session: Session,
    history: History,
    spec: Arc<Spec>,
    crew: Crew,
    /// The folder that its artifacts went to.
    output: Option<String>,
    resumed_from: Option<Seq>,
}

impl FlowRun {
    /// Runs it until something stops it.
    fn drive(self, options: &RunOptions, flow: &FlowOptions, job: &mut Job) -> Result<RunReport> {
        let runtime = job.runtime.clone();
        let begun = runtime.now();
        if self.crew.trust.is_own() {
            runtime.own(self.session.id());
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
        let folder = OutputFolder { root, over, store: Some(runtime.place.store.clone()) };
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
        let took = runtime.now().since(begun);
        let ended = match ended {
            Ok(ended) => ended,
            Err(error) => return Err(watched.unsaved("flow", error.into(), (took, resumed_from))),
        };
        let report = report(&session, &ended, (&spec, &crew), folder.root)?;
        if let Some(path) = &options.record_script {
            record_script(path, &session)?;
        }
        let saved = runtime.config.settings.auto_save;
        Ok(RunReport { took, resumed_from, saved, ..report })
    }
}

fn report(
    session: &Session,
    ended: &Ended,
    (spec, crew): (&Spec, &Crew),
    folder: PathBuf,
) -> Result<RunReport> {
    let head = session.info()?.head;
    let plain = |text: &str| crew.redactor().redact(text).into_owned();
    let output = match &ended.output {
        Value::String(text) => text.clone(),
        Value::Null => String::new(),
        value => value.to_string(),
    };
    let lanes = session.lanes()?.into_iter().map(|(lane, it)| (lane.to_string(), it.spent));
    let described = head.flow.as_ref();
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
        by_source: lanes.collect(),
        waiting: ended.open.clone(),
        budget_total: head.budget,
        resumed_from: None,
        was_done: false,
        saved: true,
        flow: Some(FlowReport {
            name: described.map(|flow| flow.name.clone()).unwrap_or_default(),
            pattern: described.map(|flow| flow.pattern.clone()).unwrap_or_default(),
            output: ended.output.clone(),
            artifacts: ended.artifacts.iter().map(|it| it.path.clone()).collect(),
            folder,
            by_agent: by_agent(session, spec)?,
        }),
    })
}

/// What each agent used, over all of the flow's runs.
fn by_agent(session: &Session, spec: &Spec) -> Result<BTreeMap<String, Usage>> {
    let mut used: BTreeMap<String, Usage> = BTreeMap::new();
    for fact in session.keyed_events(&[stepwell::Kind::Node])? {
        let Event::Node(Node { key, usage: Some(usage), .. }) = fact.event else { continue };
        let key = key.parse::<NodeKey>().ok();
        if let Some(agent) = key.and_then(|key| agent_of(spec, &key)) {
            *used.entry(agent.to_owned()).or_default() += usage;
        }
    }
    Ok(used)
}
