use stepwell::gates::Gates;
use stepwell::{
    Access, Answer, Driver, Error, Family, Filter, GateAnswered, Head, Origin, Query, SessionId,
    Span, Status,
};
use stepwell_agent::machine::State;
use stepwell_agent::run::check_sendable;
use stepwell_workspace::restore_worktree;

use crate::app::{App, Go, Well, each_session};
use crate::ask::{Consent, Unasked};
use crate::failure::{Exit, Failure, Result};
use crate::handoff::{Elsewhere, Then, hand_over};
use crate::output::note;
use crate::readiness::make_ready;
use crate::runner::flow::{self as runner_flow, FlowFlags, Reply, each_once, variable};
use crate::runner::{Flags, Prepared, Words, drive};
use crate::text::{cut, one_line};

/// Resumes a session exactly where it stopped, or gives it more to do.
///
/// With a TEXT, the session goes on with that: stepwell resume @last "now add tests".
#[derive(Debug, Default, clap::Args)]
pub(crate) struct Args {
    /// The session; without one, the newest here that can be resumed.
    session: Option<String>,
    /// What to do next; - reads it from stdin. Without one, the session goes on with what it did.
    #[arg(value_name = "TEXT", conflicts_with_all = ["approve", "deny", "attach", "with", "respond"])]
    text: Option<String>,
    /// Allows what the session waits for.
    #[arg(long, conflicts_with = "deny")]
    approve: bool,
    /// Does not allow it.
    #[arg(long)]
    deny: bool,
    /// Why not, for the model.
    #[arg(long, value_name = "TEXT", requires = "deny")]
    reason: Option<String>,
    /// Follows a session that runs elsewhere, without taking it over.
    #[arg(long)]
    attach: bool,
    /// Answers the question that a flow waits with.
    #[arg(long, value_name = "TEXT", conflicts_with_all = ["approve", "deny"], help_heading = "Flows")]
    respond: Option<String>,
    /// Which question is answered, if several wait: stepwell gates lists them.
    #[arg(long, value_name = "GATE", help_heading = "Flows")]
    gate: Option<String>,
    /// Goes on with the spec as it is on disk now, if what is done still stands by it.
    #[arg(long, help_heading = "Flows")]
    use_current_spec: bool,
    /// Says a variable's secret again: it is not kept with the flow. May be given several times.
    #[arg(long = "var", value_name = "NAME=VALUE", value_parser = variable, help_heading = "Flows")]
    variables: Vec<(String, String)>,
    #[command(flatten)]
    own: FlowFlags,
    #[command(flatten)]
    handoff: Elsewhere,
    #[command(flatten)]
    flags: Flags,
}

/// What a run without a task does: takes up the newest session that can be resumed, if the
/// user wants that; on a terminal it asks first.
pub(crate) fn at_startup(flags: &Flags, app: &mut App) -> Result<Exit> {
    if !app.config.settings.resume_on_startup {
        let failure = Failure::new(Exit::Usage, "no task was given");
        return Err(failure.hint("stepwell run \"TASK\" begins one; stepwell resume goes on"));
    }
    refuse_unsaved(app)?;
    if !app.place.has_store() {
        return Err(nothing_to_resume());
    }
    let well = app.existing(Access::Write)?;
    // A fork that nobody ran yet is not what someone was at.
    let id =
        newest_of(&well, &RESUMABLE, |head| !never_ran(head))?.ok_or_else(nothing_to_resume)?;
    if app.terminal.can_ask {
        let task = cut(&one_line(&well.standing(&id)?.head.task), TASK);
        let question = format!("Resume {id}, {task:?}?");
        Consent::default().ask(app, &question, Unasked::GoOn)?;
    } else {
        note(format_args!("Resuming {id}"));
    }
    drop(well);
    run(&Args { session: Some(id.to_string()), flags: flags.clone(), ..Args::default() }, app)
}

/// How much of a task a question shows.
const TASK: usize = 60;

pub(crate) fn run(args: &Args, app: &mut App) -> Result<Exit> {
    refuse_unsaved(app)?;
    if let (Some(name), Some(text)) = (&args.session, &args.text) {
        return super::run::say_more(name, text, &args.flags, app);
    }
    let (well, id) = match &args.session {
        Some(name) => {
            app.go_to_session(name)?;
            app.session(name, Access::Write).map_err(|error| meant_as_text(error.into(), name))?
        }
        None if !app.place.has_store() => return Err(nothing_to_resume()),
        None => {
            let well = app.existing(Access::Write)?;
            let id = if args.attach { running(&well)? } else { newest(&well)? };
            let does = if args.attach { "Following" } else { "Resuming" };
            note(format_args!("{does} {id}"));
            (well, id)
        }
    };
    if args.attach {
        return super::log::follow(&well, &id, app);
    }
    if let Some(agent) = args.handoff.with {
        let then = match (args.flags.dry_run, args.handoff.exec) {
            (true, _) => Then::OnlySay,
            (false, true) => Then::Run,
            (false, false) => Then::Print,
        };
        return hand_over((&well, &id), agent, then, app);
    }
    let head = well.standing(&id)?.head;
    refuse_external(&head)?;
    if head.status == Status::Abandoned {
        let message = format!("{id} was abandoned");
        let hint = match head.flow.is_some() {
            true => "stepwell flow run SPEC begins it anew".to_owned(),
            false => format!("stepwell run \"TASK\" --session {id} goes on with it"),
        };
        return Err(Failure::new(Exit::Failed, message).hint(hint));
    }
    if head.flow.is_some() {
        return flow((&well, &id), &args.reply()?, (&args.flags, &args.own), app);
    }
    args.refuse_flow_flags(&id)?;
    // Before anything is recorded: an empty conversation is never sent.
    check_sendable(&head, well.store().events(&id, Span::ALL)?.intact(&id)?)?;
    take_up(&args.flags, &well, &head, app)?;
    let prepared = Prepared::new(&args.flags, Some(&head), app)?;
    prepared.check_priced(&head, &well.subagents(&id)?)?;
    // Known before anything is recorded: a session that is done stays done.
    let answer =
        if args.approve || args.deny { Some(answer(args, &prepared, &well, &id)?) } else { None };
    prepared.connect()?;
    make_ready(args.flags.touch(), &well, Some(&head), app)?;
    let done = is_done(&well, &head)?;
    let session = well.hold(&id).map_err(|error| match error {
        Error::Held { .. } => Failure::from(error).hint(format_args!(
            "stepwell resume {id} --attach follows it; stepwell stop {id} stops it"
        )),
        error => error.into(),
    })?;
    // Another process may have removed it until the lease was taken.
    take_up(&args.flags, &well, &head, app)?;
    // First: another process may have answered it until then, which leaves all as it is.
    if let Some(answer) = answer {
        well.answer(&id, answer)?;
    }
    if !done {
        session.take_up()?;
        well.edit(&id, prepared.remembered())?;
    }
    let exit = drive(session, &prepared, &Words::Nothing, Some(head.seq.get()), app)?;
    if done {
        note(format_args!(
            "{id} was finished already, so nothing was done.\n\
             hint: stepwell resume {id} \"TEXT\" gives it more to do; stepwell fork {id} or \
             stepwell rewind {id} goes back to try another way"
        ));
    }
    Ok(exit)
}

/// Whoever types a sentence where a session belongs wants to say it to one.
fn meant_as_text(failure: Failure, name: &str) -> Failure {
    match name.trim().contains(char::is_whitespace) {
        true => failure.hint(format_args!("stepwell resume @last {name:?} says it to the newest")),
        false => failure,
    }
}

/// Is nothing left to be done in a session? Then taking it up changes nothing, not even when it
/// ended.
fn is_done(well: &Well, head: &Head) -> Result<bool> {
    if head.status != Status::Success {
        return Ok(false);
    }
    // Rewinds of earlier versions left the status as it was, and tasks may be open.
    let state = State::of(&well.store().events(&head.id, Span::ALL)?.intact(&head.id)?);
    Ok(state.is_over() && !state.is_unfinished())
}

/// Sees to it that a session's worktree is whole, if it works in one. A dry run does not need it
/// to be.
pub(super) fn take_up(flags: &Flags, well: &Well, head: &Head, app: &App) -> Result<()> {
    if flags.dry_run { Ok(()) } else { Ok(restore_worktree(well, head, app)?) }
}

/// How sessions stand that can be taken up again.
const RESUMABLE: [Status; 4] =
    [Status::Interrupted, Status::Partial, Status::Paused, Status::Failed];

/// Goes on with a flow.
pub(crate) fn flow(
    session: (&Well, &SessionId),
    reply: &Reply,
    (flags, own): (&Flags, &FlowFlags),
    app: &mut App,
) -> Result<Exit> {
    runner_flow::resume(session, reply, flags, own, app)
}

impl Args {
    /// What is said to a flow that waits: an answer, or a word about a tool.
    fn reply(&self) -> Result<Reply> {
        let reason = self.reason.as_ref().map(|reason| format!(": {reason}")).unwrap_or_default();
        let word = match (self.approve, self.deny) {
            (true, _) => Some("approve".to_owned()),
            (_, true) => Some(format!("deny{reason}")),
            _ => None,
        };
        Ok(Reply {
            text: self.respond.clone().or(word),
            gate: self.gate.clone(),
            use_current_spec: self.use_current_spec,
            variables: each_once(&self.variables)?,
        })
    }

    /// What has a meaning for flows only is not passed over in silence.
    fn refuse_flow_flags(&self, id: &SessionId) -> Result<()> {
        let flags = [
            (self.respond.is_some(), "--respond"),
            (self.gate.is_some(), "--gate"),
            (self.use_current_spec, "--use-current-spec"),
            (!self.variables.is_empty(), "--var"),
            (self.own.output.is_some(), "--output"),
            (self.own.force, "--force"),
            (self.own.wait, "--wait"),
        ];
        match flags.into_iter().find(|(given, _)| *given) {
            Some((_, flag)) => {
                let message = format!("{flag} is for flows, and {id} is none");
                Err(Failure::new(Exit::Usage, message))
            }
            None => Ok(()),
        }
    }
}

/// The newest session here that can be resumed.
fn newest(well: &Well) -> Result<SessionId> {
    newest_of(well, &RESUMABLE, |_| true)?.ok_or_else(nothing_to_resume)
}

/// The newest session here that runs.
fn running(well: &Well) -> Result<SessionId> {
    newest_of(well, &[Status::Running], |_| true)?
        .ok_or_else(|| Failure::new(Exit::Absent, "no session runs here"))
}

/// Was a fork made of which nobody has made anything yet?
pub(crate) fn never_ran(head: &Head) -> bool {
    matches!(head.origin, Origin::Fork { .. })
        && head.resumes == 0
        && head.status == Status::Interrupted
        && head.stop_reason.is_none()
}

fn newest_of(
    well: &Well,
    status: &[Status],
    wanted: impl Fn(&Head) -> bool,
) -> Result<Option<SessionId>> {
    let (status, family, driver) = (status.to_vec(), Family::Roots, Some(Driver::Own));
    let filter = Filter { status, family, driver, ..Filter::default() };
    let mut found = None;
    each_session(well, Query { filter, limit: 10, ..Query::default() }, |standing| {
        if !wanted(&standing.head) {
            return Ok(Go::On);
        }
        found = Some(standing.head.id);
        Ok(Go::Stop)
    })?;
    Ok(found)
}

fn nothing_to_resume() -> Failure {
    Failure::new(Exit::Absent, "there is no session here to resume")
        .hint("stepwell run \"TASK\" begins one; stepwell import reads in those of other agents")
}

/// The answer to the question that the session waits with.
fn answer(args: &Args, prepared: &Prepared, well: &Well, id: &SessionId) -> Result<GateAnswered> {
    let gates = Gates::of(&**well.store(), id)?;
    let Some(asked) = gates.open().next_back() else {
        return Err(Failure::new(Exit::Failed, format_args!("{id} does not wait for an answer")));
    };
    let reason = args.reason.as_ref();
    let reason = reason.map(|reason| prepared.redactor().redact(reason).into_owned());
    let answer = match args.approve {
        true => Answer::ALLOW_ONCE,
        false => Answer::Deny { reason, never: false },
    };
    Ok(GateAnswered::new(asked.gate.id.clone(), answer, "the user"))
}

/// What is not saved cannot be taken up again.
pub(crate) fn refuse_unsaved(app: &App) -> Result<()> {
    if app.config.settings.auto_save {
        return Ok(());
    }
    let message = "sessions.auto_save is off, so a session cannot be gone on with";
    Err(Failure::new(Exit::Absent, message).hint("add --config sessions.auto_save=true"))
}

/// A session that Stepwell does not run is its own agent's.
pub(crate) fn refuse_external(head: &Head) -> Result<()> {
    if head.driver == Driver::Own {
        return Ok(());
    }
    let message = format!("{} is driven by an agent of yours, not by Stepwell", head.id);
    Err(Failure::new(Exit::Failed, message)
        .hint(format_args!("stepwell agent should-resume {}", head.id)))
}
