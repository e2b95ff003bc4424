use std::io::Read;

use stepwell::{Access, PhaseSet, Stepwell};

use super::resume::{self, refuse_external, refuse_unsaved};
use crate::app::App;
use crate::failure::{Exit, Failure, Result};
use crate::output::note;
use crate::readiness::make_ready;
use crate::runner::{Flags, Prepared, Words, drive};

/// Runs an agent on a task. Each step is saved before the next begins.
///
/// Ends with 0 when it is done, 5 at a limit, 8 when it waits for you, 130 when it was
/// interrupted; each can be resumed.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// What to do; - reads it from stdin. Without one, sessions.resume_on_startup takes up
    /// the newest session that can be resumed.
    task: Option<String>,
    /// Adds the task to this session, and goes on there.
    #[arg(long, value_name = "SESSION", requires = "task")]
    session: Option<String>,
    /// The phases that the session's work goes through: workflow or lifecycle.
    #[arg(long, value_name = "SET", conflicts_with = "session", requires = "task")]
    phases: Option<Phases>,
    #[command(flatten)]
    flags: Flags,
}

/// A set of phases, as it is typed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum Phases {
    Workflow,
    Lifecycle,
}

impl From<Phases> for PhaseSet {
    fn from(phases: Phases) -> Self {
        match phases {
            Phases::Workflow => Self::Workflow,
            Phases::Lifecycle => Self::Lifecycle,
        }
    }
}

pub(crate) fn run(args: &Args, app: &mut App) -> Result<Exit> {
    let Some(mut task) = args.task.clone() else { return resume::at_startup(&args.flags, app) };
    task = typed(task)?;
    if let Some(name) = &args.session {
        return say_more(name, &task, &args.flags, app);
    }
    let prepared = Prepared::new(&args.flags, None, app)?;
    let prepared = prepared.with_phases(args.phases.map(PhaseSet::from));
    prepared.connect()?;
    let well: Stepwell = if app.config.settings.auto_save {
        let well = app.make()?;
        make_ready(args.flags.touch(), &well, None, app)?;
        Stepwell::clone(&*well)
    } else {
        note("sessions.auto_save is off: this run is kept in memory only and cannot be resumed.");
        Stepwell::in_memory()
    };
    let session = prepared.begin(&well, &task, app)?;
    drive(session, &prepared, &Words::Begun(task), None, app)
}

/// A task as it was typed, or from stdin.
fn typed(mut task: String) -> Result<String> {
    if task == "-" {
        task.clear();
        std::io::stdin().read_to_string(&mut task).map_err(|error| {
            Failure::new(Exit::Usage, format_args!("the task cannot be read from stdin: {error}"))
        })?;
    }
    if task.trim().is_empty() {
        return Err(Failure::new(Exit::Usage, "the task is empty"));
    }
    Ok(task)
}

/// Gives a session that is there more to do, and goes on with it.
pub(super) fn say_more(name: &str, text: &str, flags: &Flags, app: &mut App) -> Result<Exit> {
    let text = typed(text.to_owned())?;
    refuse_unsaved(app)?;
    app.go_to_session(name)?;
    let (well, id) = app.session(name, Access::Write)?;
    let head = well.standing(&id)?.head;
    refuse_external(&head)?;
    refuse_flow(&head)?;
    resume::take_up(flags, &well, &head, app)?;
    let prepared = Prepared::new(flags, Some(&head), app)?;
    prepared.check_priced(&head, &well.subagents(&id)?)?;
    // Whatever can be refused is refused before anything is recorded.
    prepared.connect()?;
    make_ready(flags.touch(), &well, Some(&head), app)?;
    let session = well.resume(&id)?;
    resume::take_up(flags, &well, &head, app)?;
    well.edit(&id, prepared.remembered())?;
    drive(session, &prepared, &Words::More(text), Some(head.seq.get()), app)
}

/// A flow's agents are asked what its spec says, and nothing else.
fn refuse_flow(head: &stepwell::Head) -> Result<()> {
    if head.flow.is_none() {
        return Ok(());
    }
    let message = format!("{} is a flow, and its spec says what is asked", head.id);
    Err(Failure::new(Exit::Failed, message)
        .hint(format_args!("stepwell resume {} goes on with it", head.id)))
}
