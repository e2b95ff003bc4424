use stepwell::{Access, Answer, SessionId};
use stepwell_runtime::{Error, Given, ResumeRequest, Runtime};
use stepwell_terminal::note;
use stepwell_terminal::text::{cut, one_line};
use stepwell_workspace::Newest;

use super::handoff::{Elsewhere, Then, hand_over};
use crate::app::{App, Well};
use crate::ask::{Consent, Unasked};
use crate::detach;
use crate::failure::{Exit, Failure, Result};
use crate::runner::{self, Flags, FlowFlags, Runner};
use crate::typed::{each_once, variable};

/// Resumes a session exactly where it stopped, or gives it more to do.
///
/// With a TEXT, the session goes on with that: stepwell resume @last "now add tests".
#[derive(Debug, Default, clap::Args)]
pub(crate) struct Args {
    /// The session; without one, your newest in this workspace that can be resumed.
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
    /// Goes on in the background, prints the session's id and leaves.
    #[arg(long, conflicts_with_all = ["attach", "with", "text", "events", "dry_run"])]
    detach: bool,
    /// This process is the one in the background.
    #[arg(long, hide = true)]
    detached: bool,
    /// Answers the question that a flow waits with.
    #[arg(long, value_name = "TEXT", conflicts_with_all = ["approve", "deny"], help_heading = "Flows")]
    respond: Option<String>,
    /// Which question is answered, if several wait: stepwell gates lists them.
    #[arg(long, value_name = "GATE")]
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
    let newest = app.newest_to_resume(&well, Newest::OwnThatRan)?;
    let id = newest.ok_or_else(nothing_to_resume)?;
    if app.terminal.can_ask {
        let task = cut(&one_line(&well.info(&id)?.head.task), TASK);
        let question = format!("Resume {id}, {task:?}?");
        Consent::default().ask(app.terminal, &question, Unasked::GoOn)?;
    } else {
        note(format_args!("Resuming {id}"));
    }
    drop(well);
    run(&Args { session: Some(id.to_string()), flags: flags.clone(), ..Args::default() }, app)
}

/// The newest session that can be resumed, if there is one.
pub(super) fn newest_to_resume(app: &App) -> Result<Option<SessionId>> {
    match app.look()? {
        Some(well) => Ok(app.newest_to_resume(&well, Newest::OwnThatRan)?),
        None => Ok(None),
    }
}

/// How much of a task a question shows.
const TASK: usize = 60;

pub(crate) fn run(args: &Args, app: &mut App) -> Result<Exit> {
    refuse_unsaved(app)?;
    if let (Some(name), Some(text)) = (&args.session, &args.text) {
        let text = super::run::typed(text.clone())?;
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
            let id = if args.attach { running(&well)? } else { newest(&well, app)? };
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
    let is_flow = well.info(&id)?.head.flow.is_some();
    drop(well);
    if args.detach {
        let (workspace, out) = app.split();
        return detach::start(None, workspace, out);
    }
    if !is_flow {
        args.refuse_flow_flags(&id)?;
    }
    go_on(args, &id, if is_flow { Runner::Flow } else { Runner::Agent }, app)
}

/// Goes on with a session, or brings it an answer where it runs.
pub(crate) fn go_on(args: &Args, id: &SessionId, runner: Runner, app: &mut App) -> Result<Exit> {
    let (runtime, mut flow) = (app.runtime(), args.own.options());
    flow.use_current_spec = args.use_current_spec;
    flow.variables = each_once(&args.variables)?;
    if runner == Runner::Flow && args.flags.dry_run {
        let next = runtime.next_nodes(id, &flow)?;
        return super::flow::say_next(id, &next, app);
    }
    let given = args.given();
    if given.is_some() {
        runtime.refuse_in_run("answering")?;
    }
    if args.detached {
        detach::leave_terminal()?;
    }
    let request = ResumeRequest {
        answer: given.clone(),
        options: args.flags.options(runner, app.console()),
        flow,
        interrupt: runner::interrupt(),
        ..ResumeRequest::new(id.clone(), runtime.trust(id))
    };
    let handle = match (runtime.resume(request.clone()), given) {
        (Ok(handle), _) => handle,
        // An answer reaches a session that runs.
        (Err(Error::RunsElsewhere(_)), Some(given)) => {
            match answer_elsewhere(&runtime, &given, &request)? {
                GoesOn::There => return Ok(Exit::Done),
                GoesOn::Here => runtime.resume(ResumeRequest { answer: None, ..request })?,
            }
        }
        (Err(error), _) => return Err(error.into()),
    };
    if args.detached {
        detach::say_id(handle.id())?;
    }
    app.run_view().show(handle, runner, &args.flags)
}

/// Who goes on with an answer.
enum GoesOn {
    There,
    Here,
}

/// Answers a question of a session that somebody else holds.
fn answer_elsewhere(runtime: &Runtime, given: &Given, request: &ResumeRequest) -> Result<GoesOn> {
    let id = &request.session;
    let answered = runtime.answer(id, given, &request.flow)?;
    if !answered.goes_on {
        return Ok(GoesOn::Here);
    }
    note(format_args!("{id} runs elsewhere, and goes on there with the answer"));
    Ok(GoesOn::There)
}

/// Whoever types a sentence where a session belongs wants to say it to one.
fn meant_as_text(failure: Failure, name: &str) -> Failure {
    match name.trim().contains(char::is_whitespace) {
        true => failure.hint(format_args!("stepwell resume @last {name:?} says it to the newest")),
        false => failure,
    }
}

impl Args {
    /// What goes on with a flow that was begun before, as `flow run` finds it.
    pub(crate) fn of_flow(variables: Vec<(String, String)>, own: FlowFlags, flags: Flags) -> Self {
        Self { variables, own, flags, ..Self::default() }
    }

    /// What is said to a session that waits: an answer, or a word about a tool.
    fn given(&self) -> Option<Given> {
        let reason = self.reason.as_ref().map(|reason| format!(": {reason}")).unwrap_or_default();
        let word = match (self.approve, self.deny) {
            (true, _) => Some("approve".to_owned()),
            (_, true) => Some(format!("deny{reason}")),
            _ => None,
        };
        let answer = Answer::Text(self.respond.clone().or(word)?);
        Some(Given { gate: self.gate.clone(), answer })
    }

    /// What has a meaning for flows only is not passed over in silence.
    fn refuse_flow_flags(&self, id: &SessionId) -> Result<()> {
        let flags = [
            (self.respond.is_some(), "--respond"),
            (self.use_current_spec, "--use-current-spec"),
            (!self.variables.is_empty(), "--var"),
            (self.own.output.is_some(), "--output"),
            (self.own.force, "--force"),
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

/// The user's newest session of this workspace that can be resumed.
fn newest(well: &Well, app: &App) -> Result<SessionId> {
    if let Some(id) = app.newest_to_resume(well, Newest::Own)? {
        return Ok(id);
    }
    let Some(id) = app.newest_to_resume(well, Newest::Anyones)? else {
        return Err(nothing_to_resume());
    };
    let message = "no session that you began in this workspace can be resumed";
    Err(Failure::new(Exit::Absent, message).hint(format_args!(
        "stepwell resume {id} takes up the newest of others, or of another workspace"
    )))
}

/// The newest session here that runs.
fn running(well: &Well) -> Result<SessionId> {
    let newest = well.newest_running()?;
    newest.ok_or_else(|| Failure::new(Exit::Absent, "no session runs here"))
}

fn nothing_to_resume() -> Failure {
    Failure::new(Exit::Absent, "there is no session here to resume")
        .hint("stepwell run \"TASK\" begins one; stepwell import reads in those of other agents")
}

/// What is not saved cannot be taken up again.
pub(crate) fn refuse_unsaved(app: &App) -> Result<()> {
    if app.config.settings.auto_save {
        return Ok(());
    }
    Err(Error::NotSaved.into())
}
