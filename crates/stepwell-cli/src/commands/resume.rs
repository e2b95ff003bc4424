use stepwell::sqlite::Access;
use stepwell::{SessionId, Stepwell};
use stepwell_runtime::detached::{DetachedResume, TypedAnswer, Work};
use stepwell_runtime::{FlowOptions, ResumeRequest, Resumed, not_saved};
use stepwell_terminal::note;
use stepwell_terminal::text::{cut, one_line, visible};
use stepwell_workspace::{Newest, known_stores, resumable};

use super::detach;
use super::handoff::{Elsewhere, Onward, Then, hand_over};
use crate::app::App;
use crate::ask::{Consent, Unasked};
use crate::failure::{Exit, Failure, Result};
use crate::reach::Reach;
use crate::runner::{self, Flags, FlowFlags, Runner};
use crate::typed::{self, each_once, variable};

/// Resumes a session exactly where it stopped, or gives it more to do.
///
/// With a TEXT, the session continues with that: stepwell resume @last "now add tests".
#[derive(Debug, Default, clap::Args)]
#[command(mut_arg("dry_run", |arg| arg.help(DRY_RUN)))]
pub(crate) struct Args {
    /// The session; without one, your newest in this workspace that can be resumed.
    session: Option<String>,
    /// What to do next; - reads it from stdin. Without it, the session continues its work.
    #[arg(value_name = "TEXT", conflicts_with_all = ["approve", "deny", "attach", "with", "respond"])]
    text: Option<String>,
    /// Allows what the session waits for.
    #[arg(long, conflicts_with = "deny")]
    approve: bool,
    /// Denies it.
    #[arg(long)]
    deny: bool,
    /// Why you deny it; the model is told.
    #[arg(long, value_name = "TEXT", requires = "deny")]
    reason: Option<String>,
    /// Follows a session that runs elsewhere, without taking it over.
    #[arg(long)]
    attach: bool,
    /// Continues in the background, prints the session's id and exits.
    #[arg(long, conflicts_with_all = ["attach", "with", "text", "events", "dry_run"])]
    detach: bool,
    /// Answers the question that a flow is waiting on.
    #[arg(long, value_name = "TEXT", conflicts_with_all = ["approve", "deny"], help_heading = "Flows")]
    respond: Option<String>,
    /// Which question to answer, if there are several: stepwell gates lists them.
    #[arg(long, value_name = "GATE")]
    gate: Option<String>,
    /// Continues with the spec as it is on disk now, if finished work still fits it.
    #[arg(long, help_heading = "Flows")]
    use_current_spec: bool,
    /// Supplies a secret variable again: secrets are not stored with the flow. May be repeated.
    #[arg(long = "var", value_name = "NAME=VALUE", value_parser = variable, help_heading = "Flows")]
    variables: Vec<(String, String)>,
    #[command(flatten)]
    own: FlowFlags,
    #[command(flatten)]
    handoff: Elsewhere,
    #[command(flatten)]
    flags: Flags,
}

const DRY_RUN: &str = "Asks the model, and changes nothing outside the session: tools say what they \
                       would do. For a flow, shows what would run next, and exits";

/// What a run without a task does: takes up the newest session that can be resumed, if the
/// user wants that; on a terminal it asks first.
pub(crate) fn at_startup(flags: &Flags, app: &mut App) -> Result<Exit> {
    if !app.workspace.config.settings.resume_on_startup {
        let failure = Failure::new(Exit::Usage, "no task was given");
        return Err(failure.hint("stepwell run \"TASK\" begins one; stepwell resume goes on"));
    }
    refuse_unsaved(app)?;
    if !app.workspace.place.has_store() {
        return Err(nothing_to_resume());
    }
    let well = app.workspace.open_existing(Access::Write)?;
    let newest = resumable::newest(&app.workspace, &well, Newest::OwnUnasked)?;
    let id = newest.ok_or_else(nothing_to_resume)?;
    if app.terminal.can_ask {
        let task = cut(&app.out.redacted(&one_line(&well.info(&id)?.head.task)), TASK);
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
    match app.workspace.open_if_present()? {
        Some(well) => Ok(resumable::newest(&app.workspace, &well, Newest::OwnUnasked)?),
        None => Ok(None),
    }
}

/// How much of a task a question shows.
const TASK: usize = 60;

impl Args {
    /// A plain resume goes on as before; all else is the user's to say.
    pub(super) fn reach(&self) -> Reach {
        let answers = self.approve || self.deny || self.respond.is_some() || self.gate.is_some();
        let gives_more = self.flags.budget.is_some() || self.flags.budget_total.is_some();
        let widens = answers || gives_more || self.text.is_some() || self.use_current_spec;
        Reach::widens_if(widens || self.detach, self.flags.reach())
    }
}

pub(crate) fn run(args: &Args, app: &mut App) -> Result<Exit> {
    refuse_unsaved(app)?;
    if let (Some(name), Some(text)) = (&args.session, &args.text) {
        let text = typed::task(text.clone())?;
        return say_more(name, text, &args.flags, app);
    }
    let (well, id) = match &args.session {
        Some(name) => {
            known_stores::go_to_session(&mut app.workspace, name)?;
            app.workspace
                .open_session(name, Access::Write)
                .map_err(|error| meant_as_text(error.into(), name))?
        }
        None if !app.workspace.place.has_store() => return Err(nothing_to_resume()),
        None => {
            let well = app.workspace.open_existing(Access::Write)?;
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
        return hand_over(&id, Onward { agent, then }, app);
    }
    let is_flow = well.info(&id)?.head.flow.is_some();
    drop(well);
    if !is_flow {
        args.refuse_flow_flags(&id)?;
    }
    if args.detach {
        return detach(args, id, app);
    }
    go_on(args, &id, if is_flow { Runner::Flow } else { Runner::Agent }, app)
}

/// Goes on with a session in the background.
pub(crate) fn detach(args: &Args, session: SessionId, app: &mut App) -> Result<Exit> {
    let (answer, flow, options) = (args.answer(), args.flow()?, args.flags.detached());
    let resume = DetachedResume { session, say: None, answer, options, flow };
    detach::start(Work::Resume(resume), app)
}

/// Goes on with a session, or brings it an answer where it runs.
pub(crate) fn go_on(args: &Args, id: &SessionId, runner: Runner, app: &mut App) -> Result<Exit> {
    let runtime = app.runtime();
    let request = ResumeRequest {
        answer: args.answer().map(Into::into),
        options: args.flags.options(runner, app.console()),
        flow: args.flow()?,
        ..ResumeRequest::new(id.clone(), runtime.trust(id))
    };
    if runner == Runner::Flow && args.flags.dry_run {
        request.refuse_dry_answer()?;
        let next = runtime.next_nodes(id, &request.flow)?;
        return say_next(id, &next, app);
    }
    let request = ResumeRequest { interrupt: runner::interrupt(), ..request };
    match runtime.resume_or_answer(request)? {
        Resumed::Here(handle) => app.run_view().show(*handle, runner, &args.flags),
        Resumed::Elsewhere => {
            detach::goes_on_elsewhere(id);
            Ok(Exit::Done)
        }
    }
}

/// Gives a session that is there more to do, and goes on with it.
pub(super) fn say_more(name: &str, text: String, flags: &Flags, app: &mut App) -> Result<Exit> {
    refuse_unsaved(app)?;
    known_stores::go_to_session(&mut app.workspace, name)?;
    let (_, id) = app.workspace.open_session(name, Access::Write)?;
    let runtime = app.runtime();
    let request = ResumeRequest {
        say: Some(text),
        options: flags.options(Runner::Agent, app.console()),
        interrupt: runner::interrupt(),
        ..ResumeRequest::new(id.clone(), runtime.trust(&id))
    };
    app.run_view().show(runtime.resume(request)?, Runner::Agent, flags)
}

/// Says what a flow would go on with.
fn say_next(id: &SessionId, next: &[stepwell_flow::Upcoming], app: &mut App) -> Result<Exit> {
    if app.out.is_json() {
        let (session_id, next) = (id.clone(), next.iter().map(Into::into).collect());
        app.out.object(&stepwell_wire::UpcomingNodes { session_id, next })?;
        return Ok(Exit::Done);
    }
    if next.is_empty() {
        app.out.line(format_args!("{id} would only write its results, and end."))?;
    }
    for work in next {
        let who = work.agent.as_deref().unwrap_or("you");
        let asks = work.asks.as_deref().map(one_line).unwrap_or_default();
        let line = format!("{}  {who}: {asks}", work.key);
        app.out.line(app.cut(&visible(&line)))?;
    }
    note("This was a dry run: nobody was asked, and nothing was written.");
    Ok(Exit::Done)
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
    fn answer(&self) -> Option<TypedAnswer> {
        let reason = self.reason.as_ref().map(|reason| format!(": {reason}")).unwrap_or_default();
        let word = match (self.approve, self.deny) {
            (true, _) => Some("approve".to_owned()),
            (_, true) => Some(format!("deny{reason}")),
            _ => None,
        };
        let text = self.respond.clone().or(word)?;
        Some(TypedAnswer { gate: self.gate.clone(), text })
    }

    /// What is for flows only.
    fn flow(&self) -> Result<FlowOptions> {
        let (use_current_spec, variables) = (self.use_current_spec, each_once(&self.variables)?);
        Ok(FlowOptions { use_current_spec, variables, ..self.own.options() })
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
fn newest(well: &Stepwell, app: &App) -> Result<SessionId> {
    if let Some(id) = resumable::newest(&app.workspace, well, Newest::Own)? {
        return Ok(id);
    }
    let Some(id) = resumable::newest(&app.workspace, well, Newest::Anyones)? else {
        return Err(nothing_to_resume());
    };
    let message = "no session that you began in this workspace can be resumed";
    Err(Failure::new(Exit::Absent, message).hint(format_args!(
        "stepwell resume {id} takes up the newest of others, or of another workspace"
    )))
}

/// The newest session here that runs.
fn running(well: &Stepwell) -> Result<SessionId> {
    let newest = resumable::newest_running(well)?;
    newest.ok_or_else(|| Failure::new(Exit::Absent, "no session runs here"))
}

fn nothing_to_resume() -> Failure {
    Failure::new(Exit::Absent, "there is no session here to resume")
        .hint("stepwell run \"TASK\" begins one; stepwell import reads in those of other agents")
}

/// What is not saved cannot be taken up again.
pub(crate) fn refuse_unsaved(app: &App) -> Result<()> {
    if app.workspace.config.settings.auto_save {
        return Ok(());
    }
    Err(not_saved().into())
}
