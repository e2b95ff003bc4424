//! Telling a session: the conversation, the work, the attributes.

use std::path::{Path, PathBuf};

use stepwell::model::{
    Change, Checkpoint, CheckpointReason, Edited, Elsewhere, Phase, PhaseSet, Project, Question,
    StatusChanged, Task, TaskStatus, Time,
};
use stepwell::{Event, Lane, Status};

use super::kept::{ASIDE, Files};
use super::phase_walk::{PhaseWalk, phase};
use super::{FOLDER, SESSION, SYSTEM, message, sound, tasks};
use crate::Result;
use crate::json::fields::{Fields, elements, text_of};
use crate::read::neutral::{Item, Opening, Sink, StandIn, Wanted};
use crate::read::steps::Steps;
use crate::snapshot::{Aside, is_name, metadata, moment, name, residue, texts, warn};
use crate::write::writer::Losses;

/// A session that is as it should be, and what lies beside it.
pub(super) struct Session<'a> {
    pub(super) fields: Fields<'a>,
    pub(super) path: &'a Path,
    pub(super) messages: Vec<&'a str>,
    pub(super) files: Files,
    /// The one file that holds all of it, if that is so.
    pub(super) file: Option<PathBuf>,
    pub(super) known: Knowledge,
}

/// How much is known of a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Knowledge {
    /// Its own file is intact.
    Whole,
    /// It was saved before its program stopped.
    Saved,
    /// It was put together from other files.
    Salvaged,
}

/// Tells a session.
pub(super) fn emit(session: &Session<'_>, sink: &mut dyn Sink) -> Result<()> {
    let aside = session.files.get(ASIDE).map(Aside::read).unwrap_or_default();
    let mut opening = opening(session);
    opening.created.agent.clone_from(&aside.agent);
    if sink.begin(opening)? == Wanted::Known {
        return Ok(());
    }
    let said = conversation(session, sink)?;
    let phase = work(session, &aside, sink)?;
    let kept = aside.status();
    let mut edited = aside.attributes(Default::default());
    attributes(session, &mut edited, sink);
    if !aside.cost.is_zero() {
        edited.elsewhere = Some(Elsewhere { cost: aside.cost, ..Elsewhere::default() });
    }
    for item in aside.into_events() {
        sink.push(item)?;
    }
    sink.push(Item::new(None, edited))?;
    sink.push(Item::of_session(SYSTEM, session.files.keep(&session.fields)))?;
    // What was put aside counts while the files say nothing else.
    let told = kept.filter(|kept| phase_of(kept.status).is_none_or(|it| it == phase));
    let status = told.unwrap_or_else(|| match session.known {
        // Nothing says that its work was done: it can be taken up again.
        Knowledge::Salvaged if phase == Phase::Idle => interrupted(),
        _ => stands(phase, said),
    });
    // It tells only of the last time: that it was stopped before follows from it.
    if let Some(at) = session.fields.raw("resumed_at").and_then(moment) {
        let running = StatusChanged { status: Status::Running, ..interrupted() };
        sink.push(Item::new(Some(at), interrupted()))?;
        sink.push(Item::new(Some(at), running))?;
    }
    sink.push(Item::new(None, status))?;
    sink.end()
}

fn opening(session: &Session<'_>) -> Opening {
    let fields = &session.fields;
    let first = || {
        let said = session.messages.iter().filter_map(|raw| Fields::parse(raw).ok());
        let mut asked = said.filter(|it| it.text("role").as_deref() == Some("user"));
        Some(asked.find(|it| !it.is_true("skip_for_llm"))?.text("content")?.into_owned())
    };
    let task = goal(fields).or_else(first).unwrap_or_default();
    let mut opening = Opening::new(fields.text("id").unwrap_or_default(), task);
    opening.started_at = fields.raw("started_at").and_then(moment);
    opening.updated_at = updated_at(session);
    opening.recovered = session.known != Knowledge::Whole;
    opening.stand_in = stand_in(session);
    opening.file.clone_from(&session.file);
    let is_own = session.file.is_none() && session.path.ends_with(SESSION);
    let folder = session.path.parent().filter(|_| is_own && !opening.recovered);
    opening.folder = folder.map(Path::to_owned);
    opening.parent = fields.text("parent_id").filter(|it| !it.is_empty()).map(Into::into);
    let created = &mut opening.created;
    created.model = name(fields, "model");
    created.provider = name(fields, "provider");
    created.phases = Some(PhaseSet::Workflow);
    let folder = session.path.parent().filter(|it| it.ends_with(FOLDER)).and_then(Path::parent);
    created.workspace = folder.map(|it| it.display().to_string()).unwrap_or_default();
    created.project = fields.object("project").map(|project| Project {
        project_type: name(&project, "project_type"),
        framework: name(&project, "framework"),
        answers: project.raw("answers").and_then(|raw| metadata(raw).ok()).unwrap_or_default(),
    });
    opening
}

/// How the session is known again while nothing names it.
fn stand_in(session: &Session<'_>) -> Option<StandIn> {
    let name = sound::stand_in(&session.messages)?;
    let first = Fields::parse(session.messages.first()?).ok()?;
    let (said, at) = message::read(&first)?;
    let began = session.fields.raw("started_at").and_then(moment);
    // Without a time of its own it has the session's, which may not be known then.
    let at = at.filter(|at| Some(*at) != began);
    Some(StandIn { name, first: Item::new(at, said) })
}

/// When a session changed last. M31A does not say; its files hold times of much that happened.
fn updated_at(session: &Session<'_>) -> Option<Time> {
    let time = |fields: &Fields<'_>, field: &str| fields.raw(field).and_then(moment);
    let said = session.messages.iter().filter_map(|raw| Fields::parse(raw).ok());
    let said = said.filter_map(|it| time(&it, "created_at")).max();
    let saved = session.files.get("checkpoint.json").and_then(|raw| elements(raw).ok());
    let saved = saved.unwrap_or_default().into_iter().filter_map(|raw| Fields::parse(raw).ok());
    let saved = saved.filter_map(|it| time(&it, "timestamp")).max();
    let state = session.files.get("STATE.md").unwrap_or_default();
    let state = state.lines().find_map(|line| line.strip_prefix("**Timestamp:**"));
    let state = state.and_then(|text| text.trim().parse().ok());
    time(&session.fields, "resumed_at").max(said).max(saved).max(state)
}

fn goal(fields: &Fields<'_>) -> Option<String> {
    let of_project = || fields.object("project")?.text("goal").map(std::borrow::Cow::into_owned);
    let own = fields.text("workflow_goal").map(std::borrow::Cow::into_owned);
    own.filter(|goal| !goal.is_empty()).or_else(of_project).filter(|goal| !goal.is_empty())
}

/// Tells the conversation. The answer is how it would stand if it were all.
fn conversation(session: &Session<'_>, sink: &mut dyn Sink) -> Result<StatusChanged> {
    let (mut steps, mut unknown) = (Steps::default(), 0_u64);
    let began = session.fields.raw("started_at").and_then(moment);
    for raw in &session.messages {
        let fields = Fields::parse(raw).unwrap_or_default();
        let Some((said, at)) = message::read(&fields) else {
            unknown += 1;
            sink.push(Item::alone(SYSTEM, began, *raw))?;
            continue;
        };
        // What has no time of its own keeps having none there.
        let usual = message::write(&said, at.unwrap_or(Time::EPOCH), &mut Losses::default());
        let at = at.or(began);
        sink.push(Item::new(at, said.clone()))?;
        if let Some(kept) = residue(&fields, &Fields::parse(&usual).unwrap_or_default()) {
            sink.push(Item::beside(SYSTEM, at, kept))?;
        }
        let shown = said.lane == Lane::main();
        if let Some(step) = shown.then(|| steps.said(&said)).flatten() {
            sink.push(Item::new(at, step))?;
        }
    }
    if unknown > 0 {
        let what = format!("{unknown} of its messages are of no known kind, and shown to no model");
        warn(sink, session.path, what);
    }
    Ok(steps.status())
}

/// What is planned, what was asked, and where the work is.
fn work(session: &Session<'_>, aside: &Aside, sink: &mut dyn Sink) -> Result<Phase> {
    for question in questions(&session.fields) {
        sink.push(Item::new(None, question))?;
    }
    // What was put aside says more than the table could.
    if !aside.has(|event| matches!(event, Event::Task(_))) {
        let (planned, faults) = planned(session);
        for task in planned {
            sink.push(Item::new(None, task))?;
        }
        for fault in faults {
            warn(sink, session.path, format!("TASKS.md: {fault}"));
        }
    }
    let mut way = PhaseWalk::new();
    let raw = session.files.get("checkpoint.json").unwrap_or("[]");
    let (stops, fault) = checkpoints(raw);
    if let Some(fault) = fault {
        warn(sink, session.path, fault);
    }
    for (phase, at, checkpoint) in stops {
        for (at, change) in way.to(phase, at) {
            sink.push(Item::new(at, change))?;
        }
        sink.push(Item::new(at, checkpoint))?;
    }
    let now = match session.fields.text("workflow_phase") {
        None if session.known == Knowledge::Salvaged => last_phase(session).unwrap_or(way.at()),
        word => phase(&word.unwrap_or_default()).unwrap_or(Phase::Idle),
    };
    for (at, change) in way.to(now, None) {
        sink.push(Item::new(at, change))?;
    }
    Ok(now)
}

/// The phase that STATE.md tells, for a session whose own file does not.
fn last_phase(session: &Session<'_>) -> Option<Phase> {
    let state = session.files.get("STATE.md")?;
    let word = state.lines().find_map(|line| line.strip_prefix("**Phase:**"))?.trim();
    Some(word).filter(|word| !word.is_empty()).and_then(phase)
}

/// The questions of a discussion, with the answers that the project knows.
pub(super) fn questions(fields: &Fields<'_>) -> Vec<Question> {
    let project = fields.object("project").unwrap_or_default();
    let answers = project.object("answers").unwrap_or_default();
    let asked = texts(fields.raw("discuss_questions"));
    let question = |(text, n): (String, u64)| {
        let answer = answers.text(&text).map(std::borrow::Cow::into_owned);
        Question { answer, ..Question::new(n.to_string(), text) }
    };
    asked.into_iter().zip(1..).map(question).collect()
}

/// The tasks, and what is wrong with their table.
fn planned(session: &Session<'_>) -> (Vec<Task>, Vec<String>) {
    let (tasks, faults) = session.files.get("TASKS.md").map(tasks::read).unwrap_or_default();
    match tasks.is_empty() {
        true => (embedded(&session.fields), faults),
        false => (tasks, faults),
    }
}

/// The tasks in a session's own file, which is seldom where they are.
fn embedded(fields: &Fields<'_>) -> Vec<Task> {
    let all = fields.raw("tasks").and_then(|raw| elements(raw).ok()).unwrap_or_default();
    let word =
        |raw: &str| text_of(raw).map_or_else(|| raw.to_owned(), std::borrow::Cow::into_owned);
    let words = |fields: &Fields<'_>, name: &str| -> Vec<String> {
        let all = fields.raw(name).and_then(|raw| elements(raw).ok()).unwrap_or_default();
        all.into_iter().map(word).collect()
    };
    let task = |raw: &str| {
        let fields = Fields::parse(raw).ok()?;
        let id =
            fields.raw("id").map(word).filter(|id| (1..=tasks::MAX_NAME).contains(&id.len()))?;
        let text = |name: &str| fields.text(name).unwrap_or_default().into_owned();
        let status = fields.text("status").and_then(|it| it.parse::<TaskStatus>().ok());
        Some(Task {
            id,
            action: text("action"),
            description: text("description"),
            deps: words(&fields, "deps"),
            status: status.unwrap_or_default(),
            files: words(&fields, "files"),
        })
    };
    let mut tasks: Vec<Task> = Vec::new();
    for task in all.into_iter().filter_map(task) {
        if !tasks.iter().any(|other| other.id == task.id) {
            tasks.push(task);
        }
    }
    tasks
}

/// A checkpoint that M31A took: where the work was, and when.
pub(super) type Stop = (Phase, Option<Time>, Checkpoint);

/// The checkpoints in their file: a list, or in older versions one.
pub(super) fn checkpoints(raw: &str) -> (Vec<Stop>, Option<String>) {
    let all = elements(raw).or_else(|_| Fields::parse(raw).map(|_| vec![raw]));
    let Ok(all) = all else {
        return (Vec::new(), Some("checkpoint.json holds no checkpoints".to_owned()));
    };
    let mut stops = Vec::new();
    for raw in &all {
        let fields = Fields::parse(raw).unwrap_or_default();
        let found = fields.text("phase").and_then(|word| phase(&word));
        let (Some(phase), Ok(metadata)) = (found, metadata(raw)) else { continue };
        let at = fields.raw("timestamp").and_then(moment);
        let (name, reason) = (format!("phase-{phase}"), CheckpointReason::Phase);
        stops.push((phase, at, Checkpoint { name, reason, metadata }));
    }
    let left = all.len() - stops.len();
    let fault =
        (left > 0).then(|| format!("checkpoint.json: {left} of {} name no phase", all.len()));
    (stops, fault)
}

fn attributes(session: &Session<'_>, edited: &mut Edited, sink: &mut dyn Sink) {
    let fields = &session.fields;
    if let Some(label) = fields.text("label").filter(|label| !label.is_empty()) {
        match is_name(&label) {
            true => edited.label = Change::Set(label.into_owned()),
            false => warn(sink, session.path, format!("{label:?} is kept, and cannot be a label")),
        }
    }
    let tags = texts(fields.raw("tags"));
    edited.tag.extend(tags.into_iter().filter(|tag| is_name(tag)).take(32));
    if let Some(goal) = goal(fields).filter(|goal| goal.len() < 32 << 10) {
        edited.goal = Change::Set(goal);
    }
}

/// How a session stands, which M31A does not say: what was shipped is done, and so is a
/// conversation outside of any work that the model had the last word of.
pub(super) fn stands(phase: Phase, said: StatusChanged) -> StatusChanged {
    match phase {
        Phase::Ship => StatusChanged { status: Status::Success, reason: None, error: None },
        Phase::Idle => said,
        _ => interrupted(),
    }
}

const fn interrupted() -> StatusChanged {
    StatusChanged { status: Status::Interrupted, reason: None, error: None }
}

/// The phase that a status stands for, if it stands for one.
const fn phase_of(status: Status) -> Option<Phase> {
    match status {
        Status::Success => Some(Phase::Ship),
        _ => None,
    }
}
