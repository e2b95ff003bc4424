//! Running flows: a spec and variables become a session and a run over its pattern.

mod agents;
mod answers;
mod budget;
mod change;
mod preview;
mod resumed;
mod run;
mod settings;
mod specs;
mod stored;
mod tools;
mod variables;

use std::sync::Arc;
use stepwell_workspace::ownership;

use serde_json::Value;
use stepwell::model::{Edited, Flow as Described, FlowSettings, PhaseSet, SpecHash};
use stepwell::store::Span;
use stepwell::store::query::Query;
use stepwell::{Created, NewEvent, Session, SessionId, Status, Stepwell};
use stepwell_flow::guided::{GOAL, Survey};
use stepwell_flow::spec::{Pattern, Spec};
use stepwell_flow::{Agents as _, History, Stored};

use crate::error::Result;
use crate::handle::{About, RunHandle};
use crate::notice::Notice;
use crate::prepare::Of;
use crate::readiness::make_ready;
use crate::report::RunReport;
use crate::request::FlowRequest;
use crate::runtime::{NewWell, Runtime};
use crate::thread::{Job, spawn};
use agents::{Crew, Hiring};
use budget::{check_budget, cost_limit};
use run::FlowRun;
use settings::{output, remembered};

pub use crate::gate_answer::is_permission;
pub(crate) use answers::fitting_answer;
pub(crate) use resumed::FlowWork;
pub use specs::{SpecFile, specs_in};
pub(crate) use tools::configured;

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
        let hash = SpecHash::of(request.text.as_bytes());
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
            if same && ownership::began_by_user(self.workspace(), &well, &head)? {
                return Ok(Some(head.id));
            }
        }
        Ok(None)
    }
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
        .in_workspace(runtime.workspace().place.root.display().to_string());
    let mut created = Created { flow: Some(flow), ..created };
    if is_guided(spec) {
        created.phases = Some(PhaseSet::Workflow);
        created.project = Survey::of(&runtime.workspace().place.root).project();
    }
    let folder = output(&request.flow, None, runtime);
    // A spec that was made for a goal lies in no file.
    let path = Some(&request.path).filter(|path| !path.as_os_str().is_empty());
    let path = path.map(|path| std::path::absolute(path).unwrap_or_else(|_| path.clone()));
    let given = FlowSettings {
        spec: stored.digest(),
        path: path.map(|path| path.display().to_string()),
        output: Some(folder.display().to_string()),
    };
    let tag = spec.tags.iter().cloned().collect();
    let mut events: Vec<NewEvent> = vec![
        remembered(&request.options, given, runtime.who()).into(),
        Edited { tag, ..Edited::default() }.into(),
    ];
    // The files that a spec was read from may change: what was read is what counts.
    if !stored.files.is_empty() {
        events.push(stored.checkpoint().into());
    }
    runtime.create_own(well, created, events)
}

/// Does a flow lead through the phases of the workflow set?
const fn is_guided(spec: &Spec) -> bool {
    matches!(spec.pattern, Pattern::Guided(_))
}
