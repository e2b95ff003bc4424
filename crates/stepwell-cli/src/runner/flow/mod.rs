//! Running a flow: a spec and variables become a session and a run over its pattern; how it
//! ended becomes an answer and an exit code.

mod agents;
mod answer;
mod change;
mod preview;
mod reach;
mod report;
mod screen;
mod tools;
mod variables;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde_json::Value;
use stepwell::{
    Created, Edited, Event, Flow as Described, Head, NewEvent, Node, NodeKey, NodeState, Query,
    Session, SessionId, Span, Status, Stepwell, Usage,
};
use stepwell_agent::run::{Allowed, Purse};
use stepwell_flow::revision::agent_of;
use stepwell_flow::spec::{Reading, Spec};
use stepwell_flow::template::Scope;
use stepwell_flow::{
    Agents as _, Error, Flow, FlowEvent, History, Observer as _, OutputFolder, Over, Parts,
    Patience, Stored,
};

use super::tally::{Tally, Tallying};
use super::{Flags, MODE, MODEL};
use crate::app::{App, Go, Well, each_session};
use crate::failure::{Exit, Failure, Result};
use crate::output::note;
use crate::readiness::make_ready;
use agents::Crew;
pub(crate) use answer::{Reply, is_permission};
use reach::{GoesOn, reach};
pub(crate) use report::Waiting;
use screen::Screen;
pub(crate) use variables::{each_once, variable};

/// What `flow run` and `resume` of a flow both take.
#[derive(clap::Args, Clone, Debug, Default)]
#[command(next_help_heading = "Flows")]
pub(crate) struct FlowFlags {
    /// The folder that artifacts are written to; absent, where the flow was started.
    #[arg(long, value_name = "DIR")]
    pub(crate) output: Option<PathBuf>,
    /// Replaces files that are in the way of artifacts.
    #[arg(long)]
    pub(crate) force: bool,
    /// Waits for answers to the flow's questions instead of pausing.
    #[arg(long)]
    pub(crate) wait: bool,
}

/// A spec that is to run, as it was read from its file.
pub(crate) struct Asked<'a> {
    pub(crate) path: &'a Path,
    pub(crate) text: &'a str,
    pub(crate) reading: &'a Reading,
    pub(crate) variables: BTreeMap<String, Value>,
}

/// The metadata key under which a flow's session remembers where its spec and its artifacts
/// are.
const FLOW: &str = "flow";

/// Begins a flow.
pub(crate) fn start(
    asked: &Asked<'_>,
    flags: &Flags,
    own: &FlowFlags,
    app: &mut App,
) -> Result<Exit> {
    let spec = &asked.reading.spec;
    if flags.dry_run {
        return preview::plan(asked, app);
    }
    let crew = Crew::new(spec, flags, None, app)?;
    check_budget(spec, flags, &crew)?;
    let well: Stepwell = if app.config.settings.auto_save {
        let well = app.make()?;
        make_ready(flags.touch(), &well, None, app)?;
        Stepwell::clone(&well)
    } else {
        note("sessions.auto_save is off: this flow is kept in memory only and cannot be resumed.");
        Stepwell::in_memory()
    };
    let session = begin(asked, (flags, own), (&crew, &well), app)?;
    let mut history = History::read(&session)?;
    if let Some(flow) = &mut history.described {
        // As they were typed: what is recorded lacks their secrets.
        flow.variables.clone_from(&asked.variables);
    }
    drive((session, history), spec, &crew, (flags, own), None, app)
}

/// Makes the session of a flow, with all that it begins with.
fn begin(
    asked: &Asked<'_>,
    (flags, own): (&Flags, &FlowFlags),
    (crew, well): (&Crew, &Stepwell),
    app: &App,
) -> Result<Session> {
    let spec = &asked.reading.spec;
    let stored = Stored::new(asked.text, spec.files());
    let plain = |text: &str| crew.redactor().redact(text).into_owned();
    let flow = Described {
        name: spec.name.clone(),
        pattern: spec.pattern.name().to_owned(),
        spec: stored.spec.clone(),
        hash: stored.hash,
        variables: variables::kept(&asked.variables, crew.redactor()),
    };
    let task = spec.description.clone().unwrap_or_else(|| format!("flow {}", spec.name));
    let created = well
        .draft(plain(&task))
        .with_model(&crew.model.0, &crew.model.1)
        .in_workspace(app.place.root.display().to_string());
    let created = Created { flow: Some(flow), ..created };
    let spec_at = std::path::absolute(asked.path).unwrap_or_else(|_| asked.path.to_owned());
    let kept = serde_json::json!({
        "spec": spec_at.display().to_string(),
        "output": output(own, None, app).display().to_string(),
    });
    let mut metadata = BTreeMap::from([(FLOW.to_owned(), kept)]);
    metadata.extend(remembered(flags));
    let tag = spec.tags.iter().cloned().collect();
    let mut events: Vec<NewEvent> = vec![Edited { metadata, tag, ..Edited::default() }.into()];
    // The files that a spec was read from may change: what was read is what counts.
    if !stored.files.is_empty() {
        events.push(stored.checkpoint().into());
    }
    Ok(well.create_with(created, events)?)
}

/// What is remembered of what was typed, for those to come.
fn remembered(flags: &Flags) -> BTreeMap<String, Value> {
    let mode = flags.mode.map(|mode| (MODE.to_owned(), mode.as_str().into()));
    let model = flags.model.as_ref().map(|model| {
        let named = match model.strip_prefix("script:") {
            Some(path) => {
                let path = std::path::absolute(path).unwrap_or_else(|_| path.into());
                format!("script:{}", path.display())
            }
            None => model.clone(),
        };
        (MODEL.to_owned(), named.into())
    });
    mode.into_iter().chain(model).collect()
}

/// Where artifacts go.
fn output(own: &FlowFlags, head: Option<&Head>, app: &App) -> PathBuf {
    let kept = || {
        let kept = head?.metadata.get(FLOW)?.get("output")?.as_str()?;
        Some(PathBuf::from(kept))
    };
    let here = || app.host.folder.clone().unwrap_or_else(|| app.place.root.clone());
    let typed = own.output.as_ref().map(|path| std::path::absolute(path).unwrap_or(path.clone()));
    typed.or_else(kept).unwrap_or_else(here)
}

/// A budget on a model whose price nobody knows cannot be kept.
fn check_budget(spec: &Spec, flags: &Flags, crew: &Crew) -> Result<()> {
    let limited = spec.runtime.budgets.max_cost_usd.is_some()
        || flags.budget.is_some()
        || flags.budget_total.is_some();
    if limited && !crew.priced {
        let message = "the price of some agent's model is not known, so a budget cannot be kept";
        return Err(Failure::new(Exit::Absent, message)
            .hint("set its price in the configuration, or limit tokens (budgets.max_tokens)"));
    }
    Ok(())
}

/// The newest session of the same spec and variables that is not finished. One that somebody
/// runs is one too: whoever goes on with it is told, and does not pay for it twice.
pub(crate) fn unfinished(asked: &Asked<'_>, well: &Well, app: &App) -> Result<Option<SessionId>> {
    let hash = stepwell::Digest::of(asked.text.as_bytes());
    let redactor = agents::redactor(&asked.reading.spec, app)?;
    let kept = variables::kept(&asked.variables, &redactor);
    let mut found = None;
    each_session(well, Query::default(), |standing| {
        let head = &standing.head;
        let over = matches!(head.status, Status::Success | Status::Abandoned);
        if over || head.flow.as_ref().is_none_or(|flow| flow.name != asked.reading.spec.name) {
            return Ok(Go::On);
        }
        let history = History::of(well.store().events(&head.id, Span::ALL)?.intact(&head.id)?);
        let same = history.stored.as_ref().is_some_and(|stored| stored.hash == hash)
            && history.described.is_some_and(|flow| flow.variables == kept);
        if same {
            found = Some(head.id.clone());
            return Ok(Go::Stop);
        }
        Ok(Go::On)
    })?;
    Ok(found)
}

/// Goes on with a flow.
pub(crate) fn resume(
    (well, id): (&Well, &SessionId),
    reply: &Reply,
    flags: &Flags,
    own: &FlowFlags,
    app: &mut App,
) -> Result<Exit> {
    let standing = well.standing(id)?;
    if standing.held.is_none() && !flags.dry_run {
        make_ready(flags.touch(), well, Some(&standing.head), app)?;
    }
    // What is decided from here on is decided while nobody else runs it.
    match well.hold(id) {
        Ok(session) => go_on((well, session), reply, flags, own, app),
        // An answer reaches a flow that runs.
        Err(stepwell::Error::Held { .. }) if reply.text.is_some() => {
            match reach((well, id), reply, app)? {
                GoesOn::There => Ok(Exit::Done),
                GoesOn::Here(session) => {
                    let answered = Reply { text: None, gate: None, ..reply.clone() };
                    go_on((well, session), &answered, flags, own, app)
                }
            }
        }
        Err(error) => Err(runs_elsewhere(error, id)),
    }
}

fn refuse_finished(history: &History, id: &SessionId) -> Result<()> {
    if !history.finished {
        return Ok(());
    }
    let message = format!("{id} is finished: there is nothing left to do");
    Err(Failure::new(Exit::Absent, message).hint(format_args!(
        "stepwell show {id} --events; stepwell rewind {id} --to SEQ takes nodes back"
    )))
}

/// Goes on with a flow that is held.
fn go_on(
    (well, session): (&Well, Session),
    reply: &Reply,
    flags: &Flags,
    own: &FlowFlags,
    app: &mut App,
) -> Result<Exit> {
    let id = &session.id().clone();
    let head = well.standing(id)?.head;
    let (mut history, reading) = History::read_with_spec(&session)?;
    refuse_finished(&history, id)?;
    let stored = (history.spec(&session)?, reading?.spec);
    let (spec, accepted) = change::settle(stored, &head, &history.memo, reply.use_current_spec)?;
    if flags.dry_run {
        return preview::next((&session, history), &spec, app);
    }
    let crew = Crew::new(&spec, flags, Some(&head), app)?;
    check_budget(&spec, flags, &crew)?;
    // Known before anything is recorded.
    let answer = reply.to(&history.memo, &spec, (&head, crew.redactor()), app)?;
    let kept = history.described.as_ref().map(|flow| flow.variables.clone()).unwrap_or_default();
    let typed = (crew.redactor(), id);
    let variables = variables::revealed(&kept, &reply.variables, &spec, typed)?;
    session.take_up()?;
    if let Some(answer) = answer {
        let gate = answer.id.clone();
        match well.answer(id, answer) {
            // Somebody was quicker: theirs is the answer.
            Err(stepwell::Error::Illegal { why, .. }) => {
                note(format_args!("[{gate}] {why}: your answer is not taken"));
            }
            answered => drop(answered?),
        }
    }
    let mut metadata = remembered(flags);
    if let Some(output) = own.output.as_ref() {
        let output = std::path::absolute(output).unwrap_or(output.clone());
        let mut kept = head.metadata.get(FLOW).cloned().unwrap_or_default();
        kept["output"] = output.display().to_string().into();
        metadata.insert(FLOW.to_owned(), kept);
    }
    if !metadata.is_empty() {
        well.edit(id, Edited { metadata, ..Edited::default() })?;
    }
    if let Some((stored, anew)) = accepted {
        let mut events: Vec<NewEvent> = vec![stored.checkpoint().into()];
        let (state, error) = (NodeState::Skipped, Some("the spec describes it differently now"));
        events.extend(anew.into_iter().map(|key| {
            let error = error.map(str::to_owned);
            NewEvent::from(Node { key, state, output: None, usage: None, error })
        }));
        session.append_all(events)?;
    }
    history.catch_up(&session)?;
    if let Some(flow) = &mut history.described {
        flow.variables = variables;
    }
    drive((session, history), &spec, &crew, (flags, own), Some(head.seq.get()), app)
}

fn runs_elsewhere(error: stepwell::Error, id: &SessionId) -> Failure {
    match error {
        stepwell::Error::Held { .. } => Failure::from(error).hint(format_args!(
            "stepwell resume {id} --attach follows it; stepwell stop {id} stops it"
        )),
        error => error.into(),
    }
}

/// What a flow may use: what its spec says of all of it, or what was typed of this invocation.
fn purse(spec: &Spec, flags: &Flags, history: &History) -> Purse {
    let budgets = &spec.runtime.budgets;
    let spent = history.spent;
    let typed = flags.max_tokens.map(|most| spent.usage.total().saturating_add(most));
    let here = flags.budget.map(|most| spent.cost.plus(most));
    let whole = flags.budget_total.or(budgets.max_cost_usd.filter(|_| here.is_none()));
    let left = match (flags.timeout, budgets.max_duration_s) {
        (Some(typed), _) => Some(typed),
        (None, Some(most)) => {
            Some(std::time::Duration::from_secs(most.get()).saturating_sub(history.ran()))
        }
        (None, None) => None,
    };
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "from 0 to 1000")]
    let warn_at = (budgets.warn_threshold().clamp(0.0, 1.0) * 1000.0) as u64;
    let allowed = Allowed {
        calls: match flags.max_steps {
            Some(most) => Some(history.calls.saturating_add(most)),
            None => budgets.max_steps.map(std::num::NonZeroU64::get),
        },
        tokens: typed.or(budgets.max_tokens.map(std::num::NonZeroU64::get)),
        cost: here.into_iter().chain(whole).min(),
        warn_at: Some(warn_at),
        until: left.and_then(|left| tokio::time::Instant::now().checked_add(left)),
    };
    Purse::new(allowed, spent, history.calls)
}

/// Runs a flow in its session until something stops it, and answers.
fn drive(
    (session, mut history): (Session, History),
    spec: &Spec,
    crew: &Crew,
    (flags, own): (&Flags, &FlowFlags),
    resumed_from: Option<u64>,
    app: &mut App,
) -> Result<Exit> {
    let begun = app.now();
    let head = session.standing()?.head;
    if crew.own {
        app.own(session.id());
    } else {
        history.past.distrust();
    }
    let variables = history.described.as_ref().map(|flow| flow.variables.clone());
    let mut scope = Scope::new();
    for (name, value) in variables.unwrap_or_default() {
        scope.set(name, value);
    }
    // Where someone else wanted files is not where the user does.
    let root = output(own, Some(&head).filter(|_| crew.own), app);
    let over = if own.force { Over::Replace } else { Over::Refuse };
    let folder = OutputFolder { root, over, store: Some(app.place.store.clone()) };
    let patience = if own.wait { Patience::Wait } else { Patience::Pause };
    let below = session.well().subagents(session.id())?.into_iter().map(|it| it.head).collect();
    let tally = Tally::new(head.clone(), session.lanes()?, below);
    let mut screen = Tallying { watcher: Screen::new(app, flags.events), tally };
    // What was recorded before the run itself began is this invocation's too.
    let before = stepwell::Seq::new(resumed_from.unwrap_or(0));
    for event in session.events(Span::after(before))?.intact(session.id())? {
        screen.on_event(FlowEvent::Recorded(&event));
    }
    let ended = crew.connected.runtime.block_on(async {
        let parts = Parts {
            session: &session,
            spec,
            agents: crew,
            variables: scope,
            observer: &mut screen,
            interrupt: crew.connected.interrupt.clone(),
            purse: purse(spec, flags, &history),
        };
        Flow::new(parts, history).run(patience, &folder).await
    });
    crew.connected.close();
    let Tallying { watcher, tally } = screen;
    let written = watcher.finish();
    let ended = match ended {
        Ok(ended) => ended,
        Err(error) => {
            let failure = unsaved(error, &session);
            let took = app.now().since(begun);
            let ended = (took, resumed_from);
            super::report::unsaved(&tally, &failure.to_string(), ended, app)?;
            return Err(failure);
        }
    };
    let standing = session.standing()?;
    let report = report::Report {
        standing: &standing,
        ended: &ended,
        took: app.now().since(begun),
        redactor: crew.redactor(),
        resumed_from,
        lanes: session.lanes()?,
        by_agent: by_agent(&session, spec)?,
        output: &folder.root,
        wants_events: flags.events,
    };
    report.print(app)?;
    if let Some(path) = &flags.record {
        super::record(path, &session)?;
    }
    drop(session);
    written?;
    Ok(report::exit(&ended))
}

/// What each agent used, over all of the flow's invocations.
fn by_agent(session: &Session, spec: &Spec) -> Result<BTreeMap<String, Usage>> {
    let mut used: BTreeMap<String, Usage> = BTreeMap::new();
    for fact in session.facts(&[stepwell::Kind::Node])? {
        let Event::Node(Node { key, usage: Some(usage), .. }) = fact.event else { continue };
        let key = key.parse::<NodeKey>().ok();
        if let Some(agent) = key.and_then(|key| agent_of(spec, &key)) {
            *used.entry(agent.to_owned()).or_default() += usage;
        }
    }
    Ok(used)
}

/// A flow whose work could not be saved says so loudly, with its own exit code.
fn unsaved(error: Error, session: &Session) -> Failure {
    match error {
        Error::Store(error) => {
            let message = format!("the flow stopped: what it did could not be saved: {error}");
            Failure::new(Exit::Damaged, message).hint(super::after_unsaved(&error, session.id()))
        }
        error => Failure::new(Exit::Failed, error),
    }
}
