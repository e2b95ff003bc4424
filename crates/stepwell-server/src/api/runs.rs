//! Requests that call a model, run a command or move files. Each is carried out by a separate
//! process.

use std::collections::BTreeMap;
use std::path::PathBuf;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use stepwell::model::{Mode, Money, Scope};
use stepwell::store::Span;
use stepwell::{Event, Seq, SessionId};
use stepwell_runtime::command::{MoveCommand, RewindTo};
use stepwell_runtime::detached::{
    DetachedAnswer, DetachedOptions, DetachedResume, DetachedRewind, Work,
};
use stepwell_runtime::flow::specs_in;
use stepwell_runtime::{ErrorKind, FlowOptions, is_script};
use stepwell_wire::RunStarted;

use crate::problem::{Problem, Result};
use crate::route::Nothing;
use crate::site::Act;

/// Settings of a run that differ from the configuration.
#[derive(Debug, Default, Deserialize, JsonSchema)]
pub(crate) struct How {
    /// The agent.
    agent: Option<String>,
    /// The model: `provider/name`.
    model: Option<String>,
    /// The mode: `confirm-all`, `confirm-sensitive` or `yolo`.
    mode: Option<Mode>,
    /// The most dollars of this run, as text or a number.
    budget: Option<Value>,
    /// The most steps of this run.
    max_steps: Option<u64>,
}

impl How {
    fn options(self, act: &Act<'_>) -> Result<DetachedOptions> {
        if self.mode == Some(Mode::Yolo) && !act.look.site.limits.may_yolo {
            return Err(Problem::denied("runs that ask nobody are not started here")
                .at("mode")
                .hint("start the server with --allow-yolo"));
        }
        // A script would be read from a file on the server's machine.
        if self.model.as_deref().is_some_and(is_script) {
            return Err(Problem::denied("scripts cannot be used in requests").at("model"));
        }
        let budget = self.budget.map(|budget| money(&budget)).transpose()?;
        let Self { agent, model, mode, max_steps, .. } = self;
        Ok(DetachedOptions { agent, model, mode, budget, max_steps, ..DetachedOptions::default() })
    }
}

fn money(value: &Value) -> Result<Money> {
    let text = value.as_str().map_or_else(|| value.to_string(), ToOwned::to_owned);
    let money: Money = text.parse().map_err(|error: stepwell::model::NotMoney| {
        Problem::invalid(error.to_string()).at("budget")
    })?;
    match money < Money::ZERO {
        true => Err(Problem::invalid("a budget must not be negative").at("budget")),
        false => Ok(money),
    }
}

/// A run to start.
#[derive(Debug, Deserialize, JsonSchema)]
pub(crate) struct Start {
    /// The task.
    task: String,
    /// The session's id, so that a repeated request starts only one.
    id: Option<String>,
    /// The workspace: it must be that of the store, which `?store=` selects.
    workspace: Option<PathBuf>,
    /// The settings.
    #[serde(flatten)]
    how: How,
}

pub(super) fn start(act: &Act<'_>, start: Start) -> Result<RunStarted> {
    if start.task.trim().is_empty() {
        return Err(Problem::invalid("the task is empty").at("task"));
    }
    if start.workspace.is_some_and(|folder| folder != act.look.runtime().workspace().place.root) {
        return Err(Problem::absent("no store that is meant works in that folder")
            .at("workspace")
            .hint("GET /stores names folders and stores; ?store=KEY means one"));
    }
    let wrong = |error: stepwell::model::InvalidName| Problem::invalid(error.to_string()).at("id");
    let session = start.id.map(|id| id.parse::<SessionId>().map_err(wrong)).transpose()?;
    if let Some(begun) = begun(act, session.as_ref(), &start.task)? {
        return Ok(begun);
    }
    let options = start.how.options(act)?;
    let (task, id) = (start.task.clone(), session.clone());
    let answer = act.launch(Work::Run { task: start.task, session, phases: None, options })?;
    started(answer).or_else(|problem| {
        // Of simultaneous requests only one starts it.
        begun(act, id.as_ref(), &task)?.ok_or(problem)
    })
}

/// The run of an earlier request with this id.
fn begun(act: &Act<'_>, id: Option<&SessionId>, task: &str) -> Result<Option<RunStarted>> {
    let Some(id) = id else { return Ok(None) };
    if !act.look.well().store().exists(id)? {
        return Ok(None);
    }
    let conflict = |title: String| Problem::conflict(title).at("id");
    let info = act.look.well().info(id)?;
    if info.trashed_at.is_some() {
        return Err(conflict(format!("{id} is in the trash")));
    }
    // The head has only the beginning of a long task; the first event has all of it.
    let first = Span { from: Seq::FIRST, to: Seq::FIRST, ..Span::ALL };
    let first = act.look.well().store().events(id, first)?.intact(id)?;
    let is_same = |event: &Event| match event {
        Event::Created(created) => created.task.trim() == act.as_recorded(task).trim(),
        _ => false,
    };
    if !first.iter().any(|it| is_same(&it.event)) {
        return Err(conflict(format!("{id} exists, with another task")));
    }
    Ok(Some(RunStarted { id: id.clone() }))
}

/// A session to resume.
#[derive(Debug, Deserialize, JsonSchema)]
pub(crate) struct Resume {
    /// The next message, if there is one.
    say: Option<String>,
    /// The settings.
    #[serde(flatten)]
    how: How,
}

pub(super) fn resume(act: &Act<'_>, resume: Resume) -> Result<RunStarted> {
    let session = act.look.session()?;
    let options = resume.how.options(act)?;
    let (say, answer, flow) = (resume.say, None, FlowOptions::default());
    started(act.launch(Work::Resume(DetachedResume { session, say, answer, options, flow }))?)
}

/// A flow to start.
#[derive(Debug, Deserialize, JsonSchema)]
pub(crate) struct StartFlow {
    /// The path of its spec, as in the list of flows.
    path: String,
    /// The values of its variables.
    #[serde(default)]
    variables: BTreeMap<String, String>,
    /// The settings of its agents.
    #[serde(flatten)]
    how: How,
}

pub(super) fn start_flow(act: &Act<'_>, start: StartFlow) -> Result<RunStarted> {
    // Only what the list has: no path of a request opens a file.
    let known = specs_in(&act.look.runtime().workspace().place.root);
    let spec = known.into_iter().find(|it| it.shown == start.path);
    let absent = || Problem::absent(format!("there is no flow {:?}", start.path)).at("path");
    let spec = spec.ok_or_else(absent)?.path;
    let options = start.how.options(act)?;
    let (variables, flow) = (start.variables, FlowOptions::default());
    started(act.launch(Work::Flow { spec, variables, options, flow })?)
}

fn started(answer: DetachedAnswer) -> Result<RunStarted> {
    match answer {
        DetachedAnswer::Started { session } => Ok(RunStarted { id: session }),
        DetachedAnswer::Done(_) | DetachedAnswer::GoesOnElsewhere { .. } => {
            Err(Problem::failed("nothing was started"))
        }
        DetachedAnswer::Failed { message, hint, kind } => Err(failed(message, hint, kind)),
    }
}

fn failed(message: String, hint: Option<String>, kind: ErrorKind) -> Problem {
    let problem = Problem::of(kind, message);
    // Hints with commands are for terminals.
    match hint.filter(|hint| !hint.contains("stepwell ") && !hint.contains("--")) {
        Some(hint) => problem.hint(hint),
        None => problem,
    }
}

/// The report of a process.
#[derive(Debug, Serialize)]
#[serde(transparent)]
pub(crate) struct Told<T> {
    value: Value,
    #[serde(skip)]
    form: std::marker::PhantomData<T>,
}

impl<T: JsonSchema> JsonSchema for Told<T> {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        T::schema_name()
    }

    fn schema_id() -> std::borrow::Cow<'static, str> {
        T::schema_id()
    }

    fn json_schema(generator: &mut schemars::SchemaGenerator) -> schemars::Schema {
        T::json_schema(generator)
    }
}

fn done<T>(answer: DetachedAnswer) -> Result<Told<T>> {
    match answer {
        DetachedAnswer::Done(value) => Ok(Told { value, form: std::marker::PhantomData }),
        DetachedAnswer::Started { .. } | DetachedAnswer::GoesOnElsewhere { .. } => {
            Err(Problem::failed("it was started, but not finished"))
        }
        DetachedAnswer::Failed { message, hint, kind } => Err(failed(message, hint, kind)),
    }
}

pub(super) fn compact(act: &Act<'_>, _: Nothing) -> Result<Told<stepwell_wire::Compaction>> {
    done(act.launch(Work::Compact { session: act.look.session()? })?)
}

/// A rewind.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Rewind {
    /// The target: a seq, a checkpoint's name, or `-N` for N steps back.
    to: String,
    /// `chat`, `files` or `both` (the default).
    scope: Option<Scope>,
    /// Only preview it?
    #[serde(default)]
    dry_run: bool,
    /// Overwrite files that someone else changed since?
    #[serde(default)]
    force: bool,
}

pub(super) fn rewind(act: &Act<'_>, rewind: Rewind) -> Result<Told<stepwell_wire::Rewind>> {
    let Rewind { to, scope, dry_run, force } = rewind;
    let (session, scope) = (act.look.session()?, scope.unwrap_or(Scope::Both));
    let command = MoveCommand { to: RewindTo::Point(to), scope, force, dry_run };
    done(act.launch(Work::Rewind(DetachedRewind { session, command }))?)
}

/// An undo or redo.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct TakeBack {
    /// Only preview it?
    #[serde(default)]
    dry_run: bool,
    /// Set aside later work, and overwrite files?
    #[serde(default)]
    force: bool,
}

pub(super) fn undo_rewind(act: &Act<'_>, how: TakeBack) -> Result<Told<stepwell_wire::Rewind>> {
    take_back(act, &how, RewindTo::Undo)
}

pub(super) fn redo_rewind(act: &Act<'_>, how: TakeBack) -> Result<Told<stepwell_wire::Rewind>> {
    take_back(act, &how, RewindTo::Redo)
}

fn take_back(act: &Act<'_>, how: &TakeBack, to: RewindTo) -> Result<Told<stepwell_wire::Rewind>> {
    let TakeBack { dry_run, force } = *how;
    let command = MoveCommand { force, dry_run, ..MoveCommand::to(to) };
    done(act.launch(Work::Rewind(DetachedRewind { session: act.look.session()?, command }))?)
}
